"""Code that checks the installed release: ``if version >= ...``, ``hasattr``, ``try`` and ``except ImportError``.

Such code is written for several releases, so a fix of one branch is withheld.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk, words_of
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.sites import SEVERAL_RELEASES
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.setting_names import CLASSES
from cgmigrate.text.remembered import remembered

_VERSION_WORDS = (
    *("version", "__version__", "parse", "Version", "MAJOR", "MINOR"),
    *("fields", "__dataclass_fields__", "signature"),
)
_VERSION_ENDS = ("_version", "_VERSION", "_MAJOR", "_MINOR")
_CATCHES = frozenset(
    ("AttributeError", "ImportError", "ModuleNotFoundError", "NameError", "TypeError", "Exception", "BaseException")
)


def release_check_in(test: ast.expr, catalogue: Catalogue) -> str:
    """Return why a condition checks which release is installed, empty when it does not."""
    for node in walk(test):
        word = ""
        if isinstance(node, ast.Call) and _checks_for_setting(node, catalogue):
            return f"the code is guarded by `{_shown(node)}`, so {SEVERAL_RELEASES}"
        if isinstance(node, ast.Compare) and _checks_for_class(node):
            return f"the code is guarded by `{_shown(node)}`, so {SEVERAL_RELEASES}"
        if isinstance(node, ast.Name):
            word = node.id
        elif isinstance(node, ast.Attribute):
            word = node.attr
        if word in _VERSION_WORDS or "min_version" in word or word.endswith(_VERSION_ENDS):
            return f"the code is guarded by `{_shown(test)}`, so {SEVERAL_RELEASES}"
        if word.startswith("HAVE_") and "GRAPH" in word:
            return f"the code is guarded by `{word}`, so {SEVERAL_RELEASES}"
    return ""


def _checks_for_setting(call: ast.Call, catalogue: Catalogue) -> bool:
    """Whether a call is a ``hasattr`` for a setting, an enum of settings, or a name that is computed."""
    if not (isinstance(call.func, ast.Name) and call.func.id == "hasattr" and len(call.args) == 2):
        return False
    name = call.args[1]
    return not isinstance(name, ast.Constant) or catalogue.is_in(str(name.value))


def _checks_for_class(compared: ast.Compare) -> bool:
    """Whether a class of values is compared with None, which an import that failed has left."""
    named = isinstance(compared.left, ast.Name) and compared.left.id in CLASSES
    return named and any(isinstance(one, ast.Constant) and one.value is None for one in compared.comparators)


@lru_cache(maxsize=256)
def _concerns_settings(node: ast.Try, catalogue: Catalogue) -> bool:
    """Whether a ``try`` concerns the settings: all its statements name them, or one of its handlers does."""
    if any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body):
        return True
    return all(_names_setting(part, catalogue) for part in node.body) or any(
        _names_setting(part, catalogue) for part in node.handlers
    )


def _names_setting(node: ast.AST, catalogue: Catalogue) -> bool:
    return any(catalogue.is_in(word) for part in walk(node) for word in words_of(part))


def caught_for_releases(node: ast.Try, catalogue: Catalogue) -> str:
    """Return why a ``try`` distinguishes releases, empty when it does not."""
    is_for_releases = _concerns_settings(node, catalogue) and catches_for_releases(node)
    return "it is in a `try` whose `except` is for another release" if is_for_releases else ""


def catches_for_releases(node: ast.Try) -> bool:
    """Return whether a ``try`` catches what code raises that another release does not have."""
    for handler in node.handlers:
        kinds: Sequence[ast.expr | None] = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
        for kind in kinds:
            word = kind.id if isinstance(kind, ast.Name) else kind.attr if isinstance(kind, ast.Attribute) else ""
            if kind is None or word in _CATCHES:
                return True
    return False


def release_check_around(node: ast.AST, source: PythonSource) -> str:
    """Return why the code around a node distinguishes releases, empty when it does not."""
    catalogue = source.catalogue
    for above in source.ancestors(node):
        why = ""
        if isinstance(above, (ast.If, ast.IfExp, ast.While)):
            why = release_check_of(above.test, source)
        elif isinstance(above, ast.BoolOp):
            earlier = [value for value in above.values if value is not node]
            why = next(filter(None, (release_check_in(value, catalogue) for value in earlier)), "")
        elif isinstance(above, ast.Try):
            why = caught_for_releases(above, catalogue)
        if why:
            return why
        node = above
    return ""


def release_check_of(test: ast.expr, source: PythonSource) -> str:
    """Return why a condition checks the release, itself or by a function of the file; empty when it does not."""
    if why := release_check_in(test, source.catalogue):
        return why
    for node in walk(test):
        match node:
            case ast.Call(func=ast.Name(id=name)) if _is_release_check(name, source.tree, source.catalogue):
                return f"the code is guarded by `{_shown(node)}`, so {SEVERAL_RELEASES}"
    return ""


@lru_cache(maxsize=1024)
def _is_release_check(name: str, tree: ast.Module, catalogue: Catalogue) -> bool:
    """Return whether a name is a function of a file that returns whether the release has a setting."""
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == name)
    return any(release_check_in(value, catalogue) for one in functions for value in _returned(one))


def _returned(function: ast.FunctionDef) -> Iterator[ast.expr]:
    for node in walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            yield node.value


def _shown(node: ast.expr) -> str:
    """Return an expression for a message; a long one is cut and ends with an ellipsis."""
    text = ast.unparse(node)
    return text if len(text) <= 60 else f"{text[:59]}…"


# --- possible checks ------------------------------------------------------------------------------

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
