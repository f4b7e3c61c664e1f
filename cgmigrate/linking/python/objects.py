"""Attributes and items of values, and how code changes them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from cgmigrate.linking.python.evaluation import Frame, Run, cannot_follow
from cgmigrate.linking.python.values import (
    Class,
    Function,
    Member,
    Method,
    Namespace,
    Object,
    Outside,
    SharedDict,
    SharedList,
    has_rest,
    key_of,
    may_be_part_of,
)
from cgmigrate.linking.python.world import SETTINGS, is_enumeration

_MISSING = object()


_Place = tuple[ast.AST, Frame, Run]


def attribute(value: object, name: str, place: _Place) -> object:
    """Return an attribute of a value. Raises CannotFollowError if the value is followed and the attribute is not."""
    node, frame, run = place
    if name == "__dict__":
        raise cannot_follow("the attributes of an object are used by their names", node, frame)
    match value:
        case Object():
            if value.may_be_other and name in SETTINGS:
                raise cannot_follow(f"`.{name}` of an object that is not known is read", node, frame)
            return _of_object(value, name, run)
        case Outside(name=full):
            return Member(full.rpartition(".")[2], name) if is_enumeration(full) else Outside(f"{full}.{name}")
        case Namespace(module=module):
            from cgmigrate.linking.python.lookup import name_in

            return name_in(name, module, run)
        case Member() if name == "name":
            return value.name
        case Class():
            return Outside(f"{value.module.package}.{value.node.name}.{name}", of_checkout=True)
        case _ if value is not None and hasattr(value, name):
            return Method(value, name)
    raise cannot_follow(f"`.{name}` of {key_of(value)[:60]} is not followed", node, frame)


def _of_object(value: Object, name: str, run: Run) -> object:
    if name in value.attributes:
        return value.attributes[name]
    if name in SETTINGS and value.by_megatron:
        defaults = run.world.defaults
        if name in defaults:
            return defaults[name]
    if name not in value.first:
        by_megatron = value.by_megatron and name not in SETTINGS
        value.first[name] = Object(f"{value.key}.{name}", by_megatron, may_be_other=value.may_be_other)
    return value.first[name]


def has_attribute(value: object, name: str, run: Run) -> bool | None:
    """Return whether a value has an attribute, None if that is not known."""
    if isinstance(value, Object):
        if name in value.attributes:
            return True
        return name in run.world.defaults if value.by_megatron and name in SETTINGS else None
    if isinstance(value, Member):
        return name in ("name", "value")
    if isinstance(value, (Class, Function, Namespace, Outside, Method)):
        return None
    return hasattr(value, name)


def set_attribute(value: object, name: str, new: object, place: _Place) -> None:
    """Set an attribute."""
    node, frame, run = place
    if not isinstance(value, Object):
        raise cannot_follow(f"an attribute of {key_of(value)[:60]} is set", node, frame)
    if value.may_be_other and (name in SETTINGS or may_be_part_of([new])):
        raise cannot_follow(f"`.{name}` of an object that is not known is set", node, frame)
    if name in SETTINGS:
        run.writes += 1
        run.path.writes.add((frame.module.path, getattr(node, "lineno", 0)))
    value.attributes[name] = new


def set_item(value: object, key: object, new: object, place: _Place) -> None:
    """Set an item of a collection."""
    node, frame, _ = place
    if isinstance(value, Object):
        if isinstance(key, str) and key in SETTINGS:
            raise cannot_follow("a setting is set by its key", node, frame)
        if value.may_be_other and may_be_part_of([new]):
            raise cannot_follow("an item of an object that is not known is set", node, frame)
        value.attributes[f"[{key_of(key)}]"] = new
    elif isinstance(value, dict):
        changed_in_place(value, place)
        try:
            value[key] = new
        except TypeError as error:
            raise cannot_follow("a key is not followed", node, frame) from error
    else:
        raise cannot_follow("an item is set", node, frame)


def check_members(value: object, place: _Place) -> None:
    """Check that other code cannot have changed the members of a collection. Raises CannotFollowError."""
    node, frame, _ = place
    if has_rest(value):
        raise cannot_follow("a member of a collection is used that other code may have changed", node, frame)


def changed_in_place(value: object, place: _Place) -> None:
    """Check that a collection may be changed in place. Raises CannotFollowError if other calls share it."""
    node, frame, _ = place
    if isinstance(value, (SharedList, SharedDict)):
        raise cannot_follow("a collection that other calls share is changed", node, frame)


def parts_of(value: object, seen: set[int] | None = None) -> Iterator[Object]:
    """Yield the objects that can be reached from a value."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    if isinstance(value, Object):
        seen.add(id(value))
        yield value
        for part in (*value.attributes.values(), *value.first.values()):
            yield from parts_of(part, seen)
    elif isinstance(value, (list, tuple, dict, set)):
        seen.add(id(value))
        for part in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from parts_of(part, seen)


