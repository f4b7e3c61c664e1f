"""Attributes and items of values, and how code changes them."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable, Iterator

from cgmigrate.linking.python.evaluation import Frame, RaisedError, ReadsSettingsError, Run, Unknowns, cannot_follow
from cgmigrate.linking.python.values import (
    TEXT_OF_SETTINGS,
    Class,
    FrozenSettings,
    Function,
    Member,
    Method,
    Namespace,
    Object,
    Outside,
    Partial,
    SharedDict,
    SharedList,
    frozen,
    has_rest,
    key_of,
    may_be_part_of,
    thawed,
)
from cgmigrate.proof.flow.world import SAMPLES, SETTINGS, TRACKERS, is_enumeration, value_of_member
from cgmigrate.megatron.settings import DEPRECATED, ENABLE, EXTERNAL, FIELDS, MODULES

_MISSING = object()


_Place = tuple[ast.AST, Frame, Run]


def attribute(value: object, name: str, place: _Place) -> object:
    """Return an attribute of a value. Raises CannotFollowError if the value is followed and the attribute is not."""
    node, frame, run = place
    if name == "__dict__":
        raise cannot_follow("the attributes of an object are used by their names", node, frame)
    match value:
        case Object():
            if name in SETTINGS and _may_be_other(value, run):
                raise cannot_follow(f"`.{name}` of an object that is not known is read", node, frame)
            result = _of_object(value, name, place)
            _note_read(value, name, result, place)
            return result
        case Outside():
            return _of_outside(value, name, frame, run)
        case Namespace(module=module):
            from cgmigrate.linking.python.lookup import name_in

            return name_in(name, module, run)
        case Member() if (known := _of_member(value, name)) is not None:
            return known
        case Class():
            return _of_class(value, name, run)
        case _ if value is not None and hasattr(value, name):
            return Method(value, name)
    raise cannot_follow(f"`.{name}` of {key_of(value)[:60]} is not followed", node, frame)


def _may_be_other(value: Object, run: Run) -> bool:
    """Return whether an object may be one that is known under another key: code may keep it in an attribute."""
    return (
        value.may_be_other
        or not value.through.isdisjoint(run.path.keeping)
        or (run.path.passed_on and any(map(run.relevance.keeps_object, value.through)))
    )


def _note_read(value: Object, name: str, result: object, place: _Place) -> None:
    node, frame, run = place
    if name in DEPRECATED:
        run.path.reads.append(f"{name}={key_of(result)}")
        run.path.old_reads.append((value, name, (frame.module.path, getattr(node, "lineno", 0))))
    elif name == MODULES:
        run.path.modules_read.add(value.key)


def _of_class(value: Class, name: str, run: Run) -> object:
    """Return an attribute of a class; one that may come from code that changes is an object that is not known."""
    methods = [one for one in value.node.body if isinstance(one, ast.FunctionDef) and one.name == name]
    code = [*methods, *kept_by_class(value.node)]
    full = f"{value.module.package}.{value.node.name}.{name}"
    leads = any(run.relevance.may_return_changed(one, value.module) for one in code)
    if leads and not methods:
        return Object(full)
    return Outside(full, of_checkout=True, leads=leads)


def kept_by_class(node: ast.ClassDef) -> list[ast.AST]:
    """Return the statements of a class that make what its objects keep: no methods, and no annotations alone."""
    return [
        one.value
        for one in node.body
        if isinstance(one, (ast.Assign, ast.AnnAssign)) and isinstance(one.value, ast.expr)
    ]


def _of_member(value: Member, name: str) -> str | int | None:
    return value.name if name == "name" else value_of_member(value.of, value.name) if name == "value" else None


def _of_outside(value: Outside, name: str, frame: Frame, run: Run) -> object:
    if is_enumeration(value.name):
        return Member(value.name.rpartition(".")[2], name)
    full = f"{value.name}.{name}"
    inner = run.modules.imported(full, frame.module)
    return Outside(full) if inner is None else Namespace(inner)


def _of_object(value: Object, name: str, place: _Place) -> object:
    run = place[2]
    if value.is_view:
        return Method(value, name)
    if name in SETTINGS:
        used(value, place)
    if name in value.attributes:
        return value.attributes[name]
    if name in SETTINGS and (value.is_record or value.is_options):
        return None
    if name in SETTINGS and value.is_bare:
        raise RaisedError("AttributeError")
    if name in SETTINGS and (value.by_megatron or value.is_open):
        defaults = run.world.defaults
        if name in defaults:
            return defaults[name]
    if name not in value.first:
        by_megatron = value.by_megatron and name not in SETTINGS
        others = value.may_be_other or name in value.properties
        through = value.through | {name}
        value.first[name] = Object(f"{value.key}.{name}", by_megatron, may_be_other=others, through=through)
    return value.first[name]


def used(value: Object, place: _Place) -> None:
    """Note that a setting of an object is used. One that other code has set has one of the states that code leaves."""
    node, frame, run = place
    at = (frame.module.path, getattr(node, "lineno", 0))
    run.path.uses.add(at)
    if value.by_megatron:
        run.path.uses_megatron.add(at)
    run.path.used[id(value)] = value
    if run.unknowns.has_fakes and value.by_megatron and not value.is_instance:
        value.is_bare = run.choose(f"{value.key} is a fake")
        run.path.is_with_fakes = run.path.is_with_fakes or value.is_bare
    if value.is_open or value.by_megatron or value.is_instance or value.is_options or not run.unknowns.states:
        return
    run.touched.is_open = True
    if value.is_record:
        _open_record(value, run)
        return
    value.is_open = True
    number = _picked(f"the settings of {value.key}", range(len(run.unknowns.states)), run)
    value.attributes |= {name: thawed(one) for name, one in run.unknowns.states[number]}
    value.is_bare = run.unknowns.has_fakes and run.choose(f"{value.key} is a fake")
    run.path.is_with_fakes = run.path.is_with_fakes or value.is_bare
    run.path.opened.append((value, number))


def _picked(key: str, numbers: range, run: Run, *, is_record: bool = False) -> int:
    """Return the state that an object or a record has.

    Code that has both has the record of this object, or one of the two has what nothing has set.
    """
    objects = [run.unknowns.first + number for _, number in run.path.opened]
    records = [run.unknowns.first_record + number for _, number in run.path.opened_records]

    def is_pair(number: int) -> bool:
        if is_record:
            return all(is_possible(one, run.unknowns.first_record + number, run.unknowns) for one in objects)
        return all(is_possible(run.unknowns.first + number, one, run.unknowns) for one in records)

    possible = [number for number in numbers if is_pair(number)]
    return possible[run.pick(key, len(possible))] if possible else numbers[0]


def is_possible(number: int, record: int, unknowns: Unknowns) -> bool:
    """Return whether code may have an object and a record, by the numbers of their states among all that are known."""
    return not number or not record or number in unknowns.sources[record - unknowns.first_record]


def _open_record(value: Object, run: Run) -> None:
    value.is_instance = run.touched.has_records = True
    number = _picked(f"the fields of {value.key}", range(len(run.unknowns.records)), run, is_record=True)
    value.attributes |= {name: thawed(one) for name, one in run.unknowns.records[number]}
    run.path.opened_records.append((value, number))


def settings_of(value: object) -> list[tuple[str, FrozenSettings]]:
    """Return the objects that can be reached from a value and have settings, by their keys, with the settings."""
    return [
        (one.key, frozen_settings(one))
        for one in parts_of(value)
        if (one.by_megatron or one.is_open) and (one.is_open or not SETTINGS.isdisjoint(one.attributes))
    ]


def frozen_settings(value: Object) -> FrozenSettings:
    """Return the settings of an object that are set."""
    return tuple((name, frozen(value.attributes[name])) for name in FIELDS if name in value.attributes)


def has_attribute(value: object, name: str, place: _Place) -> bool | None:
    """Return whether a value has an attribute, None if that is not known."""
    if isinstance(value, Object):
        if name in SETTINGS and not _may_be_other(value, place[2]):
            used(value, place)
        if name in value.attributes:
            return True
        if value.is_bare and name in SETTINGS:
            return False
        is_known = (value.by_megatron or value.is_open) and name in SETTINGS
        place[2].touched.asks_release = place[2].touched.asks_release or is_known
        return name in place[2].world.defaults if is_known else None
    if isinstance(value, Member):
        return name in ("name", "value")
    if isinstance(value, (Class, Function, Namespace, Outside, Method)):
        return None
    return hasattr(value, name)


def set_attribute(value: object, name: str, new: object, place: _Place) -> None:
    """Set an attribute."""
    node, frame, run = place
    if not isinstance(value, Object) or value.is_view:
        raise cannot_follow(f"an attribute of {key_of(value)[:60]} is set", node, frame)
    if _may_be_other(value, run) and (name in SETTINGS or may_be_part_of([new])):
        raise cannot_follow(f"`.{name}` of an object that is not known is set", node, frame)
    if name in value.properties or name in ("__class__", "__dict__"):
        raise cannot_follow(f"`.{name}` is a property, and is set", node, frame)
    if name in SETTINGS:
        run.writes += 1
        run.path.written[id(value)] = value
        used(value, place)
        new = _value_of_setting(name, new, place)
    if name in TRACKERS and isinstance(new, Object) and TEXT_OF_SETTINGS in new.key:
        what = f"`.{name}` comes from the text of an object with settings"
        raise cannot_follow(what, node, frame, ReadsSettingsError)
    value.attributes[name] = new


def _value_of_setting(name: str, new: object, place: _Place) -> object:
    """Return what a setting is set to; of a value that is not known, each of some samples is evaluated."""
    if not isinstance(new, Object) or not place[2].unknowns.states:
        return new
    # A condition on the same value is decided alike: `"local" if graphs else "none"`.
    return place[2].choose(key_of(new)) if name in (ENABLE, EXTERNAL) else sample(name, new.key, place[2])


def sample(name: str, key: str, run: Run) -> object:
    """Return one of some values of a setting, for one that is not known; ``key`` says which."""
    samples = SAMPLES[name]
    return thawed(samples[run.pick(f"{key} as `{name}`", len(samples))])


def set_item(value: object, key: object, new: object, place: _Place) -> None:
    """Set an item of a collection."""
    node, frame, _ = place
    if isinstance(value, Object):
        if value.is_view or (isinstance(key, str) and key in SETTINGS):
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
    """Check that the members of a collection are known: other code cannot have changed them.

    Raises CannotFollowError.
    """
    node, frame, _ = place
    if isinstance(value, Object) and value.is_view:
        raise cannot_follow("code goes through all attributes of an object", node, frame)
    if has_rest(value):
        raise cannot_follow("a member of a collection is used that other code may have changed", node, frame)


def changed_in_place(value: object, place: _Place) -> None:
    """Check that a collection may be changed in place. Raises CannotFollowError if other calls share it."""
    node, frame, _ = place
    if isinstance(value, (SharedList, SharedDict)):
        raise cannot_follow("a collection that other calls share is changed", node, frame)


_WITH_PARTS = (Object, list, tuple, dict, set)


def parts_of(value: object) -> list[Object]:
    """Return the objects that can be reached from a value."""
    return list(each_part(value))


def each_part(value: object) -> Iterator[Object]:
    """Yield the objects that can be reached from a value, the nearest first; code may stop at one."""
    if not isinstance(value, _WITH_PARTS):
        return
    seen, left = set[int](), [value]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        below: Iterable[object]
        if isinstance(part, Object):
            yield part
            below = (*part.attributes.values(), *part.first.values())
        else:
            below = (*part, *part.values()) if isinstance(part, dict) else part
        left += [one for one in below if isinstance(one, _WITH_PARTS)][::-1]


def has_settings(value: object) -> bool:
    """Return whether settings of an object that can be reached from a value are known."""
    return any(not SETTINGS.isdisjoint(one.attributes) for one in each_part(value))


def uses_settings(value: object) -> bool:
    """Return whether settings of an object that can be reached from a value are set or were read."""
    return any(
        not SETTINGS.isdisjoint(one.attributes) or not SETTINGS.isdisjoint(one.first) for one in each_part(value)
    )


def may_change(value: object, key: str, place: _Place) -> None:
    """Note that code may have changed collections, and attributes that are no settings; their old values still count.

    Raises CannotFollowError for a collection that other calls share.
    """
    run = place[2]
    parts = list(parts_of(value))
    may_change_items(value, key, place)
    run.path.passed_on = run.path.passed_on or bool(parts)
    for one in parts:
        forget(one, place[2])
        for name, part in one.first.items():
            # What a class got at first, it may have kept.
            if name not in SETTINGS and not has_rest(part):
                may_change_items(part, key, place)
        for name, part in one.attributes.items():
            if name not in SETTINGS and (name.startswith("[") or not isinstance(part, Object)):
                changed = Object(f"{name} after {key}, before {key_of(part)}", may_be_other=may_be_part_of([part]))
                may_change_items(part, key, place)
                one.attributes[name] = changed
            elif name not in SETTINGS and run.relevance.keeps_object(name):
                one.attributes[name] = Object(f"{name} after {key}, before {key_of(part)}", may_be_other=True)


def forget_attributes(values: Iterable[object], names: Collection[str], keeping: Collection[str], by: str) -> None:
    """Forget the values of attributes that code sets which is not executed; ``by`` is the name of its function.

    In those of ``keeping`` it may keep an object that is known under another key.
    """
    for one in parts_of(list(values)):
        for name in one.attributes.keys() & names:
            if name in keeping or not uses_settings(one.attributes[name]):
                one.attributes[name] = Object(f"{one.key}.{name} after {by}", may_be_other=name in keeping)


def forget(value: Object, run: Run) -> None:
    """Have conditions decided again that ask an object, or attributes and items of it."""
    for end in (">", ".", "["):
        run.forget(f"<{value.key}{end}")


def may_change_items(value: object, key: str, place: _Place) -> None:
    """Note that code may have changed a collection, and those in it. Raises CannotFollowError for a set."""
    if isinstance(value, Method):
        value = value.value
    if isinstance(value, (list, tuple, dict)):
        for part in list(value.values()) if isinstance(value, dict) else value:
            may_change_items(part, key, place)
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
    seen = set[int]()
    while values:
        # A collection may have another one more than once.
        if id(value := values.pop()) in seen:
            continue
        seen.add(id(value))
        match value:
            case Function() | Class() as code:
                yield code
            case Method(value=owner):
                values.append(owner)
            case Partial(function=function, values=arguments, named=named):
                values += [function, *arguments, *named.values()]
            case list() | tuple() | set() as many:
                values += many
            case dict() as many:
                values += many.values()


def copied(value: object) -> object:
    """Return a deep copy of a value; the copies of objects have other keys."""
    copies = {
        id(one): Object(
            f"copy of {one.key}",
            one.by_megatron,
            one.is_instance,
            is_open=one.is_open,
            is_rest=one.is_rest,
            is_bare=one.is_bare,
            is_record=one.is_record,
        )
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
