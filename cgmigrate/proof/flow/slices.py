"""The slice of a project's code: the statements that touch a setting, or that such a statement needs.

Words decide it, line by line, so that what is dropped is never looked at: the names of settings; the functions that
have such statements, and those that call them; the attributes that lead to an object with settings (`cfg.model`), as
far as code sets these.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from cgmigrate.proof.flow.modules import Module
from cgmigrate.proof.flow.world import SETTINGS, TRACKERS

_WORD = re.compile(r"([A-Za-z_]\w*)[ \t]*(==|[-+*/|&]?=|\.)?")
_COLLECTING = frozenset(
    ("append", "extend", "update", "add", "insert", "pop", "remove", "clear", "setdefault", "sort", "discard")
)
_SPEAKING = frozenset(("debug", "info", "warning", "warn", "error", "exception", "log", "print", "warn_rank_0"))
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


@dataclass(slots=True)
class _Index:
    """Where the words of a text are: the lines with each, those where it is set, and those where it is no path."""

    every: dict[str, list[int]] = field(default_factory=dict)
    stored: dict[str, list[int]] = field(default_factory=dict)
    called: dict[str, list[int]] = field(default_factory=dict)

    def read(self, text: str) -> None:
        """Read the words of a text."""
        for number, line in enumerate(text.split("\n"), 1):
            for word, after in _WORD.findall(line):
                self.every.setdefault(word, []).append(number)
                if after == "=" or (after and after[0] in "-+*/|&"):
                    self.stored.setdefault(word, []).append(number)
                elif after != ".":
                    self.called.setdefault(word, []).append(number)


@dataclass(slots=True)
class Kept:
    """The statements of a function that are evaluated, and the conditions whose outcome other code can see."""

    statements: set[ast.stmt] = field(default_factory=set)
    observed: set[ast.stmt] = field(default_factory=set)
    needed: set[str] = field(default_factory=set)
    """The variables that they use."""


class Slice:
    """The words that matter. They grow with the modules that are added."""

    def __init__(self, base: Slice | None = None) -> None:
        self.settings = frozenset((*SETTINGS, *TRACKERS))
        self.functions: set[str] = set(base.functions) if base else set()
        self.paths: set[str] = set(base.paths) if base else set()
        self.version = 0
        self._modules: dict[Module, None] = {}
        self._indices: dict[Module, _Index] = base._indices if base else {}
        self._lines: dict[Module, tuple[int, list[int]]] = {}
        self._kept: dict[ast.AST, tuple[int, Kept]] = {}

    def add(self, modules: Iterable[Module]) -> None:
        """Add modules, and the words that follow from them."""
        new = [one for one in modules if one not in self._modules]
        self._modules |= dict.fromkeys(new)
        before = -1
        while new and before != self.version:
            before = self.version
            for module in self._modules:
                self._grow(module)

    def _grow(self, module: Module) -> None:
        for name, node in functions_of(module.tree.body):
            if self.has_words(node, module):
                self._learn(name)
                self.kept(node, module)
        for statement in module.tree.body:
            if isinstance(statement, ast.ClassDef) and self.has_words(statement, module):
                self._learn(statement.name)

    def _learn(self, name: str) -> None:
        owner, _, own = name.rpartition(".")
        word = owner if own.startswith("__") else own
        if word and word not in self.functions:
            self.functions.add(word)
            self.version += 1

    def has_words(self, node: ast.stmt, module: Module) -> bool:
        """Return whether a statement has a word that matters; of a function, its body."""
        first = node.body[0].lineno if isinstance(node, _DEFINITIONS) else node.lineno
        lines = self._lines_of(module)
        at = bisect_left(lines, first)
        return at < len(lines) and lines[at] <= (node.end_lineno or node.lineno)

    def _lines_of(self, module: Module) -> list[int]:
        version, lines = self._lines.get(module, (-1, []))
        if version == self.version:
            return lines
        if module not in self._indices:
            self._indices[module] = _Index()
            self._indices[module].read(module.text)
        index = self._indices[module]
        found: set[int] = set()
        for words, table in (
            (self.settings, index.every),
            (self.paths, index.stored),
            (self.functions, index.called),
        ):
            for word in words & table.keys():
                found.update(table[word])
        self._lines[module] = self.version, sorted(found)
        return self._lines[module][1]

    def kept(self, node: ast.AST, module: Module) -> Kept:
        """Return what is evaluated of a function, or of the top of a module."""
        version, kept = self._kept.get(node, (-1, None))
        if kept is None or version != self.version:
            version = self.version
            kept = _Keeping(self, module).keep(node.body)  # type: ignore[attr-defined]
            self._kept[node] = version, kept
        return kept

    def lead(self, attributes: Iterable[str]) -> None:
        """Note attributes that lead to an object with settings."""
        new = set(attributes) - self.paths - self.settings
        if new:
            self.paths |= new
            self.version += 1


@dataclass(slots=True)
class _Keeping:
    """Finds the statements of one function that are kept."""

    slice: Slice
    module: Module
    kept: Kept = field(default_factory=Kept)
    needed: set[str] = field(default_factory=set)
    _paths: set[str] = field(default_factory=set)

    def keep(self, body: list[ast.stmt]) -> Kept:
        before = -1
        while before != (before := len(self.kept.statements) + len(self.needed)):
            for statement in body:
                self._visit(statement)
        for statement in body:
            self._observe(statement)
        self.slice.lead(self._paths)
        self.kept.needed = self.needed
        return self.kept

    def _visit(self, statement: ast.stmt) -> bool:
        """Keep a statement, or what is kept inside of it; return whether it is kept."""
        inner = [self._visit(one) for one in bodies_of(statement)] if not isinstance(statement, _DEFINITIONS) else []
        if statement in self.kept.statements:
            return True
        if any(inner) or self._is_needed(statement):
            self.kept.statements.add(statement)
            self._need(statement)
            return True
        return False

    def _is_needed(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (*_JUMPS, ast.Global, ast.Nonlocal)):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return False
        if isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        names = bound_by(statement)
        if any(name in self.needed for name in names) or self._collects(statement):
            return True
        return not bodies_of(statement) and self.slice.has_words(statement, self.module) or self._has_header(statement)

    def _has_header(self, statement: ast.stmt) -> bool:
        """Return whether the head of a compound statement has a word that matters."""
        if isinstance(statement, _DEFINITIONS):
            return self.slice.has_words(statement, self.module)
        return any(
            self.slice.has_words(one, self.module)  # type: ignore[arg-type]
            for one in heads_of(statement)
        )

    def _collects(self, statement: ast.stmt) -> bool:
        """Return whether a statement changes a collection that is needed: `names.append("attn")`, `table["a"] = 1`."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name))) if name in _COLLECTING:
                return self._leads(owner)
            case ast.Assign(targets=[ast.Subscript(value=owner)]) | ast.AugAssign(target=ast.Subscript(value=owner)):
                return self._leads(owner)
            case ast.Delete(targets=[ast.Subscript(value=owner), *_]):
                return self._leads(owner)
        return False

    def _leads(self, owner: ast.expr) -> bool:
        while isinstance(owner, ast.Subscript):
            owner = owner.value
        match owner:
            case ast.Name(id=name):
                return name in self.needed
            case ast.Attribute(attr=name):
                return name in self.slice.paths
        return False

    def _need(self, statement: ast.stmt) -> None:
        """Note what a kept statement needs: variables, and the attributes that lead to what it uses."""
        if isinstance(statement, _DEFINITIONS):
            self.needed.update(node.id for node in ast.walk(statement) if isinstance(node, ast.Name))
            return
        for root in heads_of(statement) if bodies_of(statement) else [statement]:
            for node in ast.walk(root):
                match node:
                    case ast.Name(id=name):
                        self.needed.add(name)
                    case ast.Attribute(attr=name, ctx=ast.Load()):
                        self._paths.add(name)
                    case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str() as name), *_]):
                        self._paths.add(name)

    def _observe(self, statement: ast.stmt) -> None:
        """Note the conditions on which statements depend that are not evaluated."""
        if isinstance(statement, _DEFINITIONS) or statement not in self.kept.statements:
            return
        inner = bodies_of(statement)
        if isinstance(statement, (ast.If, ast.While)) and any(
            one not in self.kept.statements and has_effect(one) for one in inner
        ):
            self.kept.observed.add(statement)
        for one in inner:
            self._observe(one)


