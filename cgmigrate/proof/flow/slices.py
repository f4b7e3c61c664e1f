"""The slice of a project's code: the statements that touch a setting, or that such a statement needs.

Words decide it, line by line, so that what is dropped is never looked at: the names of settings; the functions that
have such statements, and those that call them; the attributes that lead to an object with settings (`cfg.model`), as
far as code sets these.
"""

from __future__ import annotations

import ast
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.documents.python import scopes
from cgmigrate.documents.python.nodes import walk
from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow.dynamic import DYNAMIC, dynamic_lines
from cgmigrate.proof.flow.modules import Module
from cgmigrate.proof.flow.world import SETTINGS, TRACKERS

_WORD = re.compile(r"([A-Za-z_]\w*)[ \t]*(==|[-+*/|&]?=|\.)?")
COLLECTING = frozenset(
    ("append", "extend", "update", "add", "insert", "pop", "remove", "clear", "setdefault", "sort", "discard")
)
_BY_NAME = frozenset(("getattr", "setattr", "hasattr", "deepcopy", "replace"))
AnyFunction = ast.FunctionDef | ast.AsyncFunctionDef
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_JUMPS = (ast.Return, ast.Raise, ast.Break, ast.Continue)


_Index = dict[str, list[int]]
"""Where the words of a text are, other than in docstrings: four times the line of each, and what it is there."""
_PATH, _STORED, _CALLED = 0, 1, 2
"""A word before a dot, one that is set, any other."""
_EVERY = (_PATH, _STORED, _CALLED)


def _index_of(module: Module) -> _Index:
    index: _Index = {DYNAMIC: [4 * line + kind for line in dynamic_lines(module) for kind in _EVERY]}
    prose, code = set[int](), set[int | None]()
    for one in _statements(module.tree.body):
        if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant):
            prose.update(range(one.lineno, (one.end_lineno or one.lineno) + 1))
        else:
            code |= {one.lineno, one.end_lineno}
    for number, line in enumerate(module.text.split("\n"), 1):
        for word, after in _WORD.findall(line) if number not in prose or number in code else ():
            is_stored = after == "=" or (after and after[0] in "-+*/|&")
            kind = _STORED if is_stored else _PATH if after == "." else _CALLED
            index.setdefault(sys.intern(word), []).append(4 * number + kind)
    return index


@dataclass(slots=True)
class Kept:
    """The statements of a function that are evaluated, and the conditions whose outcome other code can see."""

    statements: set[ast.stmt] = field(default_factory=set)
    observed: set[ast.stmt] = field(default_factory=set)
    reading: set[ast.stmt] = field(default_factory=set)
    """Those that use what is read of settings."""
    needed: set[str] = field(default_factory=set)
    """The variables that they use."""
    has_results: bool = False
    """Whether a `return` is not evaluated."""


