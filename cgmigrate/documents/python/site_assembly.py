"""Sites as other packages see them, from the places in the text."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from cgmigrate.documents.overrides import ELSEWHERE
from cgmigrate.documents.python.site_nodes import Item, SiteForm, SiteNodes
from cgmigrate.documents.sites import Origin, OverridingCommand, Site, Use
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.spans import Span

_VALIDATED_BEFORE = "the object was already built and validated: pass the settings to its constructor"


def position_of(place: SiteNodes) -> tuple[int, str]:
    """Return a key that sorts places by the file's order, which stays when settings between others are deleted."""
    first = place.elements[0] if place.elements else place.items[0].whole
    return first.start, place.prefix


def sites_of(places: Sequence[SiteNodes], modules: tuple[str, ...], catalogue: Catalogue) -> list[Site]:
    """Return the sites of places, in their order; ``modules`` are those that the file imports."""
    index = {id(place): at for at, place in enumerate(places)}
    return [_site(at, place, modules, index, catalogue) for at, place in enumerate(places)]


def _site(at: int, place: SiteNodes, modules: tuple[str, ...], index: Mapping[int, int], catalogue: Catalogue) -> Site:
    # A callee that another file defines counts as a module that is imported.
    imports = (*modules, place.callee) if place.callee else modules
    # Who starts a program of Megatron works with Megatron as much as who imports it.
    imports = (*imports, "megatron") if place.starts_megatron else imports
    return Site(
        at,
        tuple(filter(None, (place.object or place.callee or place.owner).split("."))),
        Span(place.items[0].whole.start, max(item.whole.end for item in place.items)),
        _written(place, catalogue),
        flags=place.form is SiteForm.FLAGS,
        inherits=(index[id(place.inherits)],) if place.inherits is not None else (),
        linked=tuple(index[id(link)] for link in place.links if link is not place.inherits),
        blocked_by=place.blocked_by or (_validated_before(place) if place.built else ""),
        origin=Origin(place.callee, place.meant or place.object, imports, place.foreign, place.merged, place.through),
        overrides=place.overrides,
        constructs=place.constructs,
        built=place.built,
        of_built_model=place.of_built_model,
        expects_error=place.expects_error,
        uncertain=place.uncertain,
        commands=(OverridingCommand(place.words, (0,)),) if place.words else (),
        elsewhere=ELSEWHERE.format(prefix=place.prefix or place.items[0].field)
        if place.form is SiteForm.OVERRIDES
        else "",
        scripts=place.scripts,
    )


def _written(place: SiteNodes, catalogue: Catalogue) -> tuple[Use, ...]:
    """Return the settings of a place; of several with one name the last one."""
    written: dict[str, Use] = {}
    for item in place.items:
        key = catalogue[item.field].flag if place.form is SiteForm.FLAGS else item.field
        written.pop(item.field, None)
        written[item.field] = Use(item.field, key, item.value, item.span)
    return tuple(written.values())


def _validated_before(place: SiteNodes) -> str:
    """Return why settings of an object that is built already cannot be rewritten one by one, empty when they can."""
    return "" if all(map(_is_list_of_modules, place.items)) else _VALIDATED_BEFORE


def _is_list_of_modules(item: Item) -> bool:
    """Whether a setting is a scope that names modules by enum members, and so can be renamed where it is."""
    value = item.values[0]
    members = isinstance(value, ast.List) and all(isinstance(member, ast.Attribute) for member in value.elts)
    if item.field != "cuda_graph_scope" or not members or not isinstance(item.value, list):
        return False
    return not {"full_iteration", "full_iteration_inference"} & set(item.value)
