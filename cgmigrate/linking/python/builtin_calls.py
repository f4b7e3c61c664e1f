"""Calls of builtin functions, and of methods of lists, dicts and texts."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter

from cgmigrate.linking.python.arguments import Arguments, Place, is_object, note_call, note_choice
from cgmigrate.linking.python.compared_objects import method_of, view_of
from cgmigrate.linking.python.evaluation import RaisedError, Run, cannot_follow
from cgmigrate.linking.python.expressions import derived
from cgmigrate.linking.python.objects import (
    attribute,
    changed_in_place,
    check_members,
    functions_in,
    has_attribute,
    set_attribute,
)
from cgmigrate.linking.python.values import (
    MOST_COMPUTED,
    Class,
    Function,
    Member,
    Method,
    Object,
    Outside,
    has_text_of_its_own,
    is_plain,
    is_small,
    key_of,
    may_be_part_of,
)

_PURE = frozenset(("len", "str", "int", "float", "bool", "list", "tuple", "set", "dict", "sorted", "range", "min"))
_PURE |= frozenset(("max", "any", "all", "sum", "abs", "enumerate", "zip", "frozenset", "repr", "divmod", "round"))

_ORDERED = frozenset(("str", "repr", "list", "tuple", "enumerate", "zip"))
"""Those whose results depend on the texts of members of enumerations, or on the order of a set."""

_TYPES: dict[str, type] = {one.__name__: one for one in (str, list, int, bool, tuple, dict, float, set)}

_CHANGES = frozenset(("append", "extend", "insert", "update", "add", "setdefault"))

_REMOVES = frozenset(("remove", "pop", "clear", "reverse", "sort"))
"""Methods that change a collection whose members are known."""

_READS = frozenset(
    ("get", "keys", "values", "items", "index", "count", "copy", "split", "rsplit", "lower", "upper", "strip", "join")
) | frozenset(("startswith", "endswith", "replace", "removeprefix", "removesuffix", "partition", "rpartition", "union"))

_SHOWS = frozenset(("print", "isinstance", "type", "id", "callable", "repr", "str", "super"))


def called_builtin(name: str, arguments: Arguments, place: Place) -> object:
    """Return the result of a builtin function. Raises RaisedError and CannotFollowError."""
    node, frame, run = place
    handler = _BUILTINS.get(name)
    if handler is not None:
        return handler(arguments, place)
    values = [*arguments[0], *arguments[1].values()]
    if any(True for value in values for _ in functions_in(value)) and name in _PURE:
        raise cannot_follow(f"`{name}` gets a function", node, frame)
    if name in _PURE:
        return _pure(name, arguments, run)
    if name in _SHOWS and not any(isinstance(value, Function) for value in values):
        if name == "print":
            note_call(name, arguments, run)
        return derived(name, values, run)
    if name[:1].isupper():
        return Object(run.numbered(f"{name}({', '.join(map(key_of, values))})"), is_instance=True)
    raise cannot_follow(f"`{name}` is not followed", node, frame)


def _pure(name: str, arguments: Arguments, run: Run) -> object:
    values, named = arguments
    if named or not all(map(is_plain, values)):
        if name in ("list", "tuple") and len(values) == 1 and isinstance(values[0], (list, tuple)) and not named:
            return list(values[0]) if name == "list" else tuple(values[0])
        return derived(name, [*values, *named.values(), sorted(named)], run)
    if not all(map(is_small, values)) or (name in _ORDERED and any(map(has_text_of_its_own, values))):
        return derived(name, values, run)
    function: Callable[..., object] = getattr(__import__("builtins"), name)
    try:
        result = function(*values)
    except (TypeError, ValueError) as error:
        raise RaisedError(type(error).__name__) from error
    if isinstance(result, range) and result[MOST_COMPUTED:]:
        return derived(name, values, run)
    return list(result) if name in ("enumerate", "zip", "range") else result  # type: ignore[call-overload]


def _getattr(arguments: Arguments, place: Place) -> object:
    node, frame, _ = place
    values = arguments[0]
    if len(values) < 2 or not isinstance(values[1], str):
        raise cannot_follow("`getattr` with a name that is not known", node, frame)
    if len(values) == 2:
        note_choice(values[0], values[1:], place[2])
        return attribute(values[0], values[1], place)
    known = has_attribute(values[0], values[1], place)
    if known is False:
        return values[2]
    value = attribute(values[0], values[1], place)
    is_default = may_be_part_of(values[2:])
    if known is None and isinstance(value, Object) and (is_default or not is_object(value)):
        # The default counts as well: it is part of what is not known.
        key, others = f"{value.key} or {key_of(values[2])}", value.may_be_other or is_default
        return Object(key, value.by_megatron, may_be_other=others, through=value.through)
    return value


def _hasattr(arguments: Arguments, place: Place) -> object:
    node, frame, run = place
    values = arguments[0]
    if len(values) != 2 or not isinstance(values[1], str):
        raise cannot_follow("`hasattr` with a name that is not known", node, frame)
    known = has_attribute(values[0], values[1], place)
    return derived("hasattr", values, run) if known is None else known


def _setattr(arguments: Arguments, place: Place) -> object:
    node, frame, _ = place
    values = arguments[0]
    if len(values) != 3 or not isinstance(values[1], str):
        raise cannot_follow("`setattr` with a name that is not known", node, frame)
    set_attribute(values[0], values[1], values[2], place)
    return None


def _isinstance(arguments: Arguments, place: Place) -> object:
    values, run = arguments[0], place[2]
    kinds = values[1] if len(values) == 2 and isinstance(values[1], tuple) else values[1:]
    names = [kind.name.removeprefix("builtins.") if isinstance(kind, Outside) else "" for kind in kinds]
    if isinstance(values[0], Member) or is_plain(values[0]):
        if all(name in _TYPES for name in names):
            return isinstance(values[0], tuple(_TYPES[name] for name in names))
        if all(isinstance(kind, Class) and not kind.node.bases for kind in kinds):
            return False
    elif isinstance(values[0], Object) and _is_of_megatron(values[0]) and all(name in _TYPES for name in names):
        return False
    return derived("isinstance", values, run)


def _is_of_megatron(value: Object) -> bool:
    """Return whether an object is surely of a class of Megatron. One of other code may derive from a builtin class."""
    return value.is_instance and value.by_megatron and not value.of_checkout


def _dict(arguments: Arguments, place: Place) -> object:
    """Return a new dict: ``dict(hidden_size=8)`` and ``dict(other, seed=1)``."""
    values, named = arguments
    if len(values) > 1 or not all(isinstance(one, dict) for one in values):
        return _pure("dict", arguments, place[2])
    for one in values:
        check_members(one, place)
    return {**(values[0] if values else {}), **named}  # type: ignore[dict-item]


def _fromkeys(arguments: Arguments, place: Place) -> object:
    values, named = arguments
    if named or not values or not isinstance(values[0], (list, tuple)) or not is_plain(values[0]):
        return derived("dict.fromkeys", [*values, *named.values()], place[2])
    try:
        return dict.fromkeys(values[0], *values[1:2] or [None])
    except TypeError as error:
        raise RaisedError("TypeError") from error


def _open(arguments: Arguments, place: Place) -> object:
    """Return a file that a program opens. Raises CannotFollowError if its name is an object with settings, or code."""
    values, run = [*arguments[0], *arguments[1].values()], place[2]
    if any(map(is_object, values)):
        raise cannot_follow("`open` gets an object and is not followed", place[0], place[1])
    note_call("open", arguments, run)
    return Object(run.numbered(f"open({', '.join(map(key_of, values))})"), is_instance=True)


def _super(arguments: Arguments, place: Place) -> object:
    del arguments
    raise cannot_follow("`super` is not followed", place[0], place[1])


def _vars(arguments: Arguments, place: Place) -> object:
    if len(arguments[0]) != 1 or arguments[1]:
        raise cannot_follow("`vars` is not followed", place[0], place[1])
    return view_of(arguments[0][0], "vars", place)


_BUILTINS: dict[str, Callable[[Arguments, Place], object]] = {
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "isinstance": _isinstance,
    "open": _open,
    "super": _super,
    "vars": _vars,
    "dict": _dict,
    "dict.fromkeys": _fromkeys,
}


def called_method(callee: Method, arguments: Arguments, place: Place) -> object:
    """Return the result of a method of a plain value, or of one that every object has. Raises CannotFollowError."""
    if isinstance(callee.value, Object):
        return method_of(callee.value, callee.name, arguments, place)
    return _method(callee, arguments, place)


def _method(callee: Method, arguments: Arguments, place: Place) -> object:
    """Return the result of a method of a list, a dict or a text."""
    node, frame, run = place
    value, values = callee.value, arguments[0]
    if not all(map(is_small, (value, *values))):
        raise cannot_follow("a value is too large to be computed", node, frame)
    if callee.name != "append":
        for one in (value, *values):
            check_members(one, place)
    is_known = all(map(is_plain, (value, *values)))
    changes = callee.name in _CHANGES or (callee.name in _REMOVES and is_known)
    if changes and isinstance(value, (list, dict)):
        changed_in_place(value, place)
    elif callee.name not in _READS or not is_known:
        if isinstance(value, dict) and callee.name in ("get", "keys", "values", "items"):
            pass
        elif isinstance(value, (str, int, float)):
            return derived(f"{key_of(value)}.{callee.name}", [*values, *arguments[1].values()], run)
        else:
            raise cannot_follow(f"`.{callee.name}` of a collection is not followed", node, frame)
    try:
        result = attrgetter(callee.name)(value)(*values, **arguments[1])
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        if not all(map(is_plain, (value, *values, *arguments[1].values()))):
            raise cannot_follow(f"`.{callee.name}` gets a value that is not known", node, frame) from error
        raise RaisedError(type(error).__name__) from error
    return list(result) if callee.name in ("keys", "values", "items") else result