class Slice:
    """The words that matter. They grow with the modules that are added."""

    def __init__(self, base: Slice | None = None) -> None:
        self.settings = frozenset((*SETTINGS, *TRACKERS, DYNAMIC))
        self.functions: set[str] = set(base.functions) if base else set()
        """The functions that set settings, or return what they read of them."""
        self.writers: set[str] = set(base.writers) if base else set()
        """Those of them that set settings, themselves or by others."""
        self.tables: set[str] = set(base.tables) if base else set()
        """The constants of modules with settings, or with functions that set them. Those of tests are too many."""
        self.made: set[str] = set(base.made) if base else set()
        """The variables at the top of modules with what calls with settings return: `eager = partial(apply, …)`."""
        self.paths: set[str] = set(base.paths) if base else set()
        """The attributes that lead to objects with settings."""
        self.defined: set[str] = set(base.defined) if base else set()
        """All functions at the top of the modules."""
        self.variables: set[str] = set(base.variables) if base else set()
        """The variables at the top of modules with settings, or with functions that set them."""
        self.classes: set[str] = set(base.classes) if base else set()
        """The classes with settings among their attributes."""
        self.version = 0
        self._modules: dict[Module, None] = {}
        self._indices: dict[Module, _Index] = base._indices if base else {}
        self._lines: dict[tuple[Module, str], tuple[int, list[int]]] = {}
        self._readers: tuple[int, set[str]] = (-1, set())
        self._worded: dict[tuple[ast.AST, Module], bool] = {}
        self._kept: dict[ast.AST, tuple[int, object, Kept]] = {}

    def add(self, modules: Iterable[Module]) -> None:
        """Add modules, and the words that follow from them."""
        new = [one for one in modules if one not in self._modules]
        self._modules |= dict.fromkeys(new)
        self.defined.update(
            name for one in new for name, bound in one.bindings.items() if isinstance(bound, ast.FunctionDef)
        )
        before = -1
        while new and before != (before := self._count()):
            # The lines of modules are found once for each pass.
            self.version += 1
            self._worded = {}
            for module in self._modules:
                self._grow(module)

    def _count(self) -> int:
        return sum(map(len, (self.functions, self.writers, self.paths, self.tables, self.classes)))

    def _grow(self, module: Module) -> None:
        for name, node in functions_in(module):
            # What others a method calls is not known by its name: many classes have such a method.
            writes = self._own_writes_in(module) if "." in name else self._writes_in(module)
            sets = _has_line(_body(node), writes)
            if sets or _has_line(_body(node), self._settings_in(module)):
                kept = self.kept(node, module)
                if sets or kept.reading or any(_gives(one) for one in kept.statements):
                    self._learn(name, sets)
        for statement in module.tree.body:
            if isinstance(statement, ast.ClassDef):
                self._grow_class(statement, module)
            if self._is_table(statement, module):
                for name in bound_by(statement):
                    self._learn(name, True)
                    self.variables.add(name)
                    if isinstance(getattr(statement, "value", None), (ast.Call, ast.Lambda)):
                        self.made.add(name)
                    if name.isupper() and not is_test(module.path):
                        self.tables.add(name)

    def _grow_class(self, node: ast.ClassDef, module: Module) -> None:
        if _has_line(_own_lines(node), self._settings_in(module)):
            self._learn(node.name, False)
            self.classes.add(node.name)
        elif not self.classes.isdisjoint(map(_last_name, node.bases)):
            self.classes.add(node.name)

    def _is_table(self, statement: ast.stmt, module: Module) -> bool:
        """Return whether a statement assigns names of settings, or functions that set them as values.

        A text with such names is none: the code that loads it is not followed.
        """
        if not isinstance(statement, (ast.Assign, ast.AnnAssign)) or isinstance(statement.value, ast.Constant):
            return False
        names = _has_line(_body(statement), self._settings_in(module))
        return names or (self.has_words(statement, module) and passes_function(statement, self.functions))

    def _learn(self, name: str, sets: bool) -> None:
        owner, _, own = name.rpartition(".")
        word = owner if own.startswith("__") else own
        for words in (self.functions, self.writers) if sets else (self.functions,):
            if word:
                words.add(word)

    def lead(self, attributes: Iterable[str]) -> None:
        """Note attributes that lead to an object with settings."""
        self.paths |= set(attributes) - self.settings

    def is_entry(self, node: ast.stmt, module: Module) -> bool:
        """Return whether a statement, or the body of a function, uses settings itself, or calls what sets them."""
        return any(_has_line(_body(node), lines) for lines in (self._settings_in(module), self._writes_in(module)))

    def sets(self, node: ast.stmt, module: Module) -> bool:
        """Return whether a statement sets settings, or calls what sets them."""
        return _has_line(_body(node), self._writes_in(module))

    def writes(self, node: ast.stmt, module: Module) -> bool:
        """Return whether the body of a function sets settings itself."""
        return _has_line(_body(node), self._own_writes_in(module))

    def is_dynamic(self, node: ast.stmt, module: Module) -> bool:
        """Return whether a function sets attributes by names that it makes itself."""
        return _has_line(_body(node), self.lines_with(DYNAMIC, module))

    def has_words(self, node: ast.stmt | ast.expr, module: Module) -> bool:
        """Return whether a statement has a word that matters; of a function, its body."""
        key = node, module
        if key not in self._worded:
            self._worded[key] = _has_line(_body(node), self._lines_of(module))
        return self._worded[key]

    def follows(self, node: AnyFunction, module: Module) -> bool:
        """Return whether a function is followed: it has words, or had them before the edits."""
        return node.name in self.functions or self.has_words(node, module)

    def kept(self, node: ast.AST, module: Module) -> Kept:
        """Return what is evaluated of a function, or of the top of a module."""
        version, lines, kept = self._kept.get(node, (-1, None, None))
        if kept is None or version != self.version:
            span = _body(node) if isinstance(node, ast.stmt) else (0, module.text.count("\n") + 1)
            now = tuple(_lines_within(span, one) for one in (self._lines_of(module), self._readers_in(module)))
            sets = any(_has_line(span, one) for one in (self._writes_in(module), self._leads_in(module)))
            sets = sets or getattr(node, "name", "") in self.writers
            if kept is None or (*now, sets) != lines:
                kept = _Keeping(self, module, is_writer=sets).keep(node.body)  # type: ignore[attr-defined]
            self._kept[node] = self.version, (*now, sets), kept
        return kept

    def has_readers(self, node: ast.stmt | ast.expr, module: Module) -> bool:
        """Return whether code names a setting, or calls a function that returns what it reads of them."""
        return _has_line(_body(node), self._readers_in(module))

    def _readers_in(self, module: Module) -> list[int]:
        if self._readers[0] != self.version:
            self._readers = self.version, self.functions - self.writers
        return self._matching(module, "readers", [(SETTINGS, _EVERY), (self._readers[1], (_CALLED,))])

    def lines_with(self, word: str, module: Module) -> list[int]:
        """Return the lines of a module with a word."""
        return [one >> 2 for one in self._index(module).get(word, ())]

    def whole(self, node: ast.AST) -> Kept:
        """Return all statements of a function: one that computes with what is known."""
        statements = _every_statement(node)
        return Kept(statements, reading=statements)

    def inner(self, node: ast.AST, module: Module) -> Kept:
        """Return all statements of an inner function, which works with variables of another one."""
        kept = self.kept(node, module)
        return Kept(_every_statement(node), reading=kept.reading)

    # --- lines ------------------------------------------------------------------------------------

    def _settings_in(self, module: Module) -> list[int]:
        """Return the lines of a module with names of settings."""
        return self._matching(module, "settings", [(SETTINGS, _EVERY), (self.tables, _EVERY)])

    def _writes_in(self, module: Module) -> list[int]:
        """Return the lines of a module that set settings, or call functions that do."""
        words = [(self.settings, (_STORED,)), (self.tables, _EVERY), (self.writers, (_CALLED,))]
        return self._matching(module, "writes", words)

    def _own_writes_in(self, module: Module) -> list[int]:
        """Return the lines of a module that set settings."""
        return self._matching(module, "sets", [(self.settings, (_STORED,))])

    def _leads_in(self, module: Module) -> list[int]:
        """Return the lines of a module that set attributes which lead to objects with settings."""
        return self._matching(module, "leads", [(self.paths, (_STORED,))])

    def _lines_of(self, module: Module) -> list[int]:
        words = [(self.settings, _EVERY), (self.tables, _EVERY), (self.paths, (_STORED,)), (self.functions, (_CALLED,))]
        return self._matching(module, "words", words)

    def _index(self, module: Module) -> _Index:
        if module not in self._indices:
            self._indices[module] = _index_of(module)
        return self._indices[module]

    def _matching(self, module: Module, kind: str, every: Iterable[tuple[Set[str], Sequence[int]]]) -> list[int]:
        version, lines = self._lines.get((module, kind), (-1, []))
        if version != self.version:
            index = self._index(module)
            some = ((index[word], kinds) for words, kinds in every for word in words & index.keys())
            lines = sorted({one >> 2 for places, kinds in some for one in places if one & 3 in kinds})
            self._lines[module, kind] = self.version, lines
        return lines


