"""What the arms put out beside losses and times: tokens, and who equals whom to the last bit."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from cgmigrate.text.plurals import counted
from cgmigrate.verify import metrics
from cgmigrate.verify.page.arm_views import ArmView, alike, listed, names_of


@dataclass(frozen=True, slots=True)
class Tokens:
    """Sentences on the generated tokens, and all of them by the arms that generated them."""

    findings: tuple[str, ...]
    listings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Sameness:
    """A letter a value, so that equal ones are seen at once. Arms that are equal in everything share a column.

    Where all arms are, ``sentence`` says so, and there is no table.
    """

    sentence: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]


# --- tokens --------------------------------------------------------------------------------------------------


def tokens_of(arms: Sequence[ArmView]) -> Tokens | None:
    """The tokens of arms that are done; None where none generated any."""
    generated = [arm for arm in arms if metrics.tokens(arm.run)]
    if not generated:
        return None
    groups = list(alike(generated, lambda arm: metrics.tokens(arm.run)).values())
    words = tuple(_in_words(group, groups[0]) for group in groups)
    return Tokens(words, tuple((names_of(group), _listing(group[0])) for group in groups))


def _in_words(group: Sequence[ArmView], measures: Sequence[ArmView]) -> str:
    ours, measure = metrics.tokens(group[0].run), measures[0]
    if group is measures:
        total = f"{counted(sum(map(len, ours)), 'token')} of {counted(len(ours), 'request')}"
        return f"{names_of(group)}: {total}" + (", all equal." if len(group) > 1 else ".")
    difference = metrics.first_difference(ours, metrics.tokens(measure.run))
    if difference is None:
        return f"{names_of(group)}: another number of requests than {measure.name}."
    request, place, one, other = difference
    mine, theirs = ("its end" if token is None else str(token) for token in (one, other))
    verb = "differs" if len(group) == 1 else "differ"
    where = f"in request {request} from token {place} on"
    return f"{names_of(group)} {verb} from {measure.name} {where}: {mine}, not {theirs}."


def _listing(arm: ArmView) -> str:
    requests = enumerate(metrics.tokens(arm.run), 1)
    return "\n".join(f"request {number}: {' '.join(map(str, ids))}" for number, ids in requests)


# --- to the last bit -----------------------------------------------------------------------------------------


def sameness(arms: Sequence[ArmView]) -> Sameness | None:
    """Which values of arms that are done are equal; None where there is nothing to compare."""
    values = [metrics.compared(arm.run) for arm in arms]
    names = list(dict.fromkeys(name for quantities in values for name in quantities))
    if len(arms) < 2 or not names:
        return None
    letters = {name: metrics.letters([quantities.get(name) for quantities in values]) for name in names}
    columns: dict[Hashable, list[int]] = {}
    for place in range(len(arms)):
        columns.setdefault(tuple(letters[name][place] for name in names), []).append(place)
    groups = list(columns.values())
    if len(groups) == 1:
        return Sameness(f"All arms are equal in everything: {listed(names)}.", (), ())
    heads = tuple(names_of(arms[place] for place in places) for places in groups)
    rows = tuple((name, tuple(letters[name][places[0]] for places in groups)) for name in names)
    return Sameness("", heads, rows)