def has_settings(value: object) -> bool:
    """Return whether settings of an object that can be reached from a value are known."""
    return any(not SETTINGS.isdisjoint(one.attributes) for one in parts_of(value))


def uses_settings(value: object) -> bool:
    """Return whether settings of an object that can be reached from a value are set or were read."""
    return has_settings(value) or any(not SETTINGS.isdisjoint(one.first) for one in parts_of(value))


def may_change(value: object, key: str, place: _Place) -> None:
    """Note that code may have changed collections, and attributes that are no settings; their old values still count.

    Raises CannotFollowError for a collection that other calls share.
    """
    _may_change_items(value, key, place)
    for one in parts_of(value):
        for name, part in one.attributes.items():
            if name not in SETTINGS and (name.startswith("[") or not isinstance(part, Object)):
                changed = Object(f"{name} after {key}, before {key_of(part)}", may_be_other=may_be_part_of([part]))
                _may_change_items(part, key, place)
                one.attributes[name] = changed


def _may_change_items(value: object, key: str, place: _Place) -> None:
    if isinstance(value, (list, tuple, dict)):
        for part in list(value.values()) if isinstance(value, dict) else value:
            _may_change_items(part, key, place)
    if isinstance(value, (list, dict)):
        changed_in_place(value, place)
        may_be_other = may_be_part_of([value])
        unknown = Object(f"after {key}, before {key_of(value)}", may_be_other=may_be_other, is_rest=True)
        value.clear()
        if isinstance(value, list):
            value.append(unknown)
        else:
            value[unknown] = unknown
    elif isinstance(value, set) and value:
        raise cannot_follow("code that is not followed gets a set", place[0], place[1])


def functions_in(value: object) -> Iterator[Function | Class]:
    """Yield the functions and classes of the checkout that code may call which gets a value."""
    values = [value]
    for one in parts_of(value):
        values += one.attributes.values()
    while values:
        match values.pop():
            case Function() | Class() as code:
                yield code
            case Method(value=owner):
                values.append(owner)
            case list() | tuple() | set() as many:
                values += many
            case dict() as many:
                values += many.values()


def copied(value: object) -> object:
    """Return a deep copy of a value; the copies of objects have other keys."""
    copies = {
        id(one): Object(f"copy of {one.key}", one.by_megatron, one.is_instance, is_rest=one.is_rest)
        for one in parts_of(value)
    }
    memo: dict[int, object] = dict(copies)
    for one in list(parts_of(value)):
        made = copies[id(one)]
        made.attributes = {name: _copied(part, memo) for name, part in one.attributes.items()}
        made.first = {name: _copied(part, memo) for name, part in one.first.items()}
    return _copied(value, memo)


def _copied(value: object, memo: dict[int, object]) -> object:
    if id(value) in memo:
        return memo[id(value)]
    match value:
        case list():
            return [_copied(one, memo) for one in value]
        case tuple():
            return tuple(_copied(one, memo) for one in value)
        case dict():
            return {name: _copied(one, memo) for name, one in value.items()}
        case set():
            return copy.copy(value)
    return value
