"""Code that replaces a class of Megatron, or what it does with its attributes: its keywords may be others then."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.megatron.source_trees import is_part_of_megatron

_CLASS = "TransformerConfig"
_DEFINES = re.compile(rf"^[ \t]*class {_CLASS}\b(?!\([^)]*{_CLASS})", re.MULTILINE)
_REPLACES = re.compile(
    rf"^[ \t]*(?:\w+\.)*{_CLASS}(?:\.__\w+)?\s*=(?!=)"
    rf"|\b{_CLASS}\.__\w+__\s*(?:=(?!=)|$)"
    rf"|(?<!def )\b(?:setattr|patch(?:\.\w+)*)\([^\n]*{_CLASS}"
    rf"|\bvars\([^\n]*[\"']{_CLASS}[\"']"
    r"|\bsys\.modules\[[\"']megatron",
    re.MULTILINE,
)
_METHOD = re.compile(r"\b(\w+)\.__(?:setattr|getattr|getattribute|init|post_init)__\s*=(?!=)")
_WORDS = (_CLASS, "sys.modules", "attr__ =", "attribute__ =", "init__ =")


def class_changes_in(texts: ProjectTexts) -> Iterator[tuple[str, int, str]]:
    """Yield the places, with the code, that define, replace or patch a class with the settings.

    A subclass of megatron-core's own is none: its object is one of the class.
    """
    for path in texts.holding(_WORDS):
        if not path.endswith((".py", ".pyi", ".ipynb")) or is_part_of_megatron(path):
            continue
        text = texts.text(path)
        for match in (_DEFINES.search(text), _REPLACES.search(text), _patched_method(text)):
            if match is not None:
                yield path, text.count("\n", 0, match.start()) + 1, match.group().strip()


def _patched_method(text: str) -> re.Match[str] | None:
    """Return where a method of a class that is imported from Megatron is replaced."""
    for match in _METHOD.finditer(text):
        if re.search(rf"^from megatron[.\w]* import [^#\n]*\b{match[1]}\b", text, re.MULTILINE):
            return match
    return None
