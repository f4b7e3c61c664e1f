"""Code that replaces a class of Megatron, or what it does with its attributes: its keywords may be others then."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.megatron.source_trees import is_part_of_megatron

_CLASS = "TransformerConfig"
_MODULE = "transformer_config"
_DEFINES = re.compile(rf"^[ \t]*class {_CLASS}\b", re.MULTILINE)
_REPLACES = re.compile(
    rf"^[ \t]*(?:\w+\.)*{_CLASS}(?:\.__\w+)?\s*=(?!=)"
    r"|\b\w+\.__(?:setattr|getattr|getattribute|init|post_init)__\s*=(?!=)"
    rf"|\b{_CLASS}\.__\w+__\s*(?:=(?!=)|$)"
    rf"|(?:setattr|patch(?:\.\w+)*)\([^\n]*{_CLASS}"
    rf"|patch\([\"'][\w.]*\b{_CLASS}[\w.]*[\"']"
    rf"|\bsys\.modules\[[\"']megatron",
    re.MULTILINE,
)


def class_changes_in(texts: ProjectTexts) -> Iterator[tuple[str, int, str]]:
    """Yield the places, with the code, that define, replace or patch the class with the settings."""
    for path in texts.holding((_CLASS, "sys.modules", "attr__", "attribute__", "init__ =")):
        if not path.endswith((".py", ".pyi", ".ipynb")) or is_part_of_megatron(path):
            continue
        text = texts.text(path)
        for pattern in (_DEFINES, _REPLACES):
            if match := pattern.search(text):
                yield path, text.count("\n", 0, match.start()) + 1, match.group().strip()
