"""What the code of a file passes on: from what has a value to what gets it, or gets any value in it."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from cgmigrate.documents.python.source import dotted

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
LOADERS = ("safe_load", "full_load", "unsafe_load", "load", "load_all", "compose", "fromfile")
EVERYWHERE = ""
RETURNED = "()"
_OWNERS = ("yaml", "YAML", "OmegaConf", "json", "tomllib", "toml")
_AROUND = ("enumerate", "reversed", "sorted", "list", "tuple", "iter", "zip", "filter", "map", "partial")
"""Functions that give back the elements that they get."""
_COPIES = frozenset(("dict", "copy", "deepcopy", "create", "to_container", "cast", "merge", "OmegaConf", "DictConfig"))
"""Functions that return what they get, or a copy of it."""
_READ = (
    *(*FUNCTIONS, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.Call, ast.For, ast.comprehension),
)


class Carrier(NamedTuple):
    """A name, and the function in which it is a variable: its file and line. Attributes and keys have none."""

    scope: str
    name: str


class Argument(NamedTuple):
    """What a call gives to a function: in a file, by a position or a name."""

    path: str
    callee: str
    place: int | str


LOADED = Carrier(RETURNED, "*")
"""What a loader of configurations returns."""


class Passing(NamedTuple):
    """What gets a value, or with ``is_part`` any value in it."""

    source: Carrier
    target: Carrier | Argument
    is_part: bool = False


@dataclass(frozen=True)
class FileCode:
    """The code of a file, by the function in which it is."""

    path: str
    tree: ast.AST

    @cached_property
    def scopes(self) -> Sequence[tuple[str, ast.AST]]:
        """Each node that passes a value on, after the function around it; at the top that is the file."""
        return list(_scoped(self.tree, self.path))

    @cached_property
    def definitions(self) -> Sequence[Definition]:
        """The functions and classes."""
        return [node for _, node in self.scopes if isinstance(node, (*FUNCTIONS, ast.ClassDef))]

    @cached_property
    def functions(self) -> Sequence[Function]:
        """The functions and methods."""
        return [node for node in self.definitions if isinstance(node, FUNCTIONS)]

    @cached_property
    def imports(self) -> dict[str, str]:
        """The names that the file imports, each with its module."""
        names: dict[str, str] = {}
        for _, node in self.scopes:
            if isinstance(node, ast.ImportFrom):
                names |= {one.asname or one.name: node.module or one.name for one in node.names}
            elif isinstance(node, ast.Import):
                names |= {one.asname or one.name: one.name for one in node.names}
        return names

    def same_object(self, scope: str) -> Iterator[Carrier]:
        """Yield what stands for the object of a method: `self` in each method, and what its class makes."""
        for node in self.definitions:
            if isinstance(node, ast.ClassDef):
                methods = [self.scope_of(one) for one in node.body if isinstance(one, FUNCTIONS)]
                if scope in methods:
                    yield from (Carrier(one, "self") for one in methods)
                    yield Carrier(RETURNED, node.name)

    def scope_of(self, node: ast.AST) -> str:
        """Return the scope that a function is."""
        return _scope_of(self.path, node)

    def passing(self, own: Collection[str] | None) -> Iterator[Passing]:
        """Yield what the code passes on.

        ``own`` are the functions of the project that the file calls, if objects count that get the values of a mapping:
        what other functions return is such an object.
        """
        for scope, node in self.scopes:
            if isinstance(node, ast.FunctionDef):
                if _is_started_with_it(node):
                    yield from (Passing(LOADED, Carrier(self.scope_of(node), one.arg)) for one in node.args.args)
                continue
            reader = _Scope(self.path, scope, own)
            yield from chain(reader.values(node), reader.parts(node), reader.filled(node))


@dataclass(frozen=True, slots=True)
class _Scope:
    """A function of a file, or the file itself, in which statements pass values on."""

    path: str
    scope: str
    own: Collection[str] | None

    def values(self, node: ast.AST) -> Iterator[Passing]:
        """Yield what a statement gives a value."""
        match node:
            case ast.Assign(targets=targets, value=value):
                yield from self._to(self._in(value), (one for target in targets for one in self._bound(target)))
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target, value)
                | ast.comprehension(target, value)
            ):
                yield from self._to(self._in(value), self._bound(target))
            case ast.Return(ast.expr() as value) | ast.Yield(ast.expr() as value):
                yield from self._to(self._in(value), [Carrier(RETURNED, self.scope.rpartition(":")[2])])
            case ast.Call(func=function, args=positional, keywords=named):
                callee = dotted(function)
                every: list[tuple[int | str, ast.expr]] = [*enumerate(positional)]
                every += [(one.arg, one.value) for one in named if one.arg]
                for place, value in every if callee else ():
                    yield from self._to(self._in(value), [Argument(self.path, callee, place)])

    def parts(self, node: ast.AST) -> Iterator[Passing]:
        """Yield what a statement gives any value of a mapping: in a loop, or by a key that is not known."""
        match node:
            case ast.For(target, value) | ast.comprehension(target, value):
                sources = [*self._looped(value)]
                yield from self._to(sources, self._bound(target), is_part=True)
                entries = (one.id for one in ast.walk(target) if isinstance(one, ast.Name))
                yield from self._to(sources, [self._entry(one) for one in entries])
            case ast.Assign(targets=targets, value=value):
                every = (one for target in targets for one in self._bound(target))
                yield from self._to(self._under_any_key(value), every, is_part=True)

    def filled(self, node: ast.AST) -> Iterator[Passing]:
        """Yield what gets the values of a mapping one by one, or all."""
        match node:
            case ast.Call(func=ast.Attribute(attr="update", value=base), args=[value]):
                owner = base.value if isinstance(base, ast.Attribute) and base.attr == "__dict__" else base
                yield from self._to(self._in(value), self._bound(owner))
            case ast.Call(func=ast.Attribute(value=base), keywords=[*_, ast.keyword(arg=None, value=value)]):
                yield from self._to(self._in(value), self._bound(base)) if self.own is not None else ()
            case ast.Assign(targets=[ast.Subscript(value=base, slice=key)], value=value) if _is_computed(key):
                yield from self._to(self._any_of(value), self._bound(base))
            case (
                ast.Assign(targets=[ast.Attribute(value=base)], value=value)
                | ast.Call(func=ast.Name(id="setattr"), args=[base, _, value])
            ):
                yield from self._to(self._any_of(value), self._bound(base)) if self.own is not None else ()

    def _to(
        self, sources: Iterable[Carrier], targets: Iterable[Carrier | Argument], *, is_part: bool = False
    ) -> Iterator[Passing]:
        every = list(sources)
        yield from (Passing(source, one, is_part) for one in targets for source in every) if every else ()

    def _in(self, value: ast.expr) -> Iterator[Carrier]:
        """Yield what an expression may have as its value, or in a list."""
        match value:
            case ast.Name(id=name):
                yield from {Carrier(self.path, name), Carrier(self.scope, name)}
            case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
                yield Carrier(EVERYWHERE, name)
            case ast.Call(
                func=ast.Attribute(attr="get" | "pop" | "setdefault"), args=[ast.Constant(value=str(name)), *_]
            ):
                yield Carrier(EVERYWHERE, name)
            case ast.Call():
                yield from self._returned(value)
            case _:
                yield from (one for part in _parts(value) for one in self._in(part))

    def _returned(self, call: ast.Call) -> Iterator[Carrier]:
        """Yield what a call may return, or return a copy of, or an object with it."""
        callee = dotted(call.func).rpartition(".")[2]
        is_around = callee in _AROUND
        if not is_around:
            yield Carrier(RETURNED, callee)
            yield from [LOADED] if _is_loader(call.func) else ()
        owner = [call.func.value] if isinstance(call.func, ast.Attribute) else []
        is_made = self.own is not None and callee not in self.own
        others = (*owner, *(one.value for one in call.keywords)) if not is_around else ()
        every = (*call.args, *others) if is_around or is_made or callee in _COPIES else ()
        yield from (one for part in every for one in self._in(part))

    def _looped(self, value: ast.expr) -> Iterator[Carrier]:
        """Yield the mappings through whose values a loop goes."""
        match value:
            case ast.Call(func=ast.Attribute(attr="items" | "values", value=of)):
                yield from self._in(of)
            case ast.Call(func=ast.Name(id="sorted" | "list" | "reversed" | "enumerate" | "tuple"), args=[of, *_]):
                yield from self._looped(of)

    def _under_any_key(self, value: ast.expr) -> Iterator[Carrier]:
        """Yield the mappings of which an expression has the value under a key that is not known."""
        for node in ast.walk(value):
            match node:
                case (
                    ast.Subscript(value=base, slice=key)
                    | ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault", value=base), args=[key, *_])
                    | ast.Call(func=ast.Name(id="getattr"), args=[base, key, *_])
                ) if _is_computed(key):
                    yield from self._in(base)

    def _any_of(self, value: ast.expr) -> Iterator[Carrier]:
        """Yield the mappings of which an expression has any value: by a key, or a variable of a loop."""
        yield from self._under_any_key(value)
        yield from (self._entry(one.id) for one in ast.walk(value) if isinstance(one, ast.Name))

    def _entry(self, name: str) -> Carrier:
        """Return what stands for a variable in the scope that is a value of a mapping, but none that is carried."""
        return Carrier(f"{self.scope}*", name)

    def _bound(self, target: ast.expr) -> Iterator[Carrier]:
        """Yield what an assignment gives a value: variables, attributes and keys."""
        match target:
            case ast.Name(id=name):
                yield Carrier(self.scope, name)
            case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
                yield Carrier(EVERYWHERE, name)
            case ast.Tuple(elts=every) | ast.List(elts=every):
                yield from (one for part in every for one in self._bound(part))


def parameters(function: Function, place: int | str) -> Iterator[str]:
    """Yield the parameters that get an argument; a position does not count the object of a method."""
    if isinstance(place, str):
        yield place
        return
    every = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    at = place + (1 if every[:1] in (["self"], ["cls"]) else 0)
    if at < len(every):
        yield every[at]
    elif function.args.vararg:
        yield function.args.vararg.arg


def _scoped(tree: ast.AST, path: str) -> Iterator[tuple[str, ast.AST]]:
    waiting = [(path, tree)]
    while waiting:
        scope, node = waiting.pop()
        if isinstance(node, _READ):
            yield scope, node
        inner = _scope_of(path, node) if isinstance(node, FUNCTIONS) else scope
        waiting += [(inner, child) for child in ast.iter_child_nodes(node)]


def _scope_of(path: str, node: ast.AST) -> str:
    return f"{path}:{getattr(node, 'lineno', 0)}:{getattr(node, 'name', '')}"


def _parts(value: ast.expr) -> Sequence[ast.expr]:
    """Return the expressions of which another one is the value, or a list."""
    match value:
        case ast.Starred(value=one) | ast.Await(value=one):
            return (one,)
        case ast.List(elts=every) | ast.Tuple(elts=every) | ast.BoolOp(values=every):
            return every
        case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, right=second):
            return (first, second)
        case ast.Dict(keys=keys, values=every):
            return [one for key, one in zip(keys, every, strict=True) if key is None]
        case ast.DictComp(generators=[ast.comprehension(iter=ast.Call(func=ast.Attribute(value=one)))]):
            return (one,)
    return ()


def _is_computed(key: ast.expr) -> bool:
    return not isinstance(key, ast.Constant)


def _is_loader(function: ast.expr) -> bool:
    """Return whether a call reads a configuration."""
    owner, _, name = dotted(function).rpartition(".")
    return name in LOADERS and (name != "load" or owner.rpartition(".")[2] in _OWNERS)


def _is_started_with_it(function: Function) -> bool:
    """Return whether Hydra starts a function with a configuration."""
    return any("hydra" in ast.unparse(one) for one in function.decorator_list)
