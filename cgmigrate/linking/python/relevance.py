"""Which code may set or read a setting, or replace an object that has settings: only this code is followed."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.aliases import COLLECTION_CHANGES, Alias, bound_methods, changed_aliases, holding_aliases
from cgmigrate.linking.python.kept_objects import kept_in
from cgmigrate.proof.flow.modules import Module, is_test
from cgmigrate.linking.python.shared_collections import collections_in, passed_on_in
from cgmigrate.proof.flow.world import SETTINGS, TRACKERS

_COPIES = frozenset(("replace", "deepcopy"))
"""Names of code that copies an object."""
_BY_TEXT = frozenset(("exec", "eval", "globals", "locals", "attrgetter", "methodcaller", "asdict", "getmembers"))
"""Functions that use attributes whose names are in a text, or all attributes."""
_ACCESSES = frozenset(("__dict__", "__setattr__", "__getattribute__", "__delattr__"))
_HARMLESS = frozenset(("isinstance", "hasattr", "getattr", "len", "str", "int", "float", "bool", "type", "repr"))
"""Builtins that leave what they get as it is."""
_OF_MODELS = frozenset(("exec", "eval"))
"""Those that are other functions as methods: `model.eval()`."""
_READS_BY_TEXT = frozenset(("attrgetter", "asdict", "getmembers"))
"""Those that only read attributes."""
_LEAVES = (ast.Return, ast.Break, ast.Continue, ast.Yield, ast.YieldFrom, ast.Await, ast.Global, ast.Nonlocal)


@dataclass(frozen=True, slots=True)
class Facts:
    """What code uses: whether it may set or read a setting, and the names that it loads and binds.

    Names of attributes begin with a dot.
    ``reads`` says whether its value comes from a setting.
    """

    is_relevant: bool
    reads: bool
    loads: frozenset[str]
    stores: frozenset[str]
    passed: frozenset[str]
    """The names of which calls get what they name, or a part of it, and those of which an item is set."""
    changes: frozenset[str]
    """The names of collections that change: an item is set, or a method changes them."""


@dataclass(frozen=True, slots=True)
class _Sliced:
    """What of a function is executed."""

    node: ast.AST
    kept: frozenset[int] | None
    """Its statements that are executed, by identity; None for all."""
    attributes: frozenset[str]
    """The attributes that these use."""
    leaked: frozenset[str] = frozenset()
    """The parameters that the other statements pass on."""
    dropped: frozenset[str] = frozenset()
    """The attributes that the other statements set."""
    keeping: frozenset[str] = frozenset()
    """Those in which they may keep an object."""


@dataclass(slots=True)
class Relevance:
    """Decides by names. ``words`` are the settings and the functions that may set or read them.

    ``holders`` are the attributes that lead to objects with settings (``model`` in ``cfg.model.cuda_graph_scope``).
    ``readers`` are the functions that lead to settings and set none: what they return comes from settings.
    """

    words: frozenset[str]
    holders: frozenset[str]
    readers: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()
    """The methods among these functions."""
    asking: frozenset[str] = frozenset()
    """The functions that name settings, or use others that do; those of methods begin with a dot. A test gives them
    objects that no other code has."""
    may_return_changed: Callable[[ast.AST, Module], bool] = lambda _node, _module: False
    """Whether a function that is not followed may return an object of code that changes."""
    method_may_return_changed: Callable[[str], bool] = lambda _name: False
    """Whether a method with a name may do so, where the class of its object is not known."""
    keeps_object: Callable[[str], bool] = lambda _name: False
    """Whether code that is not followed may keep an object that it has in an attribute with a name."""
    computing: dict[int, tuple[ast.AST, bool]] = field(default_factory=dict)
    """Which functions use attributes by names that they compute, as far as that was evaluated."""
    _leading: dict[int, tuple[ast.AST, bool]] = field(default_factory=dict)
    _known: dict[int, tuple[ast.AST, Facts]] = field(default_factory=dict)
    _kept: dict[tuple[int, frozenset[str]], _Sliced] = field(default_factory=dict)

    def is_relevant(self, node: ast.AST) -> bool:
        """Return whether code may set or read a setting, or replace an object that has settings."""
        return self.facts(node).is_relevant

    def uses_in(self, path: str) -> Callable[[ast.AST], bool]:
        """Return what says whether code in a file is evaluated: that of tests also if it asks code for settings."""
        return self._is_relevant_to_test if is_test(path) else self.is_relevant

    def _is_relevant_to_test(self, node: ast.AST) -> bool:
        facts = self.facts(node)
        return facts.is_relevant or not facts.loads.isdisjoint(self.asking)

    def facts(self, node: ast.AST) -> Facts:
        """Return what code uses."""
        known = self._known.get(id(node))
        if known is None:
            known = self._known[id(node)] = (node, self._facts(node))
        return known[1]

    def _facts(self, node: ast.AST) -> Facts:
        loads, stores, passed, changes = set[str](), set[str](), set[str](), set[str]()
        # A function may lead to settings by a table of the project: `RECIPES[name]()`.
        is_relevant = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in self.words
        reads = False
        bases, called = set[int](), set[int]()
        for part in _walk(node):
            kind = part.__class__
            if kind is ast.Attribute and _is_base(part.value):  # type: ignore[attr-defined]
                bases.add(id(part.value))  # type: ignore[attr-defined]
            if kind is ast.Name:
                (stores if isinstance(part.ctx, ast.Store) else loads).add(part.id)  # type: ignore[attr-defined]
            elif kind in _BINDING:
                stores.update(_bound_by(part))
            if kind is ast.Attribute:
                loads.add(f".{part.attr}")  # type: ignore[attr-defined]
            elif kind in (ast.Call, ast.Subscript):
                called.add(id(getattr(part, "func", None)))
                passed.update(_passed_to(part))
                changes.update(_changed_by(part))
            elif kind not in _NAMING:
                continue
            is_relevant = is_relevant or (self._names(part, is_called=id(part) in called) and id(part) not in bases)
            is_relevant = is_relevant or _names_setting(part) or self._replaces(part)
            reads = reads or self._reads(part)
        return Facts(is_relevant, reads, frozenset(loads), frozenset(stores), frozenset(passed), frozenset(changes))

    def _reads(self, node: ast.AST) -> bool:
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) | ast.Constant(value=str() as name) if name in SETTINGS:
                return True
            case ast.Name(id=name) | ast.Attribute(attr=name):
                return name in self.readers
        return False

    def _names(self, node: ast.AST, *, is_called: bool) -> bool:
        """Return whether a node names a setting or a function; what an attribute is read of is none."""
        if computed_name(node):
            return True
        match node:
            case ast.Attribute(attr=name, ctx=ast.Store() | ast.Del()):
                return name in self.words or name in self.holders
            case ast.Attribute(attr=name):
                return name in self.words or name in _COPIES or (is_called and name in self.methods)
            case ast.Name(id=name) | ast.Constant(value=str() as name):
                return name in self.words or name in _COPIES
            case ast.keyword(arg=name) | ast.alias(name=name) | ast.arg(arg=name):
                return name is None or name in self.words
        return isinstance(node, ast.MatchClass) and not self.words.isdisjoint(node.kwd_attrs)

    def _replaces(self, node: ast.AST) -> bool:
        """Return whether code replaces an object that has settings: `setattr(cfg, "model", other)`."""
        match node:
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant(value=str() as name), *_]):
                return name in self.holders
        return False

    def leads(self, node: ast.AST) -> bool:
        """Return whether code names a function that may set or read the settings of what it gets."""
        known = self._leading.get(id(node))
        if known is None:
            leads = any(map(self._leads, _walk(node)))
            known = self._leading[id(node)] = (node, leads)
        return known[1]

    def _leads(self, node: ast.AST) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.words
            case ast.Call(func=ast.Attribute(attr=name)):
                return name in self.methods
        return False

    def kept_in(self, node: ast.FunctionDef | ast.Lambda, needed: frozenset[str]) -> frozenset[int] | None:
        """Return which statements of a function are executed, by identity; None if all are.

        The others neither use a setting nor change what those do that use one, or the attributes that callers need.
        Edits leave them as they are.
        """
        return self._slice(node, needed).kept

    def needed_in(self, node: ast.FunctionDef | ast.Lambda, needed: frozenset[str]) -> frozenset[str]:
        """Return the attributes that a function uses in the statements that are executed, and those of its callers."""
        return needed | self._slice(node, needed).attributes

    def leaked_in(self, node: ast.FunctionDef | ast.Lambda, needed: frozenset[str]) -> frozenset[str]:
        """Return the parameters that a function passes on in statements that are not executed.

        What gets them may change the collections that they are.
        """
        return self._slice(node, needed).leaked

    def dropped_in(self, node: ast.FunctionDef | ast.Lambda, needed: frozenset[str]) -> frozenset[str]:
        """Return the attributes that a function sets in statements that are not executed: nobody knows their values."""
        return self._slice(node, needed).dropped

    def keeping_in(self, node: ast.FunctionDef | ast.Lambda, needed: frozenset[str]) -> frozenset[str]:
        """Return the attributes in which a function keeps objects in statements that are not executed."""
        return self._slice(node, needed).keeping

    def _slice(self, node: ast.FunctionDef | ast.Lambda, needed: frozenset[str]) -> _Sliced:
        if isinstance(node, ast.Lambda) or not node.body:
            return _Sliced(node, None, frozenset(one for one in self.facts(node).loads if one[0] == "."))
        first = needed & self.facts(node).stores
        if (id(node), first) not in self._kept:
            asking = self.asking if node.name.startswith("test") else frozenset[str]()
            one = _Slice(self, _names_of(node.args), {*first, *(f".{name}" for name in TRACKERS)}, asking=asking)
            kept = one.of(node.body)
            used = self.facts(node).loads if kept is None else one.needed
            attributes = frozenset(name for name in used if name[0] == ".")
            leaked = frozenset() if kept is None else _names_of(node.args) & _in_others(node.body, kept, passed_on_in)
            stores, keeping = frozenset[str](), frozenset[str]()
            if kept is not None:
                stores = _in_others(node.body, kept, lambda one: self.facts(one).stores)
                keeping = _in_others(node.body, kept, kept_in)
            dropped = frozenset(name[1:] for name in stores if name[0] == ".") - SETTINGS
            self._kept[id(node), first] = _Sliced(node, kept, attributes, leaked, dropped, keeping)
        return self._kept[id(node), first]


def _names_setting(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in SETTINGS


_NAMING = frozenset((ast.Name, ast.Attribute, ast.Constant, ast.keyword, ast.alias, ast.arg, ast.MatchClass, ast.Call))


_BINDING = frozenset((ast.Attribute, ast.Subscript, ast.Call, ast.alias, ast.ExceptHandler, ast.MatchAs, ast.MatchStar))


def _bound_by(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds, and the attributes that it sets, or of which it sets an item."""
    match node:
        case (
            ast.Attribute(attr=str() as name, ctx=ast.Store() | ast.Del())
            | ast.Subscript(value=ast.Attribute(attr=str() as name), ctx=ast.Store() | ast.Del())
            | ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[_, ast.Constant(value=str() as name), *_])
        ):
            yield f".{name}"
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case (
            ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name) | ast.MatchStar(name=str() as name)
        ):
            yield name


