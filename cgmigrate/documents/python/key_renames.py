"""Edits with which code names the keys of a mapping that replace others."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from cgmigrate.documents.python.element_removal import remove_elements
from cgmigrate.documents.python.key_loops import is_copied_as_it_is
from cgmigrate.documents.python.key_places import KeyForm, KeyNotFollowedError, KeyPlace
from cgmigrate.documents.python.lines import line_end, line_start, newline_near, rest_of_line
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.megatron.settings import MODULES
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

Replacements = Mapping[str, Sequence[str]]
"""Old key → the keys that replace it in all mappings: one with the same value, or several with others."""
_OF_ONE_NAME = (KeyForm.KEY, KeyForm.ATTRIBUTE, KeyForm.GENERATED)


def renaming_edits(
    places: Sequence[KeyPlace], new: Replacements, same_value: frozenset[str], source: PythonSource
) -> list[Edit]:
    """Return the edits with which code names new keys. Raises KeyNotFollowedError.

    ``same_value`` are the keys whose value is that of the key that replaces them.
    """
    edits: list[Edit] = []
    owners: dict[int, list[KeyPlace]] = {}
    for place in places:
        if place.form in (KeyForm.FIELD, KeyForm.ELEMENT):
            owners.setdefault(id(place.owner), []).append(place)
        elif place.name in same_value:
            edits.append(Edit(place.span.start, place.span.end, new[place.name][0]))
        elif place.form in _OF_ONE_NAME:
            line = source.line_of(place.span.start)
            raise KeyNotFollowedError(f"`{place.name}` is read by itself, and several keys replace it", line)
    for of_owner in owners.values():
        change = _fields if of_owner[0].form is KeyForm.FIELD else _elements
        edits += change(of_owner, new, same_value, source)
    return edits


def problem_of(place: KeyPlace, new: Replacements, where: str, index: int) -> Problem:
    """Return the problem about a place; ``where`` are the mappings that have the key."""
    names = " and ".join(f"`{name}`" for name in new[place.name])
    is_field = place.form is KeyForm.FIELD
    kind = ProblemKind.DEFINITION if is_field else ProblemKind.NAME_IN_TEXT
    message = f"code uses the key `{place.name}` of {where}"
    fix = f"write {names}"
    return Problem(kind, place.span, message, index, fix, fix=fix)


def _added(places: Sequence[KeyPlace], new: Replacements, present: Sequence[str]) -> list[str]:
    """Return the new names that some old ones become, but those that are there already."""
    every = dict.fromkeys(name for place in places for name in new[place.name])
    return [name for name in every if name not in present]


# --- lists of names -------------------------------------------------------------------------------


def _elements(
    places: Sequence[KeyPlace], new: Replacements, same_value: frozenset[str], source: PythonSource
) -> Iterator[Edit]:
    owner = places[0].owner
    assert isinstance(owner, (ast.Tuple, ast.List, ast.Set))
    is_same = all(place.name in same_value for place in places)
    if not is_copied_as_it_is(owner, source, is_looked_up=is_same):
        line = source.line_of(places[0].span.start)
        raise KeyNotFollowedError("a list of names whose use is not followed", line)
    names = [str(element.value) for element in owner.elts if isinstance(element, ast.Constant)]
    added = _added(places, new, names)
    # The list keeps an element, or its brackets mean something else.
    kept = places[: 1 if added else 0]
    if added:
        yield Edit(kept[0].span.start, kept[0].span.end, _between(kept[0].span, added, source))
    removed = [at for at, name in enumerate(names) if name in new and name not in {one.name for one in kept}]
    if len(removed) == len(names) and not added:
        raise KeyNotFollowedError("a list would have no names", source.line_of(places[0].span.start))
    spans = [source.span(element) for element in owner.elts]
    is_one = isinstance(owner, ast.Tuple) and len(names) - len(removed) + max(len(added) - 1, 0) == 1
    has_comma = source.text[spans[-1].end :].lstrip().startswith(",")
    for edit in remove_elements(source.text, removed, spans):
        is_last = edit.end == spans[-1].end and any(edit.start == one.end for one in spans)
        takes_comma = is_one and is_last and not has_comma
        # A tuple of one element is none without its comma.
        yield Edit(edit.start, edit.end, ",") if takes_comma else edit


def _between(first: Span, names: Sequence[str], source: PythonSource) -> str:
    """Return names as the elements that replace the text of one, without its own quotes."""
    quote = source.text[first.start - 1]
    start = line_start(source.text, first.start)
    indent = source.text[start : first.start - 1]
    comma = f"{quote},{newline_near(source.text, start)}{indent}{quote}" if not indent.strip() else f"{quote}, {quote}"
    return comma.join(names)


# --- fields of classes ----------------------------------------------------------------------------


def _fields(
    places: Sequence[KeyPlace], new: Replacements, same_value: frozenset[str], source: PythonSource
) -> Iterator[Edit]:
    owner = places[0].owner
    assert isinstance(owner, ast.ClassDef)
    fields = {
        one.target.id: one for one in owner.body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    }
    added = _added(places, new, list(fields))
    for place in places:
        field = fields[place.name]
        own = [name for name in added if name in new[place.name]]
        added = [name for name in added if name not in own]
        if not own:
            yield _line_without(field, source)
        elif place.name in same_value:
            yield Edit(place.span.start, place.span.end, own[0])
        else:
            yield from _with_types(field, own, source)


def _line_without(field: ast.AnnAssign, source: PythonSource) -> Edit:
    span, text = source.span(field), source.text
    start, end = line_start(text, span.start), line_end(text, span.end)
    if text[start : span.start].strip() or rest_of_line(text, span.end):
        raise KeyNotFollowedError("a field shares its line with something else", field.lineno)
    return Edit(start, end, "")


def _with_types(field: ast.AnnAssign, names: Sequence[str], source: PythonSource) -> Iterator[Edit]:
    """Yield the edits with which an optional key becomes others, which have other types."""
    if not isinstance(field.annotation, ast.Subscript) or field.value is not None:
        raise KeyNotFollowedError("the type of a field is not known", field.lineno)
    span, optional = source.span(field), source.of(field.annotation.value)
    start = line_start(source.text, span.start)
    between = newline_near(source.text, start) + source.text[start : span.start]
    yield Edit(span.start, span.end, between.join(f"{name}: {optional}[{_type_of(name)}]" for name in names))


def _type_of(name: str) -> str:
    return "list[str] | str" if name == MODULES else "str"
