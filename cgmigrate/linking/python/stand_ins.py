"""Objects of other kinds that have the old settings, and functions that get them besides configurations.

A reader such as ``needs_tracker(model)`` follows what recipes set. A test may give it a stub, a script the options that
it parsed, or an object of a class of its own: those keep the old names, so that the reader has to keep them, too.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeGuard

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.leading_code import FunctionFacts, facts_of
from cgmigrate.proof.flow.modules import Import, Module, is_test
from cgmigrate.linking.python.name_flows import assigned, names_in, parameters_of, parts_of
from cgmigrate.linking.python.name_texts import last_name
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.rounds import Change, Name
from cgmigrate.proof.flow.words import ANY_SPELLING
from cgmigrate.megatron.settings import DEPRECATED

_MOST_CALLS = 3
_MOST_STEPS = 3
"""How far a name is followed in a file to what it is made of."""
_PLAIN_BASES = frozenset(("object", "NamedTuple", "ABC", "Protocol", "Generic", "BaseModel", "TypedDict", "Namespace"))
_LISTS = (ast.List, ast.Tuple, ast.Load)
_MAKES_TYPES = frozenset(("namedtuple", "make_dataclass", "type"))
_BARE = frozenset(("SimpleNamespace", "Namespace", "namedtuple", "make_dataclass", "type", "Options", "AttrDict"))


@dataclass
class StandIns:
    """Finds the changes of readers that get such objects."""

    references: References
    files_with: FilesWith
    changes: Collection[Change]

    def seen(self) -> dict[Name, str]:
        """Return the changes of readers that get objects of another kind, each with the reason."""
        result: dict[Name, str] = {}
        if not self._readers:
            return result
        for path in sorted(self.files_with(sorted(self._readers))):
            module = self.references.modules.read(path)
            for name, line in _calls_with(module, self._makers_in(module), self._readers) if module else ():
                reason = f"`{name}` gets an object of another kind that has the settings, too ({path}:{line})"
                for change in self._readers[name]:
                    result.setdefault(change, reason)
        return result

    @cached_property
    def _readers(self) -> Mapping[str, Collection[Name]]:
        """The functions whose code reads settings in a way that changes, and those that pass on what they get."""
        result: dict[str, set[Name]] = {}
        for change in self.changes:
            module = self.references.modules.read(change.path) if change.reads and not is_test(change.path) else None
            for one in facts_of(module):
                if any(one.lines[0] <= line <= one.lines[1] for _, line in change.places):
                    result.setdefault(_called_as(one), set()).add(change.name)
        for _ in range(_MOST_CALLS):
            known = {name: set(changes) for name, changes in result.items()}
            for one in self._functions_with(known):
                for name, _ in _calls_of(one.node, known, set(parameters_of(one.node))):
                    result.setdefault(_called_as(one), set()).update(known[name])
        return result

    def _functions_with(self, names: Collection[str]) -> Iterator[FunctionFacts]:
        for path in self.files_with(sorted(names)) if names else ():
            if not is_test(path):
                yield from facts_of(self.references.modules.read(path))

    @cached_property
    def _makers(self) -> frozenset[str]:
        """The classes and functions that make such objects, by their names, and fixtures that give them."""
        every = [module for path in self.files_with([ANY_SPELLING]) if (module := self.references.modules.read(path))]
        makers = {name for module in every for name in _own_classes(module)}
        for _ in range(_MOST_STEPS):
            makers |= {
                one.name
                for module in every
                for one in walk(module.tree)
                if isinstance(one, (ast.FunctionDef, ast.ClassDef)) and _makes(one, makers, module)
            }
        return frozenset(makers)

    def _makers_in(self, module: Module) -> frozenset[str]:
        """Return the makers that a module may use, with the parameters of its tests if fixtures may give them."""
        modules = {module, *self.references.conftests(module)}
        names = {name for one in modules for part in walk(one.tree) for name in _named(part)}
        makers = self._makers & names
        if not is_test(module.path) or not (makers or any(map(_sets_old, (one.tree for one in modules)))):
            return frozenset(makers)
        tests = (one.node for one in facts_of(module) if one.node.name.startswith("test"))
        fixtures = {name for node in tests for name in set(parameters_of(node)) - set(_imported_for(node, module))}
        own = {one.node.name for each in modules for one in facts_of(each) if _gives_imported(one.node, each, makers)}
        return frozenset(makers | fixtures - own - {"self", "cls"})


def _imported_for(test: ast.FunctionDef | ast.AsyncFunctionDef, module: Module) -> Iterator[str]:
    """Yield the parameters of a test for which a decorator lists only what the module imports, and plain values."""
    for decorator in test.decorator_list:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[ast.Constant(value=str() as names), values]):
                parts = list(walk(values))
                is_plain = all(isinstance(one, (*_LISTS, ast.Constant, ast.Name, ast.Attribute)) for one in parts)
                used = {one.id for one in parts if isinstance(one, ast.Name)}
                if is_plain and all(isinstance(module.bindings.get(name), Import) for name in used):
                    yield from (name.strip() for name in names.split(","))


def _gives_imported(fixture: ast.FunctionDef | ast.AsyncFunctionDef, module: Module, makers: Collection[str]) -> bool:
    """Return whether a fixture surely gives what a class or function makes that the module imports."""
    pairs = [pair for part in parts_of(fixture) for pair in assigned(part)]
    bound = {name: [value for target, value in pairs if name in names_in(target)] for name, _ in _named_in(pairs)}
    results = [part.value for part in parts_of(fixture) if isinstance(part, (ast.Return, ast.Yield))]
    made = [one for value in results for one in (bound.get(value.id, [value]) if _is_name(value) else [value])]

    def is_imported(value: ast.expr | None) -> bool:
        name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else ""
        return isinstance(module.bindings.get(name), Import) and name not in makers

    return bool(made) and all(map(is_imported, made))


def _named_in(pairs: Iterable[tuple[ast.expr, ast.expr]]) -> Iterator[tuple[str, ast.expr]]:
    return ((name, value) for target, value in pairs for name in names_in(target))


def _is_name(value: ast.expr | None) -> TypeGuard[ast.Name]:
    return isinstance(value, ast.Name)


def _called_as(function: FunctionFacts) -> str:
    """Return the name by which code calls a function: that of the class for a method that makes its objects."""
    is_making = function.inside is not None and function.node.name in ("__init__", "__post_init__", "__new__")
    return function.inside.name if is_making and function.inside else function.node.name


def _named(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            yield name
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            yield name


@lru_cache(maxsize=4096)
def _own_classes(module: Module) -> frozenset[str]:
    """Return the classes of a module that name an old setting and do not derive from others that are not known."""
    classes = [one for one in walk(module.tree) if isinstance(one, ast.ClassDef)]
    own = {one.name for one in classes if all(map(_is_plain, one.bases)) and _has_old(one)}
    for statement in walk(module.tree):
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function) as call):
                if last_name(function) in _MAKES_TYPES and _names_old(call):
                    own.add(name)
    return frozenset(own | {one.name for one in classes if any(last_name(base) in own for base in one.bases)})


def _is_plain(base: ast.expr) -> bool:
    return last_name(base.value if isinstance(base, ast.Subscript) else base) in _PLAIN_BASES


def _has_old(node: ast.ClassDef) -> bool:
    """Return whether a class gives its objects an attribute with the name of an old setting."""
    for part in walk(node):
        match part:
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]) if (
                name in DEPRECATED
            ):
                return True
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()) if name in DEPRECATED:
                return True
    return False


def _names_old(node: ast.AST) -> bool:
    """Return whether code has the name of an old setting as a text or as the name of an argument."""
    for part in walk(node):
        match part:
            case ast.Constant(value=str() as text) if any(name in text.replace("-", "_") for name in DEPRECATED):
                return True
            case ast.keyword(arg=name) if name in DEPRECATED:
                return True
    return False


def _makes(node: ast.AST, makers: Collection[str], module: Module) -> bool:
    """Return whether a function or class uses a maker, or makes such an object itself."""
    parts, of_test = list(walk(node)), is_test(module.path)
    if isinstance(node, ast.ClassDef) and not of_test:
        return False
    if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
        return False
    returned = [part.value for part in parts if isinstance(part, ast.Return) and isinstance(part.value, ast.Call)]
    if any(last_name(one.func) in makers or (_is_parsed(one) and _parses_options(module)) for one in returned):
        return True
    uses = of_test and any(isinstance(part, ast.Name) and part.id in makers for part in parts)
    return uses or any(map(_is_bare, parts))


def _is_bare(node: ast.AST) -> bool:
    """Return whether code makes an object that has only what it gets, an old setting among that."""
    match node:
        case ast.Call(func=function, keywords=keywords) if last_name(function) in _BARE:
            return any(one.arg is None or one.arg in DEPRECATED for one in keywords)
    return False


def _sets_old(tree: ast.AST) -> bool:
    """Return whether code makes such an object, or sets an old setting of one that it may have made."""
    for part in walk(tree):
        match part:
            case ast.Attribute(attr=name, ctx=ast.Store()) if name in DEPRECATED:
                return True
        if _is_bare(part):
            return True
    return False


def _calls_with(module: Module, makers: Collection[str], readers: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield the calls of readers in a module that get an object of a maker, each with its line."""
    at_top = _marked(module.tree, makers, module)
    has_bare = not is_test(module.path)
    yield from _calls_of(module.tree, readers, at_top, has_bare=has_bare)
    for one in facts_of(module):
        yield from _calls_of(one.node, readers, _marked(one.node, at_top, module), has_bare=has_bare)


