"""Code that checks the installed release: ``if version >= ...``, ``hasattr``, ``try`` and ``except ImportError``.

Such code is written for several releases, so a fix of one branch is withheld.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.sites import SEVERAL_RELEASES
from cgmigrate.megatron.catalogue import Catalogue

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


@lru_cache(maxsize=256)
def _concerns_settings(node: ast.Try, catalogue: Catalogue) -> bool:
    """Whether a ``try`` concerns the settings: all its statements name them, or one of its handlers does."""
    if any(isinstance(statement, (ast.Import, ast.ImportFrom)) for statement in node.body):
        return True
    return all(_names_setting(part, catalogue) for part in node.body) or any(
        _names_setting(part, catalogue) for part in node.handlers
    )


def _names_setting(node: ast.AST, catalogue: Catalogue) -> bool:
    for part in walk(node):
        for word in (getattr(part, "attr", ""), getattr(part, "id", ""), getattr(part, "arg", "")):
            if isinstance(word, str) and catalogue.is_in(word):
                return True
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and catalogue.is_in(part.value):
            return True
    return False


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
