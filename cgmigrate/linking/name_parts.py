"""Code that reads keys by a part of their name: a test for a prefix, a name that is made of two strings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from cgmigrate.documents.python.source import PythonSource, positions
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.setting_names import without_contained

_TESTS = {"startswith": str.startswith, "removeprefix": str.startswith, "endswith": str.endswith}
_SHORTEST = 2
"""Characters of the shortest part that counts in a test for how a name begins or ends."""


@lru_cache(maxsize=8)
def part_words(catalogue: Catalogue) -> tuple[str, ...]:
    """Return words of which code has one that reads a deprecated setting by a part of its name."""
    ends = (part + end for part in sorted(_words(catalogue)) for end in "\"'{")
    return (*(f"{test}(" for test in _TESTS), *ends)


@lru_cache(maxsize=8)
def _name_test(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of code that tests how a name begins or ends."""
    names = sorted(catalogue.deprecated)
    ends = {name[:at] for name in names for at in range(_SHORTEST, len(name))}
    ends |= {name[at:] for name in names for at in range(1, len(name) - _SHORTEST + 1)}
    return re.compile(rf"({'|'.join(_TESTS)})\([^)]*[\"']({'|'.join(sorted(ends))})[\"']")


@lru_cache(maxsize=8)
def _parts(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of a part of a name in quotes, or beside what an f-string puts in."""
    return re.compile(rf"[\"'}}]({'|'.join(sorted(_words(catalogue)))})[\"'{{]")


def may_read_in_part(text: str, catalogue: Catalogue) -> bool:
    """Return whether Python text may read a deprecated setting by a part of its name."""
    return next(_candidates(text, catalogue), None) is not None


def _candidates(text: str, catalogue: Catalogue) -> Iterator[re.Match[str]]:
    """Yield the places at which Python text may do so, some of them twice, in no order.

    Words are much cheaper to look for than the pattern, which is tried only around each of them.
    """
    test, name = _name_test(catalogue), _parts(catalogue)
    reach = catalogue.longest_name + 1
    for word in _TESTS:
        yield from filter(None, (test.match(text, at) for at in positions(text, f"{word}(")))
    for word in without_contained(sorted(_words(catalogue))):
        for at in positions(text, word):
            yield from name.finditer(text, max(0, at - reach), at + reach)


@lru_cache(maxsize=8)
def _words(catalogue: Catalogue) -> frozenset[str]:
    """Return the parts of names from which code makes a name, with an underscore at the place where they meet."""
    parts = set()
    for name in catalogue.deprecated:
        words = name.split("_")
        for at in range(1, len(words)):
            first, second = "_".join(words[:at]), "_".join(words[at:])
            parts |= {first + "_", "_" + second}
            parts |= {part for part in (first, second) if "_" in part}
    return frozenset(parts - catalogue.deprecated)


def names_read_in_part(source: PythonSource) -> Iterator[tuple[str, int]]:
    """Yield the deprecated settings that code may read by a part of their names, each with the line."""
    spans = [match.span() for match in _candidates(source.text, source.catalogue)]
    lines = [(source.line_of(start), source.line_of(end)) for start, end in spans]
    for node, above, outer in nodes_on(lines, source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            tested = outer if isinstance(above, ast.Tuple) else above
            for name in _names_with(node.value, tested, source.catalogue):
                yield name, node.lineno


def nodes_on(
    lines: Sequence[tuple[int, int]], tree: ast.AST
) -> Iterator[tuple[ast.AST, ast.AST | None, ast.AST | None]]:
    """Yield the nodes on some lines, each with the node around it and the node around that."""
    waiting: list[tuple[ast.AST, ast.AST | None, ast.AST | None]] = [(tree, None, None)]
    while waiting:
        node, above, outer = waiting.pop()
        yield node, above, outer
        for child in ast.iter_child_nodes(node):
            first = getattr(child, "lineno", 0)
            last = getattr(child, "end_lineno", 0) or first
            if not first or any(first <= end and last >= start for start, end in lines):
                waiting.append((child, node, above))


def _names_with(part: str, tested: ast.AST | None, catalogue: Catalogue) -> list[str]:
    """Return the deprecated settings with a part at the place where code tests for it, or puts it into a name."""
    names = sorted(catalogue.deprecated)
    match tested:
        case ast.Call(func=ast.Attribute(attr=method, value=ast.Name())) if method in _TESTS and len(part) >= _SHORTEST:
            return [name for name in names if _TESTS[method](name, part) and name != part]
        case ast.BinOp(op=ast.Add()) | ast.JoinedStr() | ast.Compare(ops=[ast.In() | ast.NotIn()]):
            if part in _words(catalogue) and not (isinstance(tested, ast.JoinedStr) and _is_text(tested)):
                return [name for name in names if part in name]
    return []


def _is_text(node: ast.JoinedStr) -> bool:
    """Return whether an f-string has spaces: it is no name."""
    return any(isinstance(value, ast.Constant) and " " in str(value.value) for value in node.values)
