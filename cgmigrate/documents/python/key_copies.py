"""Code that copies keys of a mapping by their names: the names, the last keys of the mapping, and what gets the values.

Known are loops over a list of names, and conditions that copy one key. Each copies a key under its own name and with
its value unchanged, if the mapping has the key. All other code is not read.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from cgmigrate.documents.python.key_types import KeyType
from cgmigrate.documents.python.mapping_paths import keys_of
from cgmigrate.documents.python.name_resolution import SCOPE_CLASS
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource, dotted

Literal = ast.Tuple | ast.List | ast.Set
_WRAPPERS = ("frozenset", "set", "tuple", "list", "sorted")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True, slots=True, eq=False)
class NameList:
    """A list, tuple or set of names that code copies; ``at_top`` says whether it is a constant of the module."""

    node: Literal
    at_top: bool = False

    @property
    def names(self) -> list[ast.Constant]:
        """The elements."""
        return [element for element in self.node.elts if isinstance(element, ast.Constant)]


@dataclass(frozen=True, slots=True, eq=False)
class CopyStatement:
    """A statement that copies one key; ``key`` is a string that names it."""

    name: str
    node: ast.stmt
    key: ast.expr


@dataclass(slots=True, eq=False)
class KeyCopier:
    """All code of one block that copies keys of one mapping to one target."""

    keys: tuple[str, ...]
    """The last keys that lead to the mapping, as far as the code shows them."""
    mapping: str
    target: str
    lists: list[NameList] = field(default_factory=list)
    statements: list[CopyStatement] = field(default_factory=list)
    types: list[KeyType] = field(default_factory=list)
    """The classes of which a mapping may fill objects."""

    @property
    def names(self) -> frozenset[str]:
        """The names that are copied."""
        of_lists = (str(element.value) for one in self.lists for element in one.names)
        of_types = (name for one in self.types for name in one.names)
        return frozenset((*of_lists, *of_types, *(one.name for one in self.statements)))

    def places(self) -> Iterator[tuple[str, ast.expr]]:
        """Yield the expressions that name what is copied, each with the name."""
        yield from ((str(element.value), element) for one in self.lists for element in one.names)
        yield from ((one.name, one.key) for one in self.statements)

    def roots(self) -> Iterator[ast.AST]:
        """Yield the lists and the statements of the copying code."""
        yield from (of_list.node for of_list in self.lists)
        yield from (one for of_type in self.types for one in of_type.fields)
        yield from (one.node for one in self.statements)

    def nodes(self) -> Iterator[ast.AST]:
        """Yield every node of the copying code that may name a key."""
        for root in self.roots():
            yield from walk(root)


class _Copy(NamedTuple):
    mapping: ast.expr
    target: str


def copy_reader(source: PythonSource) -> CopyReader:
    """Return a reader that has read a file, as far as the file may copy settings."""
    reader = CopyReader(source)
    if not any(_may_copy(node, source.catalogue.captures) for node in source.walk()):
        # Most files name settings as keywords only, and need not be walked as a whole.
        return reader
    reader.collect()
    return reader


def _may_copy(node: ast.AST, names: Collection[str]) -> bool:
    """Return whether a node may be a part of code that copies settings by their names."""
    match node:
        case ast.Tuple() | ast.List() | ast.Set():
            return _lists_names(node, names)
        case ast.If(test=part):
            words = (getattr(one, "attr", getattr(one, "value", None)) for one in walk(part))
            return any(isinstance(word, str) and word in names for word in words)
    return False


def _lists_names(node: Literal, names: Collection[str]) -> bool:
    """Return whether a literal is a list of strings of which one is a setting."""
    values = [element.value for element in node.elts if isinstance(element, ast.Constant)]
    return (
        len(values) == len(node.elts)
        and any(value in names for value in values)
        and all(isinstance(value, str) for value in values)
    )


class CopyReader:
    """Reads one file; parents are those of every node."""

    def __init__(self, source: PythonSource) -> None:
        self.source, self.tree = source, source.tree
        self.names = source.catalogue.captures
        self.copiers: dict[tuple[int, str, str], KeyCopier] = {}
        self.constants: list[NameList] = []
        """The lists at the top of the file whose uses in it are known."""

    @cached_property
    def parents(self) -> dict[int, ast.AST]:
        """The nodes around all nodes of the file."""
        return {id(child): node for node in walk(self.tree) for child in ast.iter_child_nodes(node)}

    def parent(self, node: ast.AST | None) -> ast.AST | None:
        """Return the node around a node."""
        if node is None:
            return None
        # Most nodes are on lines with a setting, and the others need a walk over the whole file.
        return self.source.parent(node) or self.parents.get(id(node))

    def collected(self) -> list[KeyCopier]:
        """Return the copiers, each with all its lists and statements."""
        return list(self.copiers.values())

    def collect(self) -> None:
        """Read the copiers and lists of the file."""
        for node in self.source.walk():
            if isinstance(node, (ast.Tuple, ast.List, ast.Set)) and _lists_names(node, self.names):
                self._add_list(node)
            for name in ("body", "orelse", "finalbody"):
                suite = getattr(node, name, None)
                if isinstance(suite, list):
                    self._add_statements(suite)

    # --- lists of names ---------------------------------------------------------------------------

    def _add_list(self, node: Literal) -> None:
        expression: ast.AST = node
        above = self.parent(node)
        while isinstance(above, ast.Call) and isinstance(above.func, ast.Name) and above.func.id in _WRAPPERS:
            expression, above = above, self.parent(above)
        constant = _name_assigned(above)
        uses = self._loads(constant, above) if constant else [expression]
        copies = [(use, self._unbuilt(self._copy_of(use), use)) for use in uses or ()]
        if uses is None or any(copy is None for _, copy in copies):
            return
        at_top = bool(constant) and isinstance(self.parent(above), ast.Module)
        if at_top:
            self.constants.append(NameList(node, at_top))
        for use, copy in copies:
            assert copy is not None
            self._copier(self._suite_of(use), use, copy).lists.append(NameList(node, at_top))

    def _loads(self, name: str, assignment: ast.AST | None) -> list[ast.AST] | None:
        """Return where a name is read; None if the file does anything else with a name like it."""
        around = self.function_of(assignment)
        scope = self.tree if around is None else around
        loads: list[ast.AST] = []
        for node in walk(self.tree):
            match node:
                case ast.Name(id=other, ctx=context) if other == name:
                    if isinstance(context, ast.Load):
                        loads.append(node)
                    elif self.parent(node) is not assignment:
                        return None
                case ast.arg(arg=other) | ast.alias(asname=other) if other == name:
                    return None
                case ast.Global(names=others) | ast.Nonlocal(names=others) if name in others:
                    return None
                case ast.Constant(value=str() as text) if text == name:
                    # It may be read by its name.
                    return None
        inside = {id(node) for node in walk(scope)}
        return loads if all(id(load) in inside for load in loads) else None

    def _copy_of(self, use: ast.AST) -> _Copy | None:
        """Return what a loop does with a list of names, None if that is not known."""
        match self.parent(use):
            case ast.For(target=ast.Name(id=key), iter=iterated, body=body, orelse=[]) if iterated is use:
                return _copy_in_loop(body, key)
        return None

    # --- statements for one key -------------------------------------------------------------------

    def _add_statements(self, suite: list[ast.stmt]) -> None:
        for statement in suite:
            match statement:
                case ast.If(test=test, body=[stored], orelse=[]) if self.source.names_setting(statement):
                    if constant := self._constant_in(test):
                        copy = self._unbuilt(_copy_if(test, stored, repr(constant.value)), statement)
                        if copy is not None:
                            copied = CopyStatement(str(constant.value), statement, constant)
                            self._copier(suite, statement, copy).statements.append(copied)

    def _constant_in(self, test: ast.expr) -> ast.Constant | None:
        """Return the first string of an expression that is a captured setting."""
        strings = (node for node in walk(test) if isinstance(node, ast.Constant) and node.value in self.names)
        return next(strings, None) if isinstance(test, (ast.Compare, ast.BoolOp, ast.Call)) else None

    # --- what they have in common -----------------------------------------------------------------

    def _copier(self, suite: Sequence[ast.stmt], node: ast.AST, copy: _Copy) -> KeyCopier:
        key = (id(suite), ast.unparse(copy.mapping), copy.target)
        if key not in self.copiers:
            keys = keys_of(copy.mapping, self.function_of(node), self.tree)
            self.copiers[key] = KeyCopier(keys, self.source.of(copy.mapping), copy.target)
        return self.copiers[key]

    def _suite_of(self, node: ast.AST) -> Sequence[ast.stmt]:
        """Return the statements among which the statement of a node is."""
        statement: ast.AST | None = node
        while statement is not None and not isinstance(statement, ast.stmt):
            statement = self.parent(statement)
        assert statement is not None
        above = self.parent(statement)
        suites = (getattr(above, name, None) for name in ("body", "orelse", "finalbody"))
        return next((suite for suite in suites if isinstance(suite, list) and statement in suite), [statement])

    def _unbuilt(self, copy: _Copy | None, node: ast.AST) -> _Copy | None:
        """Return a copy, None if its target is a configuration that was validated already, and is not again."""
        if copy is None or copy.target.endswith(".config"):
            return None
        for assignment in walk(self.function_of(node) or self.tree):
            match assignment:
                case ast.Assign(targets=[target], value=ast.Call(func=made)) if ast.unparse(target) == copy.target:
                    if dotted(made).endswith(("Config", "get_model_config")):
                        return None
        return copy

    def function_of(self, node: ast.AST | None) -> ast.AST | None:
        """Return the function around a node, None at the top of the file."""
        while node is not None and not isinstance(node, _FUNCTIONS):
            node = self.parent(node)
        return node


# --- parts of the copying code --------------------------------------------------------------------


def _name_assigned(statement: ast.AST | None) -> str:
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _copy_in_loop(body: Sequence[ast.stmt], key: str) -> _Copy | None:
    """Return what the body of a loop over names copies, None if it does anything else."""
    match body:
        case [ast.If(test=test, body=[stored, *more], orelse=[])] if all(map(_prints, more)):
            return _copy_if(test, stored, key)
    return None


def _copy_if(test: ast.expr, stored: ast.stmt, key: str) -> _Copy | None:
    """Return what a statement copies if a test is true, None if it does anything else."""
    match test:
        # The attributes of the new names exist in the release that reads them.
        case ast.BoolOp(op=ast.And(), values=[first, ast.Call(func=ast.Name(id="hasattr"), args=[target, name])]):
            copy = _copy_if(first, stored, key)
            is_same = ast.unparse(name) == key and copy is not None and ast.unparse(target) == copy.target
            return copy if is_same else None
    mapping = _guarded(test, key)
    return _stored(stored, mapping, key) if mapping is not None else None


def _prints(statement: ast.stmt) -> bool:
    """Return whether a statement only prints or logs."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method))):
            return name in ("log", "logger", "logging") and method in ("debug", "info", "warning")
    return False