def _changed_by(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Subscript(value=value, ctx=ast.Store() | ast.Del()):
            yield from _collection(value)
        case ast.Call(func=ast.Attribute(value=value, attr=method)) if method in COLLECTION_CHANGES:
            yield from _collection(value)


def _collection(node: ast.expr) -> Iterator[str]:
    """Yield the name of a collection of which code changes an item, or an item of one: `boxes[0].append(1)`."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name):
        yield node.id


def _passed_to(node: ast.AST) -> Iterator[str]:
    """Yield the names in a call, without that of its function, and the name of which an item is set."""
    match node:
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Call():
            yield from _passed_to_call(node)


def _passed_to_call(node: ast.Call) -> Iterator[str]:
    if isinstance(node.func, ast.Name) and node.func.id in _HARMLESS:
        return
    for value in (*node.args, *(keyword.value for keyword in node.keywords), node.func):
        if not isinstance(value, ast.Name) or value is not node.func:
            yield from (part.id for part in _walk(value) if isinstance(part, ast.Name))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """Yield a node and all below it; twice as fast as that of the library."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        yield one
        for name in one._fields:
            value = getattr(one, name, None)
            if isinstance(value, ast.AST):
                waiting.append(value)
            elif isinstance(value, list):
                waiting += [part for part in value if isinstance(part, ast.AST)]


@dataclass(slots=True)
class _Slice:
    """The statements of a function that are executed.

    ``needed`` are the names that they use, ``tainted`` those whose values come from settings.
    """

    relevance: Relevance
    parameters: frozenset[str] = frozenset()
    """Callers see what changes in the collections that these name, and other names of them."""
    needed: set[str] = field(default_factory=set)
    tainted: set[str] = field(default_factory=set)
    asking: frozenset[str] = frozenset()
    """The functions that ask for settings, if what they do with an object of a caller counts."""
    decides_to_leave: bool = False
    """Whether a setting decides whether the statements behind another one are executed."""
    holding: set[str] = field(default_factory=set)
    """The names of objects of which kept statements set an attribute: what other objects keep of these counts."""
    inner: dict[str, frozenset[str]] = field(default_factory=dict)
    """The names that functions use which the function defines: a call of them may change what these name."""
    aliases: tuple[Alias, ...] = ()
    """The names by which it changes collections that others name."""
    shared: frozenset[str] = frozenset()
    """The names of collections that it may change by other names, in any statement."""
    _kept: set[int] = field(default_factory=set)

    def of(self, body: Sequence[ast.stmt]) -> frozenset[int] | None:
        """Return the statements that are kept, None if all are."""
        self.inner |= {
            name: frozenset(one for one in self.relevance.facts(node).loads if one[0] != ".")
            for statement in body
            for name, node in _functions_in(statement)
        }
        self.inner |= bound_methods(body)
        self.aliases = (*changed_aliases(body), *holding_aliases(body))
        self.shared = collections_in(body).intersection(*[frozenset().union(*map(passed_on_in, body))])
        while not self.decides_to_leave:
            known = self._size()
            for one in self.aliases:
                if not one.of.isdisjoint(self.needed):
                    self.needed |= one.names
                if not one.of.isdisjoint(self.parameters):
                    self.parameters |= one.names
            self._keep(body)
            if known == self._size():
                return frozenset(self._kept) if self.shared.isdisjoint(self.needed) else None
        return None

    def _size(self) -> int:
        return len(self._kept) + len(self.needed) + len(self.tainted) + len(self.parameters) + len(self.holding)

    def _keep(self, body: Sequence[ast.stmt]) -> bool:
        """Keep statements of a block; return whether one of them does more than raise an exception."""
        kept = [self._keeps(statement) for statement in body]
        return any(kept)

    def _keeps(self, statement: ast.stmt) -> bool:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            is_kept = statement.name in self.needed or self._is_used(statement)
            return is_kept and self._add(statement, statement)
        if isinstance(statement, ast.Raise):
            self._add(statement, statement)
            return False
        heads = [*_heads(statement)]
        blocks = [*_blocks(statement)]
        if not blocks:
            is_kept = isinstance(statement, _LEAVES) or _is_bare_call(statement) or self._is_used(statement)
            return is_kept and self._add(statement, statement)
        if any(map(self._is_tainted, heads)) or self._may_raise_by_settings(statement):
            # Whatever it decides is different where the setting is.
            self.decides_to_leave = self.decides_to_leave or any(map(_leaves, blocks))
            for block in blocks:
                self._keep_all(block)
            return self._add(statement, *heads)
        inner = [self._keep(block) for block in blocks]
        return (any(inner) or any(map(self._is_used, heads))) and self._add(statement, *heads)

    def _keep_all(self, body: Sequence[ast.stmt]) -> None:
        """Keep statements of a block that a setting decides about, with all that is in them."""
        for statement in body:
            self._add(statement, *([*_heads(statement)] if [*_blocks(statement)] else [statement]))
            for block in _blocks(statement):
                self._keep_all(block)

    def _is_tainted(self, node: ast.AST) -> bool:
        """Return whether the value of an expression comes from a setting."""
        facts = self.relevance.facts(node)
        return facts.reads or not facts.loads.isdisjoint(self.tainted)

    def _may_raise_by_settings(self, statement: ast.stmt) -> bool:
        return isinstance(statement, ast.Try) and any(map(self._is_tainted, statement.body))

    def _is_used(self, node: ast.AST) -> bool:
        facts = self.relevance.facts(node)
        return (
            facts.is_relevant
            or not facts.loads.isdisjoint(self.asking)
            or not facts.stores.isdisjoint(self.needed)
            or not facts.loads.isdisjoint(self.tainted)
            or not facts.passed.isdisjoint(self.needed)
            or not facts.changes.isdisjoint(self.parameters)
            or (isinstance(node, ast.Assign) and not self.holding.isdisjoint(_kept_by_others(node)))
            or any(not self.inner[name].isdisjoint(self.needed) for name in facts.loads & self.inner.keys())
        )

    def _add(self, statement: ast.stmt, *used: ast.AST) -> bool:
        self._kept.add(id(statement))
        for node in used:
            facts = self.relevance.facts(node)
            self.needed |= facts.loads
            self.holding.update(_holders_in(node) if facts.is_relevant else ())
            if facts.reads or not facts.loads.isdisjoint(self.tainted):
                self.tainted.update(name for name in facts.stores if name[0] != ".")
        return True


def _holders_in(node: ast.AST) -> Iterator[str]:
    """Yield the names of objects of which code sets a setting."""
    for part in _walk(node):
        match part:
            case ast.Attribute(value=ast.Name(id=name), attr=attr, ctx=ast.Store()) if attr in SETTINGS:
                yield name


def _kept_by_others(node: ast.Assign) -> Iterator[str]:
    """Yield the names of what code gives to an attribute or an item of something else."""
    if any(isinstance(one, (ast.Attribute, ast.Subscript)) for one in node.targets):
        owners = {id(one.value) for one in _walk(node.value) if isinstance(one, ast.Attribute)}
        yield from (one.id for one in _walk(node.value) if isinstance(one, ast.Name) and id(one) not in owners)


def _in_others(
    body: Sequence[ast.stmt], kept: frozenset[int], names_in: Callable[[ast.stmt], frozenset[str]]
) -> frozenset[str]:
    """Return the names that are in statements that are not kept."""
    names = frozenset[str]()
    for statement in body:
        if id(statement) not in kept:
            names |= names_in(statement)
        else:
            for block in _blocks(statement):
                names |= _in_others(block, kept, names_in)
    return names


def _names_of(node: ast.arguments) -> frozenset[str]:
    every = (*node.posonlyargs, *node.args, *node.kwonlyargs, *filter(None, (node.vararg, node.kwarg)))
    return frozenset(one.arg for one in every)


def _is_bare_call(statement: ast.stmt) -> bool:
    """Return whether a statement calls a function that gets and returns nothing: it may change what others read."""
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(), args=[], keywords=[])):
            return True
    return False


