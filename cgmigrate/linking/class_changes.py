"""Code that replaces a class of Megatron, or what it does with its attributes: its keywords may be others then."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.megatron.source_trees import is_part_of_megatron

_DEFINES = r"^[ \t]*class (?:{names})\b(?!\([^)]*(?:{names}))"
_REPLACES = (
    r"^[ \t]*(?:\w+\.)*(?:{names})(?:\.__\w+)?\s*=(?!=)|\b(?:{names})\.__\w+__\s*(?:=(?!=)|$)"
    r"|(?<!def )\b(?:setattr|patch(?:\.\w+)*)\(\s*(?:\w+\.)*(?:{names})\b"
    r"|(?<!\bcast)\(\s*(?:[\w.]+(?:\(\))?,\s*)?[\"'](?:\w+\.)*(?:{names})[\"']|\)\[\s*[\"'](?:{names})[\"']"
)
"""Assigns to a class or to a method of it, or gives its name to a function, which can replace it."""
_IS_TEXT = r"[\"'](?:\w+\.)*(?:{names})[\"']"
_STUBS = re.compile(
    r"\bsys\.modules(?:\[|\.update|\.setdefault)|[\"']sys\.modules[\"']|\bmeta_path\b|\bMetaPathFinder\b"
    r"|\bModuleType\(|\b__import__ = "
)
_EXPORTS = re.compile(r"^__all__\b[^\])]*", re.MULTILINE)
"""What a module exports is no use of it."""
_PATCHES = re.compile(r"\bmock\.patch|\bmonkeypatch\.")
_METHOD = re.compile(r"\b(\w+)\.__(?:setattr|getattr|getattribute|init|post_init)__\s*=(?!=)")
_WORDS = (
    *("sys.modules", "__import__ =", "meta_path", "MetaPathFinder", "ModuleType"),
    *("attr__ =", "attribute__ =", "init__ ="),
)
_CODE = (".py", ".pyi", ".ipynb")


def class_changes_in(texts: ProjectTexts, classes: Collection[str], *, is_own: bool) -> Iterator[tuple[str, int, str]]:
    """Yield the places, with the code, that define, replace or patch one of some classes, or stand in for Megatron.

    A subclass of megatron-core's own is none: its object is one of the class. ``is_own`` says that the project may be
    where the classes come from, and that a proof follows its definitions.
    """
    names = "|".join(sorted(classes))
    patterns = [re.compile(one.format(names=names), re.MULTILINE) for one in (_DEFINES, _REPLACES, _IS_TEXT)]
    for path in texts.holding((*_WORDS, *classes)):
        if not path.endswith(_CODE) or is_part_of_megatron(path):
            continue
        text = _EXPORTS.sub(lambda match: "\n" * match.group().count("\n"), texts.text(path))
        tried = patterns[is_own : len(patterns) if _PATCHES.search(text) else -1]
        matches = [*(one.search(text) for one in tried), _patched_method(text)]
        matches += [_STUBS.search(text)] if "megatron" in path + text and not is_own else []
        for match in matches:
            if match is not None:
                yield path, text.count("\n", 0, match.start()) + 1, match.group().strip()


def _patched_method(text: str) -> re.Match[str] | None:
    """Return where a method of a class that is imported from Megatron is replaced."""
    for match in _METHOD.finditer(text):
        if re.search(rf"^from megatron[.\w]* import [^#\n]*\b{match[1]}\b", text, re.MULTILINE):
            return match
    return None
