"""Files of kinds that cgmigrate does not read, but that may hold settings: they are named where they do.

A run that says nothing of them would look as if it had read all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator

from cgmigrate.project.seeds import seeds_of
from cgmigrate.text.files import READ

SUFFIXES = frozenset(
    (
        *(".json", ".jsonc", ".json5", ".jsonnet", ".libsonnet", ".toml", ".ini", ".cfg", ".conf", ".env", ".gin"),
        *(".hcl", ".tf", ".pbtxt", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".mustache"),
    )
)
"""Those of configurations and templates. Logs, patches, tables and lock files only quote settings."""
_MOST_BYTES = 1024 * 1024
_REPORT = re.compile(rb"[\"']CG\d{3}\b")
"""A code of a rule: the file is a baseline or a report of cgmigrate, which quote the settings that it has seen."""


def may_hold_settings(path: str) -> bool:
    """Return whether a file is of a kind that is not read and may hold settings."""
    return os.path.splitext(path)[1].lower() in SUFFIXES


def notes_on(paths: Iterable[str], names: Callable[[str], Collection[str]]) -> Iterator[str]:
    """Yield a note for each file that contains one of the names for it; large files have none.

    ``names`` is called for files with a seed word of the settings that ship only.
    """
    words = seeds_of().plain
    for path in paths:
        data = _start_of(path)
        if len(data) > _MOST_BYTES or not words.are_in(data) or _REPORT.search(data):
            continue
        if not (match := _pattern(names(path)).search(data)):
            continue
        line = data.count(b"\n", 0, match.start()) + 1
        kind = os.path.splitext(path)[1].lower()
        yield f"cgmigrate does not read {kind} files, and one names `{match.group().decode()}`: {path}:{line}"


def _start_of(path: str) -> bytes:
    """Return the first bytes of a file, empty if it cannot be read: each clean tree reads its files in this way."""
    try:
        descriptor = os.open(path, READ)
        try:
            return os.read(descriptor, _MOST_BYTES + 1)
        finally:
            os.close(descriptor)
    except OSError:
        return b""


def _pattern(names: Collection[str]) -> re.Pattern[bytes]:
    spellings = sorted({spelling for name in names for spelling in (name, name.replace("_", "-"))})
    either = "|".join(map(re.escape, spellings)) or "(?!)"
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{either})(?![A-Za-z0-9_])".encode())
