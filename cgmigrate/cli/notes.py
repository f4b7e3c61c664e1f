"""What a run prints on stderr besides the diagnostics: files without diagnostics, and settings left unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.cli.console import Output
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.run import Run

_PLACE = re.compile(r"[^\s()]+:\d+")
MOST_NAMED = 5
"""Places that are named for each owner without --verbose."""


def clean_summary(run: Run, what: str) -> str:
    """Return the last line of a run without diagnostics. It is a warning if no file was read: that proves nothing."""
    seen, excluded = run.discovery.files_seen, run.discovery.excluded
    if seen:
        return f"Checked {counted(seen, 'file')}: {what}."
    cause = (
        f" ({excluded[0]} is excluded{f', and {len(excluded) - 1} more' if excluded[1:] else ''})" if excluded else ""
    )
    return f"warning: Checked 0 files{cause}: {what}."


def print_notes(run: Run, files: Iterable[FileResult], output: Output) -> None:
    """Print the notes of the run, and the settings of other projects."""
    output.details()
    for note, more in _alike(run.notes, output.reporting.verbose):
        output.message(f"note: {note}")
        if more:
            output.message(f"  and {counted(more, 'note')} of this kind for other places (--verbose shows all)")
    for owner, places in _by_owner(files, output.reporting.verbose).items():
        _print_places(owner, places, output)


def _alike(notes: Iterable[str], verbose: bool) -> Iterator[tuple[str, int]]:
    """Yield notes, each with how many more there are that differ in the place only; those follow with ``verbose``."""
    by_text: dict[str, list[str]] = {}
    for note in notes:
        by_text.setdefault(note if verbose else _PLACE.sub("", note), []).append(note)
    for alike in by_text.values():
        yield alike[0], len(alike) - 1


def _by_owner(files: Iterable[FileResult], with_prose: bool) -> dict[str, list[str]]:
    """Return the places of settings that were left unchanged, by the project that owns the setting."""
    by_owner: dict[str, list[str]] = {}
    for checked in files:
        if not checked.skipped:
            continue
        from cgmigrate.documents.sites import BOTH_NAMES, FOLLOWS_USES, PROSE

        for line, key, owner in checked.skipped:
            if owner not in (FOLLOWS_USES, BOTH_NAMES) and (with_prose or owner != PROSE):
                by_owner.setdefault(owner, []).append(f"{checked.path}:{line}: `{key}`")
    return by_owner


def _print_places(owner: str, places: list[str], output: Output) -> None:
    from cgmigrate.documents.sites import HISTORY, UNKNOWN_OWNER

    if owner == HISTORY and not output.reporting.verbose:
        kept = counted(len(places), "deprecated name")
        output.message(f"note: {kept} left unchanged in {HISTORY} (--verbose shows all)")
        return
    why = "its owner is not known" if owner == UNKNOWN_OWNER else f"the name belongs to {owner}"
    output.message(f"note: left unchanged, since {why}:")
    most = len(places) if output.reporting.verbose else MOST_NAMED
    for place in places[:most]:
        output.message(f"  {place}")
    if len(places) > most:
        output.message(f"  and {len(places) - most} more (--verbose shows all)")
