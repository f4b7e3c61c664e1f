"""Which dictionaries of tests set their entries on objects of Megatron: their tests are evaluated up to there."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from cgmigrate.linking.python.comparisons import Comparer
from cgmigrate.linking.python.evaluation import NotFollowedError, Run, Touched
from cgmigrate.linking.python.function_calls import enter
from cgmigrate.linking.python.known_paths import KnownPaths
from cgmigrate.linking.python.table_entries import Row, TableEntries
from cgmigrate.linking.python.values import CannotFollowError, Function
from cgmigrate.megatron.settings import DEPRECATED


def functions_leading_to(every: Sequence[TableEntries], comparer: Comparer) -> frozenset[ast.AST] | None:
    """Return the functions that make the objects on which tests set the deprecated settings of some dictionaries.

    Returns None unless each test sets them on objects of Megatron only.
    """
    helpers = frozenset[str]().union(*(one.helpers for one in every))
    comparer = replace(comparer, relevance=comparer.relevance.with_words({"setattr", *helpers}), known=KnownPaths())
    functions = set[ast.AST]()
    for one in every:
        for row in one.rows:
            leading = _functions_of(row, one, comparer)
            if not leading:
                return None
            functions |= leading
    return frozenset(functions)


def _functions_of(row: Row, entries: TableEntries, comparer: Comparer) -> set[ast.AST]:
    """Return the functions that make the objects on which a test sets settings, none unless all are Megatron's."""
    set_by_name = dict[tuple[tuple[str, int], str, bool], set[ast.AST]]()
    touched, function = Touched(set_by_name=set_by_name), Function(row.test, entries.module)

    def evaluate(run: Run) -> object:
        return enter(function, run)

    try:
        # What follows may be anything: most tests train a model.
        for _ in comparer.paths(row.test.name, evaluate, {row.choice: row.number}, touched):
            pass
    except (CannotFollowError, NotFollowedError):
        pass
    by_name = {key: functions for key, functions in set_by_name.items() if key[0] in entries.calls}
    known = {name for _, name, is_megatrons in by_name if is_megatrons}
    names = {key.value for key in entries.node.keys if key is not None} & DEPRECATED  # type: ignore[attr-defined]
    if (
        {key[0] for key in by_name} != entries.calls
        or not names <= known
        or not all(is_megatrons for _, _, is_megatrons in by_name)
    ):
        return set()
    return set().union(*by_name.values())
