"""Files of kinds that cgmigrate does not read, but that may hold settings: they are named where they do.

A run that says nothing of them would look as if it had read all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator

from cgmigrate.project.seeds import SeedsOf
from cgmigrate.text.files import read_bytes

SUFFIXES = frozenset(
    (
        *(".json", ".jsonc", ".json5", ".jsonnet", ".libsonnet", ".toml", ".ini", ".cfg", ".conf", ".env", ".gin"),
        *(".hcl", ".tf", ".pbtxt", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".mustache", ".ipynb"),
    )
)
"""Those of configurations, templates and notebooks. Logs, patches, tables and lock files only quote settings."""
_MOST_BYTES = 1024 * 1024
_REPORT = re.compile(rb"[\"']CG\d{3}\b")
"""A code of a rule: the file is a baseline or a report of cgmigrate, which quote the settings that it has seen."""


def may_hold_settings(path: str) -> bool:
    """Return whether a file is of a kind that is not read and may hold settings."""
    return os.path.splitext(path)[1].lower() in SUFFIXES


def notes_on(paths: Iterable[str], seeds_of: SeedsOf, names: Callable[[str], Collection[str]]) -> Iterator[str]:
    """Yield a note for each file that contains one of the names for it; large files have none.

    ``names`` is called for files with a seed word only.
    """
    for path in paths:
        try:
            data = read_bytes(path, _MOST_BYTES)
        except OSError:
            continue
        if not seeds_of(path).in_file(data) or _REPORT.search(data):
            continue
        if not (match := _pattern(names(path)).search(data)):
            continue
        line = data.count(b"\n", 0, match.start()) + 1
        kind = os.path.splitext(path)[1].lower()
        yield f"cgmigrate does not read {kind} files, and one names `{match.group().decode()}`: {path}:{line}"


def _pattern(names: Collection[str]) -> re.Pattern[bytes]:
    spellings = sorted({spelling for name in names for spelling in (name, name.replace("_", "-"))})
    either = "|".join(map(re.escape, spellings)) or "(?!)"
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{either})(?![A-Za-z0-9_])".encode())
