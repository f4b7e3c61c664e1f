"""Sites that are calls and dicts: settings as keyword arguments and as entries of dict literals."""

from __future__ import annotations

import ast

from cgmigrate.documents.python.argument_lists import places_in_words
from cgmigrate.documents.python.class_origins import owner_of
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.release_checks import release_check_around
from cgmigrate.documents.python.site_nodes import Item, SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted, spreads_in
from cgmigrate.documents.python.values import value_of
from cgmigrate.megatron.catalogue import Setting
from cgmigrate.megatron.releases import KNOWN
from cgmigrate.text.spans import Span

WRAPPERS = ("functools.partial", "nemo_run.Config", "nemo_run.Partial", "fiddle.Config", "fiddle.Partial")
"""Callables whose first argument is what they call with the keyword arguments."""


def places_in(node: ast.AST, source: PythonSource, names: Names) -> list[SiteNodes]:
    """Return the places of one call, dict or list of arguments."""
    places: list[SiteNodes] = []
    known = source.catalogue.name_set
    match node:
        case ast.Call():
            if any(keyword.arg in known for keyword in node.keywords):
                places.append(_call(node, source, names))
            if source.catalogue.in_sections and (place := _of_section(node, source, names)):
                places.append(place)
            places += places_in_words(node.args, source, is_call=True)
        case ast.Dict():
            if any(isinstance(key, ast.Constant) and key.value in known for key in node.keys):
                places.append(_dict(node, source, names))
        case ast.List() | ast.Tuple():
            places += places_in_words(node.elts, source)
    for place in places:
        place.blocked_by = place.blocked_by or release_check_around(node, source)
    return places


def _call(node: ast.Call, source: PythonSource, names: Names) -> SiteNodes:
    items = []
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg in source.catalogue.name_set:
            whole = source.span(keyword)
            name = Span(whole.start, whole.start + len(keyword.arg))
            value = value_of(source.catalogue[keyword.arg], keyword.value, names)
            items.append(Item(keyword.arg, name, [keyword.value], whole, keyword, value=value, span=whole))
    place = SiteNodes(SiteForm.CALL, items, owner=ast.unparse(node.func)[:60])
    place.elements = sorted(map(source.span, [*node.args, *node.keywords]), key=lambda span: span.start)
    _name_callee(place, node, source, names)
    return place


def _of_section(node: ast.Call, source: PythonSource, names: Names) -> SiteNodes | None:
    """Return the place of keyword arguments of the class of a section, which are no longer its own."""
    keywords = {keyword.arg: keyword for keyword in node.keywords if keyword.arg}
    callee = owner_of(names, dotted(node.func))
    items = []
    for inside in source.catalogue.in_sections.values():
        for key, name in inside.items():
            if key in keywords and callee.startswith("megatron.") and _is_of(callee, source.catalogue[name]):
                keyword = keywords[key]
                whole, value = source.span(keyword), value_of(source.catalogue[name], keyword.value, names)
                items.append(Item(name, whole, [keyword.value], whole, keyword, value=value, span=whole))
    if not any(source.catalogue[item.field].deprecated for item in items):
        return None
    place = SiteNodes(SiteForm.CALL, items, [source.span(node)], callee=callee, constructs=True)
    place.blocked_by = "it is an argument of another class now"
    return place


def _is_of(callee: str, setting: Setting) -> bool:
    """Return whether a class is that of the section of a setting, in the newest release."""
    from cgmigrate.megatron.tables import load

    of_section = load().class_of(setting.owner, setting.section, KNOWN[-1])
    return bool(of_section) and callee.rpartition(".")[2] == of_section.rpartition(".")[2]


def _name_callee(place: SiteNodes, node: ast.Call, source: PythonSource, names: Names) -> None:
    """Set what gets the keyword arguments: the callee, what a wrapper calls, or what a dict is spread into."""
    written = dotted(node.func)
    full = owner_of(names, written)
    if full in WRAPPERS and node.args:
        place.callee = owner_of(names, dotted(node.args[0]))
        place.owner = ast.unparse(node.args[0])[:60]
    elif full == "dataclasses.replace" and node.args:
        place.object = "replace " + (dotted(node.args[0]) or "?")
        place.overrides = True
        if {item.field for item in place.items} - {"cuda_graph_scope"}:
            place.blocked_by = (
                "`dataclasses.replace` validates again, and since 0.18 rejects another implementation "
                "unless it also gets `inference_cuda_graph_scope=None`"
            )
    elif written == "dict" and written not in names.full:
        _name_user(place, node, source, names)
    else:
        place.callee, place.constructs = full, True
    first = (dotted(node.args[0]) if full in WRAPPERS and node.args else written).partition(".")[0]
    if first in names.shadowed:
        place.callee = ""
    # A class of this file may have defaults of its own: a setting that is absent may not have megatron-core's default.
    place.overrides = place.overrides or first in names.classes


def _dict(node: ast.Dict, source: PythonSource, names: Names) -> SiteNodes:
    items = []
    elements = []
    for key, value in zip(node.keys, node.values, strict=True):
        value_span = source.span(value)
        if key is None:
            stars = source.text.rindex("**", 0, value_span.start)
            elements.append(Span(stars, value_span.end))
            continue
        whole = Span(source.span(key).start, value_span.end)
        elements.append(whole)
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and key.value in source.catalogue:
            quoted = source.span(key)
            name = Span(quoted.start + 1, quoted.end - 1)
            plain = value_of(source.catalogue[key.value], value, names)
            items.append(Item(key.value, name, [value], whole, key, value=plain, span=whole))
    place = SiteNodes(SiteForm.DICT, items, elements, owner="this dict", overrides=True)
    if any(source.text[item.name.start : item.name.end] != item.field for item in items):
        place.blocked_by = "a key is written in an unusual way"
    _name_user(place, node, source, names)
    return place


def _name_user(place: SiteNodes, node: ast.expr, source: PythonSource, names: Names) -> None:
    """Set what gets a dict: the call that it is spread into, or the name that it is assigned to."""
    place.owner = "this dict"
    place.overrides = True
    above = source.parent(node)
    match above:
        case ast.keyword(arg=None):
            call = source.parent(above)
            if isinstance(call, ast.Call):
                place.overrides = False
                place.owner = ast.unparse(call.func)[:60]
                full = owner_of(names, dotted(call.func))
                if full in WRAPPERS and call.args:
                    full = owner_of(names, dotted(call.args[0]))
                place.callee = full
        case ast.Assign(targets=[target]):
            place.object = "dict " + (dotted(target) or "?")
            if isinstance(target, ast.Name) and (callee := unpacked_into(target.id, source, names)):
                place.callee = callee
        case ast.keyword(arg=str() as name):
            place.object = "dict " + name
        case ast.Dict():
            at = next(i for i, value in enumerate(above.values) if value is node)
            key = above.keys[at]
            place.object = "dict " + (str(key.value) if isinstance(key, ast.Constant) else "?")


def unpacked_into(name: str, source: PythonSource, names: Names) -> str:
    """Return what a dict of this name is spread into; empty if the file uses the name in any other way."""
    spread = spreads_in(source).get(name)
    if spread is None or spread.stores != 1 or spread.loads != len(spread.functions):
        return ""
    callees = {owner_of(names, function) for function in spread.functions}
    return callees.pop() if len(callees) == 1 else ""