def _functions_in(statement: ast.stmt) -> Iterator[tuple[str, ast.AST]]:
    """Yield the functions that a statement defines, by name."""
    for node in _walk(statement):
        match node:
            case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
                yield name, node


def _heads(statement: ast.stmt) -> Iterator[ast.AST]:
    for name, value in ast.iter_fields(statement):
        if name == "cases":
            yield from (part for case in value for part in (case.pattern, case.guard) if part is not None)
        if name in ("body", "orelse", "finalbody", "handlers", "cases"):
            continue
        yield from value if isinstance(value, list) and value and isinstance(value[0], ast.AST) else ()
        if isinstance(value, ast.AST):
            yield value


def _blocks(statement: ast.stmt) -> Iterator[Sequence[ast.stmt]]:
    for name in ("body", "orelse", "finalbody"):
        if block := getattr(statement, name, None):
            yield block
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part.body


def _leaves(body: Sequence[ast.stmt]) -> bool:
    """Return whether a block may leave the block that it is in."""
    return any(isinstance(part, (*_LEAVES, ast.Raise)) for one in body for part in walk(one))


def _is_base(node: ast.AST) -> bool:
    """Return whether an attribute is only what another one is read of.

    ``model.__dict__.update`` may set any; an object that sets its own by what it is made with shows no settings.
    """
    match node:
        case ast.Attribute(value=ast.Name(id="self")):
            return True
    return isinstance(node, ast.Attribute) and not computed_name(node)


