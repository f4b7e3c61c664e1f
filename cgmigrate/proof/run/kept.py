"""Verdicts of earlier runs, kept for the next command."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable

from cgmigrate.project.kept import load, store
from cgmigrate.proof.run.judge import RunVerdict

_KIND = "proofs"


def kept(
    key: str, prove: Callable[[], dict[str, RunVerdict]], releases: Callable[[], Iterable[tuple[str, int]]]
) -> dict[str, RunVerdict]:
    """Return the verdicts of a key: those of an earlier command, or new ones, which are kept."""
    with contextlib.suppress(OSError, ValueError, TypeError):
        match load(_KIND, key):
            case {"releases": list() as files, "verdicts": dict() as rows}:
                if all(os.stat(file).st_mtime_ns == time for file, time in files):
                    return {name: RunVerdict(*row) for name, row in rows.items()}
    verdicts = prove()
    rows = {name: [one.is_proved, one.text] for name, one in verdicts.items()}
    store(_KIND, key, {"releases": sorted(releases()), "verdicts": rows})
    return verdicts
