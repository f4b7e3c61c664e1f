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
        *(".json5", ".jsonnet", ".libsonnet", ".toml", ".ini", ".cfg", ".conf", ".env", ".gin"),
        *(".zsh", ".fish", ".csh", ".tcsh", ".ps1", ".bat", ".groovy", ".nf"),
        *(".hcl", ".tf", ".pbtxt", ".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".mustache"),
    )
)
"""Those of configurations and templates. Logs, patches, tables and lock files only quote settings."""
_PARTIAL = (".json", ".jsonc")
"""Files of which only command lines are read."""
_MOST_BYTES = 1024 * 1024
_REPORT = re.compile(rb"[\"']CG\d{3}\b")
"""A code of a rule: the file is a baseline or a report of cgmigrate, which quote the settings that it has seen."""


def may_hold_settings(path: str) -> bool:
    """Return whether a file is of a kind that is not read and may hold settings."""
    return os.path.splitext(path)[1].lower() in SUFFIXES


def is_report(data: bytes) -> bool:
    """Return whether a file is a baseline or a report of cgmigrate."""
    return _REPORT.search(data) is not None


def notes_on(paths: Iterable[str], names: Callable[[str], Collection[str]]) -> Iterator[str]:
    """Yield a note for each file that contains one of the names for it; large files have none.

    ``names`` is called for files with a seed word of the settings that ship only.
    """
    for path in sorted(paths):
        is_partial = os.path.splitext(path)[1].lower() in _PARTIAL
        if (first := _first_name(path, names, is_partial=is_partial)) is None:
            continue
        match, line = first
        kind = os.path.splitext(path)[1].lower()
        what = f"reads only command lines in {kind} files" if kind in _PARTIAL else f"does not read {kind} files"
        yield f"cgmigrate {what}, and one names `{match.group().decode()}`: {path}:{line}"


def names_setting(path: str, names: Callable[[str], Collection[str]]) -> bool:
    """Return whether a file that is not large contains one of the names for it."""
    return _first_name(path, names, is_partial=False) is not None


def _first_name(
    path: str, names: Callable[[str], Collection[str]], *, is_partial: bool
) -> tuple[re.Match[bytes], int] | None:
    """Return where a file has one of the names for it first, with the line; None if it has none or is large."""
    data = _start_of(path)
    if len(data) > _MOST_BYTES or not seeds_of().plain.are_in(data) or is_report(data):
        return None
    match = _pattern(names(path), is_partial).search(data)
    return (match, data.count(b"\n", 0, match.start()) + 1) if match else None


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


def _pattern(names: Collection[str], is_partial: bool) -> re.Pattern[bytes]:
    """Return the pattern of some names; in files of which command lines are read, without flags and overrides."""
    spellings = sorted({spelling for name in names for spelling in (name, name.replace("_", "-"))})
    either = "|".join(map(re.escape, spellings)) or "(?!)"
    before, behind = ("A-Za-z0-9_.-", "(?!=)") if is_partial else ("A-Za-z0-9_", "")
    return re.compile(rf"(?<![{before}])(?:{either})(?![A-Za-z0-9_]){behind}".encode())
