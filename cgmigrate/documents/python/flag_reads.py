"""Reads of the deprecated flags of a recipe, ``if cfg.model.external_cuda_graph:``, and what to write instead.

Such code asks what a recipe sets, before the configuration is built. It changes together with what sets the flag.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import takewhile

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.scope_tests import full_iteration_test
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.use_report import UseReplacement
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_FLAGS = frozenset((ENABLE, EXTERNAL))
_LOCAL = '("local", "full_iteration")'
"""What the flag of the local implementation turned on; the full iteration was one of its scopes."""
_CONDITIONS = (ast.If, ast.While, ast.IfExp, ast.Assert)
_VALUES = (ast.keyword, ast.Call, ast.Assign, ast.AnnAssign, ast.Return, ast.Dict, ast.List, ast.Tuple)
"""Code that has an expression as a value, without an operator beside it."""
_ONE_TEXT = re.compile(r"""[rRfF]{1,2}(["'])(?!\1)[^"']*\1""")
"""A text in code that has one kind of quote, at its begin and end."""


def flag_read(node: ast.AST, source: PythonSource) -> tuple[ast.Attribute, UseReplacement] | None:
    """Return the flag that an expression asks, and what to write for the whole expression; None for any other."""
    if not isinstance(node, ast.expr) or (tested := _read(node)) is None:
        return None
    read, is_on = tested
    quote = _quote(node, source)
    if not quote or not (_is_condition(node, source) or _is_value(node, source)) or _asks_both(read, node, source):
        return None
    if is_on and (span := _beside_full_iteration(read, node, source)) is not None:
        text = f"no `{ENABLE}`: the full iteration is an implementation"
        return read, UseReplacement(
            text, edits=[Edit(span.start, span.end, "")], fix=f"delete `{ENABLE}`", if_proved=True
        )
    path = source.of(read.value)
    if isinstance(node, ast.BoolOp) or _is_either(getattr(node, "operand", node)):
        text = f'{path}.{IMPL} {"!=" if is_on else "=="} "none"'
    elif read.attr == EXTERNAL:
        text = f'{path}.{IMPL} {"==" if is_on else "!="} "transformer_engine"'
    else:
        text = f"{path}.{IMPL} {'in' if is_on else 'not in'} {_LOCAL}"
    text = text.replace('"', quote)
    if isinstance(source.parent(node), ast.Compare):
        return read, UseReplacement(f"({text})", if_proved=True)
    span = _with_parentheses(node, source)
    return read, UseReplacement(text, edits=[Edit(span.start, span.end, text)], if_proved=True)


def _read(node: ast.expr) -> tuple[ast.Attribute, bool] | None:
    """Return the flag that an expression asks, and whether the expression is true if the flag is."""
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) if name in _FLAGS:
            return node, True
        case ast.BoolOp(op=ast.Or(), values=[ast.Attribute() as first, ast.Attribute()]) if _is_either(node):
            return first, True
        case ast.UnaryOp(op=ast.Not(), operand=operand) if (inner := _read(operand)) is not None:
            return inner[0], not inner[1]
        case ast.Compare(
            left=ast.Attribute() as left, ops=[operator], comparators=[ast.Constant(value=bool() as value)]
        ) if left.attr in _FLAGS and isinstance(operator, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)):
            return left, value is isinstance(operator, (ast.Is, ast.Eq))
    return None


def _is_either(node: ast.expr) -> bool:
    """Return whether an expression asks whether one of both flags of an object is on."""
    match node:
        case ast.BoolOp(
            op=ast.Or(), values=[ast.Attribute(value=first, attr=one), ast.Attribute(value=second, attr=other)]
        ):
            return {one, other} == _FLAGS and bool(dotted(first)) and dotted(first) == dotted(second)
    return False


def _is_condition(node: ast.expr, source: PythonSource) -> bool:
    """Return whether code only asks whether an expression is true, and a comparison can take its place."""
    match source.parent(node):
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) | ast.Assert(test=test):
            return test is node
        case ast.comprehension(ifs=tests):
            return any(test is node for test in tests)
        case ast.UnaryOp(op=ast.Not()) | ast.BoolOp():
            return True
    return False