@dataclass(slots=True)
class _Keeping:
    """Finds the statements of one function that are kept."""

    slice: Slice
    module: Module
    kept: Kept = field(default_factory=Kept)
    is_writer: bool = False
    """Whether the function sets settings: then it matters where it ends."""
    needed: set[str] = field(default_factory=set)
    tainted: set[str] = field(default_factory=set)
    """The variables that are computed from settings."""
    aliases: set[str] = field(default_factory=set)
    """The variables that have functions which set settings: `for change in (one, other):`."""
    _lines: set[int] = field(default_factory=set)
    """The lines with variables that are computed from settings."""
    _alias_lines: set[int] = field(default_factory=set)
    _passed: set[str] = field(default_factory=set)
    """These variables, and the functions that set settings."""
    _paths: set[str] = field(default_factory=set)
    _filling: set[str] = field(default_factory=set)
    """The inner functions that add to a collection."""

    def keep(self, body: list[ast.stmt]) -> Kept:
        before = -1
        self._passed = self.slice.functions | self.slice.tables
        while before != (before := self._count()):
            for statement in body:
                self._visit(statement, is_tainted=self.is_writer)
        is_part = any(one not in self.kept.statements and has_effect(one) for one in _statements(body))
        for statement in body:
            self._observe(statement, ends_others=is_part)
        self.slice.lead(self._paths)
        self.kept.needed = self.needed
        self.kept.has_results = any(
            isinstance(one, ast.Return) and one.value is not None and one not in self.kept.statements
            for one in _statements(body)
        )
        return self.kept

    def _count(self) -> int:
        return len(self.kept.statements) + len(self.needed) + len(self.tainted) + len(self.aliases)

    def _visit(self, statement: ast.stmt, *, is_tainted: bool) -> bool:
        """Keep a statement, or what is kept inside of it; return whether it is kept.

        ``is_tainted`` says that it depends on settings whether the statement is reached.
        """
        is_read = self._reads(statement)
        below = is_tainted or (is_read and isinstance(statement, (ast.If, ast.While, ast.For, ast.Match)))
        inner = [] if isinstance(statement, _DEFINITIONS) else bodies_of(statement)
        is_kept = sum(self._visit(one, is_tainted=below) for one in inner) > 0
        if isinstance(statement, _JUMPS):
            is_kept = is_tainted or is_read
        if is_kept or is_read or self._is_needed(statement):
            if statement not in self.kept.statements:
                self.kept.statements.add(statement)
                self._need(statement)
            return True
        return False

    def _reads(self, statement: ast.stmt) -> bool:
        """Return whether a statement has a word that matters, or what was computed from settings."""
        if isinstance(statement, _DEFINITIONS):
            if has_words := self.slice.has_words(statement, self.module):
                # Of an inner function, only its own function has the calls.
                self._name(statement, self.aliases, self._alias_lines)
            return has_words
        nodes = _own_parts(statement)
        is_read = is_tainted = any(
            self.slice.has_readers(one, self.module) or _is_on(one, self._lines) for one in nodes
        )
        if is_tainted:
            self.kept.reading.add(statement)
            self._name(statement, self.tainted, self._lines)
        is_read = is_read or any(self.slice.has_words(one, self.module) for one in nodes)
        is_read = is_read or any(_is_on(one, self._alias_lines) for one in nodes)
        if is_read and any(passes_function(one, self._passed) for one in nodes):
            self._name(statement, self.aliases, self._alias_lines)
            self._passed |= self.aliases
        return is_read

    def _name(self, statement: ast.stmt, names: set[str], lines: set[int]) -> None:
        """Add the variables that a statement binds, and the lines with them."""
        for name in bound_by(statement):
            if name not in names:
                names.add(name)
                lines.update(self.slice.lines_with(name, self.module))

    def _is_needed(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (ast.Global, ast.Nonlocal)) or self._fills(statement):
            return True
        if isinstance(statement, ast.Expr) and isinstance(statement.value, (ast.Yield, ast.YieldFrom, ast.Await)):
            return True
        return any(name in self.needed for name in bound_by(statement)) or self._collects(statement)

    def _fills(self, statement: ast.stmt) -> bool:
        """Return whether a statement defines or calls an inner function that adds to a collection which is needed."""
        if isinstance(statement, ast.ClassDef) or (bodies_of(statement) and not isinstance(statement, _DEFINITIONS)):
            return False
        nodes = walk(statement) if _has_line(_body(statement), self.slice.lines_with("lambda", self.module)) else ()
        has_inner = isinstance(statement, _DEFINITIONS) or any(isinstance(one, ast.Lambda) for one in nodes)
        for node in walk(statement) if has_inner or self._filling else ():
            match node:
                case ast.Call(func=ast.Attribute(value=owner, attr=name)) if has_inner and name in COLLECTING:
                    if self._leads(owner):
                        self._filling.update(bound_by(statement))
                        return True
                case ast.Call(func=ast.Name(id=name)) if name in self._filling:
                    return True
        return False

    def _collects(self, statement: ast.stmt) -> bool:
        """Return whether a statement changes a collection that is needed: `names.append("attn")`, `table["a"] = 1`."""
        match statement:
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=name))) if name in COLLECTING:
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
            self.needed.update(node.id for node in walk(statement) if isinstance(node, ast.Name))
            return
        for root in _own_parts(statement):
            for node in walk(root):
                match node:
                    case ast.Name(id=name):
                        self.needed.add(name)
                    case ast.Attribute(value=owner, attr=name) if name in self.slice.settings:
                        self._lead(owner)
                    case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments, keywords=words):
                        if name in self.slice.writers:
                            for one in (*arguments, *(word.value for word in words)):
                                self._lead(one)
                        elif name in _BY_NAME and _names_setting(arguments):
                            self._lead(arguments[0])

    def _lead(self, owner: ast.expr) -> None:
        while isinstance(owner, ast.Attribute):
            self._paths.add(owner.attr)
            owner = owner.value

    def _observe(self, statement: ast.stmt, *, ends_others: bool) -> None:
        """Note the conditions on which statements depend that are not evaluated.

        ``ends_others`` says that there are such statements, which a `return` may end.
        """
        if isinstance(statement, _DEFINITIONS) or statement not in self.kept.statements:
            return
        inner = bodies_of(statement)
        is_read = statement in self.kept.reading
        if isinstance(statement, (ast.If, ast.While)) and any(
            ((ends_others and isinstance(one, _JUMPS)) or (is_read and _calls(one)))
            if one in self.kept.statements
            else has_effect(one)
            for one in inner
        ):
            self.kept.observed.add(statement)
        for one in inner:
            self._observe(one, ends_others=ends_others)


