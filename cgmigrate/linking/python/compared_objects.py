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
from cgmigrate.linking.python.modules import is_test
from cgmigrate.linking.python.objects import attribute, copied, used, uses_settings
from cgmigrate.linking.python.values import (
    TEXT_OF_SETTINGS,
    FrozenSettings,
    Object,
    frozen,
    is_plain,
    key_of,
)
from cgmigrate.linking.python.world import SETTINGS
from cgmigrate.megatron.settings import FIELDS

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


def item_of(view: Object, name: object, place: _Place) -> object:
    """Return an attribute by its name. Raises CannotFollowError for a name that is not known, and for an object.

    What `asdict` has in place of an object are its attributes.
    """
    result = attribute(_of(view), name, place) if isinstance(name, str) else view
    if isinstance(result, Object):
        raise cannot_follow("an attribute by its name is not followed", place[0], place[1])
    return result


def method_of(view: Object, name: str, arguments: tuple[list[object], dict[str, object]], place: _Place) -> object:
    """Return the result of a method of a view. Raises CannotFollowError."""
    values, named = arguments
    match name, values:
        case "items", []:
            return view
        case "copy", []:
            return copy_of(view, "copy", place)
        case "get" | "__getitem__", [item] if not named:
            return item_of(view, item, place)
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


def likeness(left: object, right: object, place: _Place) -> str:
    """Return a text for what two objects have alike: empty if both have the same settings, or if none has any.

    Raises CannotFollowError if their settings cannot be compared.
    """
    if not uses_settings(left) and not uses_settings(right) and not _is_view(left) and not _is_view(right):
        return ""
    node, frame, run = place
    if not isinstance(left, Object) or not isinstance(right, Object) or "__eq__" in run.relevance.methods:
        raise cannot_follow("an operator gets an object with settings", node, frame, ReadsSettingsError)
    if left is right:
        return ""
    parts, others = dict(_by_path(left, "")), dict(_by_path(right, ""))
    texts: list[str] = []
    for path in sorted(parts.keys() | others.keys()):
        part, other = parts.get(path), others.get(path)
        if part is other or not (_has_own(part) or _has_own(other)):
            continue
        if part is None or other is None or part.may_be_other or other.may_be_other:
            raise cannot_follow("an operator gets an object with settings", node, frame, ReadsSettingsError)
        used(part, place)
        used(other, place)
        if part.is_open or other.is_open:
            # It comes from code that is not followed, and may have other settings than the project's code leaves.
            raise cannot_follow("an object of other code is compared whole", node, frame, ReadsSettingsError)
        settings = [_settings_of(one, run) for one in (part, other)]
        if settings[0] != settings[1]:
            texts.append(f"{path}: {key_of(settings)}")
    return "; ".join(texts)


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


def _settings_of(value: Object, run: Run) -> FrozenSettings:
    """Return the settings of an object that are set, without those that are set to their defaults."""
    defaults = run.world.defaults if value.by_megatron or value.is_open else {}
    return tuple(
        (name, key_of(frozen(value.attributes[name])))
        for name in FIELDS
        if name in value.attributes and not (name in defaults and value.attributes[name] == defaults[name])
    )
