"""What one function (or the top of a file) does with its names: parameters, bindings and uses, read once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.source import dotted

Function = ast.FunctionDef | ast.AsyncFunctionDef
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


@dataclass(frozen=True, slots=True)
class Binding:
    """``path = value``; the value is None where it is not one plain expression (a loop, a `with`, two targets)."""

    path: str
    value: ast.expr | None
    line: int


@dataclass(slots=True)
class Scope:
    """The names of one function: what statements bind is read first, expressions only when they are asked for."""

    node: ast.Module | Function
    parameters: set[str] = field(default_factory=set)
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    """By the first name of the path."""
    returned: list[ast.expr] = field(default_factory=list)
    _expressions: _Expressions | None = None

    @classmethod
    def of(cls, node: ast.Module | Function) -> Scope:
        """Read a function, or a module without its functions."""
        scope = cls(node)
        if not isinstance(node, ast.Module):
            given = node.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            scope.parameters = {arg.arg for arg in [*named, *filter(None, (given.vararg, given.kwarg))]}
        for statement in _statements(node.body):
            scope._read(statement)
        return scope

    @property
    def name(self) -> str:
        """What messages call it."""
        return "" if isinstance(self.node, ast.Module) else self.node.name

    @property
    def uses(self) -> dict[str, list[ast.Name]]:
        """Where names are read."""
        return self._inside().uses

    @property
    def inner(self) -> dict[str, int]:
        """Names that functions and classes inside this one use, or expressions bind, with a line."""
        return self._inside().inner

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What a node of this scope belongs to."""
        return self._inside().parents.get(id(node))

    def _inside(self) -> _Expressions:
        if self._expressions is None:
            self._expressions = _Expressions()
            self._expressions.read(self.node.body)
        return self._expressions

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind_targets(target, value)
            case ast.Assign(targets=targets) | ast.Delete(targets=targets):
                for target in targets:
                    self._bind_targets(target, None)
            case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
                self._bind_targets(target, None)
            case ast.With(items=items) | ast.AsyncWith(items=items):
                for item in items:
                    if item.optional_vars is not None:
                        self._bind_targets(item.optional_vars, None)
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                for alias in names:
                    self._bind(alias.asname or alias.name.partition(".")[0], None, node.lineno)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                self._bind(name, None, node.lineno)
            case ast.ExceptHandler(name=str() as name):
                self._bind(name, None, node.lineno)
            case ast.Expr(
                value=ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str() as key), _])
            ):
                self._bind(f"{dotted(owner)}.{key}", None, node.lineno)
            case ast.Return(value=value):
                self.returned.append(value or ast.Constant(None))

    def _bind_targets(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self._bind_targets(element, None)
        elif isinstance(target, ast.Starred):
            self._bind_targets(target.value, None)
        elif path := dotted(target):
            self._bind(path, value, target.lineno)

    def _bind(self, path: str, value: ast.expr | None, line: int) -> None:
        self.bindings.setdefault(path.partition(".")[0], []).append(Binding(path, value, line))


@dataclass(slots=True)
class _Expressions:
    """What is inside the statements of one function."""

    parents: dict[int, ast.AST] = field(default_factory=dict)
    uses: dict[str, list[ast.Name]] = field(default_factory=dict)
    inner: dict[str, int] = field(default_factory=dict)

    def read(self, body: list[ast.stmt]) -> None:
        """Walk the nodes, in no order; functions and classes inside are not of this scope."""
        stack: list[ast.AST] = list(body)
        while stack:
            node = stack.pop()
            if isinstance(node, _INNER):
                self._note_inner(node)
                continue
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self.uses.setdefault(node.id, []).append(node)
            elif isinstance(node, (ast.NamedExpr, ast.comprehension, ast.Match)):
                self._note_bound(node)
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                self.inner |= dict.fromkeys(node.names, node.lineno)
            for child in ast.iter_child_nodes(node):
                self.parents[id(child)] = node
                stack.append(child)

    def _note_inner(self, node: ast.AST) -> None:
        line = getattr(node, "lineno", 0)
        for inside in ast.walk(node):
            if isinstance(inside, ast.Name):
                self.inner.setdefault(inside.id, line)

    def _note_bound(self, node: ast.NamedExpr | ast.comprehension | ast.Match) -> None:
        """Names that an expression or a pattern binds are not followed."""
        target = node.target if not isinstance(node, ast.Match) else None
        if target is None:
            names = [getattr(part, "name", None) for case in node.cases for part in ast.walk(case.pattern)]  # type: ignore[union-attr]
        else:
            names = [part.id for part in ast.walk(target) if isinstance(part, ast.Name)]
        line = getattr(node, "lineno", getattr(target, "lineno", 0))
        self.inner |= {name: line for name in names if name}


def _statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """The statements of a function, without looking into expressions or into functions inside it."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _INNER):
            continue
        for name in ("finalbody", "orelse", "cases", "handlers", "body"):
            inner = getattr(node, name, None)
            if isinstance(inner, list):
                stack += reversed(inner)
