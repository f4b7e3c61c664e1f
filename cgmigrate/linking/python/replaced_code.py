"""Code that tests replace: pytest's `monkeypatch` and `unittest.mock.patch`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.arguments import Arguments, Place
from cgmigrate.linking.python.evaluation import ReplacesCodeError, Run, cannot_follow
from cgmigrate.linking.python.values import Object

PATCHER = "parameter monkeypatch"
"""The key of pytest's fixture that replaces code."""

PATCH = "unittest.mock.patch"


def is_patched(arguments: Arguments, run: Run) -> bool:
    """Return whether a helper of tests gets pytest's fixture that replaces code."""
    values = (*arguments[0], *arguments[1].values())
    return run.unknowns.has_fakes and any(isinstance(one, Object) and one.key == PATCHER for one in values)


def patched(replaced: object, place: Place) -> object:
    """Return the result of code that replaces other code in a test.

    Raises CannotFollowError if the other code leads to settings.
    """
    node, frame, run = place
    names = set(_texts_of(replaced))
    if not run.relevance.words.isdisjoint(names):
        raise cannot_follow("code that leads to settings is replaced", node, frame, ReplacesCodeError)
    run.replaced |= names
    return Object(run.numbered("patched"))


def _texts_of(value: object) -> Iterator[str]:
    """Yield the names in the texts of a value: ``name`` of ``package.name``."""
    if isinstance(value, str):
        yield value.rpartition(".")[2]
    elif isinstance(value, (list, tuple, set, frozenset, dict)):
        for one in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts_of(one)


@lru_cache(maxsize=4096)
def texts_in(node: ast.AST) -> frozenset[str]:
    """Return the names in the texts of code: ``name`` of ``package.name``."""
    texts = (part.value for part in walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
    return frozenset(text.rpartition(".")[2] for text in texts)
