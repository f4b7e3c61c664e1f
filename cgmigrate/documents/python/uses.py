"""The uses of settings in a Python file, each with its role: what the innermost node around a name does with it."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.source import EXACT_STRINGS, PythonSource, dotted
from cgmigrate.documents.sites import Role, Use
from cgmigrate.documents.uses import Appearance
from cgmigrate.text.spans import Span


@dataclass(slots=True)
class PythonRoleReader:
    """Decides the role of each name; names have to come in the order of the text.

    ``lines`` are those with a name, in order. ``written`` are the settings of sites by the offset of their names,
    ``comments`` the spans of comments.
    """

    source: PythonSource
    lines: Sequence[int]
    written: Mapping[int, Use]
    comments: Sequence[Span]
    _nodes: list[tuple[Span, ast.AST]] = field(default_factory=list)
    _parents: dict[int, ast.AST] = field(default_factory=dict)
    _around: list[tuple[Span, ast.AST]] = field(default_factory=list)
    _next: int = 0
    _next_comment: int = 0

    def __post_init__(self) -> None:
        stack: list[ast.AST] = [self.source.tree]
        while stack:
            node = stack.pop()
            for child in ast.iter_child_nodes(node):
                if self._has_name(child):
                    self._parents[id(child)] = node
                    stack.append(child)
            if getattr(node, "end_lineno", None):
                self._nodes.append((self.source.span(node), node))
        # Of two nodes with one span, the inner one was added behind the outer one.
        self._nodes.sort(key=lambda pair: (pair[0].start, -pair[0].end))

    def _has_name(self, node: ast.AST) -> bool:
        """Whether a name is on a line of a node."""
        first = getattr(node, "lineno", 0)
        if not first:
            return True
        first = min([first, *(item.lineno for item in getattr(node, "decorator_list", ()))])
        at = bisect_left(self.lines, first)
        return at < len(self.lines) and self.lines[at] <= (getattr(node, "end_lineno", 0) or first)

    def __call__(self, appearance: Appearance) -> Use | None:
        """Return the use that a name is, None for an import and a variable."""
        if (use := self.written.get(appearance.span.start)) is not None:
            return use
        if self._is_in_comment(appearance.span):
            return appearance.use(Role.MENTION)
        node = self._innermost(appearance.span)
        if isinstance(node, (ast.Constant, ast.JoinedStr)):
            return appearance.use(self._of_string(node, appearance))
        return self._of_name(node, appearance)

    def _is_in_comment(self, span: Span) -> bool:
        while self._next_comment < len(self.comments) and self.comments[self._next_comment].end <= span.start:
            self._next_comment += 1
        at = self._next_comment
        return at < len(self.comments) and self.comments[at].start <= span.start

    def _innermost(self, span: Span) -> ast.AST:
        """Return the innermost node around a name; the nodes around the one before are where it starts."""
        while self._next < len(self._nodes) and self._nodes[self._next][0].start <= span.start:
            self._around.append(self._nodes[self._next])
            self._next += 1
        self._around = [pair for pair in self._around if pair[0].end > span.start]
        inside = [node for around, node in self._around if around.end >= span.end]
        node = inside[-1] if inside else self.source.tree
        if not EXACT_STRINGS:
            return next((above for above in inside if isinstance(above, ast.JoinedStr)), node)
        return node

    def _of_name(self, node: ast.AST, appearance: Appearance) -> Use | None:
        match node:
            case ast.Attribute(ctx=ctx):
                role = Role.READ if isinstance(ctx, ast.Load) else Role.WRITE
                return appearance.use(role, self.source.span(node))
            case ast.keyword():
                return appearance.use(Role.WRITE)
            case ast.arg() | ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                return appearance.use(Role.MENTION)
            case ast.Name() if self._is_field(node):
                return appearance.use(Role.MENTION)
        return None

    def _is_field(self, node: ast.Name) -> bool:
        """Whether a name is a field of a class: `name: type`, `name = value` in its body."""
        if not isinstance(node.ctx, ast.Store):
            return False
        statement = self._parents.get(id(node))
        around = self._parents.get(id(statement)) if isinstance(statement, (ast.Assign, ast.AnnAssign)) else None
        return isinstance(around, ast.ClassDef)

    def _of_string(self, node: ast.Constant | ast.JoinedStr, appearance: Appearance) -> Role:
        text = node.value if isinstance(node, ast.Constant) else None
        if not isinstance(text, str) or text.rpartition(".")[2] != appearance.key:
            return Role.MENTION
        return self._of_key(node, appearance, self._parents.get(id(node)))

    def _of_key(self, node: ast.expr, appearance: Appearance, above: ast.AST | None) -> Role:
        """Return the role of a string that is the name of a setting."""
        flag = appearance.key.startswith("--")
        role = Role.MENTION if flag and not isinstance(above, (ast.Compare, ast.Call)) else Role.READ
        match above:
            case ast.Call(func=func) if dotted(func).endswith("add_argument"):
                role = Role.MENTION
            case ast.keyword(arg="dest") | ast.JoinedStr() | ast.Expr():
                role = Role.MENTION
            case ast.Call(func=ast.Name(id="setattr")) | ast.Dict():
                role = Role.WRITE
            case ast.Subscript(slice=key, ctx=ctx) if key is node and not isinstance(ctx, ast.Load):
                role = Role.WRITE
            case ast.List() | ast.Tuple() | ast.Set():
                role = Role.WRITE if flag else Role.MENTION
        return role