def computed_name(node: ast.AST) -> bool:
    """Return whether code uses attributes of an object by names that it does not show."""
    match node:
        case ast.Call(func=ast.Name(id="getattr" | "setattr" | "delattr" | "vars" as name), args=arguments):
            return name == "vars" or not (len(arguments) > 1 and isinstance(arguments[1], ast.Constant))
        case ast.Attribute(attr="__class__", ctx=context):
            return isinstance(context, ast.Store)
        case ast.Attribute(attr=str() as name) | ast.Constant(value=str() as name) if name in _ACCESSES:
            return True
        case ast.Name(id=name) if name in _BY_TEXT:
            return True
        case ast.Attribute(attr=name):
            return name in _BY_TEXT and name not in _OF_MODELS
    return False


def sets_by_computed_name(node: ast.AST) -> bool:
    """Return whether code may set attributes of an object by names that it does not show."""
    match node:
        case ast.Call(func=ast.Name(id="getattr")):
            return False
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _READS_BY_TEXT:
            return False
    return computed_name(node)


def holders_in(tree: ast.AST, settings: frozenset[str]) -> Iterator[str]:
    """Yield the attributes whose settings code names: ``model`` of ``cfg.model.cuda_graph_scope``."""
    for node in walk(tree):
        match node:
            case ast.Attribute(value=base, attr=name) if name in settings:
                yield from _chain(base)
            case ast.Call(args=[base, ast.Constant(value=str() as name), *_]) if name in settings:
                yield from _chain(base)


def _chain(node: ast.expr) -> Iterator[str]:
    while isinstance(node, ast.Attribute):
        yield node.attr
        node = node.value
