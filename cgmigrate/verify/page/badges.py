"""Badges: a verdict, or what changed between the releases, as a word with a sign and a colour.

Colour and sign never replace the word.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE
from cgmigrate.verify.release_changes import GRAPHS, NUMBERS, SUPPORT


@dataclass(frozen=True, slots=True)
class Badge:
    """``look`` is a class of the style sheet, ``meaning`` a sentence for the list of terms."""

    word: str
    sign: str
    look: str
    meaning: str = ""


_VERDICTS = {
    badge.word: badge
    for badge in (
        Badge(EQUIVALENT, "✓", "good", "The migrated settings do what the old ones did."),
        Badge(EQUIVALENT_BUT, "≈", "fair", "They do, with the reservation that the reason names."),
        Badge(DIFFERENT, "≠", "bad", "They do something else, or do not run where the old ones ran."),
        Badge(INCONCLUSIVE, "?", "open", "Nothing shows whether they do the same; the reason says what is missing."),
    )
}
_CHANGES = {
    NUMBERS: Badge(
        "release changed numbers",
        "Δ",
        "release",
        "The old text itself computes other numbers on the new release. The migration has no part in it.",
    ),
    GRAPHS: Badge(
        "release changed graphs",
        "Δ",
        "release",
        "The old text itself captures other graphs on the new release. The migration has no part in it.",
    ),
    SUPPORT: Badge(
        "old text fails on the new release",
        "Δ",
        "release",
        "The old text ran on its own release and does not on the new one, with or without migration.",
    ),
}

ALL = (*_VERDICTS.values(), *_CHANGES.values())


def verdict_badge(verdict: str) -> Badge:
    """The badge of a verdict; a word that is none gets the sign of what is not known."""
    return _VERDICTS.get(verdict, Badge(verdict, "?", "open"))


def badges_of(verdict: str, changes: Iterable[str]) -> tuple[Badge, ...]:
    """The verdict's badge, then one for each thing that the release changed: that is no reservation."""
    of_release = tuple(_CHANGES[change] for change in changes)
    return (verdict_badge(EQUIVALENT if of_release and verdict == EQUIVALENT_BUT else verdict), *of_release)


def verdict_order(verdict: str) -> int:
    """Where a verdict is in a list: the good ones first, words that are none last."""
    known = list(_VERDICTS)
    return known.index(verdict) if verdict in known else len(known)
