"""Functions of a project that set the modules of an object and clear its old scope, and calls of them.

An edit writes ``set_modules(config.model, ["attn"])`` in place of ``config.model.cuda_graph_scope = ["attn"]``, with
the import of the function. Unlike the plain attribute, the call is right for an object that still has an old scope.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.python.statement_edits import newline_near
from cgmigrate.megatron.settings import MODULES, SCOPE, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import line_end, line_start

_MOST_COLUMNS = 88
"""A longer line is no longer than one that the file has already."""


@dataclass(frozen=True, slots=True)
class Setters:
    """The functions of a module: ``set_modules(object, modules)`` and ``clear_modules(object)``."""

    module: str
    set_modules: str
    clear_modules: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the functions."""
        return tuple(filter(None, (self.set_modules, self.clear_modules)))

    def call(self, target: str, value: str) -> str:
        """Return the call that gives an object some modules; both are Python text."""
        if value == "[]" and self.clear_modules:
            return f"{self.clear_modules}({target})"
        return f"{self.set_modules}({target}, {value})"

    def may_be_named(self, names: Names) -> bool:
        """Return whether the names of the functions mean nothing else in a file."""
        return all(
            names.full.get(name, self._full(name)) == self._full(name)
            and name not in names.shadowed
            and name not in names.classes
            for name in self.names
        )

    def _full(self, name: str) -> str:
        return f"{self.module}.{name}"


def clears_scope(settings: Settings) -> bool:
    """Return whether settings are those that a setter leaves: modules, and no old scope."""
    return MODULES in settings and SCOPE in settings and settings[SCOPE] is None


def without_cleared(settings: Settings) -> Settings:
    """Return settings without the old scope that is cleared."""
    return {name: value for name, value in settings.items() if name != SCOPE} if clears_scope(settings) else settings


def import_edits_of(source: PythonSource, setters: Setters, edits: Iterable[Edit]) -> list[Edit]:
    """Return the edits that import the setters that other edits of the file call."""
    used = [name for name in setters.names if any(f"{name}(" in edit.text for edit in edits)]
    imports = list(_imports(source.tree))
    own = next((one for one in imports if isinstance(one, ast.ImportFrom) and one.module == setters.module), None)
    new = sorted(set(used) - {alias.name for alias in (own.names if own else ())})
    if not new:
        return []
    return [_joined(source, own, new) if own else _added(source, setters.module, new, imports)]


def _imports(tree: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the absolute imports at the top of a file, before any other code."""
    for at, statement in enumerate(tree.body):
        if at == 0 and isinstance(statement, ast.Expr):
            continue
        if not isinstance(statement, (ast.Import, ast.ImportFrom)):
            return
        if not (isinstance(statement, ast.ImportFrom) and (statement.level or statement.module == "__future__")):
            yield statement


def _joined(source: PythonSource, statement: ast.ImportFrom, new: Sequence[str]) -> Edit:
    """Return the edit that gives an import more names, in order."""
    text, whole = source.text, source.span(statement)
    spans = {alias.name: source.span(alias) for alias in statement.names}
    names = sorted((*spans, *new), key=_order)
    first = line_start(text, spans[statement.names[0].name].start)
    newline = newline_near(text, first)
    if first > whole.start:
        # Each name has a line of its own.
        indent = text[first : spans[statement.names[0].name].start]
        after = [name for name in spans if _order(name) < _order(new[0])]
        at = line_end(text, spans[after[-1]].end) if after else first
        return Edit(at, at, "".join(f"{indent}{name},{newline}" for name in new))
    head = f"from {statement.module} import "
    written = ", ".join(text[spans[one].start : spans[one].end] if one in spans else one for one in names)
    if len(head) + len(written) <= _columns(source):
        return Edit(whole.start, whole.end, head + written)
    lines = "".join(f"    {one},{newline}" for one in written.split(", "))
    return Edit(whole.start, whole.end, f"{head}({newline}{lines})")


def _order(name: str) -> tuple[bool, bool, str]:
    """Return the key by which imported names are sorted: constants, classes, functions."""
    return (not name.isupper(), not name[:1].isupper(), name)


def _columns(source: PythonSource) -> int:
    return max(_MOST_COLUMNS, *map(len, source.text.split("\n")[: len(source.starts)]))


def _added(
    source: PythonSource, module: str, new: Sequence[str], imports: Sequence[ast.Import | ast.ImportFrom]
) -> Edit:
    """Return the edit that adds an import, in order beside those of the nearest modules."""
    text = source.text
    line = f"from {module} import {', '.join(sorted(new, key=_order))}"
    if not imports:
        at = _behind_docstring(source)
        return Edit(at, at, f"{line}\n")
    shared = max(_shared(_module_of(one), module) for one in imports)
    near = [one for one in imports if _shared(_module_of(one), module) == shared]
    later = next((one for one in near if isinstance(one, ast.ImportFrom) and _module_of(one) > module), None)
    if later is not None and shared:
        at = line_start(text, source.span(later).start)
        return Edit(at, at, line + newline_near(text, at))
    end = source.span(near[-1] if shared else imports[-1]).end
    at = line_end(text, end)
    return Edit(at, at, line + newline_near(text, line_start(text, end)))


def _behind_docstring(source: PythonSource) -> int:
    body = source.tree.body
    docstring = body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    return line_end(source.text, source.span(body[0]).end) if docstring else 0


def _module_of(statement: ast.Import | ast.ImportFrom) -> str:
    return statement.names[0].name if isinstance(statement, ast.Import) else statement.module or ""


def _shared(one: str, other: str) -> int:
    """Return how many packages two modules have in common."""
    count = 0
    for left, right in zip(one.split("."), other.split("."), strict=False):
        if left != right:
            return count
        count += 1
    return count


def call_statement(source: PythonSource, statement: ast.stmt, value: str, setters: Setters) -> str:
    """Return the call in place of ``object.name = value``; empty for other statements. ``value`` is Python text."""
    match statement:
        case ast.Assign(targets=[ast.Attribute(value=target)]):
            return setters.call(source.of(target), value)
    return ""


def same_with_setters(edited: str, plain: str, setters: Setters) -> bool:
    """Return whether two texts are the same but for calls of setters in place of attributes, and their imports."""
    one, other = (_Plain(setters).visit(ast.parse(text)) for text in (edited, plain))
    return ast.dump(one) == ast.dump(other)


class _Plain(ast.NodeTransformer):
    """Writes calls of setters as attributes, without their imports."""

    def __init__(self, setters: Setters) -> None:
        self._setters = setters
        self._names: Collection[str] = setters.names

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Return the assignment in place of a call."""
        match node.value:
            case ast.Call(func=ast.Name(id=name), args=[target, *values], keywords=[]) if name in self._names:
                value = values[0] if values else ast.List(elts=[], ctx=ast.Load())
                attribute = ast.Attribute(value=target, attr=MODULES, ctx=ast.Store())
                return ast.Assign(targets=[attribute], value=value)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt | None:
        """Return an import without the setters, None if it has no other name."""
        if node.module == self._setters.module and not node.level:
            node.names = [alias for alias in node.names if alias.name not in self._names]
        return node if node.names else None
