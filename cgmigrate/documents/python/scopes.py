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
    """The names of one function. ``inner`` are those that functions and classes inside it use."""

    node: ast.Module | Function
    parameters: set[str] = field(default_factory=set)
    parents: dict[int, ast.AST] = field(default_factory=dict)
    uses: dict[str, list[ast.Name]] = field(default_factory=dict)
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    """By the first name of the path."""
    inner: dict[str, int] = field(default_factory=dict)
    returned: list[ast.expr] = field(default_factory=list)
    _plain: set[int] = field(default_factory=set)
    """Ids of the targets whose value is known."""

    @classmethod
    def of(cls, node: ast.Module | Function) -> Scope:
        """Read a function, or a module without its functions."""
        scope = cls(node)
        if not isinstance(node, ast.Module):
            given = node.args
            named = [*given.posonlyargs, *given.args, *given.kwonlyargs]
            scope.parameters = {arg.arg for arg in [*named, *filter(None, (given.vararg, given.kwarg))]}
        for inside in scope._walk():
            scope._read(inside)
        return scope

    @property
    def name(self) -> str:
        """What messages call it."""
        return "" if isinstance(self.node, ast.Module) else self.node.name

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What a node of this scope belongs to."""
        return self.parents.get(id(node))

    def _walk(self) -> Iterator[ast.AST]:
        stack: list[ast.AST] = list(reversed(self.node.body))
        while stack:
            node = stack.pop()
            if isinstance(node, _INNER):
                self._note_inner(node)
                continue
            yield node
            for child in ast.iter_child_nodes(node):
                self.parents[id(child)] = node
                stack.append(child)

    def _note_inner(self, node: ast.AST) -> None:
        line = getattr(node, "lineno", 0)
        for inside in ast.walk(node):
            if isinstance(inside, ast.Name):
                self.inner.setdefault(inside.id, line)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            self._bind(node.name, None, line)

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[target], value=value):
                self._bind_target(target, value, node.lineno)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind_target(target, value, node.lineno)
            case ast.AnnAssign(target=target, value=None):
                self._plain.add(id(target))
            case ast.Return(value=value):
                self.returned.append(value or ast.Constant(None))
            case ast.Name(id=name, ctx=ast.Load()):
                self.uses.setdefault(name, []).append(node)
            case ast.Name() | ast.Attribute() if id(node) not in self._plain and not isinstance(node.ctx, ast.Load):
                if path := dotted(node):
                    self._bind(path, None, node.lineno)
            case ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str() as key), _]) if dotted(
                owner
            ):
                self._bind(f"{dotted(owner)}.{key}", None, node.lineno)
            case ast.alias(name=name, asname=alias):
                self._bind(alias or name.partition(".")[0], None, node.lineno)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                for name in names:
                    self.inner.setdefault(name, node.lineno)

    def _bind_target(self, target: ast.expr, value: ast.expr, line: int) -> None:
        if path := dotted(target):
            self._plain.add(id(target))
            self._bind(path, value, line)

    def _bind(self, path: str, value: ast.expr | None, line: int) -> None:
        self.bindings.setdefault(path.partition(".")[0], []).append(Binding(path, value, line))