def _guarded(test: ast.expr, key: str) -> ast.expr | None:
    """Return the mapping that a test looks a key up in, if it is true only where the mapping has the key."""
    match test:
        case ast.Compare(left=left, ops=[ast.In()], comparators=[mapping]) if ast.unparse(left) == key:
            return mapping if _is_simple(mapping) else None
        case ast.Compare(left=left, ops=[ast.IsNot()], comparators=[ast.Constant(value=None)]):
            return _get_of(left, key)
    return None


def _get_of(node: ast.expr, key: str) -> ast.expr | None:
    """Return the mapping of ``mapping.get(key)``, whose result is None if there is no such key."""
    match node:
        case ast.Call(func=ast.Attribute(value=mapping, attr="get"), args=[first, *more], keywords=[]):
            default = [ast.unparse(one) for one in more]
            if ast.unparse(first) == key and default in ([], ["None"]) and _is_simple(mapping):
                return mapping
    return None


def _is_item(node: ast.expr, mapping: ast.expr, key: str) -> bool:
    """Return whether an expression is the value of a key that the mapping has."""
    match node:
        case ast.Subscript(value=base, slice=index):
            return ast.unparse(base) == ast.unparse(mapping) and ast.unparse(index) == key
    of_get = _get_of(node, key)
    return of_get is not None and ast.unparse(of_get) == ast.unparse(mapping)