def _last_name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")


def _is_on(node: ast.stmt | ast.expr, lines: set[int]) -> bool:
    return bool(lines) and not lines.isdisjoint(range(node.lineno, (node.end_lineno or node.lineno) + 1))


def _own_parts(statement: ast.stmt) -> Sequence[ast.stmt | ast.expr]:
    """Return a simple statement, or the expressions of a compound one."""
    return heads_of(statement) if bodies_of(statement) else [statement]


def _gives(statement: ast.stmt) -> bool:
    """Return whether a statement gives something to the code that calls its function: a value, or a refusal."""
    return isinstance(statement, (ast.Assert, ast.Raise)) or (
        isinstance(statement, ast.Return) and statement.value is not None
    )


def _names_setting(arguments: list[ast.expr]) -> bool:
    match arguments:
        case [_, ast.Constant(value=name), *_]:
            return name in SETTINGS or name in TRACKERS
    return True


def _body(node: ast.stmt | ast.expr) -> tuple[int, int]:
    """Return the lines of a statement; of a definition, those of its body."""
    first = node.body[0].lineno if isinstance(node, _DEFINITIONS) else node.lineno
    return first, node.end_lineno or node.lineno


def _has_line(span: tuple[int, int], lines: list[int]) -> bool:
    at = bisect_left(lines, span[0])
    return at < len(lines) and lines[at] <= span[1]


