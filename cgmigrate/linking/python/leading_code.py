"""The code of some files that leads to settings, by the names in it.

A function leads to settings if a call of it may set one of an object that its caller has, or if its result comes from
one. A function that only reads settings, for itself, does not: it is evaluated, and its callers need not be.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from cgmigrate.documents.python.nodes import has_parameters, walk
from cgmigrate.linking.python.layers import is_layer
from cgmigrate.proof.flow.modules import Module
from cgmigrate.linking.python.pieces import AnyFunction, functions_of
from cgmigrate.linking.python.references import Code, References
from cgmigrate.linking.python.relevance import Relevance, holders_in
from cgmigrate.proof.flow.world import SETTINGS

_MAKING = frozenset(("__init__", "__post_init__"))
OF_COLLECTIONS = frozenset(
    ("keys", "values", "items", "index", "count", "split", "join", "strip", "startswith", "endswith", "lower", "upper")
) | frozenset(("append", "extend", "sort", "format", "encode", "decode"))
"""Methods of collections and texts: one of the project with such a name sets no setting."""


def relevance_of(references: References, paths: Iterable[str], setters: Collection[FunctionFacts] = ()) -> Relevance:
    """Return the relevance of code for the settings in some files: the functions that lead to them, by their names.

    ``setters`` are functions of any file that may set a setting by a name that they compute.
    """
    functions = list(setters)
    holders: set[str] = set()
    for path in paths:
        if (module := references.modules.read(path)) is not None:
            holders |= _holders(module)
            functions += (
                one for one in facts_of(module) if not (one.inside and is_layer(one.inside, module, references.modules))
            )
    readers = closed(functions, lambda one, known: one.returns_from(known))
    asking = closed_by_words(functions, lambda one: not one.words.isdisjoint(SETTINGS))
    writers = _writers(functions, {one.node for one in setters}, references)
    words = readers | writers
    names = frozenset(one for one in words if not one.startswith("."))
    return Relevance(
        names | SETTINGS,
        frozenset(holders),
        readers=frozenset(one.removeprefix(".") for one in readers),
        methods=frozenset(one.removeprefix(".") for one in words - names) - OF_COLLECTIONS,
        asking=frozenset(one for one in asking if one.removeprefix(".") not in OF_COLLECTIONS),
    )


def _writers(
    functions: Iterable[FunctionFacts], setters: Collection[AnyFunction], references: References
) -> frozenset[str]:
    """Return the names of the functions that may set a setting of an object that they get or return."""
    possible = [one for one in functions if one.may_leave and one.name.removeprefix(".") not in _MAKING]
    users: dict[object, list[FunctionFacts]] = {}
    making = set[AnyFunction]()
    for one in possible:
        for used in used_by(one, references):
            users.setdefault(used, []).append(one)
            if (isinstance(used, ast.ClassDef) and _has_settings(used)) or is_table(used):
                making.add(one.node)
    waiting = [one for one in possible if one.is_writer or one.node in setters or one.node in making]
    known = {one.node for one in waiting}
    names = set[str]()
    while waiting:
        one = waiting.pop()
        names.add(one.name)
        new = [user for used in one.spelled for user in users.get(used, ()) if user.node not in known]
        known |= {user.node for user in new}
        waiting += new
    return frozenset(names)


def used_by(function: FunctionFacts, references: References) -> set[object]:
    """Return the code that a function uses, and the names of methods, and of functions that may be any."""
    module = references.modules.read(function.path)
    return code_used_by([(function.node, module)], references) if module else set()


def code_used_by(code: Iterable[Code], references: References) -> set[object]:
    """Return what some code uses; see ``used_by``."""
    used = set[object]()
    waiting = list(code)
    while waiting:
        uses = references.of(*waiting.pop())
        named = (name.removeprefix("=") for name in uses.names if name[0] in ".@=" or uses.computes)
        used.update(name for name in named if name.lstrip(".@") not in OF_COLLECTIONS or name[0] not in ".@")
        for node, inner in uses.code:
            if isinstance(node, ast.expr) and node not in used:
                # What a name of a module is bound to is used as well.
                waiting.append((node, inner))
            if isinstance(node, ast.ClassDef) and node not in used:
                waiting += [(base, inner) for base in node.bases]
            used.add(node)
    return used


@lru_cache(maxsize=16384)
def is_table(used: object) -> bool:
    """Return whether code is a dict with settings, which may become keyword arguments."""
    match used:
        case ast.Dict(keys=keys):
            return any(isinstance(one, ast.Constant) and one.value in SETTINGS for one in keys)
        case ast.Call(func=ast.Name(id="dict"), keywords=entries):
            return any(one.arg in SETTINGS for one in entries)
    return False


@lru_cache(maxsize=16384)
def _has_settings(node: ast.ClassDef) -> bool:
    """Return whether objects of a class that derives from others have a setting from the start: a field of it.

    One with a default that captures nothing is as good as none.
    """
    fields = (one for one in node.body if isinstance(one, (ast.Assign, ast.AnnAssign)))
    return bool(node.bases) and any(
        isinstance(target, ast.Name) and target.id in SETTINGS and not _is_default(one.value)
        for one in fields
        for target in (one.targets if isinstance(one, ast.Assign) else [one.target])
    )


def _is_default(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value in (None, False, "none", "full"))


def closed(
    functions: Iterable[FunctionFacts], counts: Callable[[FunctionFacts, frozenset[str]], bool]
) -> frozenset[str]:
    """Return the names of the functions that count, as far as the names that count are known."""
    known, left = frozenset[str](), [one for one in functions if one.name.removeprefix(".") not in _MAKING]
    while new := [one for one in left if counts(one, known)]:
        known |= {one.name for one in new}
        left = [one for one in left if one.name not in known]
    return known


def closed_by_words(
    functions: Iterable[FunctionFacts],
    is_first: Callable[[FunctionFacts], bool],
    is_user: Callable[[FunctionFacts], bool] = lambda _one: True,
) -> frozenset[str]:
    """Return the names of some functions, and of those that use one of these, directly or through others.

    ``is_user`` says which functions count because of what they use.
    """
    possible = [one for one in functions if one.name.removeprefix(".") not in _MAKING]
    names = frozenset(one.name for one in possible)
    users: dict[str, list[FunctionFacts]] = {}
    for one in filter(is_user, possible):
        for used in one.words & names:
            users.setdefault(used, []).append(one)
    known, waiting = set[str](), list(filter(is_first, possible))
    while waiting:
        if (name := waiting.pop().name) not in known:
            known.add(name)
            waiting += users.get(name, ())
    return frozenset(known)


@dataclass(frozen=True, slots=True)
class _Value:
    """An expression whose value is bound to names, or returned if there are none."""

    targets: frozenset[str]
    names: frozenset[str]
    calls: frozenset[str]
    reads: bool


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """What the names in a function show. ``may_leave`` says that it gets or returns a value.

    The name of a method begins with a dot, as it does where it is called.
    """

    name: str
    path: str
    lines: tuple[int, int]
    inside: ast.ClassDef | None
    words: frozenset[str]
    is_writer: bool
    may_leave: bool
    values: tuple[_Value, ...]
    node: AnyFunction

    @property
    def is_property(self) -> bool:
        """Whether it is a property of a class."""
        return any("property" in ast.unparse(one) for one in self.node.decorator_list)

    @property
    def as_property(self) -> str:
        """The name of a property as code names it that reads it."""
        return self.name.replace(".", "@")

    @property
    def spelled(self) -> tuple[object, ...]:
        """The function, and the names of a method or property: what code uses that calls it."""
        return (self.node, self.name, *([self.as_property] if self.is_property else []))

    def returns_from(self, readers: Collection[str]) -> bool:
        """Return whether its result comes from a setting, itself or through a function that reads one."""
        if not any(one.reads or not one.calls.isdisjoint(readers) for one in self.values):
            return False
        tainted = set[str]()
        while True:
            known = len(tainted)
            for one in self.values:
                if one.reads or not one.calls.isdisjoint(readers) or not one.names.isdisjoint(tainted):
                    if not one.targets:
                        return True
                    tainted |= one.targets
            if known == len(tainted):
                return False


@lru_cache(maxsize=4096)
def facts_of(module: Module | None) -> tuple[FunctionFacts, ...]:
    """Return what the names in the functions of a module show."""
    if module is None:
        return ()
    return tuple(
        FunctionFacts(
            (f".{node.name}" if inside else node.name),
            module.path,
            (node.lineno, node.end_lineno or node.lineno),
            inside,
            frozenset(words_of(node)),
            _changes_objects(node),
            _takes_or_returns(node),
            tuple(_values(node)),
            node,
        )
        for _, node, inside in functions_of(module)
    )


def _takes_or_returns(node: AnyFunction) -> bool:
    return has_parameters(node.args) or returns_value(node)


@lru_cache(maxsize=65536)
def returns_value(node: AnyFunction) -> bool:
    """Return whether a function returns something."""
    return any(isinstance(part, (ast.Return, ast.Yield)) and part.value is not None for part in walk(node))


def _values(node: AnyFunction) -> Iterator[_Value]:
    for part in walk(node):
        match part:
            case ast.Return(value=ast.expr() as value) | ast.Yield(value=ast.expr() as value):
                yield _value([], value)
            case ast.Assign(targets=targets, value=value):
                yield _value(targets, value)
            case (
                ast.AnnAssign(target=target, value=ast.expr() as value)
                | ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
                | ast.For(target=target, iter=value)
                | ast.comprehension(target=target, iter=value)
            ):
                yield _value([target], value)
            case ast.If(test=test) if filled := frozenset(_filled_in([*part.body, *part.orelse])):
                # What a collection has depends on the condition: `problems.append(…)`.
                yield replace(_value([], test), targets=filled)


def _filled_in(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the names of the collections to which statements add members."""
    for part in (part for one in body for part in walk(one)):
        match part:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "add" | "insert")):
                yield name


