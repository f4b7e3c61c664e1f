"""Names of modules that a project replaces: an import of such a name gets what the project has put there.

Code puts something there by a store, or names the name or its module in a text, which it hands to whatever does that. A
patch, a script or a Dockerfile does it with a word alone. A module of the same path is another one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.project.paths import display_path

_CODE = (".py", ".pyi", ".ipynb")
_PROSE = (".md", ".mdx", ".rst", ".txt")


def replacement_of(names: Iterable[str], texts: ProjectTexts) -> str:
    """Return where a project may replace one of some names, each with its module, in words; empty for nowhere."""
    return next(_replacements(names, texts), "")


def _replacements(names: Iterable[str], texts: ProjectTexts) -> Iterator[str]:
    for full in names:
        module, _, name = full.rpartition(".")
        for path in texts.holding((name, module)):
            if path.lower().endswith(_PROSE):
                continue
            text, where = texts.text(path), display_path(path)
            is_code = path.endswith(_CODE)
            if path.endswith(os.path.join(*module.split(".")) + ".py"):
                yield f"{where} may replace `{module}`"
            elif match := (_in_code if is_code else _in_text)(module, name).search(text):
                yield f"{where}:{text.count(chr(10), 0, match.start()) + 1} may replace `{full}`"


@lru_cache(maxsize=256)
def _in_code(module: str, name: str) -> re.Pattern[str]:
    """Return what a store to the name looks like, and texts that are the name, or the path of its module."""
    stored = rf"\.{name}\s*(?:,[^=\n]*)?=(?!=)|\b{name}=(?!=)"
    quoted = rf"""["'](?:[\w.]*\.)?{name}["']|["'][^"'\n]*{re.escape(module)}[^"'\n]*["']"""
    return re.compile(f"{stored}|{quoted}")


@lru_cache(maxsize=256)
def _in_text(module: str, name: str) -> re.Pattern[str]:
    return re.compile(rf"\b{name}\b|{re.escape(module)}\b")