def _lines_within(span: tuple[int, int], lines: list[int]) -> tuple[int, ...]:
    return tuple(lines[bisect_left(lines, span[0]) : bisect_left(lines, span[1] + 1)])


def _own_lines(node: ast.ClassDef) -> tuple[int, int]:
    """Return the lines of a class up to its first method."""
    first = next((one.lineno for one in node.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))), None)
    return node.lineno, (first or (node.end_lineno or node.lineno) + 1) - 1


@lru_cache(maxsize=8192)
def _every_statement(node: ast.AST) -> set[ast.stmt]:
    return set(_statements(node.body))  # type: ignore[attr-defined]


def _statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    for one in body:
        yield one
        yield from _statements(bodies_of(one))


def _calls(statement: ast.stmt) -> bool:
    """Return whether a statement is a call, which may do more than what is evaluated of it."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name))):
            return name not in COLLECTING | _BY_NAME
    return False


def has_effect(statement: ast.stmt) -> bool:
    """Return whether a statement does something."""
    is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return not (is_text or isinstance(statement, (ast.Pass, ast.Import, ast.ImportFrom)))


@lru_cache(maxsize=65536)
def bodies_of(statement: ast.stmt) -> Sequence[ast.stmt]:
    """Return the statements directly below a compound statement."""
    return [one for body in scopes.bodies_of(statement) for one in body]


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


def passes_function(node: ast.AST, names: Set[str]) -> bool:
    """Return whether code has one of some functions as a value, not only calls of it."""
    called = {id(one.func) for one in walk(node) if isinstance(one, ast.Call)}
    return any(isinstance(one, ast.Name) and one.id in names and id(one) not in called for one in walk(node))


@lru_cache(maxsize=65536)
def bound_by(statement: ast.stmt) -> Sequence[str]:
    """Return the variables that a simple statement, a loop or a definition binds."""
    return tuple(_bound_by(statement))


def _bound_by(statement: ast.stmt) -> Iterator[str]:
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


@lru_cache(maxsize=8192)
def functions_in(module: Module) -> Sequence[tuple[str, AnyFunction]]:
    """Return the functions and methods of a module."""
    return list(functions_of(module.tree.body))


def functions_of(body: Iterable[ast.stmt], prefix: str = "") -> Iterator[tuple[str, AnyFunction]]:
    """Yield the functions and methods among some statements, and in those; inner functions are part of theirs."""
    for statement in body:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + statement.name, statement
        elif isinstance(statement, ast.ClassDef):
            yield from functions_of(statement.body, f"{statement.name}.")
        else:
            yield from functions_of(bodies_of(statement), prefix)
