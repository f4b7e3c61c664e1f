"""The other places of a withheld set, in the words of the formats for people."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.report import Related, Reported
from cgmigrate.text.plurals import counted

MOST_PLACES = 10
"""Places that are named; of more, their number."""
MOST_LABELS = 4
"""Places in the file of the diagnostic that are shown as parts of the text."""


def also(places: Sequence[Related]) -> str:
    """Return the places in one line, empty if there are none: ``conf/a.yaml:3 (CG101), conf/b.yaml:4 (CG106)``."""
    rules: dict[str, list[str]] = {}
    for one in places:
        rules.setdefault(f"{one.path}:{one.start.line}", []).append(one.rule)
    named = [f"{place} ({', '.join(dict.fromkeys(codes))})" for place, codes in rules.items()]
    more = len(named) - MOST_PLACES
    return ", ".join([*named[:MOST_PLACES], *([f"and {more} more"] if more > 0 else [])])


def with_places(reported: Reported) -> tuple[tuple[str, str], ...]:
    """Return the remarks of a diagnostic, each with its label, and the other places of its set."""
    places = also(reported.related)
    return (*reported.diagnostic.remarks, *((("also", places),) if places else ()))


def labelled(reported: Reported) -> list[Related]:
    """Return the places that are shown as parts of the text, beside the diagnostic's own."""
    own = [one for one in reported.related if one.path == reported.path and one.start != reported.start]
    return own[:MOST_LABELS]


def more_places(reported: Reported) -> str:
    """Return how many other places a set has, in parentheses; empty if it has none."""
    lines = {(one.path, one.start) for one in reported.related} - {(reported.path, reported.start)}
    return f" (and {counted(len(lines), 'more place')})" if lines else ""
