"""The proof by closure: in whatever order the writes of a group meet, the same is captured before and after.

The writes of a group are finitely many. Each pair of them is merged, as the old text and as the new one has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.site_examination import source_for
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.settings import Choice, Settings, Undecided
from cgmigrate.megatron.types import Reader, Rejected

MOST_PAIRS = 20_000
"""Pairs that are tried; a group with more is not proved."""


@dataclass(frozen=True, slots=True)
class Write:
    """What one place sets, as its text is and as it will be."""

    before: Settings
    after: Settings
    reader: Reader
    place: str


def counterexample(writes: Sequence[Write], context: Context) -> str:
    """Return the places of two writes that together capture something else after a rewrite, empty if none do."""
    distinct = list({_key(one): one for one in writes}.values())
    if open_one := next((one for one in distinct if not (_is_known(one.before) and _is_known(one.after))), None):
        return f"{open_one.place}, whose value is not known"
    if len(distinct) ** 2 > MOST_PAIRS:
        return f"{len(distinct)} different places, which are too many"
    for first in distinct:
        for second in distinct:
            if not _is_same(first, second, context):
                return f"{second.place} over {first.place}"
    return ""


def _is_same(first: Write, second: Write, context: Context) -> bool:
    """Return whether two writes capture the same in this order; what the source refuses shows nothing."""
    old, new = {**first.before, **second.before}, {**first.after, **second.after}
    if old == new:
        # What the target captures with it does not depend on the rewrite.
        return True
    was = capture_of(old, source_for(old, context), second.reader)
    return isinstance(was, Rejected) or was == capture_of(new, context.target, second.reader)


def _is_known(settings: Settings) -> bool:
    return not any(isinstance(value, (Undecided, Choice)) for value in settings.values())


def _key(write: Write) -> str:
    return repr((sorted(write.before.items()), sorted(write.after.items()), write.reader))