def _stored(statement: ast.stmt, mapping: ast.expr, key: str) -> _Copy | None:
    """Return the copy of a key under its own name by a statement, None if it does anything else."""
    stored = _target_of(statement)
    if stored is None or stored.key != key or not _is_item(_without_members(stored.value), mapping, key):
        return None
    target = stored.target
    if not _is_simple(mapping) or not _is_simple(target) or ast.unparse(target) == ast.unparse(mapping):
        return None
    return _Copy(mapping, ast.unparse(target))


class _Stored(NamedTuple):
    """What a statement stores: ``key`` is the source of the expression that names it."""

    target: ast.expr
    key: str
    value: ast.expr


def _target_of(statement: ast.stmt) -> _Stored | None:
    """Return what a statement stores in an item or attribute, None if it does anything else."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="setattr"), args=[target, name, value], keywords=[])):
            return _Stored(target, ast.unparse(name), value)
        case ast.Assign(targets=[ast.Subscript(value=target, slice=name)], value=value):
            return _Stored(target, ast.unparse(name), value)
        case ast.Assign(targets=[ast.Attribute(value=target, attr=attribute)], value=value):
            return _Stored(target, repr(attribute), value)
    return None


def _without_members(value: ast.expr) -> ast.expr:
    """Return the names that a list converts to members of the old enum (``[CudaGraphScope[s] for s in names]``)."""
    match value:
        case ast.ListComp(
            elt=ast.Subscript(value=enum, slice=ast.Name(id=member)),
            generators=[ast.comprehension(target=ast.Name(id=each), iter=names, ifs=[])],
        ) if member == each and dotted(enum).rpartition(".")[2] == SCOPE_CLASS:
            return names
    return value


def _is_simple(node: ast.expr) -> bool:
    """Return whether an expression is a name, or attributes and items with constant keys of one."""
    match node:
        case ast.Name():
            return True
        case ast.Attribute(value=base) | ast.Subscript(value=base, slice=ast.Constant()):
            return _is_simple(base)
    return False
