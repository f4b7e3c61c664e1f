"""Values of the evaluator: plain Python values where they are known, and objects of which only a part is known."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from cgmigrate.proof.flow.modules import Module


class CannotFollowError(Exception):
    """Code that is not followed; the message says why, with its place."""

    statement: ast.stmt | None = None
    """The statement of the function that is evaluated, at its top, in which this code is executed."""


MOST_COMPUTED = 1024
"""The size of a value that is computed with; see ``room_beside``."""
_MOST_KNOWN = 4096
"""The size of a value that counts as known."""
_MOST_OF_KEY = 512
"""The characters of a key; a longer one is shortened."""
_SHOWN_OF_KEY = 128
TEXT_OF_SETTINGS = "text with settings"
"""In the keys of texts of objects with settings, and of what comes from them: edits change such a text."""
_MOST_NESTED = 64
_MOST_BITS = 4096
"""Python refuses to show numbers of more than three times as many."""
_UNIT = 64
"""The characters of a text that count as one."""


@dataclass(eq=False, slots=True)
class Object:
    """An object: ``attributes`` are those that are known. Its ``key`` is the same in each evaluation of a path.

    ``by_megatron`` says that Megatron's code made it: settings that nothing has set have the defaults of the release.
    """

    key: str
    by_megatron: bool = False
    is_instance: bool = False
    """Whether it is surely not None."""
    attributes: dict[str, object] = field(default_factory=dict)
    first: dict[str, object] = field(default_factory=dict)
    """Attributes that were read before anything set them."""
    is_false: bool = False
    """Whether it is surely false as a condition."""
    may_be_other: bool = False
    """Whether it may be an object that is known under another key, or a part of one."""
    of_checkout: bool = False
    """Whether its class is one of the checkout, whose methods are not followed."""
    is_open: bool = False
    """Whether its settings are those that other code has set; what nothing has set has the defaults of the release."""
    is_record: bool = False
    """Whether it is of a class of the project's own that has fields with the names of settings."""
    is_options: bool = False
    """Whether it has the options of a program of the project: those that nobody gives are None."""
    is_bare: bool = False
    """Whether it has no defaults: code that reads what nothing has set raises an AttributeError."""
    properties: frozenset[str] = frozenset()
    """The attributes that its class computes: each may be the object itself, or a part of another one."""
    is_condition: bool = False
    """Whether it is true or false."""
    is_view: bool = False
    """Whether it has the attributes of another object, its attribute ``of``, by their names."""
    through: frozenset[str] = frozenset()
    """The attributes by which it was read of a known object, and that no code had set that is followed."""
    is_rest: bool = False
    """Whether it is the only member of a collection that other code may have changed, in place of all it has."""

    def __post_init__(self) -> None:
        if len(self.key) > _MOST_OF_KEY:
            # Keys name other keys: what code changes again and again would have one that doubles each time.
            mark = f", {TEXT_OF_SETTINGS}" if TEXT_OF_SETTINGS in self.key else ""
            self.key = f"{self.key[:_SHOWN_OF_KEY]}…{sha256(self.key.encode()).hexdigest()}{mark}"


FrozenSettings = tuple[tuple[str, object], ...]
"""The settings of an object by name, in an order of their own; lists are tuples."""


def frozen(value: object) -> object:
    """Return a value of a setting in a form that can be compared and kept."""
    match value:
        case list():
            return ("list", *map(frozen, value))
        case tuple():
            return ("tuple", *map(frozen, value))
        case set() | frozenset():
            return ("set", *sorted(map(frozen, value), key=repr))
        case dict():
            return ("dict", tuple(value), *map(frozen, value.values()))
        case Method(value=owner, name=name):
            return Method(frozen(owner), name)
    return value


def thawed(value: object) -> object:
    """Return the value of a setting of which this is the frozen form."""
    match value:
        case ("list", *members):
            return [thawed(one) for one in members]
        case ("tuple", *members):
            return tuple(thawed(one) for one in members)
        case ("set", *members):
            return {thawed(one) for one in members}
        case ("dict", tuple(keys), *parts):
            return dict(zip(keys, map(thawed, parts), strict=True))
        case Method(value=owner, name=name):
            return Method(thawed(owner), name)
    return value


def has_rest(value: object) -> bool:
    """Return whether other code may have changed the members of a collection, so that they are not known."""
    return isinstance(value, (list, tuple, dict)) and any(isinstance(one, Object) and one.is_rest for one in value)


