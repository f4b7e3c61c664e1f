"""Conditions that may check which release is installed: a fix of the code that depends on them is unsafe.

``release_checks`` knows the conditions that surely do.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.release_checks import release_check_in
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.remembered import remembered

LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
"""Statements after which a block goes no further."""
_EXITS = frozenset(("exit", "_exit", "quit", "skip", "abort"))
"""Functions that end the program, or a test."""
_OF_VALUES = frozenset(
    (
        *("get", "startswith", "endswith", "keys", "items", "values", "lower", "upper", "strip", "split"),
        *("exists", "is_file"),
    )
)
"""Methods of plain values, which know nothing of releases."""


@dataclass
class PossibleReleaseChecks:
    """Looks for such conditions; each list of statements is read once."""

    catalogue: Catalogue
    _suites: dict[int, tuple[dict[int, int], list[tuple[int, str]]]] = field(default_factory=dict)

    def above(self, node: ast.AST, ancestors: Iterator[ast.AST]) -> str:
        """Return why a condition around a node, or one that leaves the function before it, may check the release."""
        for above in ancestors:
            if why := self._branch(node, above) or self._earlier(node, above):
                return why
            node = above
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                break
        return ""

    def _branch(self, node: ast.AST, above: ast.AST) -> str:
        """Return why the branch of a condition around a node may be for one release only."""
        match above:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if test is not node:
                return _of_call(test) or self._beside(above, _other_branch(node, above))
            case ast.Match(subject=subject):
                return release_check_in(subject, self.catalogue) or self._other_case(node, above)
        return ""

    def _beside(self, condition: ast.If | ast.While | ast.IfExp, branch: Sequence[ast.AST]) -> str:
        """Return why another branch shows that this one is for older releases: it writes the new names."""
        return _other_release(condition.lineno) if any(map(self._writes_new, branch)) else ""

    def _other_case(self, node: ast.AST, match: ast.Match) -> str:
        """Return why a ``case`` other than ``node`` shows that this one is for older releases."""
        others = (case for case in match.cases if case is not node)
        is_other = any(self._writes_new(statement) for case in others for statement in case.body)
        return _other_release(match.lineno) if is_other else ""

    @remembered
    def _writes_new(self, node: ast.AST) -> bool:
        return _writes_one(self.catalogue.newer_names, node)

    def _earlier(self, node: ast.AST, above: ast.AST) -> str:
        """Check for ``if supports(config): ...; return`` before a statement, which is then the other branch."""
        for suite in (getattr(above, name, None) for name in ("body", "orelse", "finalbody")):
            if not isinstance(suite, list):
                continue
            if id(suite) not in self._suites:
                self._suites[id(suite)] = self._read(suite)
            places, leaving = self._suites[id(suite)]
            if id(node) in places and leaving and leaving[0][0] < places[id(node)]:
                return leaving[0][1]
        return ""

    def _read(self, suite: list[ast.stmt]) -> tuple[dict[int, int], list[tuple[int, str]]]:
        """Return where each statement of a suite is, and which leave it under a condition that may check releases."""
        places = {id(statement): at for at, statement in enumerate(suite)}
        leaving = [(at, why) for at, node in enumerate(suite) if (why := self._leaves_for(node))]
        return places, leaving

    def _leaves_for(self, statement: ast.stmt) -> str:
        """Return why a statement leaves what follows it for some releases, empty if it does not."""
        match statement:
            case ast.Assert(test=test):
                return release_check_in(test, self.catalogue)
            case ast.If(test=test, body=[*_, last]) if _leaves(last):
                new = any(map(self._writes_new, statement.body))
                other = _other_release(statement.lineno) if new else ""
                return _of_call(test) or release_check_in(test, self.catalogue) or other
        return ""


def _leaves(statement: ast.stmt) -> bool:
    """Return whether a statement returns, or ends the program."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name))):
            return name in _EXITS
    return isinstance(statement, LEAVES)


def _of_call(test: ast.expr) -> str:
    call = _checking_call(test)
    if call is None:
        return ""
    shown = ast.unparse(call.func)[:60]
    return f"it depends on `{shown}(...)` (line {call.lineno}), which may test the installed release"


def _other_release(line: int) -> str:
    return f"another branch of the condition on line {line} writes the new names, so this one may be for older releases"


def _other_branch(node: ast.AST, condition: ast.If | ast.While | ast.IfExp) -> Sequence[ast.AST]:
    """Return the branch without the node; of an ``elif`` only its first branch, so that chains take linear time."""
    if isinstance(condition, ast.IfExp):
        return [condition.orelse if condition.body is node else condition.body]
    orelse = condition.orelse
    if orelse and getattr(node, "lineno", 0) >= orelse[0].lineno:
        return condition.body
    return orelse[0].body if len(orelse) == 1 and isinstance(orelse[0], ast.If) else orelse


def _writes_one(names: frozenset[str], node: ast.AST) -> bool:
    """Whether code sets one of some settings."""
    for part in walk(node):
        match part:
            case ast.keyword(arg=name) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.Constant(value=name):
                if isinstance(name, str) and name in names:
                    return True
    return False


def _checking_call(test: ast.expr) -> ast.Call | None:
    """Return the call in a condition that is neither a builtin's nor a method of plain values."""
    for node in walk(test):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            builtin = isinstance(node.func, ast.Name) and hasattr(builtins, name)
            if not builtin and name not in _OF_VALUES:
                return node
    return None