def _value(targets: Iterable[ast.expr], value: ast.expr) -> _Value:
    bound = {part.id for target in targets for part in walk(target) if isinstance(part, ast.Name)}
    names, calls, reads = set[str](), set[str](), False
    for part in walk(value):
        match part:
            case ast.Name(id=name):
                names.add(name)
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
                calls |= {name, f".{name}"}
            case ast.Attribute(attr=name):
                reads = reads or name in SETTINGS
            case ast.Constant(value=str() as name):
                reads = reads or name in SETTINGS
    # A value that only an attribute gets is compared where it is set.
    return _Value(frozenset(bound or (["an attribute"] if targets else [])), frozenset(names), frozenset(calls), reads)


@lru_cache(maxsize=4096)
def _holders(module: Module) -> frozenset[str]:
    return frozenset(holders_in(module.tree, SETTINGS))


def _changes_objects(node: AnyFunction) -> bool:
    """Return whether code sets a setting, or an attribute that may come from one."""
    reads = sets = False
    for part in walk(node):
        match part:
            case ast.Attribute(attr=name, ctx=ast.Store()):
                sets = True
                reads = reads or name in SETTINGS
            case ast.Attribute(attr=name) | ast.Constant(value=str() as name) | ast.keyword(arg=str() as name):
                reads = reads or name in SETTINGS
                sets = sets or isinstance(part, ast.keyword)
    return reads and sets


def words_of(node: ast.AST | None) -> Iterator[str]:
    """Yield the names that code uses; those of methods that it calls with a dot before them."""
    for part in walk(node) if node else ():
        match part:
            case ast.Name(id=name) | ast.alias(name=name):
                yield name
            case ast.Call(func=ast.Attribute(attr=name)):
                yield f".{name}"
                yield name
            case ast.Attribute(attr=name):
                yield name
