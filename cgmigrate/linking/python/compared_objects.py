"""All attributes of an object at once: what `vars` and `dataclasses.asdict` return, and `==` of two objects.

Two objects with the same settings have the same after a fix that treats both alike. Where the fix makes a difference
between them, or where it removes one, what `==` says is not the same.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.evaluation import Frame, ReadsSettingsError, Run, cannot_follow
from cgmigrate.proof.flow.modules import is_test
from cgmigrate.linking.python.objects import copied, used, uses_settings
from cgmigrate.linking.python.values import (
    TEXT_OF_SETTINGS,
    Object,
    is_plain,
    key_of,
)
from cgmigrate.proof.flow.world import SETTINGS

_OF = "of"
_Place = tuple[ast.AST, Frame, Run]


def view_of(value: object, key: str, place: _Place) -> Object:
    """Return the attributes of an object by their names, which change with the object.

    Raises CannotFollowError outside of tests: other code may set attributes in this way.
    """
    node, frame, _ = place
    if not isinstance(value, Object) or value.may_be_other or not is_test(frame.module.path):
        raise cannot_follow(f"`{key}` is not followed", node, frame)
    value = _of(value) if value.is_view else value
    used(value, place)
    return Object(f"{key} of <{value.key}>", is_instance=True, attributes={_OF: value}, is_view=True)


def copy_of(value: object, key: str, place: _Place) -> Object:
    """Return the attributes of an object by their names, as they are now. Raises CannotFollowError."""
    view = view_of(value, key, place)
    of = _of(view)
    is_deep = key == "asdict"
    made = copied(of) if is_deep else replace(of, attributes=dict(of.attributes), first=dict(of.first))
    view.attributes[_OF] = made
    return view


def _of(view: Object) -> Object:
    of = view.attributes[_OF]
    assert isinstance(of, Object)
    return of


def method_of(view: Object, name: str, arguments: tuple[list[object], dict[str, object]], place: _Place) -> object:
    """Return the result of a method of a view. Raises CannotFollowError."""
    match name, arguments[0]:
        case "items", []:
            return view
        case "copy", []:
            return copy_of(view, "copy", place)
    raise cannot_follow(f"`.{name}` of all attributes of an object is not followed", place[0], place[1])


def filtered(node: ast.DictComp, items: object, frame: Frame, run: Run) -> Object:
    """Return the attributes of an object that a comprehension keeps. Raises CannotFollowError for another one.

    It is of the form ``{name: value for name, value in vars(cfg).items() if name not in others}``.
    """
    match node:
        case ast.DictComp(
            key=ast.Name(id=key),
            value=ast.Name(id=value),
            generators=[ast.comprehension(target=ast.Tuple(elts=[ast.Name(id=first), ast.Name(id=second)]), ifs=tests)],
        ) if (key, value) == (first, second) and isinstance(items, Object) and items.is_view:
            parts = [part for test in tests for part in walk(test)]
            names = {part.id for part in parts if isinstance(part, ast.Name)} - {key, value}
            known = {name: frame.names[name] for name in sorted(names & frame.names.keys())}
            if known.keys() == names and is_plain(known) and not any(isinstance(part, ast.Call) for part in parts):
                text = f"each {ast.unparse(node)} with {key_of(known)} in {items.key}"
                return copy_of(items, text, (node, frame, run))
    raise cannot_follow("`dictcomp` is not followed", node, frame)


def check_text(key: str, place: _Place) -> None:
    """Check that an assertion does not ask the text of an object with settings. Raises CannotFollowError."""
    node, frame, _ = place
    if TEXT_OF_SETTINGS in key:
        raise cannot_follow("an assertion asks the text of an object with settings", node, frame, ReadsSettingsError)


def check_likeness(left: object, right: object, place: _Place) -> None:
    """Check that an operator gets no two objects with settings of their own. Raises CannotFollowError."""
    if not any(map(uses_settings, (left, right))) and not any(map(_is_view, (left, right))):
        return
    node, frame, run = place
    is_known = isinstance(left, Object) and isinstance(right, Object) and "__eq__" not in run.relevance.methods
    parts, others = (dict(_by_path(one, "")) if isinstance(one, Object) else {} for one in (left, right))
    pairs = ((parts.get(path), others.get(path)) for path in sorted(parts.keys() | others.keys()))
    if not is_known or any(part is not other and (_has_own(part) or _has_own(other)) for part, other in pairs):
        raise cannot_follow("an operator gets an object with settings", node, frame, ReadsSettingsError)


def _is_view(value: object) -> bool:
    return isinstance(value, Object) and value.is_view


def _has_own(value: Object | None) -> bool:
    return value is not None and not (SETTINGS.isdisjoint(value.attributes) and SETTINGS.isdisjoint(value.first))


def _by_path(value: Object, path: str, seen: frozenset[int] = frozenset()) -> Iterator[tuple[str, Object]]:
    """Yield the objects that an object has, by the names of the attributes that lead to them."""
    if id(value) in seen:
        return
    yield path, value
    for name, part in {**value.first, **value.attributes}.items():
        if isinstance(part, Object):
            yield from _by_path(part, f"{path}.{name}", seen | {id(value)})
