"""Settings whose values conditions choose: fixes that hold for every branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.branches import CannotChooseError, combined, first_branches, has_choice, undecided, variants
from cgmigrate.linking.inheritance import components, effective
from cgmigrate.linking.ownership import Owner
from cgmigrate.lint.cases import _case_of
from cgmigrate.lint.diagnostics import Context, Reason
from cgmigrate.lint.soundness import _order_matters, _proposed
from cgmigrate.megatron.settings import (
    Settings,
)

# --- values that are chosen by conditions ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What sites that share settings become, whichever branches of their values are taken."""

    rewrites: Mapping[int, Settings]
    risks: Mapping[int, Sequence[Reason]]


def _choose(
    document: Document, sites: list[Site], owners: Sequence[Owner], context: Context
) -> tuple[list[Site], dict[int, _Chosen]]:
    """Settle values with conditions: sites as for the first branches where all can be migrated alike, else undecided.

    What the former become is returned by the index of each site.
    """
    chosen: dict[int, _Chosen] = {}
    if not any(map(has_choice, sites)):
        return sites, chosen
    result = list(sites)
    for component in components(sites):
        if not any(has_choice(sites[index]) for index in component):
            continue
        try:
            answer = _over_all_branches(document, sites, component, owners, context)
        except CannotChooseError as error:
            for index in component:
                result[index] = undecided(sites[index], str(error))
        else:
            for index in component:
                result[index] = first_branches(sites[index])
                chosen[index] = answer
    return result, chosen


def _over_all_branches(
    document: Document, sites: Sequence[Site], component: Sequence[int], owners: Sequence[Owner], context: Context
) -> _Chosen:
    """Examine sites once for each combination of branches. Raises CannotChooseError where these do not agree."""
    if any((eco := owners[i].ecosystem) is None or eco.reader is None or owners[i].conflict for i in component):
        raise CannotChooseError
    if fixed := next(filter(None, (sites[index].blocked_by for index in component)), ""):
        raise CannotChooseError(fixed)
    found: list[dict[int, Settings]] = []
    risks: dict[int, list[Reason]] = {index: [] for index in component}
    options = variants(sites, component)
    for variant in options:
        merged = effective(variant.sites)
        cases = {i: _case_of(variant.sites[i], owners[i], merged[i], document, context) for i in component}
        group = list(cases.values())
        if blocked := next((case.blocked for case in group if case.blocked), None):
            raise CannotChooseError(f"where {variant.told}: {blocked.text}")
        if why := _order_matters(group):
            raise CannotChooseError(why)
        own = _proposed(variant.sites, component, group, context)
        if blocked := next((case.blocked for case in group if case.blocked), None):
            raise CannotChooseError(f"where {variant.told}: {blocked.text}")
        found.append(own)
        for index, case in cases.items():
            risks[index] += [risk for risk in case.risks if risk not in risks[index]]
    return _Chosen(combined(sites, component, options, found), risks)
