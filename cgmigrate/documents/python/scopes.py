"""Scopes: the parameters, bindings and uses of names in one function or at the top of a file, read once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PARTS_WITH_STATEMENTS, dotted
from cgmigrate.megatron.catalogue import Catalogue

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
    """The names of one function. Statements are read at once, expressions only when they are needed."""

    node: ast.Module | Function
    catalogue: Catalogue
    parameters: set[str] = field(default_factory=set)
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    """By the first name of the path."""
    returned: list[ast.expr] = field(default_factory=list)
    _expressions: _Expressions | None = None
    _settings: dict[str, Binding] | None = None

    @classmethod
    def of(cls, node: ast.Module | Function, catalogue: Catalogue) -> Scope:
        """Read a function, or a module without its functions."""
        scope = cls(node, catalogue)
        if not isinstance(node, ast.Module):
            arguments = node.args
            named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            scope.parameters = {arg.arg for arg in [*named, *filter(None, (arguments.vararg, arguments.kwarg))]}
        for statement in _statements(node.body):
            scope._read(statement)
        return scope

    @property
    def name(self) -> str:
        """The name of the function, empty for a module."""
        return "" if isinstance(self.node, ast.Module) else self.node.name

    @property
    def uses(self) -> dict[str, list[ast.Name]]:
        """The nodes that read each name."""
        return self._inside().uses

    @property
    def inner(self) -> dict[str, int]:
        """Names that functions and classes inside this one use, or expressions bind, with a line."""
        return self._inside().inner

    def parent(self, node: ast.AST) -> ast.AST | None:
        """Return the parent of a node of this scope."""
        return self._inside().parents.get(id(node))

    def is_called(self, node: ast.expr) -> bool:
        """Whether an expression is what a call calls."""
        above = self.parent(node)
        return isinstance(above, ast.Call) and above.func is node

    def binds_only_as_main(self, name: str) -> bool:
        """Whether a name of a module is bound under ``if __name__ == "__main__"`` only."""
        blocks = [node for node in self.node.body if isinstance(node, ast.If) and _tests_for_main(node.test)]
        lines = [(block.lineno, block.end_lineno or block.lineno) for block in blocks]
        bound = self.bindings.get(name, [])
        return bool(bound) and all(any(first <= b.line <= last for first, last in lines) for b in bound)

    def settings_bound(self) -> dict[str, Binding]:
        """Return the last statement that sets a setting, by the object."""
        if self._settings is None:
            every = (binding for bindings in self.bindings.values() for binding in bindings)
            known = self.catalogue.name_set
            settings = [binding for binding in every if binding.path.rpartition(".")[2] in known]
            self._settings = {binding.path.rpartition(".")[0]: binding for binding in settings}
        return self._settings

    def _inside(self) -> _Expressions:
        if self._expressions is None:
            self._expressions = _Expressions()
            self._expressions.read(self.node.body)
        return self._expressions

    def _read(self, node: ast.AST) -> None:
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                self._bind_targets(target, value)
            case ast.Expr(
                value=ast.Call(func=ast.Name(id="setattr"), args=[owner, ast.Constant(value=str() as key), _])
            ):
                self._bind(f"{dotted(owner)}.{key}", None, node.lineno)
            case ast.Return(value=value):
                self.returned.append(value or ast.Constant(None))
            case _:
                for target in _targets(node):
                    self._bind_targets(target, None)
                for name in _names_bound(node):
                    self._bind(name, None, node.lineno)  # type: ignore[attr-defined]

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


def function_around(ancestors: Iterator[ast.AST]) -> ast.Module | Function | None:
    """Return the function or module that a node runs in; None inside a class body or a lambda."""
    for above in ancestors:
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return above
        if isinstance(above, (ast.ClassDef, ast.Lambda)):
            return None
    return None


def _tests_for_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and dotted(test.left) == "__name__"


def _targets(node: ast.AST) -> list[ast.expr]:
    """Return the targets that a statement binds to something other than one plain expression."""
    match node:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return targets
        case ast.AugAssign(target=target) | ast.For(target=target) | ast.AsyncFor(target=target):
            return [target]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [item.optional_vars for item in items if item.optional_vars is not None]
    return []


def _names_bound(node: ast.AST) -> list[str]:
    """Return the names that an import, a definition or a handler binds."""
    match node:
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [alias.asname or alias.name.partition(".")[0] for alias in names]
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.ExceptHandler(name=str() as name):
            return [name]
    return []


@dataclass(slots=True)
class _Expressions:
    """The nodes inside the statements of one function."""

    parents: dict[int, ast.AST] = field(default_factory=dict)
    uses: dict[str, list[ast.Name]] = field(default_factory=dict)
    inner: dict[str, int] = field(default_factory=dict)

    def read(self, body: list[ast.stmt]) -> None:
        """Walk the nodes, in no order; functions and classes inside have scopes of their own."""
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
        for inside in walk(node):
            if isinstance(inside, ast.Name):
                self.inner.setdefault(inside.id, line)

    def _note_bound(self, node: ast.NamedExpr | ast.comprehension | ast.Match) -> None:
        """Note the names that an expression or a pattern binds, which are not followed."""
        target = node.target if not isinstance(node, ast.Match) else None
        if target is None:
            names = [getattr(part, "name", None) for case in node.cases for part in walk(case.pattern)]  # type: ignore[union-attr]
        else:
            names = [part.id for part in walk(target) if isinstance(part, ast.Name)]
        line = getattr(node, "lineno", getattr(target, "lineno", 0))
        self.inner |= {name: line for name in names if name}


def _statements(body: list[ast.stmt]) -> Iterator[ast.AST]:
    """Yield the statements of a function, but not those of functions inside it."""
    stack: list[ast.AST] = list(reversed(body))
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, _INNER):
            continue
        for name in reversed(PARTS_WITH_STATEMENTS[type(node)]):
            stack += reversed(getattr(node, name))