def _is_value(node: ast.expr, source: PythonSource) -> bool:
    """Return whether code uses what an expression is, true or false, and a comparison can take its place."""
    match source.parent(node):
        case ast.IfExp(body=body, orelse=other):
            return node in (body, other)
        case ast.Compare(ops=[ast.Eq() | ast.NotEq() | ast.Is() | ast.IsNot()]) | ast.FormattedValue(format_spec=None):
            return True
        case ast.Call(func=function):
            return function is not node
        case ast.AST() as above:
            return isinstance(above, _VALUES)
    return False


def _quote(node: ast.expr, source: PythonSource) -> str:
    """Return the quote that an expression can use: in an f-string another one than its own. Empty if none can."""
    texts = [above for above in _expressions_around(node, source) if isinstance(above, ast.JoinedStr)]
    if not texts:
        return '"'
    written = source.of(texts[-1]) if len(texts) == 1 else ""
    one = _ONE_TEXT.fullmatch(written)
    return "" if one is None else "'" if one[1] == '"' else '"'


def _expressions_around(node: ast.AST, source: PythonSource) -> Iterator[ast.AST]:
    return takewhile(lambda above: not isinstance(above, ast.stmt), source.ancestors(node))


def _asks_both(read: ast.Attribute, node: ast.expr, source: PythonSource) -> bool:
    """Return whether code asks whether both flags of an object are on, which no implementation says."""
    other = ENABLE if read.attr == EXTERNAL else EXTERNAL
    tests = [one for above in _expressions_around(node, source) if _is_all(above) for one in above.values]  # type: ignore[attr-defined]
    return any(
        isinstance(part, ast.Attribute) and part.attr == other and dotted(part.value) == dotted(read.value)
        for one in tests
        if one is not node
        for part in walk(one)
    )


def _is_all(node: ast.AST) -> bool:
    return isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)


def _beside_full_iteration(read: ast.Attribute, node: ast.expr, source: PythonSource) -> Span | None:
    """Return the flag with the `and` behind it, if what follows asks for the full iteration of the same object."""
    above = source.parent(node)
    if read is not node or read.attr != ENABLE or not isinstance(above, ast.BoolOp) or not _is_all(above):
        return None
    later = above.values[above.values.index(node) + 1 :]
    if not later or not any(_asks_full_iteration(one, read) for one in later):
        return None
    return Span(source.span(node).start, _start(later, source))


def _asks_full_iteration(node: ast.expr, read: ast.Attribute) -> bool:
    tested = full_iteration_test(node)
    return tested is not None and tested[1] and dotted(tested[0]) == dotted(read.value)


def both_tests(read: ast.Attribute, source: PythonSource) -> str:
    """Return what to write for a flag that is tested with the scope; empty if both are not tested so.

    Such as ``config.enable_cuda_graph and config.cuda_graph_scope == "full_iteration"``.
    """
    above, owner = source.parent(read), dotted(read.value)
    around = source.parent(above) if isinstance(above, ast.Compare) else above
    tests = around.values if isinstance(around, ast.BoolOp) and _is_all(around) and owner else []
    tested = [one for one in map(full_iteration_test, tests) if one is not None and dotted(one[0]) == owner]
    local = {f"{owner}.{ENABLE}", f"{owner}.{IMPL} == 'local'"}
    if not tested or local.isdisjoint(map(ast.unparse, tests)):
        return ""
    impl = "full_iteration" if tested[0][1] else "local"
    new = f'write `{source.of(read.value)}.{IMPL} == "{impl}"` in place of both tests'
    return f"{new}; not fixed: what sets them changes with them"


def _start(later: Sequence[ast.expr], source: PythonSource) -> int:
    """Return where the next operand starts, with a parenthesis before it."""
    start = source.span(later[0]).start
    while source.text[start - 1] == "(":
        start -= 1
    return start


def _with_parentheses(node: ast.expr, source: PythonSource) -> Span:
    """Return an expression with the parentheses around it that a comparison does not need."""
    span, text = source.span(node), source.text
    above = source.parent(node)
    is_grouped = isinstance(node, ast.BoolOp) and isinstance(above, (ast.BoolOp, ast.UnaryOp, *_CONDITIONS))
    if not is_grouped or text[span.start - 1] != "(" or text[span.end : span.end + 1] != ")":
        return span
    is_apart = not (text[span.start - 2].isalnum() or text[span.start - 2] == "_")
    is_alone = "\n" not in text[span.start : span.end] and is_apart
    return Span(span.start - 1, span.end + 1) if is_alone else span
