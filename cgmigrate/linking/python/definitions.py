"""Definitions at the top of modules, and the words in them: which of them lead to code that is to change."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import NoneType

from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.modules import Import, Module
from cgmigrate.linking.python.values import Function
from cgmigrate.linking.python.world import SETTINGS

_WORD = re.compile(r"[A-Za-z_]\w*")
COMPUTED = "a name that is computed"
"""The word of code that uses attributes by names that it does not show."""
TOUCHING = SETTINGS | {COMPUTED}
"""The words of code that sets or reads a setting."""


_OTHER = object()
_BY_TEXT = frozenset(("exec", "eval", "globals", "locals", "attrgetter", "methodcaller", "asdict", "getmembers"))
"""Functions that use attributes whose names are in a text, or all attributes."""


@dataclass(frozen=True, eq=False)
class Definition:
    """A statement at the top of a module: the names that it binds, and the words in it.

    Of an import these are the names that it gives to others.
    """

    module: Module
    node: ast.stmt
    names: frozenset[str]

    @property
    def function(self) -> Function | None:
        """The function that it defines, None if it is something else or has a decorator."""
        if isinstance(self.node, ast.FunctionDef) and not self.node.decorator_list:
            return Function(self.node, self.module)
        return None

    @property
    def is_import(self) -> bool:
        """Whether it only gives other names to what it imports."""
        return isinstance(self.node, (ast.Import, ast.ImportFrom))

    @property
    def has_parameters(self) -> bool:
        """Whether it is a function with parameters."""
        function = self.function
        if function is None:
            return False
        arguments = function.node.args
        return bool(arguments.args or arguments.posonlyargs or arguments.kwonlyargs or arguments.vararg)

    @property
    def lines(self) -> tuple[int, int]:
        """Its first and last line."""
        return self.node.lineno, self.node.end_lineno or self.node.lineno

    @property
    def place(self) -> str:
        """Its file and line."""
        return f"{self.module.path}:{self.node.lineno}"

    @cached_property
    def words(self) -> frozenset[str]:
        """The names in its code, and the words in texts that may be names."""
        return frozenset(_words(self.node))

    @cached_property
    def members(self) -> frozenset[str]:
        """The words that are names of imported modules, or of imports in its code."""
        return frozenset(self._members())

    def _members(self) -> Iterator[str]:
        for part in ast.walk(self.node):
            match part:
                case ast.Attribute(attr=name) if self._is_imported(part):
                    yield name
                case ast.alias(name=name):
                    yield name

    def _is_imported(self, node: ast.Attribute) -> bool:
        first = dotted(node).partition(".")[0]
        return bool(first) and isinstance(self.module.bindings.get(first), Import)

    @property
    def gives_away(self) -> bool:
        """Whether it is a statement at the top of a module that has no name and may give a function to others."""
        if self.names or self.is_import:
            return False
        called = {id(part.func) for part in ast.walk(self.node) if isinstance(part, ast.Call)}
        used = (part for part in ast.walk(self.node) if isinstance(part, (ast.Name, ast.Attribute)))
        return any(id(part) not in called and isinstance(part.ctx, ast.Load) for part in used)

    def may_use(self, name: str, other: Definition) -> bool:
        """Return whether one of its words may be a name of another definition."""
        if other.module is self.module or name in self.members:
            return True
        if self.module.stars or isinstance(self.module.bindings.get(name, _OTHER), (Import, NoneType)):
            return True
        # An attribute of something that leads to a module, or a name in a text.
        is_code = isinstance(other.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        return is_code and "_" in name.strip("_") and name not in self.module.bindings


def computed_name(node: ast.AST) -> bool:
    """Return whether code uses attributes of an object by names that it does not show."""
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "setattr" | "delattr"), args=[_, ast.Constant(), *_]):
            return False
        case ast.Call(func=ast.Name(id="getattr" | "setattr" | "delattr" | "vars")):
            return True
        case ast.Attribute(attr="__dict__" | "__setattr__" | "__getattribute__" | "__delattr__"):
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _BY_TEXT:
            return True
        case ast.Constant(value="__dict__" | "__setattr__" | "__getattribute__" | "__delattr__"):
            return True
    return False


def _words(node: ast.AST) -> Iterator[str]:
    for part in ast.walk(node):
        if computed_name(part):
            yield COMPUTED
        match part:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=str() as name) | ast.alias(name=name):
                yield name
            case ast.Constant(value=str() as text):
                yield from _WORD.findall(text)
            case ast.MatchClass(kwd_attrs=names):
                yield from names


def definitions_in(module: Module) -> Iterator[Definition]:
    """Yield the definitions of a module, and its other statements."""
    for node in module.tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            if names := {alias.asname for alias in node.names if alias.asname not in (None, alias.name)}:
                yield Definition(module, node, frozenset(filter(None, names)))
            continue
        if _is_text(node):
            continue
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield Definition(module, node, frozenset((node.name,)))
            continue
        names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
        if "__all__" not in names:
            yield Definition(module, node, frozenset(names))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


@dataclass(slots=True)
class Graph:
    """The definitions of some modules, by the words in them."""

    definitions: list[Definition] = field(default_factory=list)
    _by_name: dict[str, list[Definition]] = field(default_factory=dict)
    _by_word: dict[str, list[Definition]] = field(default_factory=dict)

    def add(self, module: Module) -> None:
        """Add the definitions of a module."""
        for one in definitions_in(module):
            self.definitions.append(one)
            for name in one.names:
                self._by_name.setdefault(name, []).append(one)
            for word in one.words:
                self._by_word.setdefault(word, []).append(one)

    def setters(self) -> frozenset[str]:
        """Return the code that may set or read a setting of what it gets, itself or through others.

        These are functions with parameters, and all code that is not followed: classes, and objects that are called.
        """
        return self._closed(TOUCHING, lambda one: one.function is None or one.has_parameters) - TOUCHING

    def leading_to(self, names: Iterable[str]) -> frozenset[str]:
        """Return names, and those of the definitions that name them, themselves or through others."""
        return self._closed(frozenset(names), lambda _: True)

    def _closed(self, words: Collection[str], counts: Callable[[Definition], bool]) -> frozenset[str]:
        """Return words and the names of the definitions that may use one; ``words`` are used wherever they are."""
        known, waiting, done = set(words), list(words), set[int]()
        while waiting:
            word = waiting.pop()
            others = self._by_name.get(word, ())
            for one in self._by_word.get(word, ()):
                if id(one) in done or not counts(one):
                    continue
                if word in words or any(one.may_use(word, other) for other in others):
                    done.add(id(one))
                    waiting += one.names - known
                    known |= one.names
        return frozenset(known)

    def reached_from(self, definition: Definition, words: Mapping[str, object]) -> list[Definition]:
        """Return a definition and those that it leads to by the words in it, as far as ``words`` has them."""
        result, waiting = {id(definition): definition}, [definition]
        while waiting:
            user = waiting.pop()
            for word in user.words & words.keys():
                named = self._by_name.get(word, ())
                new = [one for one in named if id(one) not in result and user.may_use(word, one)]
                result |= {id(one): one for one in new}
                waiting += new
        return list(result.values())
