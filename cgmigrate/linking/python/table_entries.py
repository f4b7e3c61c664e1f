"""Dictionaries in the tables of `pytest.mark.parametrize` whose entries the tests set on an object."""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import parents_in
from cgmigrate.documents.python.source import dotted, is_literal
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.modules import Module
from cgmigrate.linking.python.object_uses import ObjectUses
from cgmigrate.linking.python.parametrised import choice_of, names_in
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.set_entries import Named, OtherUseError, Place, SetEntries
from cgmigrate.linking.python.test_data_readers import TestDataReaders

Position = tuple[int, int]
"""A line, and a column in bytes, as nodes have them."""
_SHARED = ("conftest", "__init__")


@dataclass(frozen=True, slots=True)
class Row:
    """A test, and which set of its parameters has a dictionary: the key of the decision on it, and its number."""

    test: ast.FunctionDef
    choice: str
    number: int


@dataclass(frozen=True, slots=True)
class TableEntries:
    """A dictionary in tables. Its entries are only set on objects, by the calls of `setattr` at some places.

    ``helpers`` are the names of the functions to which tests give it, ``names`` those of the module that have it.
    """

    node: ast.Dict
    module: Module
    rows: tuple[Row, ...]
    calls: frozenset[Place]
    helpers: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Table:
    """A table, the decorator that has it or its name, and the test."""

    test: ast.FunctionDef
    decorator: ast.Call
    rows: ast.List | ast.Tuple


