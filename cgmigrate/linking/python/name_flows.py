"""What code makes the names of attributes from: the expressions whose values may be in them, in one function."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.aliases import COLLECTION_CHANGES
from cgmigrate.linking.python.name_texts import ACCESSES, HELP, SHOWS, last_name
from cgmigrate.linking.python.pieces import AnyFunction

_AnyInner = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@lru_cache(maxsize=16384)
def parts_of(node: ast.AST) -> tuple[ast.AST, ...]:
    """Return the nodes of code; for a module, those that are in no function."""
    return tuple(_outside_functions(node) if isinstance(node, ast.Module) else walk(node))


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    waiting = [node]
    for one in waiting:
        yield one
        waiting += (
            inner
            for inner in ast.iter_child_nodes(one)
            if not isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef))
        )


@lru_cache(maxsize=16384)
def expressions_in(node: ast.AST) -> tuple[ast.expr, ...]:
    """Return the expressions in code, apart from those that are in others."""
    inner = {id(one) for part in parts_of(node) if isinstance(part, ast.expr) for one in ast.iter_child_nodes(part)}
    return tuple(one for one in parts_of(node) if isinstance(one, ast.expr) and id(one) not in inner)


@dataclass(frozen=True, slots=True)
class Flows:
    """The expressions whose values the names in some code may get, or what they are bound to may get a part of."""

    by_name: Mapping[str, Sequence[ast.expr]]
    inner: frozenset[str]
    """The parameters of functions in the code: who calls these is not known."""
    every: Sequence[ast.expr]

    @staticmethod
    @lru_cache(maxsize=16384)
    def of(node: ast.AST) -> Flows:
        """Return the flows in a function, or in a module outside its functions."""
        by_name: dict[str, list[ast.expr]] = {}
        inner = set[str]()
        for part in parts_of(node):
            for target, value in _flows(part):
                for name in names_in(target):
                    by_name.setdefault(name, []).append(value)
            if isinstance(part, _AnyInner) and part is not node:
                inner |= set(parameters_of(part))
        return Flows(by_name, frozenset(inner), expressions_in(node))

    def behind(self, seeds: Iterable[ast.expr]) -> tuple[list[ast.expr], frozenset[str]]:
        """Return the expressions whose values may be in those of others, and the names in all of these."""
        result = list(seeds)
        names = set[str]()
        known = set(map(id, result))
        for one in result:
            new = [name for name in dict.fromkeys(names_in(one)) if name not in names]
            names.update(new)
            behind = (
                self.every
                if not self.inner.isdisjoint(new)
                else [value for name in new for value in self.by_name.get(name, ())]
            )
            result += (value for value in behind if id(value) not in known)
            known.update(map(id, behind))
        return result, frozenset(names)


def names_in(node: ast.AST) -> Iterator[str]:
    """Yield the names of variables in code."""
    return (part.id for part in walk(node) if isinstance(part, ast.Name))


def parameters_of(node: AnyFunction | ast.Lambda) -> list[str]:
    """Return the names of the parameters of a function."""
    return [one.arg for one in walk(node.args) if isinstance(one, ast.arg)]


def assigned(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield what a statement or expression sets or changes, each with what that gets: values, keys, arguments."""
    match node:
        case ast.Assign(targets=targets, value=value):
            for target in targets:
                yield from _assigned_to(target, value)
        case (
            ast.AnnAssign(target=target, value=ast.expr() as value)
            | ast.AugAssign(target=target, value=value)
            | ast.NamedExpr(target=target, value=value)
            | ast.For(target=target, iter=value)
            | ast.AsyncFor(target=target, iter=value)
        ):
            yield from _assigned_to(target, value)
        case ast.Call(func=ast.Attribute(value=owner, attr="add_argument")):
            yield owner, node
        case ast.Call(func=ast.Attribute(value=owner), args=args, keywords=keywords):
            # A method may change its object.
            yield from ((owner, one) for one in (*args, *_values_of_keywords(keywords)))
        case ast.Expr(value=ast.Call(func=function, args=args, keywords=keywords) as call):
            # A function may change what it gets.
            if last_name(function) not in SHOWS | ACCESSES | COLLECTION_CHANGES:
                yield from ((one, call) for one in (*args, *_values_of_keywords(keywords)))


def _assigned_to(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    match target:
        case ast.Tuple(elts=elements) | ast.List(elts=elements):
            for one in elements:
                yield from _assigned_to(one, value)
        case ast.Starred(value=inner):
            yield from _assigned_to(inner, value)
        case ast.Subscript(value=owner, slice=key):
            yield from _assigned_to(owner, key)
            yield from _assigned_to(owner, value)
        case _:
            yield target, value


def _values_of_keywords(keywords: Iterable[ast.keyword]) -> Iterator[ast.expr]:
    for one in keywords:
        if one.arg:
            yield ast.Constant(one.arg)
        if one.arg not in HELP:
            yield one.value


def _flows(node: ast.AST) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield code whose names get something, with what that is."""
    yield from assigned(node)
    match node:
        case ast.comprehension(target=target, iter=value):
            yield target, value
        case ast.withitem(context_expr=value, optional_vars=ast.expr() as target):
            yield target, value
        case ast.Match(subject=subject, cases=cases):
            bound = (one for case in cases for one in walk(case.pattern) if isinstance(one, ast.MatchAs))
            yield from ((ast.Name(one.name), subject) for one in bound if one.name)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            yield from ((ast.Name(name), one) for one in results_of(node))


@lru_cache(maxsize=16384)
def results_of(node: AnyFunction) -> tuple[ast.expr, ...]:
    """Return what a function returns, and its parameters: it may change what it gets."""
    returned = (
        one.value
        for one in walk(node)
        if isinstance(one, (ast.Return, ast.Yield, ast.YieldFrom)) and one.value is not None
    )
    return (*returned, *map(ast.Name, parameters_of(node)))
