"""Mutants of a Python file: each changes one expression or statement in a way that a test should notice.

Messages are not mutated: f-strings, strings with spaces and what ``raise`` says. Annotations, decorators and
docstrings are not, either.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

_SWAPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_DECLARED = ("annotation", "returns", "decorator_list", "type_params", "args", "bases")
_KEYWORDS = ("strict", "encoding", "errors")
"""Keyword arguments whose values no test can judge on well-formed input."""


@dataclass(frozen=True)
class Mutant:
    """One change of a file. ``start`` and ``end`` are offsets in the bytes of its text; ``line`` counts from 1.

    ``number`` is different for equal changes of equal lines in one function; it counts from 1.
    """

    module: str
    function: str
    line: int
    text: str
    operator: str
    start: int
    end: int
    new: str
    number: int = 1

    @property
    def identity(self) -> str:
        """What names a mutant in samples and in the list of equivalents.

        It is the same while the text of its line and its function's name are, wherever the line is.
        """
        again = f" | {self.number}" if self.number > 1 else ""
        return f"{self.module} | {self.function} | {self.operator} | {self.text}{again}"

    def apply(self, source: str) -> str:
        """Return the text of the file with the change."""
        data = source.encode()
        return (data[: self.start] + self.new.encode() + data[self.end :]).decode()


def mutants_of(module: str, source: str) -> list[Mutant]:
    """Return all mutants of a file, in the order of their lines; ``module`` is its path."""
    walk = _Walk(module, source)
    walk.node(ast.parse(source), "")
    times: Counter[str] = Counter()
    result = []
    for mutant in sorted(walk.mutants, key=lambda mutant: (mutant.start, mutant.operator, mutant.end)):
        times[mutant.identity] += 1
        result.append(replace(mutant, number=times[mutant.identity]))
    return result


@dataclass
class _Walk:
    module: str
    source: str
    mutants: list[Mutant] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lines = self.source.splitlines(keepends=True)
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line.encode()))

    def node(self, node: ast.AST, function: str) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            function = f"{function}.{node.name}".lstrip(".")
        for operator, target, new in _changes(node):
            self.add(function, operator, target, new)
        for child in _children(node):
            self.node(child, function)

    def add(self, function: str, operator: str, target: ast.expr | ast.stmt, new: str) -> None:
        start = self.starts[target.lineno - 1] + target.col_offset
        end = self.starts[(target.end_lineno or 0) - 1] + (target.end_col_offset or 0)
        text = " ".join(self.lines[target.lineno - 1].split())
        self.mutants.append(Mutant(self.module, function, target.lineno, text, operator, start, end, new))


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that may be mutated."""
    match node:
        case ast.JoinedStr() | ast.Raise() | ast.MatchValue() | ast.Import() | ast.ImportFrom():
            return
        case ast.Expr(value=ast.Constant()) | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return
        case ast.keyword(arg=str() as name) if name in _KEYWORDS:
            return
    declares = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    for name, value in ast.iter_fields(node):
        if name in _DECLARED and (declares or name == "annotation"):
            continue
        yield from (item for item in (value if isinstance(value, list) else [value]) if isinstance(item, ast.AST))


def _changes(node: ast.AST) -> Iterator[tuple[str, ast.expr | ast.stmt, str]]:
    """Yield (operator, the node that is replaced, its new text) for the mutants that begin with a node."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not _is_type_checking(test):
            yield f"negate `{_short(test)}`", test, f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=tests):
            yield from ((f"true for `{_short(test)}`", test, "True") for test in tests)
        case ast.match_case(guard=ast.expr() as guard):
            yield f"true for `{_short(guard)}`", guard, "True"
        case ast.Return(value=ast.expr() as value) if not _is_falsy(value):
            yield "return None", node, "return None"
        case ast.stmt() if _can_be_dropped(node):
            yield f"drop `{_short(node)}`", node, "pass"
        case ast.expr():
            yield from _of_expression(node)


def _of_expression(node: ast.expr) -> Iterator[tuple[str, ast.expr, str]]:
    match node:
        case ast.BoolOp():
            yield from _of_boolean(node)
        case ast.Compare(ops=[op]) if type(op) in _SWAPPED:
            new = ast.unparse(ast.Compare(node.left, [_SWAPPED[type(op)]()], node.comparators))
            yield f"`{_short(node)}` to `{new}`"[:160], node, f"({new})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield f"drop `not` of `{_short(operand)}`", node, f"({ast.unparse(operand)})"
        case ast.Constant(value=value) if (new := _other(value)) is not None:
            yield f"`{value!r}` to `{new}`", node, new
        case ast.Subscript(slice=ast.Slice() as bounds):
            yield from _of_slice(node, bounds)


def _of_boolean(node: ast.BoolOp) -> Iterator[tuple[str, ast.expr, str]]:
    other = ast.BoolOp(ast.And() if isinstance(node.op, ast.Or) else ast.Or(), node.values)
    yield f"and/or in `{_short(node)}`", node, f"({ast.unparse(other)})"
    for at, value in enumerate(node.values):
        rest = ast.BoolOp(node.op, node.values[:at] + node.values[at + 1 :]) if len(node.values) > 2 else None
        new = ast.unparse(rest or node.values[1 - at])
        yield f"drop `{_short(value)}` of `{_short(node)}`", node, f"({new})"


def _of_slice(node: ast.Subscript, bounds: ast.Slice) -> Iterator[tuple[str, ast.expr, str]]:
    for name in ("lower", "upper"):
        if (bound := getattr(bounds, name)) is not None:
            parts = {"lower": bounds.lower, "upper": bounds.upper, "step": bounds.step, name: None}
            yield (
                f"no `{_short(bound)}` in `{_short(node)}`",
                node,
                ast.unparse(ast.Subscript(node.value, ast.Slice(**parts))),
            )


def _other(value: object) -> str | None:
    if isinstance(value, bool):
        return str(not value)
    if isinstance(value, int):
        return str(value + 1)
    if isinstance(value, str) and value and " " not in value:
        return "''"
    return None


def _can_be_dropped(node: ast.stmt) -> bool:
    match node:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Delete() | ast.Continue() | ast.Raise():
            return True
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return True
    return False


def _is_type_checking(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "TYPE_CHECKING"


def _is_falsy(node: ast.expr) -> bool:
    return (isinstance(node, ast.Constant) and not node.value) or ast.unparse(node) in ("[]", "{}", "()")


def _short(node: ast.AST) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 60 else text[:57] + "..."
