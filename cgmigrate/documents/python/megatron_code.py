"""Code that a release of Megatron-LM no longer takes: imports of names that are gone, and calls that do not fit.

What is written for several releases is skipped: code in a ``try`` or behind a test of the release.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.release_checks import catches_for_releases, release_check_in
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.megatron.code import CallShape, Gone, load
from cgmigrate.megatron.releases import Release
from cgmigrate.text.spans import Span

_PACKAGE = "megatron."
_SAME_TEXT = "its definition has the same text there, and what that calls may be different"


def code_problems(source: PythonSource, names: Names, first_index: int) -> Iterator[Problem]:
    """Yield a problem for each import, name and call that some release does not take; ``since`` is the first one.

    The replacement of an import is another module, where all that it imports is there.
    """
    reader = _CodeReader(source, names)
    for index, problem in enumerate(reader.problems(), first_index):
        yield problem.at(index)


class _CodeReader:
    def __init__(self, source: PythonSource, names: Names) -> None:
        self._source, self._names, self._table = source, names, load()

    def problems(self) -> Iterator[Problem]:
        for node in _unguarded(self._source.tree, self._source):
            match node:
                case ast.ImportFrom(level=0, module=str() as module) if self._is_of_megatron(module):
                    yield from self._of_import(node, module)
                case ast.Import():
                    yield from self._of_modules(node)
                case ast.Attribute():
                    yield from self._of_attribute(node)
                case ast.Call():
                    yield from self._of_call(node)

    def _is_of_megatron(self, module: str) -> bool:
        return module.startswith(_PACKAGE) and not _is_beside(os.path.dirname(self._names.path), module)

    def _of_import(self, node: ast.ImportFrom, module: str) -> Iterator[Problem]:
        gone = {one.name: known for one in node.names if (known := self._table.gone_name(module, one.name))}
        for since in sorted({one.since for one in gone.values()}):
            names = {name: one for name, one in gone.items() if one.since == since}
            places = {one.module for one in names.values()}
            problem = self._problem(node, since, _message(module, names, since))
            same = {one.is_same for one in names.values()}
            if len(names) == len(node.names) and len(places) == 1 and None not in same:
                risk = _SAME_TEXT if False in same else ""
                span = self._span_of_module(node, module)
                problem = replace(problem, span=span, replacement=places.pop(), risk=risk)
            yield problem

    def _span_of_module(self, node: ast.ImportFrom, module: str) -> Span:
        start = self._source.text.index(module, self._source.span(node).start)
        return Span(start, start + len(module))

    def _of_modules(self, node: ast.Import) -> Iterator[Problem]:
        for one in node.names:
            gone = self._table.gone_name(one.name, "") if self._is_of_megatron(one.name) else None
            if gone is not None:
                yield self._problem(node, gone.since, f"megatron-core {gone.since} has no module `{one.name}`")

    def _of_attribute(self, node: ast.Attribute) -> Iterator[Problem]:
        module, _, name = self._resolved(node).rpartition(".")
        gone = self._table.gone_name(module, name) if self._is_of_megatron(module) else None
        # A class of a module that is gone was imported from there, which is reported.
        if gone is not None and name in self._table.gone[self._table.aliases.get(module, module)]:
            yield self._problem(node, gone.since, _message(module, {name: gone}, gone.since))

    def _of_call(self, call: ast.Call) -> Iterator[Problem]:
        function = self._resolved(call.func)
        if not self._is_of_megatron(function):
            return
        stars = [number for number, one in enumerate(call.args) if isinstance(one, ast.Starred)]
        keywords = [one.arg for one in call.keywords]
        named = frozenset(name for name in keywords if name is not None)
        shape = CallShape(min([*stars, len(call.args)]), named, is_open=bool(stars) or None in keywords)
        for since, why, is_silent in self._table.mismatches(function, shape):
            kind = ProblemKind.MOVED_ARGUMENT if is_silent else ProblemKind.CHANGED_CALL
            message = f"`{function.rpartition('.')[2]}` of megatron-core {since} {why}"
            yield Problem(kind, self._source.span(call.func), message, since=since)

    def _resolved(self, node: ast.expr) -> str:
        """Return the full name of an imported name; empty for one that the file also defines."""
        first, dot, rest = dotted(node).partition(".")
        is_imported = first in self._names.full and first not in self._names.shadowed
        return self._names.full[first] + dot + rest if is_imported else ""

    def _problem(self, node: ast.stmt | ast.expr, since: Release, message: str) -> Problem:
        return Problem(ProblemKind.GONE_NAME, self._source.span(node), message, since=since)


def _message(module: str, names: Mapping[str, Gone], since: Release) -> str:
    places: dict[str, list[str]] = {}
    for name, one in names.items():
        now = (
            ""
            if not one.module
            else f" (another one is in `{one.module}`)"
            if one.is_same is None
            else f", which `{one.module}` has"
        )
        places.setdefault(now, []).append(f"`{name}`")
    parts = [" and ".join(every) + now for now, every in places.items()]
    return f"`{module}` of megatron-core {since} has no {'; and no '.join(parts)}"


def _unguarded(node: ast.AST, source: PythonSource) -> Iterator[ast.AST]:
    """Yield the nodes below one that are not written for one of several releases, in the order of the text."""
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Try() if catches_for_releases(child):
                continue
            case ast.If(test=test) | ast.IfExp(test=test) if release_check_in(test, source.catalogue):
                continue
        yield child
        yield from _unguarded(child, source)


@cache
def _is_beside(folder: str, module: str) -> bool:
    """Return whether a module is in a folder or in one above it: the project's own copy, or one that it extends."""
    path = os.path.join(folder, *module.split("."))
    if os.path.isfile(path + ".py") or os.path.isdir(path):
        return True
    above = os.path.dirname(folder)
    return above != folder and _is_beside(above, module)
