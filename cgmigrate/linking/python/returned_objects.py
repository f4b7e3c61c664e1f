"""Whether a function may return an object of code that leads to settings, by the names in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.function_calls import parameters
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.relevance import Relevance

_HARMLESS = frozenset(
    ("len", "enumerate", "sorted", "str", "repr", "print", "isinstance", "zip", "range", "min", "max")
)
_KEEPS = frozenset(("append", "appendleft", "add", "insert", "extend", "setdefault", "update", "put", "push"))
"""Methods that keep what they get last."""
_Flow = tuple[frozenset[str], ast.AST]
"""The names that get what an expression makes; none if the function returns it."""
Resolve = Callable[[str], AnyFunction | None]
"""Returns the function of the project that a name is, None if that is not known."""


def may_return_object(node: AnyFunction, relevance: Relevance, resolve: Resolve) -> bool:
    """Return whether other code may get an object of a function that it did not have, and that code with settings made.

    The function returns it, or keeps it in what it did not make itself: `self.cfg = recipe()`, `CONFIGS.append(cfg)`.
    """
    kept = tuple(_kept_in(node))
    return (bool(kept) or _returns_others(node)) and _returns_from_leading(node, relevance, resolve, kept)


@lru_cache(maxsize=4096)
def _kept_in(node: AnyFunction) -> tuple[ast.expr, ...]:
    """Return what a function keeps in its parameters, or in names that it does not bind."""
    own = {part.id for part in walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    shared = {name for part in walk(node) if isinstance(part, (ast.Global, ast.Nonlocal)) for name in part.names}
    own -= shared | set(parameters(node))

    def is_others(target: ast.expr) -> bool:
        while isinstance(target, (ast.Attribute, ast.Subscript)):
            target = target.value
        return not isinstance(target, ast.Name) or target.id not in own

    kept: list[ast.expr] = []
    for part in walk(node):
        match part:
            case ast.Assign(targets=targets, value=value):
                parts = [one for target in targets for one in walk(target)]
            case ast.AnnAssign(target=target, value=ast.expr() as value) | ast.AugAssign(target=target, value=value):
                parts = [target]
            case ast.Call(func=ast.Attribute(value=target, attr=method), args=[*_, value]) if method in _KEEPS:
                kept += [value] if is_others(target) else []
                continue
            case _:
                continue
        holders = [
            one
            for one in parts
            if isinstance(one, (ast.Attribute, ast.Subscript)) or (isinstance(one, ast.Name) and one.id in shared)
        ]
        kept += [value] if any(map(is_others, holders)) else []
    return tuple(one for one in kept if not _is_text_or_number(one))


def _is_text_or_number(node: ast.expr) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return name in ("str", "repr", "int", "float", "bool", "len")
    return isinstance(node, (ast.Constant, ast.JoinedStr, ast.Compare))


@lru_cache(maxsize=4096)
def returns_numbers(node: AnyFunction) -> bool:
    """Return whether each result of a function is a number, true or false, or a member of an enumeration.

    These show nothing of an object as a whole. A text may.
    """
    parts = list(walk(node))
    results = [part.value for part in parts if isinstance(part, ast.Return)]
    is_plain = not any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in parts)
    return is_plain and bool(results) and all(one is not None and _is_number(one) for one in results)


def _is_number(node: ast.expr) -> bool:
    match node:
        case ast.UnaryOp() | ast.Compare():
            return True
        case ast.BinOp(left=left, op=operator, right=right):
            return _computes_number(left, operator, right)
        case ast.IfExp(body=body, orelse=other):
            return _is_number(body) and _is_number(other)
    return _is_plain_number(node)


def _is_plain_number(node: ast.expr) -> bool:
    match node:
        case ast.Constant(value=value):
            return value is None or isinstance(value, (int, float))
        case ast.Call(func=ast.Name(id=name)):
            return name in ("int", "float", "bool", "round")
        case ast.Attribute(value=ast.Name(id=name), attr=member):
            return name[:1].isupper() and member.isupper()
    return False


def _computes_number(left: ast.expr, operator: ast.operator, right: ast.expr) -> bool:
    if isinstance(operator, (ast.Div, ast.FloorDiv, ast.Pow)):
        return True
    # Lists and texts are multiplied, too, and sets are subtracted.
    is_arithmetic = isinstance(operator, (ast.Add, ast.Sub)) and (_is_number(left) or _is_number(right))
    return is_arithmetic or (isinstance(operator, (ast.Mult, ast.Mod)) and _is_number(left) and _is_number(right))


@lru_cache(maxsize=4096)
def _returns_others(node: AnyFunction) -> bool:
    """Return whether a function may return something else than one of its parameters, which its callers have."""
    bound = {part.id for part in walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    own = set(parameters(node)) - bound
    returned = [
        part.value for part in walk(node) if isinstance(part, (ast.Return, ast.Yield, ast.YieldFrom)) and part.value
    ]
    return not all(isinstance(one, ast.Name) and one.id in own for one in returned)


def _returns_from_leading(node: AnyFunction, relevance: Relevance, resolve: Resolve, kept: Iterable[ast.expr]) -> bool:
    """Return whether a result, or what is kept elsewhere, may come from a function that leads to settings."""
    if any(isinstance(part, (ast.Global, ast.Nonlocal, ast.Await)) for part in walk(node)):
        return True
    bound = frozenset(_bound_in(node))

    def may_lead(part: ast.AST) -> bool:
        return relevance.is_relevant(part) or relevance.leads(part) or _calls_any(part, bound)

    every = (*_flows_of(node, resolve), *((frozenset[str](), one) for one in kept))
    flows = [(targets, value, may_lead(value)) for targets, value in every]
    plain = _plain_parameters(node)
    tainted = set[str]()
    while True:
        known = len(tainted)
        for targets, value, leads in flows:
            if leads or not tainted.isdisjoint(_names_in(value)):
                if not targets:
                    return True
                tainted |= targets - plain
        if known == len(tainted):
            return False


def _bound_in(node: AnyFunction) -> Iterator[str]:
    for part in walk(node):
        match part:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield name


def _plain_parameters(node: AnyFunction) -> frozenset[str]:
    """Return the parameters that are texts or numbers by their annotations: nothing is kept in them."""
    bound = {part.id for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    return frozenset(one.arg for one in every if one.annotation and _is_plain(one.annotation)) - bound


def _is_plain(annotation: ast.expr) -> bool:
    match annotation:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _is_plain(left) and _is_plain(right)
        case ast.Subscript(value=ast.Name(id="Optional") | ast.Attribute(attr="Optional"), slice=inner):
            return _is_plain(inner)
        case ast.Name(id=name):
            return name in ("str", "int", "bool", "float")
    return isinstance(annotation, ast.Constant) and annotation.value is None


def _calls_any(node: ast.AST, bound: Collection[str]) -> bool:
    """Return whether code calls a function that it computes, or gets: it may be any."""
    for part in walk(node):
        match part:
            case ast.Call(func=ast.Name(id=name)) if name not in bound:
                pass
            case ast.Call(func=function) if not isinstance(function, ast.Attribute):
                return True
    return False


def _flows_of(node: AnyFunction, resolve: Resolve) -> Iterator[_Flow]:
    for part in walk(node):
        match part:
            case (
                ast.Return(value=ast.expr() as value)
                | ast.Yield(value=ast.expr() as value)
                | ast.YieldFrom(value=value)
            ):
                yield frozenset(), value
            case ast.Assign(targets=targets, value=value):
                yield frozenset().union(*map(_names_in, targets)), value
                # The object of which an attribute is set has it.
                yield from ((_names_in(one), one) for one in targets if not isinstance(one, ast.Name))
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.AsyncFor(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
                | ast.withitem(optional_vars=ast.expr() as target, context_expr=value)
            ):
                yield _names_in(target), value
                yield from ((_names_in(target), target),) if not isinstance(target, ast.Name) else ()
            case ast.Match(subject=value, cases=cases):
                patterns = (one.pattern for one in cases)
                yield frozenset(name for one in patterns for name in _captured(one)), value
            case ast.Call() if names := frozenset(_changed_by(part, resolve)):
                yield names, part
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) if part is not node:
                yield frozenset((name,)), part


@lru_cache(maxsize=65536)
def _names_in(node: ast.AST) -> frozenset[str]:
    return frozenset(part.id for part in walk(node) if isinstance(part, ast.Name))


def _changed_by(call: ast.Call, resolve: Resolve) -> Iterator[str]:
    """Yield the names of what a call may keep what it gets, or makes, in."""
    function = resolve(call.func.id) if isinstance(call.func, ast.Name) else None
    if isinstance(call.func, ast.Name) and call.func.id in _HARMLESS:
        return
    if function is None or any(isinstance(one, ast.Starred) for one in call.args):
        yield from _names_in(call)
        return
    names = [one.arg for one in (*function.args.posonlyargs, *function.args.args)]
    values = [*zip(names, call.args, strict=False), *((one.arg or "", one.value) for one in call.keywords)]
    known = {*names, *(one.arg for one in function.args.kwonlyargs)}
    for name, value in values:
        if name not in known or _may_change(function, name):
            yield from _names_in(value)
    yield from (name for value in call.args[len(names) :] for name in _names_in(value))


@lru_cache(maxsize=4096)
def _may_change(function: AnyFunction, name: str) -> bool:
    """Return whether a function may change what it gets as a parameter, or pass it to other code, or keep it."""
    harmless = set[int]()
    for part in walk(function):
        match part:
            case ast.Call(func=ast.Name(id=called), args=args) if called in _HARMLESS:
                harmless.update(map(id, args))
            case ast.FormattedValue(value=value) | ast.For(iter=value) | ast.comprehension(iter=value):
                harmless.add(id(value))
            case ast.Compare(left=left, comparators=others):
                harmless.update(map(id, (left, *others)))
            case ast.If(test=value) | ast.UnaryOp(op=ast.Not(), operand=value):
                harmless.add(id(value))
    return any(isinstance(part, ast.Name) and part.id == name and id(part) not in harmless for part in walk(function))


def _captured(pattern: ast.pattern) -> Iterator[str]:
    for part in walk(pattern):
        match part:
            case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name):
                yield name
