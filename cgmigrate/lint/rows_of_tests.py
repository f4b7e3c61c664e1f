"""Dicts of tests whose owner only a proof shows: rows of overrides, which other code sets on an object of the Bridge.

``{"cuda_graph_scope": []}`` is no setting of Megatron by itself. It is one if a proof follows it to an object, and then
it changes together with that object.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from cgmigrate.documents.nesting import outer_of
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.sites import Site
from cgmigrate.linking.ownership import Owner
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.unknown_owners import DICT
from cgmigrate.megatron.types import Reader
from cgmigrate.project.paths import is_test

_Tree = tuple[str, ast.AST]
"""A file, by its real path, and its syntax."""
_RISK = "nothing shows that it configures megatron-core"


def rows_of(file: ExaminedFile) -> frozenset[int]:
    """Return the dicts of a test that have deprecated settings and no known owner, by their index."""
    if not isinstance(file.document, PythonDocument) or not is_test(file.path):
        return frozenset()
    deprecated = file.document.catalogue.deprecated
    return frozenset(
        site.index
        for site, owner in zip(file.sites, file.owners, strict=True)
        if owner.ecosystem is None and _is_dict(site) and any(site.own.get(name) is not None for name in deprecated)
    )


def _is_dict(site: Site) -> bool:
    """Return whether a site is a dict that nothing gets where it is written."""
    origin = site.origin
    if site.flags or origin is None or origin.callee:
        return False
    return not origin.object or origin.object.startswith(DICT)


def with_rows(file: ExaminedFile, rows: Collection[int]) -> ExaminedFile:
    """Return a file in which some dicts override the settings of an object of Megatron-Bridge."""
    bridge = next((one for one in file.context.ecosystems if one.reader is Reader.BRIDGE), None)
    if bridge is None or not rows:
        return file
    sites = [replace(site, overrides=True) if site.index in rows else site for site in file.sites]
    owners = [Owner(bridge) if site.index in rows else owner for site, owner in zip(sites, file.owners, strict=True)]
    merged = {index: case.before for index, case in file.cases.items()} | {index: sites[index].own for index in rows}
    owned = replace(file, sites=sites).with_merged(owners, merged)
    cases = {index: case.risk(_RISK, of_object=True) if index in rows else case for index, case in owned.cases.items()}
    return replace(owned, cases=cases)


def use_not_followed(
    file: ExaminedFile, row: int, lines: Collection[tuple[str, int]], trees_with: Callable[[str], Iterable[_Tree]]
) -> str:
    """Return where code uses the table of a row that no proof followed, empty if there is none.

    ``lines`` are those that proofs followed, ``trees_with`` returns the files that have the name of a table.
    """
    document, path = outer_of(file.document), os.path.realpath(file.path)
    assert isinstance(document, PythonDocument) and document.tree is not None
    first = document.text.count("\n", 0, document.sites[row].span.start) + 1
    table, scope = _table_at(document.tree, first)
    if table is None:
        return ""
    every = trees_with(table.id) if isinstance(scope, ast.Module) else [(path, scope)]
    for other, tree in every:
        is_imported = other == path or _imports(table.id, tree)
        for line in _uses_of(table.id, tree, by_name=is_imported):
            is_own = other == path and table.lineno <= line <= first
            if not is_own and (other, line) not in lines:
                return f"the code at {other}:{line} uses `{table.id}` and is not followed"
    return ""


def _table_at(tree: ast.Module, line: int) -> tuple[ast.Name | None, ast.AST]:
    """Return the variable of the innermost statement around a line that gives one a value, and where it is known."""
    scope: ast.AST = tree
    table = None
    for node in walk(tree):
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if first <= line <= last:
                scope = node
            case ast.Assign(targets=[ast.Name() as target]) | ast.AnnAssign(target=ast.Name() as target):
                table = target if first <= line <= last else table
    return table, scope


def _imports(name: str, tree: ast.AST) -> bool:
    return any(one.name in (name, "*") for node in walk(tree) if isinstance(node, ast.ImportFrom) for one in node.names)


def _uses_of(name: str, tree: ast.AST, *, by_name: bool) -> Iterator[int]:
    """Yield the lines that use a variable, or an attribute of its name; for a decorator, the first of the function."""
    decorated = {
        part: node.lineno
        for node in walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for decorator in node.decorator_list
        for part in walk(decorator)
    }
    for node in walk(tree):
        match node:
            case ast.Name(id=used, lineno=line) if by_name and used == name:
                yield decorated.get(node, line)
            case ast.Attribute(attr=used, lineno=line) if used == name:
                yield decorated.get(node, line)