@dataclass
class TableSearch:
    """Finds such dictionaries in one file of tests."""

    module: Module
    references: References
    files_with: FilesWith
    _parents: dict[ast.AST, ast.AST] = field(init=False)

    def __post_init__(self) -> None:
        self._parents = parents_in(self.module.tree)

    def at(self, position: Position) -> TableEntries | None:
        """Return the innermost dictionary around a position, None if it has no texts as keys, or another use."""
        around = [one for one in self._parents if isinstance(one, ast.Dict) and _is_around(one, position)]
        node = max(around, key=lambda one: (one.lineno, one.col_offset), default=None)
        if node is None or not all(map(_is_text, node.keys)) or self._is_used_elsewhere():
            return None
        if position not in [(key.lineno, key.col_offset) for key in node.keys if key is not None]:
            # It is something inside of it.
            return None
        try:
            return self._entries_of(node)
        except OtherUseError:
            return None

    def _entries_of(self, node: ast.Dict) -> TableEntries:
        """Return a dictionary with what uses it. Raises OtherUseError."""
        entries, rows = SetEntries(self.references), list[Row]()
        self._follow(node, entries, rows, is_nested=False)
        names = frozenset(self._names_of(node))
        readers = TestDataReaders(self.module, self.references, self.files_with)
        if not entries.calls or readers.may_read([one.test for one in rows], entries.functions, {*names}):
            raise OtherUseError
        keys = {*self._keys_of(node)}
        for function, owner in entries.objects:
            holders = frozenset(keys | {one.attr for one in ast.walk(owner) if isinstance(one, ast.Attribute)})
            ObjectUses(function, entries.functions[function], self.references, holders).check(owner)
        helpers = frozenset(one.name for one in entries.functions)
        return TableEntries(node, self.module, tuple(rows), frozenset(entries.calls), helpers, names)

    def _keys_of(self, node: ast.Dict) -> Iterator[str]:
        """Yield the key of another dictionary under which a dictionary is."""
        match self._parents[node]:
            case ast.Dict(keys=keys, values=values):
                key = keys[values.index(node)]
                yield from (one.value for one in (key,) if isinstance(one, ast.Constant) and isinstance(one.value, str))

    def _names_of(self, node: ast.AST) -> Iterator[str]:
        """Yield the names of the module whose values have a dictionary. No name has one that is in a decorator."""
        waiting: list[ast.AST] = [node]
        for one in waiting:
            match self._parents.get(one):
                case ast.Assign(targets=[ast.Name(id=name)]):
                    yield name
                    waiting += self._uses_at_top(name)
                case ast.expr() as above:
                    waiting.append(above)

    def _is_used_elsewhere(self) -> bool:
        """Return whether another file may import what the module has."""
        stem = os.path.basename(self.module.path).removesuffix(".py")
        return stem in _SHARED or not {self.module.path}.issuperset(self.files_with([stem]))

    def _follow(self, node: ast.expr, entries: SetEntries, rows: list[Row], *, is_nested: bool) -> None:
        """Follow an expression whose value is a dictionary, or one that has it under a key. Raises OtherUseError."""
        match self._parents[node]:
            case ast.Dict(keys=keys, values=values) as outer if not is_nested and keys[values.index(node)] is not None:
                self._follow(outer, entries, rows, is_nested=True)
            case ast.Assign(targets=[ast.Name(id=name)]):
                for use in self._uses_at_top(name):
                    self._follow(use, entries, rows, is_nested=is_nested)
            case above:
                tables = [one for one in self._tables() if node in one.rows.elts or above in one.rows.elts]
                if not tables:
                    raise OtherUseError
                for table in tables:
                    rows.append(self._row(table, node))
                    own = SetEntries(self.references)
                    own.follow(self._parameter(table, node, is_nested=is_nested))
                    entries.add(own)

    def _uses_at_top(self, name: str) -> list[ast.Name]:
        """Return the uses of a name of the module. Raises OtherUseError if code binds it again."""
        named = [one for one in self._parents if isinstance(one, ast.Name) and one.id == name]
        is_argument = any(isinstance(one, ast.arg) and one.arg == name for one in self._parents)
        uses = [one for one in named if isinstance(one.ctx, ast.Load)]
        if not isinstance(self.module.bindings.get(name), ast.expr) or len(uses) != len(named) - 1 or is_argument:
            raise OtherUseError
        return uses

    def _row(self, table: _Table, node: ast.expr) -> Row:
        """Return the row of a table that has an expression, or is it. Raises OtherUseError."""
        match self._parents[table.rows]:
            case ast.Assign(targets=[ast.Name(id=name)]):
                decorators = [one.decorator.args[1] for one in self._tables()]
                if not all(use in decorators for use in self._uses_at_top(name)):
                    raise OtherUseError
        element = node if node in table.rows.elts else self._parents[node]
        names = _names_of(table)
        return Row(table.test, choice_of(names), table.rows.elts.index(element))  # type: ignore[arg-type]

    def _parameter(self, table: _Table, node: ast.expr, *, is_nested: bool) -> Named:
        """Return the parameter of a test that gets an expression. Raises OtherUseError."""
        names = _names_of(table)
        parts = [node] if node in table.rows.elts else _elements(self._parents[node])
        if node not in parts or len(parts) != len(names):
            raise OtherUseError
        return Named(names[parts.index(node)], table.test, self.module, table.test, is_nested)

    def _tables(self) -> Iterator[_Table]:
        """Yield the tables of the tests of the module."""
        for test in self._parents:
            for decorator in test.decorator_list if isinstance(test, ast.FunctionDef) else ():
                match decorator:
                    case ast.Call(args=[names, rows], keywords=options) if _is_table(decorator) and is_literal(names):
                        bound = self.module.bindings.get(rows.id) if isinstance(rows, ast.Name) else rows
                        if isinstance(bound, (ast.List, ast.Tuple)) and all(map(_are_ids, options)):
                            assert isinstance(test, ast.FunctionDef)
                            yield _Table(test, decorator, bound)


def _names_of(table: _Table) -> list[str]:
    """Return the names of the parameters that a table gives. Raises OtherUseError if it has none."""
    try:
        return names_in(table.decorator.args[0])
    except ValueError as error:
        raise OtherUseError from error


def _is_around(node: ast.Dict, position: Position) -> bool:
    end = (node.end_lineno or node.lineno, node.end_col_offset or node.col_offset)
    return (node.lineno, node.col_offset) <= position < end


def _is_text(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def _is_table(decorator: ast.Call) -> bool:
    return dotted(decorator.func) == "pytest.mark.parametrize"


def _are_ids(option: ast.keyword) -> bool:
    """Return whether an option of a table names its rows; a function would get what they have."""
    return option.arg == "ids" and isinstance(option.value, (ast.List, ast.Tuple)) and is_literal(option.value)


def _elements(row: ast.AST) -> Sequence[ast.expr]:
    """Return the elements of a row."""
    match row:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            return elements
        case ast.Call(func=function, args=arguments) if dotted(function) == "pytest.param":
            return arguments
    return ()
