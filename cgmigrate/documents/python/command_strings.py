"""Strings that are command lines: those that code gives to a shell, and those that it divides into arguments.

A string counts where it is written, or as the value of a variable that code sets once and uses once, apart from
printing it. Other strings are text, and stay.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.possible_release_checks import LEAVES
from cgmigrate.documents.python.source import dotted
from cgmigrate.documents.python.text_for_people import is_output

_SHELLS = frozenset(
    (
        *("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput"),
        "asyncio.create_subprocess_shell",
    )
)
_STARTERS = frozenset(f"subprocess.{name}" for name in ("run", "call", "check_call", "check_output", "Popen"))
"""Functions that give a text to a shell if ``shell`` is true."""
_SHELL = re.compile(r"(?:\S*/)?(?:ba|da|a|k)?sh")
_SCRIPT_OPTION = re.compile(r"-[a-z]*c")
_BY_NAME = frozenset(("locals", "globals", "vars", "exec", "eval"))
_CONDITIONS = (ast.If, ast.IfExp, ast.BoolOp, ast.While, ast.Try, ast.Match)
_SCOPES = (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


Conditions = tuple[int, ...]
"""What decides in a scope whether a place is reached: statements and expressions by their ids, outermost first."""


class Division(Enum):
    """How a text becomes a command line."""

    SHELL = "a shell runs it"
    QUOTES = "`shlex.split` divides it"
    BLANKS = "`.split()` divides it"


@dataclass(frozen=True, eq=False, slots=True)
class CommandString:
    """A string that is a command line.

    ``is_complete`` says that a program starts with it, and with no further words. ``exported`` is the name of the
    module that has it, which other files can import, empty if there is none.
    """

    node: ast.Constant
    division: Division
    is_complete: bool
    exported: str = ""


def command_strings(tree: ast.Module, names: Names) -> list[CommandString]:
    """Return the strings of a file that are command lines, in the order of the text."""
    reader = _Reader(tree, names)
    by_node = {id(one.node): one for one in reader.strings()}
    return sorted(by_node.values(), key=lambda one: (one.node.lineno, one.node.col_offset))


@dataclass(frozen=True, slots=True)
class _Variable:
    """What a scope does with a name: its assignments of strings, and how often it is bound and read at all."""

    values: list[_Value]
    bound: int
    read: int


@dataclass(frozen=True, slots=True)
class _Value:
    """A string that is assigned to a variable, with the conditions around the assignment."""

    node: ast.Constant
    conditions: Conditions


@dataclass(frozen=True, slots=True)
class _Around:
    """What is around a place: a scope, conditions, and the function that gets the value of the place at once."""

    scope: ast.AST
    conditions: Conditions
    caller: str


def _conditions(node: ast.AST, around: Conditions) -> Conditions:
    """Return the conditions around what is in a node."""
    return (*around, id(node)) if isinstance(node, _CONDITIONS) else around


def _may_leave(scope: ast.AST, value: ast.expr, use: ast.expr) -> bool:
    """Return whether code may leave a scope between the assignment of a string and its use."""
    between = range(value.end_lineno or value.lineno, use.lineno)
    return any(isinstance(node, LEAVES) and node.lineno in between for node in walk(scope))


class _Reader:
    def __init__(self, tree: ast.Module, names: Names) -> None:
        self._tree, self._names = tree, names
        self._variables: dict[int, dict[str, _Variable]] = {}
        self._bound = set(_bound_in(tree))

    def strings(self) -> Iterator[CommandString]:
        stack: list[tuple[ast.AST, _Around]] = [(self._tree, _Around(self._tree, (), ""))]
        while stack:
            node, around = stack.pop()
            if isinstance(node, ast.Call):
                yield from self._in_call(node, around)
            name = self._full(node.func) if isinstance(node, ast.Call) else ""
            is_scope = isinstance(node, _SCOPES)
            inner = (
                _Around(node, (), "")
                if is_scope
                else replace(around, caller=name, conditions=_conditions(node, around.conditions))
            )
            stack += [(child, inner) for child in ast.iter_child_nodes(node)]

    def _full(self, func: ast.expr) -> str:
        """Return the full name of an imported function, empty for others."""
        name = dotted(func)
        first = name.partition(".")[0]
        is_imported = first in self._names.full and first not in self._names.shadowed
        return self._names.resolve(name) if is_imported and self._bound.isdisjoint((first, name, "*")) else ""

    def _in_call(self, call: ast.Call, around: _Around) -> Iterator[CommandString]:
        """Yield the strings of one call."""
        name = self._full(call.func)
        starts = around.caller in _STARTERS
        if name in _SHELLS and len(call.args) == 1:
            yield from self._strings(call.args[0], around, Division.SHELL, is_complete=True)
        elif name in _STARTERS:
            yield from self._started(call, around)
        elif name == "shlex.split" and len(call.args) == 1 and not call.keywords:
            yield from self._strings(call.args[0], around, Division.QUOTES, is_complete=starts)
        elif isinstance(call.func, ast.Attribute) and call.func.attr == "split" and not (call.args or call.keywords):
            yield from self._strings(call.func.value, around, Division.BLANKS, is_complete=starts)

    def _started(self, call: ast.Call, around: _Around) -> Iterator[CommandString]:
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        first, shell = call.args[0] if call.args else keywords.get("args"), keywords.get("shell")
        if first is None or "executable" in keywords or None in keywords:
            return
        if isinstance(shell, ast.Constant) and shell.value is True:
            yield from self._strings(first, around, Division.SHELL, is_complete=True)
        elif shell is None and isinstance(first, (ast.List, ast.Tuple)) and (script := _script_in(first.elts)):
            yield CommandString(script, Division.SHELL, is_complete=True)

    def _strings(
        self, node: ast.expr, around: _Around, division: Division, *, is_complete: bool
    ) -> Iterator[CommandString]:
        """Yield the string that an expression is: itself, or the only value of a variable that is used once."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield CommandString(node, division, is_complete)
        elif isinstance(node, ast.Name):
            scope = around.scope
            local = self._variables_of(scope).get(node.id)
            # A name of the module counts where the whole file binds and reads it once.
            variable = local or self._variables_of(self._tree).get(node.id)
            if variable is None or not len(variable.values) == variable.bound == variable.read == 1:
                return
            value = variable.values[0]
            # A condition between the two may be about a release, and only one of them is looked at for that.
            is_same = value.conditions == around.conditions and not _may_leave(scope, value.node, node)
            if is_same:
                is_own = local and not isinstance(scope, (ast.Module, ast.ClassDef))
                exported = "" if is_own else node.id
                yield CommandString(value.node, division, is_complete, exported)

    def _variables_of(self, scope: ast.AST) -> dict[str, _Variable]:
        if id(scope) not in self._variables:
            self._variables[id(scope)] = _variables_in(scope)
        return self._variables[id(scope)]