def may_be_part_of(values: Iterable[object]) -> bool:
    """Return whether what is made of values may be an object among them, or a part of one."""
    for value in values:
        match value:
            case Object():
                if value.by_megatron or value.is_instance or value.attributes or value.may_be_other:
                    return True
            case dict():
                if may_be_part_of(value.values()):
                    return True
            case list() | tuple() | set() | frozenset():
                if may_be_part_of(value):
                    return True
    return False


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration of megatron-core: ``CudaGraphScope.attn``."""

    of: str
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Function:
    """A function of the checkout; ``around`` are the names of the function that defines it."""

    node: ast.FunctionDef | ast.Lambda
    module: Module
    around: Mapping[str, object] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.node.name if isinstance(self.node, ast.FunctionDef) else "a lambda"


@dataclass(frozen=True, eq=False, slots=True)
class Class:
    """A class of the checkout."""

    node: ast.ClassDef
    module: Module


@dataclass(frozen=True, slots=True)
class Outside:
    """Something that is not of the checkout, or that is not followed, by its full name."""

    name: str
    of_checkout: bool = False
    leads: bool = False
    """Whether its result may be an object of code that changes."""


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a value."""

    value: object
    name: str


@dataclass(frozen=True, eq=False, slots=True)
class Partial:
    """A function of the checkout with its first arguments, by ``functools.partial``."""

    function: Function
    values: tuple[object, ...]
    named: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Namespace:
    """An imported module of the checkout."""

    module: Module


class SharedList(list[object]):
    """A list of a module, or a default argument, which all calls share."""


class SharedDict(dict[object, object]):
    """A dictionary of a module, which all calls share."""


def shared(value: object) -> object:
    """Return a literal whose collections are those that all calls share. Raises ValueError for a set."""
    match value:
        case list():
            return SharedList(map(shared, value))
        case tuple():
            return tuple(map(shared, value))
        case dict():
            return SharedDict({name: shared(one) for name, one in value.items()})
        case set():
            raise ValueError("a set that all calls share")
    return value


def is_plain(value: object) -> bool:
    """Return whether a value is known in all its parts. One that is too large is not."""
    return room_beside(value, _MOST_KNOWN) >= 0 and _is_known(value)


def _is_known(value: object) -> bool:
    match value:
        case None | bool() | int() | float() | str() | Member():
            return True
        case list() | tuple() | set() | frozenset():
            return all(map(_is_known, value))
        case dict():
            return all(map(_is_known, value)) and all(map(_is_known, value.values()))
    return False


def room_beside(value: object, room: int, depth: int = 0) -> int:
    """Return what is left of some room for a value, negative if it does not fit. Its members are counted, too."""
    if isinstance(value, dict):
        members: Iterable[object] = [*value, *value.values()]
    elif isinstance(value, (list, tuple, set, frozenset)):
        members = value
    elif isinstance(value, int):
        return room - 1 if value.bit_length() <= _MOST_BITS else -1
    else:
        return room - 1 - (len(value) // _UNIT if isinstance(value, str) else 0)
    if depth > _MOST_NESTED:
        return -1
    room -= 1
    for one in members:
        if room < 0:
            break
        room = room_beside(one, room, depth + 1)
    return room


def has_text_of_its_own(value: object) -> bool:
    """Return whether a value has another text, or another order, in Python than in the evaluator: members and sets."""
    match value:
        case Member():
            return True
        case set() | frozenset():
            return len(value) > 1
        case list() | tuple():
            return any(map(has_text_of_its_own, value))
        case dict():
            return any(map(has_text_of_its_own, (*value, *value.values())))
    return False


def is_small(value: object) -> bool:
    """Return whether a value is computed with."""
    return room_beside(value, MOST_COMPUTED) >= 0


def key_of(value: object) -> str:
    """Return a text that is equal for equal values, and for one object in each evaluation of a path.

    Raises CannotFollowError if a value is too large.
    """
    if room_beside(value, _MOST_KNOWN) < 0:
        raise CannotFollowError("a value is too large")
    return _key_of(value)


def _key_of(value: object) -> str:
    match value:
        case Object(key=key):
            return f"<{key}>"
        case list() | tuple() | dict() | set() | frozenset():
            return _key_of_members(value)
        case Function() | Class() | Partial() | Namespace():
            return _key_of_code(value)
    return f"{type(value).__name__} {value!r}"


def _key_of_code(value: Function | Class | Partial | Namespace) -> str:
    match value:
        case Function(module=module):
            return f"<function {module.path} {value.name}>"
        case Class(node=node, module=module):
            return f"<class {module.path} {node.name}>"
        case Partial(function=function, values=values, named=named):
            return f"<partial {_key_of(function)}({_key_of(values)}, {_key_of(dict(named))})>"
        case Namespace(module=module):
            return f"<module {module.path}>"


def _key_of_members(value: object) -> str:
    match value:
        case dict():
            return "{" + ", ".join(f"{_key_of(name)}: {_key_of(one)}" for name, one in value.items()) + "}"
        case set() | frozenset():
            return "set{" + ", ".join(sorted(map(_key_of, value))) + "}"
        case tuple():
            return "(" + ", ".join(map(_key_of, value)) + ")"
        case list():
            return "[" + ", ".join(map(_key_of, value)) + "]"
    raise TypeError(value)
