"""Names of modules that code of a project replaces: an import of such a name gets what the project has put there."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.project.paths import display_path

_CODE = (".py", ".pyi", ".ipynb")


def replacement_of(names: Iterable[str], texts: ProjectTexts) -> str:
    """Return where a project replaces one of some names, each with its module, in words; empty if it does nowhere."""
    return next(_replacements(names, texts), "")


def _replacements(names: Iterable[str], texts: ProjectTexts) -> Iterator[str]:
    for full in names:
        module, _, name = full.rpartition(".")
        for path in texts.holding((name, module.rpartition(".")[2])):
            if path.endswith(_CODE) and (match := _pattern(module, name).search(text := texts.text(path))):
                yield f"{display_path(path)}:{text.count(chr(10), 0, match.start()) + 1} may replace `{full}`"


@lru_cache(maxsize=256)
def _pattern(module: str, name: str) -> re.Pattern[str]:
    """Return what puts something in the place of a name, or of its module."""
    quoted = rf"""["'](?:[\w.]*\.)?{name}["']"""
    set_by_name = rf"(?:setattr|patch\w*(?:\.\w+)?)\([^\n]*{quoted}"
    return re.compile(rf"""\.{name}\s*=(?!=)|{set_by_name}|sys\.modules\[\s*["']{re.escape(module)}["']""")
