"""The code of a file that runs whatever release is installed: not behind a test of the release, nor an alternative.

An alternative is a ``try`` whose handler imports something else, or handles what a missing name or argument raises, and
a condition both of whose branches import a name. A handler that only raises again, or goes on without what could not be
imported, is no other way to get it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from cgmigrate.documents.python.release_checks import catches_for_releases, release_check_of
from cgmigrate.documents.python.source import PythonSource, dotted

_OTHERS = re.compile(r"\bis_te_min_version\b|\bte_version\b|checkpoint_version|\btorch\b|is_torch_min_version")
"""What a test of another package's version, or of the format of a checkpoint, has."""
_PROBES = ("hasattr", "find_spec")
"""Functions that test what is installed."""
_LOOKUPS = frozenset(("AttributeError", "TypeError", "NameError"))
"""What a name or an argument raises that is not there; an import raises something else."""
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


@dataclass(frozen=True, slots=True)
class Placed:
    """A node, and what is around it.

    ``hidden`` are names of parameters, which hide those of the file. ``is_caught`` says that the code goes on where it
    raises an error, ``base`` is the first base of the class, ``function`` the nearest function.
    """

    node: ast.AST
    hidden: frozenset[str] = frozenset()
    is_caught: bool = False
    base: ast.expr | None = None
    function: ast.FunctionDef | ast.AsyncFunctionDef | None = None


def unguarded(tree: ast.Module, source: PythonSource) -> Iterator[Placed]:
    """Yield the nodes that are not written for some releases only, in the order of the text."""
    walker = _Walker(source, _optional_names(tree) | _release_names(tree, source))
    yield from walker.below(Placed(tree))


def _optional_names(tree: ast.Module) -> frozenset[str]:
    """Return the names that a ``try`` around an import sets at the top of a file: `HAVE_TE = False`."""
    tries = [node for node in tree.body if isinstance(node, ast.Try) and catches_for_releases(node)]
    parts = (part for one in tries for part in ast.walk(one) if isinstance(part, ast.Assign))
    return frozenset(target.id for part in parts for target in part.targets if isinstance(target, ast.Name))


def _release_names(tree: ast.Module, source: PythonSource) -> frozenset[str]:
    """Return the names at the top of a file that depend on the release: `IS_NEW = version >= "0.17"`."""
    names: frozenset[str] = frozenset()
    for node in tree.body:
        if isinstance(node, ast.Assign):
            used = {one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)}
            if release_check_of(node.value, source) or not names.isdisjoint(used):
                names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return names


class _Walker:
    def __init__(self, source: PythonSource, optional: frozenset[str]) -> None:
        self._source, self._optional = source, optional

    def below(self, place: Placed) -> Iterator[Placed]:
        for field in place.node._fields:
            value = getattr(place.node, field)
            if isinstance(value, list):
                yield from self._block([one for one in value if isinstance(one, ast.AST)], place)
            elif isinstance(value, ast.AST):
                yield from self._node(value, place)

    def _block(self, nodes: list[ast.AST], place: Placed) -> Iterator[Placed]:
        for node in nodes:
            yield from self._node(node, place)
            if self._leaves_the_rest_to_a_release(node):
                return

    def _node(self, node: ast.AST, around: Placed) -> Iterator[Placed]:
        if self._is_for_releases(node):
            return
        place = replace(around, node=node)
        match node:
            case ast.Try(handlers=handlers) if catches_for_releases(node) and not all(
                isinstance(handler.body[-1], ast.Raise) for handler in handlers
            ):
                yield from self._block(list(node.body), replace(place, is_caught=True))
                return
            case ast.ClassDef(bases=bases):
                place = replace(place, base=bases[0] if bases else None)
            case ast.FunctionDef(args=arguments) | ast.AsyncFunctionDef(args=arguments) | ast.Lambda(args=arguments):
                own = place.function if isinstance(node, ast.Lambda) else node
                place = replace(place, hidden=place.hidden | _names_of(arguments), function=own)
        yield place
        yield from self.below(place)

    def _is_for_releases(self, node: ast.AST) -> bool:
        match node:
            case ast.Try():
                return catches_for_releases(node) and any(_is_alternative(handler) for handler in node.handlers)
            case ast.If(body=body, orelse=[_, *_] as other) if not _imported(body).isdisjoint(_imported(other)):
                return True
            case ast.If(test=test) | ast.IfExp(test=test) | ast.Match(subject=test):
                return self._is_check(test)
            case ast.FunctionDef(decorator_list=marks) | ast.ClassDef(decorator_list=marks):
                return any(self._is_check(mark) for mark in marks)
            case ast.With(items=items):
                return any(
                    dotted(getattr(one.context_expr, "func", one.context_expr)).endswith(("suppress", "raises"))
                    for one in items
                )
        return False

    def _leaves_the_rest_to_a_release(self, node: ast.AST) -> bool:
        """Return whether what is below a statement runs with some releases only."""
        match node:
            case ast.If(test=test, body=body, orelse=other):
                return self._is_check(test) and any(part and isinstance(part[-1], _ENDS) for part in (body, other))
            case ast.Assert(test=test):
                return self._is_check(test)
        return False

    def _is_check(self, test: ast.expr) -> bool:
        if not self._optional.isdisjoint(one.id for one in ast.walk(test) if isinstance(one, ast.Name)):
            return True
        if any(isinstance(one, ast.Call) and dotted(one.func).endswith(_PROBES) for one in ast.walk(test)):
            return True
        return bool(release_check_of(test, self._source)) and not _OTHERS.search(ast.unparse(test))


def _names_of(arguments: ast.arguments) -> frozenset[str]:
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    return frozenset(one.arg for one in every if one is not None)


def _is_alternative(handler: ast.ExceptHandler) -> bool:
    """Return whether a handler gets in another way what could not be had."""
    if any(isinstance(one, (ast.Import, ast.ImportFrom)) for one in ast.walk(handler)):
        return True
    kinds = {one.id for one in ast.walk(handler.type) if isinstance(one, ast.Name)} if handler.type else set()
    return not kinds.isdisjoint(_LOOKUPS) and not isinstance(handler.body[-1], ast.Raise)


def _imported(nodes: list[ast.stmt]) -> frozenset[str]:
    """Return the names that statements import."""
    imports = (one for node in nodes for one in ast.walk(node) if isinstance(one, (ast.Import, ast.ImportFrom)))
    return frozenset(name.asname or name.name for one in imports for name in one.names)
