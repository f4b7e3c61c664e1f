"""Environment variables in code: those of a call or dict around a place, and those of the process.

The process has what statements above a place set that surely run: of the same function, or at the top of the file.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.statement_order import bodies_of
from cgmigrate.megatron.settings import Missing, Undecided

_ENVIRON = ("os.environ", "environ")
_SETTERS = ("os.environ.setdefault", "environ.setdefault", "os.putenv", "putenv")
_UPDATES = ("os.environ.update", "environ.update")
_READERS = ("os.environ.get", "environ.get", "os.getenv", "getenv")
_KEYS = frozenset(("env", "env_vars", "environment", "env_variables", "environment_variables"))
"""Names of arguments and keys whose values are variables of the environment."""
_COMPUTED = "a value that is computed when the code runs"


@dataclass(frozen=True, slots=True)
class _Write:
    """A value that a statement gives to the variable, or only if it has none (``is_default``).

    ``name`` is the node that names the variable.
    """

    value: object
    name: ast.AST
    statement: ast.AST
    is_default: bool = False


def variable_at(source: PythonSource, offset: int, name: str) -> object:
    """Return the value of a variable at an offset: text, ``Undecided`` or ``Missing``."""
    if name not in source.text:
        return Missing.ABSENT
    around = list(_around(source, offset))
    for node in reversed(around):
        for variables in _variables(node):
            if (value := _in_dict(variables, name)) is not Missing.ABSENT:
                return value
    writes = list(_writes(source.tree, name))
    if _is_named_elsewhere(source.tree, name, [write.name for write in writes]):
        return Missing.UNKNOWN
    return _of_process(writes, around, source)


def _around(source: PythonSource, offset: int) -> Iterator[ast.AST]:
    """Yield the nodes around an offset, the outermost first."""
    node: ast.AST | None = source.tree
    while node is not None:
        yield node
        node = next((child for child in ast.iter_child_nodes(node) if _has(source, child, offset)), None)


def _has(source: PythonSource, node: ast.AST, offset: int) -> bool:
    if isinstance(node, ast.keyword):
        return _has(source, node.value, offset) or source.span(node).start <= offset < source.span(node).end
    if not isinstance(node, (ast.expr, ast.stmt, ast.ExceptHandler, ast.withitem, ast.match_case)):
        return False
    inner = [node] if hasattr(node, "lineno") else list(ast.iter_child_nodes(node))
    return any(source.span(one).start <= offset < source.span(one).end for one in inner if hasattr(one, "lineno"))


def _variables(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the values of arguments or keys that set variables."""
    if isinstance(node, ast.Call):
        yield from (keyword.value for keyword in node.keywords if keyword.arg in _KEYS)
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and key.value in _KEYS:
                yield value


def _in_dict(node: ast.expr, name: str) -> object:
    """Return the value of a variable in a dict; if the process has the others, it is absent."""
    values: list[object] = [Missing.ABSENT]
    match node:
        case ast.Dict(keys=keys, values=entries):
            pairs = zip(keys, entries, strict=True)
            values += [_plain(value) for key, value in pairs if isinstance(key, ast.Constant) and key.value == name]
        case ast.Call(func=ast.Name(id="dict"), keywords=keywords):
            values += [_plain(one.value) for one in keywords if one.arg == name]
    return values[-1]


def _plain(node: ast.expr) -> object:
    if isinstance(node, ast.Constant) and isinstance(node.value, (str, int)):
        return str(node.value)
    return Undecided("…", _COMPUTED)


# --- the process ----------------------------------------------------------------------------------------


def _writes(tree: ast.Module, name: str) -> Iterator[_Write]:
    """Yield the places of a file that set the variable of its process, in the order of the text."""
    for statement in walk(tree):
        match statement:
            case ast.Assign(targets=[ast.Subscript(value=owner, slice=ast.Constant(value=str() as key) as slot)]):
                if key == name and dotted(owner) in _ENVIRON:
                    yield _Write(_plain(statement.value), slot, statement)
            case ast.Expr(value=ast.Call() as call):
                yield from _writes_of_call(call, name, statement)


def _writes_of_call(call: ast.Call, name: str, statement: ast.AST) -> Iterator[_Write]:
    function = dotted(call.func)
    match call.args:
        case [ast.Constant(value=str() as key) as slot, value] if key == name and function in _SETTERS:
            yield _Write(_plain(value), slot, statement, function.endswith("setdefault"))
        case [ast.Dict(keys=keys, values=values)] if function in _UPDATES:
            for entry, value in zip(keys, values, strict=True):
                if isinstance(entry, ast.Constant) and entry.value == name:
                    yield _Write(_plain(value), entry, statement)
    for keyword in call.keywords if function in _UPDATES else ():
        if keyword.arg == name:
            yield _Write(_plain(keyword.value), keyword, statement)


def _is_named_elsewhere(tree: ast.Module, name: str, written: Sequence[ast.AST]) -> bool:
    """Whether the name is at a place that is not read, and that may set or delete the variable."""
    known = {id(node) for node in written}
    for node in walk(tree):
        match node:
            case ast.Call(args=[ast.Constant() as key, *_]) if dotted(node.func) in _READERS:
                known.add(id(key))
            case ast.Compare(left=ast.Constant() as key):
                known.add(id(key))
            case ast.Subscript(slice=ast.Constant() as key, ctx=ast.Load()):
                known.add(id(key))
    return any(_names(node, name) for node in walk(tree) if id(node) not in known)


def _names(node: ast.AST, name: str) -> bool:
    """Whether a node is a text that may name the variable to other code."""
    match node:
        case ast.Constant(value=str() as text):
            return text == name or f"{name}=" in text
        case ast.keyword(arg=argument):
            return argument == name
    return False


def _of_process(writes: Sequence[_Write], around: Sequence[ast.AST], source: PythonSource) -> object:
    """Return what the last statement gives the process that surely runs before a place."""
    suites = {id(statement) for node in around for statement in _statements_before(node, around)}
    value: object = Missing.ABSENT
    for write in sorted(writes, key=lambda one: source.span(one.statement).start):
        if id(write.statement) not in suites:
            return Missing.UNKNOWN
        if value is Missing.ABSENT or not write.is_default:
            value = write.value
    return value


def _statements_before(node: ast.AST, around: Sequence[ast.AST]) -> Iterator[ast.stmt]:
    """Yield the statements that run before the one of a list that is around the place."""
    for suite in bodies_of(node):
        at = next((at for at, one in enumerate(suite) if one in around), 0)
        yield from suite[:at]