def has_effect(statement: ast.stmt) -> bool:
    """Return whether a statement does more than show a text to people."""
    match statement:
        case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Import() | ast.ImportFrom():
            return False
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name not in _SPEAKING
    return True


def bodies_of(statement: ast.stmt) -> list[ast.stmt]:
    """Return the statements directly below a compound statement."""
    result: list[ast.stmt] = []
    for name in ("body", "orelse", "finalbody"):
        part = getattr(statement, name, None)
        if isinstance(part, list):
            result += part
    for handler in getattr(statement, "handlers", ()):
        result += handler.body
    for case in getattr(statement, "cases", ()):
        result += case.body
    return result


def heads_of(statement: ast.stmt) -> list[ast.expr]:
    """Return the expressions of a compound statement itself."""
    match statement:
        case ast.If(test=test) | ast.While(test=test):
            return [test]
        case ast.For(target=target, iter=source) | ast.AsyncFor(target=target, iter=source):
            return [target, source]
        case ast.With(items=items) | ast.AsyncWith(items=items):
            return [part for one in items for part in (one.context_expr, one.optional_vars) if part is not None]
        case ast.Match(subject=subject):
            return [subject]
    return []


def bound_by(statement: ast.stmt) -> Iterator[str]:
    """Yield the variables that a simple statement, a loop or a definition binds."""
    match statement:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            yield from _names_in(targets)
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target) | ast.For(target=target):
            yield from _names_in([target])
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (one.asname or one.name.partition(".")[0] for one in names)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            yield from _names_in([one.optional_vars for one in items if one.optional_vars is not None])


def _names_in(targets: Iterable[ast.expr]) -> Iterator[str]:
    for target in targets:
        if isinstance(target, ast.Name):
            yield target.id
        elif isinstance(target, (ast.Tuple, ast.List)):
            yield from _names_in(target.elts)
        elif isinstance(target, ast.Starred):
            yield from _names_in([target.value])


def functions_of(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, AnyFunction]]:
    """Yield the functions and methods among some statements, and in those; inner functions are part of theirs."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            yield from functions_of(statement.body, f"{statement.name}.")
        elif isinstance(statement, (ast.If, ast.Try)):
            yield from functions_of(bodies_of(statement), prefix)
