"""Places: the nodes and spans of a site. Modules that look for sites return them, ``site_rewriter`` edits them."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from cgmigrate.documents.overrides import ELSEWHERE
from cgmigrate.documents.sites import Origin, OverridingCommand, Site, Use
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Settings
from cgmigrate.text.spans import Span

_NOWHERE = Span(0, 0)


class SiteForm(Enum):
    """How a site's settings are written."""

    CALL = "keyword arguments of one call"
    DICT = "entries of one dict literal"
    ASSIGNMENTS = "statements that set attributes of one object"
    FLAGS = "words of one list of command-line arguments"
    OVERRIDES = "override strings (`model.cuda_graph_scope=[]`) of one list"


@dataclass(slots=True)
class Item:
    """One setting in the text.

    ``name`` is the span of its bare name, ``whole`` the span to delete with it, ``span`` what a diagnostic underlines.
    ``values`` are the nodes of its value (several words of a list of flags, none of a boolean flag).
    ``suite`` is the list of statements that an assignment belongs to.
    """

    field: str
    name: Span
    values: list[ast.expr]
    whole: Span
    node: ast.AST
    suite: list[ast.stmt] = dataclasses.field(default_factory=list)
    value: object = None
    span: Span = _NOWHERE


@dataclass(slots=True)
class SiteNodes:
    """All settings of one site; the fields that ``Site`` has, too, mean the same.

    ``elements`` are the spans of all elements of the call, dict or list, in order.
    ``prefix`` is that of dotted override strings, with its final dot.
    """

    form: SiteForm
    items: list[Item]
    elements: list[Span] = dataclasses.field(default_factory=list)
    owner: str = ""
    """The object or callee as written."""
    callee: str = ""
    object: str = ""
    meant: str = ""
    """The attribute that the object is, if it has another name: ``cfg.model`` for ``m = cfg.model``."""
    class_name: str = ""
    """The class of the object, as the file writes it."""
    foreign: bool = False
    """Whether ``callee`` is a class that is not Megatron's, which counts more than the object's name."""
    overrides: bool = False
    constructs: bool = False
    merged: bool = False
    """Whether the class gets the settings through other code: a dict, or a function that passes keywords on."""
    through: str = ""
    """The name of this function, empty for a dict."""
    built: bool = False
    of_built_model: bool = False
    expects_error: bool = False
    blocked_by: str = ""
    """Why the text cannot be edited, empty when it can."""
    inherits: SiteNodes | None = None
    links: list[SiteNodes] = dataclasses.field(default_factory=list)
    """Places that may have set the same object before: they are rewritten together or not at all."""
    uncertain: bool = False
    later: Settings = dataclasses.field(default_factory=dict)
    """Whether branches or a loop leave open what the object holds when this place is reached."""
    prefix: str = ""
    words: tuple[str, ...] = ()
    """The other words of a list of arguments with overrides."""
    scripts: tuple[str, ...] = ()
    """The programs in a list of arguments."""
    starts_megatron: bool = False
    """Whether a list of arguments names a program of Megatron, or no program in a file that names one."""

    def item(self, name: str) -> Item:
        """Return the item of a setting; the last one counts."""
        return next(item for item in reversed(self.items) if item.field == name)


# --- sites ----------------------------------------------------------------------------------------

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
        later=place.later,
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
