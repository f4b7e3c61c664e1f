"""What in the code of a project may carry a mapping of a configuration: variables, parameters, attributes, functions.

A configuration comes from a loader of files, and a mapping in it is reached by the keys that lead to it:
``cfg["model"]``, ``cfg.model``, ``for name, part in cfg.items()``. What gets such a value may carry it, and so may a
parameter to which it is passed, and what a function returns. Attributes and keys are distinguished by name only.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from cgmigrate.documents.python.nodes import parsed
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.remembered import remembered

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_AROUND = ("enumerate", "reversed", "sorted", "list", "tuple", "iter", "zip", "filter", "map", "partial")
"""Functions that give back the elements that they get."""
_LOOPS = (ast.For, ast.comprehension)
_GIVING = (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return, ast.Yield, ast.Call)
_PASSING = (*_FUNCTIONS, *_LOOPS, ast.ClassDef, *_GIVING)
_IMPORTS = (ast.Import, ast.ImportFrom)
_COPIES = frozenset(("dict", "copy", "deepcopy", "create", "to_container", "cast", "merge", "OmegaConf", "DictConfig"))
"""Functions that return what they get, or a copy of it."""
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Definition = _Function | ast.ClassDef
_LOADERS = ("safe_load", "full_load", "unsafe_load", "load", "load_all", "compose", "fromfile")
_OWNERS = ("yaml", "YAML", "OmegaConf", "json", "tomllib", "toml")
_DEFINED = re.compile(r"^[ \t]*(?:async def|def|class)[ \t]+(\w+)", re.MULTILINE)
_EVERYWHERE = ""
_RETURNED = "()"


class _Carrier(NamedTuple):
    """A name, and the function in which it is a variable: its file and line. Attributes and keys have none."""

    scope: str
    name: str


class _Passing(NamedTuple):
    """A node that passes a value on, and the names in it."""

    node: ast.AST
    names: frozenset[str]


class _Names(NamedTuple):
    """The names of carriers at a place."""

    keys: set[str]
    """Of attributes and keys."""
    variables: set[str]
    functions: set[str]
    """Functions that return one."""
    own: Collection[str] | None
    """The functions of the project that a file calls; what others return is an object with what they get. None if only
    mappings are carried."""
    is_whole: bool
    """Whether they carry what a loader returns, and not a mapping in it."""

    def words(self) -> set[str]:
        """Return the words of which code has one that gets such a value."""
        return {*self.variables, *self.keys, *self.functions, *((*_LOADERS, "hydra") if self.is_whole else ())}


class _Known(NamedTuple):
    """What is known to carry a value."""

    names: Mapping[str, set[str]]
    """By their scopes."""
    objects: bool
    """Whether objects that get its values count."""
    is_whole: bool
    """Whether they carry what a loader returns, and not a mapping in it."""


@dataclass
class MappingCarriers:
    """The carriers in a project, by the key of the mapping."""

    texts: ProjectTexts

    def names_at(self, keys: tuple[str, ...], path: str, line: int, *, objects: bool) -> frozenset[str]:
        """Return the names that may carry the mapping under some keys, at a line of a file.

        With ``objects``, these are also the names of objects that get its values.
        """
        around = [node for node in self._functions(path) if _is_in(line, node)]
        scopes = {_EVERYWHERE, _RETURNED, path, *(_scope_of(path, node) for node in around)}
        names = self._names_by_scope(keys, objects=objects)
        return frozenset(chain.from_iterable(names.get(scope, ()) for scope in scopes))

    @remembered
    def _names_by_scope(self, keys: tuple[str, ...], *, objects: bool) -> Mapping[str, set[str]]:
        return _by_scope_of(self._carriers(keys, objects=objects))

    @remembered
    def _carriers(self, keys: tuple[str, ...], *, objects: bool) -> frozenset[_Carrier]:
        """Return what carries the mapping under some keys; without keys, what a loader returns."""
        if not keys:
            return self._spread(set(), {*_LOADERS, "hydra"}, objects=objects, is_whole=True)
        known = self._of_parts(keys[:-1], objects=objects)
        new = {*self._parameters_named(keys[-1]), _Carrier(_EVERYWHERE, keys[-1])} - known
        return self._spread({*known, *new}, {one.name for one in new}, objects=objects, is_whole=False)

    @remembered
    def _of_parts(self, keys: tuple[str, ...], *, objects: bool) -> frozenset[_Carrier]:
        """Return what carries any value of the mapping under some keys; it is the same for each further key."""
        parts = self._parts_of(keys)
        return self._spread({*parts}, {one.name for one in parts}, objects=objects, is_whole=False)

    def _spread(self, every: set[_Carrier], words: set[str], *, objects: bool, is_whole: bool) -> frozenset[_Carrier]:
        while words:
            known = _Known(_by_scope_of(every), objects, is_whole)
            paths = [path for path in self.texts.holding(words) if path.endswith(".py")]
            new = {one for path in paths for one in self._carrying_in(path, known, words)} - every
            every |= new
            words = {one.name for one in new}
        return frozenset(every)

    @remembered
    def _parts_of(self, keys: tuple[str, ...]) -> frozenset[_Carrier]:
        """Return what gets any value of the mapping under some keys: in a loop, or by a key that is not known."""
        whole = self._carriers(keys, objects=False)
        known = _Known(_by_scope_of(whole), False, not keys)
        paths = self.texts.holding({one.name for one in whole} | {*_LOADERS}) if whole else []
        return frozenset(one for path in paths if path.endswith(".py") for one in self._parts_in(path, known))

    def _parts_in(self, path: str, known: _Known) -> Iterator[_Carrier]:
        for scope, nodes in self._by_scope(path).items():
            names = self._names_in(path, scope, known)
            words = names.words()
            yield from (
                one for node, named in nodes if not words.isdisjoint(named) for one in _taking_part(node, scope, names)
            )

    def _names_in(self, path: str, scope: str, known: _Known) -> _Names:
        own = self._own_functions(path) if known.objects else None
        variables = known.names.get(path, set()) | known.names.get(scope, set())
        functions = known.names.get(_RETURNED, set())
        return _Names(known.names.get(_EVERYWHERE, set()), variables, functions, own, known.is_whole)

    def _carrying_in(self, path: str, known: _Known, words: Collection[str]) -> Iterator[_Carrier]:
        """Yield what gets a value in a file which something known carries, in code with one of the last new words."""
        for scope, nodes in self._by_scope(path).items():
            own = [node for node, named in nodes if not named.isdisjoint(words)]
            if not own:
                continue
            names = self._names_in(path, scope, known)
            parts = {one.id for node in own for one in _entries_in(node, names)}
            for node, named in nodes:
                if named.isdisjoint(words) and parts.isdisjoint(named):
                    continue
                for base in _getting(node, names, parts):
                    is_self = isinstance(base, ast.Name) and base.id == "self"
                    yield from self._objects_of(path, scope) if is_self else _bound(base, scope)
                yield from _carrying(node, scope, names)
                if names.is_whole and isinstance(node, ast.FunctionDef) and _is_started_with_it(node):
                    yield from (_Carrier(_scope_of(path, node), one.arg) for one in node.args.args)
                elif isinstance(node, ast.Call):
                    yield from self._parameters(path, node, names)

    def _objects_of(self, path: str, scope: str) -> Iterator[_Carrier]:
        """Yield what stands for an object whose class has a method: `self` in each method, and what the class makes."""
        for node in self._definitions(path):
            if isinstance(node, ast.ClassDef):
                methods = [_scope_of(path, one) for one in node.body if isinstance(one, _FUNCTIONS)]
                if scope in methods:
                    yield from (_Carrier(one, "self") for one in methods)
                    yield _Carrier(_RETURNED, node.name)

    def _parameters_named(self, key: str) -> Iterator[_Carrier]:
        """Yield the parameters with the name of a key: `f(**mapping)` gives them its values."""
        for path in self.texts.holding([key]):
            for function in self._functions(path) if path.endswith(".py") else ():
                arguments = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
                yield from (_Carrier(_scope_of(path, function), key) for one in arguments if one.arg == key)

    def _parameters(self, path: str, call: ast.Call, names: _Names) -> Iterator[_Carrier]:
        """Yield the parameters to which a call in a file gives a carrier."""
        named = [one.arg for one in call.keywords if one.arg and _carries(one.value, names)]
        positions = [at for at, one in enumerate(call.args) if _carries(one, names)]
        for where, node in self._called(path, dotted(call.func)) if named or positions else ():
            if (function := _made_by(node)) is not None:
                own = _scope_of(where, function)
                yield from (_Carrier(own, name) for name in (*named, *_named_at(function, positions)))
            elif isinstance(node, ast.ClassDef):
                # The fields of a dataclass.
                fields = [dotted(one.target) for one in node.body if isinstance(one, ast.AnnAssign)]
                taken = (fields[at] for at in positions if at < len(fields))
                yield from (_Carrier(_EVERYWHERE, name) for name in (*named, *taken))

    def _called(self, path: str, callee: str) -> Iterator[tuple[str, _Definition]]:
        """Yield the functions that a name in a file may be: its own, what it imports, and methods of any object."""
        owner, _, name = callee.rpartition(".")
        module = self._imports(path).get(owner or name, "")
        every = self._defining.get(name, [])
        if not owner and not module:
            every = [path] if path in every else []
        elif module:
            # A package may import it from another of its modules.
            every = [one for one in every if _is_module(one, module)] or (every if self._is_own(module) else [])
        for where in every:
            yield from ((where, node) for node in self._definitions(where) if node.name == name)

    @cached_property
    def _defining(self) -> dict[str, list[str]]:
        """Each name of a function or class → the files that define one."""
        paths: dict[str, list[str]] = {}
        for path in self.texts.holding(("def ", "class ")):
            if path.endswith(".py") and not is_part_of_megatron(path):
                for name in set(_DEFINED.findall(self.texts.text(path))):
                    paths.setdefault(name, []).append(path)
        return paths

    @remembered
    def _own_functions(self, path: str) -> frozenset[str]:
        """Return the functions that a file defines or imports from the project."""
        own = {node.name for node in self._functions(path)}
        imported = {name for name, module in self._imports(path).items() if name[:1].islower() and self._is_own(module)}
        return frozenset(own | imported)

    @remembered
    def _is_own(self, module: str) -> bool:
        """Return whether the project has a module, or the package in which it is."""
        ends = (f"{os.sep}{os.path.join(*module.split('.')[:2])}{end}" for end in (".py", os.sep))
        return any(end in path for end in ends for path in self._code)

    @cached_property
    def _code(self) -> frozenset[str]:
        return frozenset(path for paths in self._defining.values() for path in paths)

    @remembered
    def _imports(self, path: str) -> dict[str, str]:
        """Return the names that a file imports, each with its module."""
        names: dict[str, str] = {}
        for node, _ in chain.from_iterable(self._by_scope(path).values()):
            if isinstance(node, ast.ImportFrom):
                names |= {one.asname or one.name: node.module or one.name for one in node.names}
            elif isinstance(node, ast.Import):
                names |= {one.asname or one.name: one.name for one in node.names}
        return names

    @remembered
    def _definitions(self, path: str) -> list[_Definition]:
        every = (node for node, _ in chain.from_iterable(self._by_scope(path).values()))
        return [node for node in every if isinstance(node, (*_FUNCTIONS, ast.ClassDef))]

    @remembered
    def _functions(self, path: str) -> list[_Function]:
        return [node for node in self._definitions(path) if isinstance(node, _FUNCTIONS)]

    @remembered
    def _by_scope(self, path: str) -> dict[str, list[_Passing]]:
        """Return the nodes of a file that pass values on, by the function around them; at the top that is the file."""
        tree = parsed("" if is_part_of_megatron(path) else self.texts.text(path)) or ast.Module([], [])
        nodes: dict[str, list[_Passing]] = {}
        for scope, node in _scoped(tree, path, path):
            if isinstance(node, (*_PASSING, *_IMPORTS)):
                nodes.setdefault(scope, []).append(_Passing(node, frozenset(_named_in(node))))
        return nodes


def _named_in(node: ast.AST) -> Iterator[str]:
    """Yield the names and texts by which a node may carry something."""
    if isinstance(node, _FUNCTIONS):
        yield from ("hydra",) if _is_started_with_it(node) else ()
        return
    if isinstance(node, (ast.ClassDef, *_IMPORTS)):
        return
    for one in ast.walk(node.iter if isinstance(node, _LOOPS) else node):
        match one:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.Constant(value=str(name)):
                yield name


def _scoped(node: ast.AST, scope: str, path: str) -> Iterator[tuple[str, ast.AST]]:
    yield scope, node
    inner = _scope_of(path, node) if isinstance(node, _FUNCTIONS) else scope
    for child in ast.iter_child_nodes(node):
        yield from _scoped(child, inner, path)


def _scope_of(path: str, node: ast.AST) -> str:
    return f"{path}:{getattr(node, 'lineno', 0)}:{getattr(node, 'name', '')}"


def _is_in(line: int, node: ast.AST) -> bool:
    return bool(getattr(node, "lineno", 0) <= line <= getattr(node, "end_lineno", 0))


def _carrying(node: ast.AST, scope: str, names: _Names) -> Iterator[_Carrier]:
    """Yield what a statement gives a value that some names carry."""
    match node:
        case ast.Assign(targets=targets, value=value) if _carries(value, names):
            yield from (one for target in targets for one in _bound(target, scope))
        case ast.AnnAssign(target=target, value=ast.expr() as value) if _carries(value, names):
            yield from _bound(target, scope)
        case ast.NamedExpr(target=target, value=value) if _carries(value, names):
            yield from _bound(target, scope)
        case ast.For(target, value) | ast.comprehension(target, value) if _carries(value, names):
            yield from _bound(target, scope)
        case ast.Return(ast.expr() as value) | ast.Yield(ast.expr() as value) if _carries(value, names):
            yield _Carrier(_RETURNED, scope.rpartition(":")[2])


def _taking_part(node: ast.AST, scope: str, names: _Names) -> Iterator[_Carrier]:
    """Yield what a statement gives any value of a mapping that some names carry."""
    match node:
        case ast.For(target, value) | ast.comprehension(target, value) if _has_part(value, names):
            yield from _bound(target, scope)
        case ast.Assign(targets=targets, value=value) if any(_is_any_part(one, names) for one in ast.walk(value)):
            yield from (one for target in targets for one in _bound(target, scope))


def _is_any_part(node: ast.AST, names: _Names) -> bool:
    """Return whether an expression is the value under a key that is not known."""
    match node:
        case ast.Subscript(value=base, slice=key) if _is_computed(key):
            return _carries(base, names)
        case (
            ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault", value=base), args=[key, *_])
            | ast.Call(func=ast.Name(id="getattr"), args=[base, key, *_])
        ) if _is_computed(key):
            return _carries(base, names)
    return False


def _by_scope_of(every: Iterable[_Carrier]) -> dict[str, set[str]]:
    names: dict[str, set[str]] = {}
    for one in every:
        names.setdefault(one.scope, set()).add(one.name)
    return names


def _is_module(path: str, module: str) -> bool:
    """Return whether a file may be a module: the last two parts of its name are those of the path."""
    parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
    return parts[-2:] == module.split(".")[-2:] or ("." not in module and parts[-1:] == [module])


def _made_by(node: _Definition) -> _Function | None:
    """Return the function that is called: for a class the one that makes its objects."""
    if not isinstance(node, ast.ClassDef):
        return node
    return next((one for one in node.body if isinstance(one, _FUNCTIONS) and one.name == "__init__"), None)


def _named_at(function: _Function, positions: list[int]) -> Iterator[str]:
    """Yield the parameters at some positions, which do not count the object of a method."""
    every = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    shift = 1 if every[:1] in (["self"], ["cls"]) else 0
    yield from (every[at + shift] for at in positions if at + shift < len(every))
    if function.args.vararg and any(at + shift >= len(every) for at in positions):
        yield function.args.vararg.arg


def _carries(value: ast.expr, names: _Names) -> bool:
    """Return whether an expression may be a mapping that some names carry, or a list with it."""
    match value:
        case ast.Name(id=name):
            return name in names.variables
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in names.keys
        case ast.Call(func=ast.Attribute(attr="get" | "pop" | "setdefault"), args=[ast.Constant(value=name), *_]):
            return name in names.keys
        case ast.Call():
            return _returns(value, names)
    return any(_carries(one, names) for one in _parts(value))


def _returns(call: ast.Call, names: _Names) -> bool:
    """Return whether a call returns what some names carry, a copy of it, or an object with it."""
    callee = dotted(call.func).rpartition(".")[2]
    if callee in _AROUND:
        return any(_carries(one, names) for one in call.args)
    if callee in names.functions or (names.is_whole and _is_loader(call.func)):
        return True
    own = [call.func.value] if isinstance(call.func, ast.Attribute) else []
    is_made = names.own is not None and callee not in names.own
    every = (*call.args, *own, *(one.value for one in call.keywords)) if callee in _COPIES or is_made else ()
    return any(_carries(one, names) for one in every)


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


def _is_loader(function: ast.expr) -> bool:
    """Return whether a call reads a configuration."""
    owner, _, name = dotted(function).rpartition(".")
    return name in _LOADERS and (name != "load" or owner.rpartition(".")[2] in _OWNERS)


def _is_started_with_it(function: _Function) -> bool:
    """Return whether Hydra starts a function with a configuration."""
    return any("hydra" in ast.unparse(one) for one in function.decorator_list)


def _has_part(value: ast.expr, names: _Names) -> bool:
    """Return whether a loop goes through the values of a mapping that some names carry."""
    match value:
        case ast.Call(func=ast.Attribute(attr="items" | "values", value=of)):
            return _carries(of, names)
        case ast.Call(func=ast.Name(id="sorted" | "list" | "reversed" | "enumerate" | "tuple"), args=[of, *_]):
            return _has_part(of, names)
    return False


def _getting(node: ast.AST, names: _Names, parts: Collection[str]) -> Iterator[ast.expr]:
    """Yield what gets the values of a mapping that some names carry; ``parts`` are variables that are such values."""
    match node:
        case ast.Call(func=ast.Attribute(attr="update", value=base), args=[value]) if _carries(value, names):
            yield base.value if isinstance(base, ast.Attribute) and base.attr == "__dict__" else base
        case ast.Call(func=ast.Attribute(value=base), keywords=[*_, ast.keyword(arg=None, value=value)]):
            if names.own is not None and _carries(value, names):
                yield base
        case ast.Assign(targets=[ast.Subscript(value=base, slice=key)], value=value) if _is_computed(key):
            if _has_any_part(value, names, parts):
                yield base
        case (
            ast.Assign(targets=[ast.Attribute(value=base)], value=value)
            | ast.Call(func=ast.Name(id="setattr"), args=[base, _, value])
        ) if names.own is not None and _has_any_part(value, names, parts):
            yield base


def _has_any_part(value: ast.expr, names: _Names, parts: Collection[str]) -> bool:
    """Return whether an expression has a value of a mapping that some names carry: a variable, or under any key."""
    every = ast.walk(value)
    return any(_is_any_part(one, names) or (isinstance(one, ast.Name) and one.id in parts) for one in every)


def _is_computed(key: ast.expr) -> bool:
    return not isinstance(key, ast.Constant)


def _entries_in(node: ast.AST, names: _Names) -> Iterator[ast.Name]:
    """Yield the variables to which a loop gives the values of a mapping that some names carry."""
    if isinstance(node, _LOOPS) and _has_part(node.iter, names):
        yield from (one for one in ast.walk(node.target) if isinstance(one, ast.Name))


def _bound(target: ast.expr, scope: str) -> Iterator[_Carrier]:
    """Yield what an assignment gives a value: variables, attributes and keys."""
    match target:
        case ast.Name(id=name):
            yield _Carrier(scope, name)
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            yield _Carrier(_EVERYWHERE, name)
        case ast.Tuple(elts=every) | ast.List(elts=every):
            yield from (one for part in every for one in _bound(part, scope))
