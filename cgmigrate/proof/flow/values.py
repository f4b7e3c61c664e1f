"""Values of evaluated code: plain Python values, objects with settings, functions and classes, and what is unknown."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cgmigrate.proof.flow.limits import check_size, short

if TYPE_CHECKING:
    from cgmigrate.proof.flow.modules import Module


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that is not known. The same key is the same value, before and after the edits."""

    key: str


@dataclass(frozen=True, slots=True)
class Member:
    """A member of an enumeration of megatron-core."""

    of: str
    name: str


@dataclass(frozen=True, slots=True)
class External:
    """What another package has under a full name."""

    name: str


@dataclass(frozen=True, slots=True)
class Builtin:
    """A builtin function."""

    name: str


@dataclass(eq=False, slots=True)
class Scope:
    """The variables of a function, and the scope around it."""

    names: dict[str, object] = field(default_factory=dict)
    outer: Scope | None = None

    def find(self, name: str) -> Scope | None:
        """Return the nearest scope that has a variable."""
        scope: Scope | None = self
        while scope is not None and name not in scope.names:
            scope = scope.outer
        return scope


@dataclass(eq=False, slots=True)
class Function:
    """A function of the checkout, with the scope in which it is defined."""

    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scope: Scope | None = None
    owner: Class | None = None
    """The class that it is a method of."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return "lambda" if isinstance(self.node, ast.Lambda) else self.node.name


@dataclass(eq=False, slots=True)
class Class:
    """A class of the checkout."""

    module: Module
    node: ast.ClassDef
    scope: Scope | None = None
    made: dict[str, object] = field(default_factory=dict)
    """The attributes that code set on it."""


@dataclass(eq=False, slots=True)
class PackageModule:
    """A module of the checkout as a value."""

    module: Module


@dataclass(eq=False, slots=True)
class Bound:
    """A function with arguments that it has already: a method, or ``functools.partial``."""

    function: object
    positional: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict)


@dataclass(eq=False, slots=True)
class Attribute:
    """A method of a plain value: ``names.append``."""

    owner: object
    name: str


@dataclass(eq=False, slots=True)
class Object:
    """An object with attributes; the same key is the same object, before and after the edits.

    ``is_argument`` says that other code passes it; ``is_bare``, that it has only the attributes that were set.
    ``is_part`` says that nothing shows that it is an object: code only reads it as an attribute of one;
    ``is_foreign``, that another package made it, or its class, which may set settings itself.
    """

    key: str
    fields: dict[str, object] = field(default_factory=dict)
    of: object = None
    """Its class, if it is one of the checkout, or external."""
    is_argument: bool = False
    is_bare: bool = False
    is_part: bool = False
    is_foreign: bool = False
    is_holder: bool = False
    """Whether code reads or sets a setting of it."""


MORE = "**"
"""A key of a dictionary to which code that is not followed may have added others."""
_DEPTH = 6
NAMED = (Function, Class, PackageModule, External, Builtin)


def is_plain(value: object) -> bool:
    """Return whether a value is known, with all that it contains."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return all(map(is_plain, value))
    if isinstance(value, dict):
        return all(is_plain(key) and is_plain(part) for key, part in value.items())
    return value is None or isinstance(value, (str, bool, int, float, bytes, Member))


def shown(value: object) -> str:
    """Return a text for a value: what is the same before and after the edits has the same one."""
    check_size(value)
    return short(_shown(value, _DEPTH))


def _shown(value: object, depth: int) -> str:
    if depth < 0:
        return "..."
    show = _SHOWN.get(type(value))
    return show(value, depth) if show is not None else repr(value)


def _shown_list(value: Iterable[object], depth: int) -> str:
    return f"[{', '.join([_shown(one, depth - 1) for one in value])}]"


def _shown_set(value: Iterable[object], depth: int) -> str:
    return f"{{{', '.join(sorted(_shown(one, depth - 1) for one in value))}}}"


def _shown_dict(value: dict[object, object], depth: int) -> str:
    return f"{{{', '.join([f'{_shown(key, depth)}: {_shown(part, depth - 1)}' for key, part in value.items()])}}}"


_SHOWN: dict[type, Callable[[Any, int], str]] = {
    **dict.fromkeys((Unknown, Object), lambda one, _depth: f"<{one.key}>"),
    **dict.fromkeys((External, Builtin, Function), lambda one, _depth: one.name),
    **dict.fromkeys((list, tuple), _shown_list),
    **dict.fromkeys((set, frozenset), _shown_set),
    dict: _shown_dict,
    Class: lambda one, _depth: one.node.name,
    Member: lambda one, _depth: f"{one.of}.{one.name}",
    Bound: lambda one, depth: f"{_shown(one.function, depth - 1)}(...)",
    Attribute: lambda one, depth: f"{_shown(one.owner, depth - 1)}.{one.name}",
    PackageModule: lambda _one, _depth: "module",
}