def _marked(scope: ast.AST, makers: Collection[str], module: Module) -> set[str]:
    """Return the makers, and the names in some code that what they make, or the options, are bound to.

    What a test makes itself without a class is followed with the test.
    """
    options, of_test = _parses_options(module), is_test(module.path)
    marked = set(makers)
    pairs = [pair for part in parts_of(scope) for pair in assigned(part)]
    for _ in range(_MOST_STEPS):
        for target, value in pairs:
            is_bare = not of_test and any(map(_is_bare, walk(value)))
            if is_bare or _is_marked(value, marked) or (options and _is_parsed(value)):
                marked.update(names_in(target) if isinstance(target, ast.Name) else ())
    return marked


def _is_marked(node: ast.AST, marked: Collection[str]) -> bool:
    return any(isinstance(part, ast.Name) and part.id in marked for part in walk(node))


def _is_parsed(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in ("parse_args", "parse_known_args")


@lru_cache(maxsize=4096)
def _parses_options(module: Module) -> bool:
    """Return whether a module has an option with the name of an old setting."""
    return any(
        isinstance(one, ast.Call) and last_name(one.func) == "add_argument" and _names_old(one)
        for one in walk(module.tree)
    )


def _calls_of(
    scope: ast.AST, readers: Collection[str], marked: Collection[str], *, has_bare: bool = False
) -> Iterator[tuple[str, int]]:
    """Yield the calls of readers that get something of some names, or an object without a class, each with its line."""
    for part in parts_of(scope):
        if isinstance(part, ast.Call) and (name := last_name(part.func)) in readers:
            values: Iterable[ast.AST] = (*part.args, *(one.value for one in part.keywords))
            if any(_is_marked(one, marked) or (has_bare and any(map(_is_bare, walk(one)))) for one in values):
                yield name, part.lineno