def _script_in(words: Sequence[ast.expr]) -> ast.Constant | None:
    """Return the script among the words of a shell (``bash -c``), None if there is none."""
    texts = [word.value if isinstance(word, ast.Constant) else None for word in words]
    if not texts or not isinstance(texts[0], str) or not _SHELL.fullmatch(texts[0]):
        return None
    # Further words would be parameters of the script, and words before it the name of a file.
    *options, last = texts[1:-1] or [None]
    is_script = isinstance(last, str) and _SCRIPT_OPTION.fullmatch(last)
    if not is_script or not all(isinstance(one, str) and one.startswith("-") for one in options):
        return None
    script = words[-1]
    return script if isinstance(script, ast.Constant) and isinstance(script.value, str) else None


def _variables_in(scope: ast.AST) -> dict[str, _Variable]:
    """Return the variables to which a scope assigns strings; uses in the functions inside it count as well."""
    bound: defaultdict[str, int] = defaultdict(int)
    read: defaultdict[str, int] = defaultdict(int)
    nodes = list(walk(scope))
    printed = {id(name) for node in nodes if isinstance(node, ast.Call) for name in _printed(node)}
    for node in nodes:
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                read[name] += id(node) not in printed
            case ast.Name(id=name):
                bound[name] += 1
        for name in _bound_otherwise(node):
            bound[name] += 2
    if not _BY_NAME.isdisjoint(read):
        # Code may read each variable by its name.
        return {}
    values: defaultdict[str, list[_Value]] = defaultdict(list)
    for name, value in _assigned_in(scope):
        values[name].append(value)
    return {name: _Variable(strings, bound[name], read[name]) for name, strings in values.items()}


def _assigned_in(scope: ast.AST) -> Iterator[tuple[str, _Value]]:
    """Yield the names to which a scope itself assigns a string, each with the string."""
    stack = [(child, Conditions()) for child in ast.iter_child_nodes(scope)]
    while stack:
        node, around = stack.pop()
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=str()) as value):
                yield name, _Value(value, around)
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=str()) as value):
                yield name, _Value(value, around)
        if not isinstance(node, _SCOPES):
            inner = _conditions(node, around)
            stack += [(child, inner) for child in ast.iter_child_nodes(node)]


def _printed(call: ast.Call) -> Iterator[ast.expr]:
    """Yield the names whose values a call prints as they are, itself or in an f-string."""
    is_shown = is_output(call) and not any(keyword.arg in ("file", None) for keyword in call.keywords)
    for value in call.args if is_shown else ():
        if isinstance(value, ast.JoinedStr):
            yield from (part.value for part in value.values if isinstance(part, ast.FormattedValue))
        else:
            yield value


def _bound_in(tree: ast.Module) -> Iterator[str]:
    """Yield the names and attributes that a file binds other than by imports; a star if it imports any names."""
    for node in walk(tree):
        match node:
            case ast.alias(name="*"):
                yield "*"
            case ast.alias():
                pass
            case ast.Name(ctx=ast.Store() | ast.Del()) | ast.Attribute(ctx=ast.Store() | ast.Del()):
                yield dotted(node)
            case _:
                yield from _bound_otherwise(node)


def _bound_otherwise(node: ast.AST) -> list[str]:
    """Return the names that a node binds, or makes those of other scopes; such a name is not followed."""
    match node:
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return names
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            return [name]
        case ast.ClassDef(name=name) | ast.ExceptHandler(name=str() as name):
            return [name]
        case ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
            return [name]
        case ast.alias():
            return [(node.asname or node.name).partition(".")[0]]
    return []
