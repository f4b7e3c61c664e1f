"""Code that looks at all attributes of an object, by their values or by parts of a name.

It has no name of a setting in it, and sees that a fix writes another one: `[k for k, v in vars(cfg).items() if v]`.
Code that copies attributes without looking at them sees nothing. `whole_mappings` is about those that code loads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.documents.python.source import dotted

_VIEWS = ("vars", "asdict", "fields", "astuple", "to_dict", "to_container", "model_dump", "dir", "getmembers")
_TABLES = ("__dict__", "__annotations__", "__dataclass_fields__", "__match_args__")
VIEWS = (*_TABLES, *(f"{one}{gap}(" for one in _VIEWS for gap in ("", " ")))
"""One of them is in code that goes through the attributes of an object."""
_HAS_VIEW = re.compile(rf"\b(?:{'|'.join(_VIEWS)})\s*\(|\b(?:{'|'.join(_TABLES)})\b")
"""As these, as a whole word: `makedir(` is none."""
_ENTRIES = ("items", "values", "keys")
_CONVERTS = "to_container"
"""A method that makes a mapping of another one, which has the same keys and values."""
_AROUND = ("sorted", "list", "iter", "reversed", "enumerate", "tuple", "zip", "map")
_OTHERS = ("environ", "modules", "kwargs", "state_dict", "named_parameters", "groupby")
"""Mappings that are never settings."""
_PARSES = ("parse_args", "parse_known_args")
_TESTS = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.IfExp)
_KINDS = ("isinstance", "type", "bool", "callable")
_MAKES_FLAGS = re.compile(
    r"\b(?:read\b[^\n;|&]*[ ]|for[ ]+)(?P<key>\w+)\b(?:[^\n]*\n){0,9}?[^\n#]*?[\s\"'=(]--\$\{?(?P=key)\b[^\s;]*"
)
"""A loop of a shell over keys, and the flag that it makes of one: ``read k v; … --${k//_/-}``."""
_PLAIN_TYPES = ("int", "float", "Number", "object", "Iterable", "Sequence", "Collection", "Sized", "Container")
"""Types that a value of a setting may have, too."""
_CALLBACKS = ("filter", "sorted", "map", "any", "all")


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Code that looks at entries: its line, and what it goes through."""

    line: int
    text: str
    by_truth: bool
    """Whether it distinguishes true values from false ones."""
    parts: frozenset[str] = frozenset()
    """The parts of names for which it looks; empty if it looks at all entries."""
    types: frozenset[str] | None = None
    """The types for which it tests values; None if it looks at them in another way."""

    def distinguishes(self, names: Collection[str], old: Iterable[object], new: Iterable[object]) -> bool:
        """Return whether it distinguishes some of the settings from others, or the old values from the new ones."""
        if self.types is not None and not self.parts:
            kinds, others = ({type(value).__name__ for value in values} for values in (old, new))
            return kinds != others and not self.types.isdisjoint((*kinds, *others, *_PLAIN_TYPES))
        return not self.parts or any(len({part in name for name in names}) > 1 for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Loop:
    """What goes through entries: ``tests`` are conditions as a whole, ``body`` all code that has the entry."""

    target: ast.expr
    iterated: ast.expr
    body: Sequence[ast.AST]
    tests: Sequence[ast.AST] = ()

    def nodes(self) -> Iterator[ast.AST]:
        return (node for part in (*self.tests, *self.body) for node in walk(part))


def flags_made_in(text: str) -> Iterator[EntryFilter]:
    """Yield the lines of a shell script that make the name of a flag of each key that a loop reads."""
    for match in _MAKES_FLAGS.finditer(text):
        yield EntryFilter(text.count("\n", 0, match.end()) + 1, match[0][-60:].strip(), by_truth=True)


def filters_in(text: str) -> Iterator[EntryFilter]:
    """Yield the code of a file that looks at the attributes of objects."""
    tree = parsed(text) if _HAS_VIEW.search(text) else None
    if tree is None:
        return
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    written, values = set(_written_in(tree)), _values_of_variables(tree)
    for node in walk(tree):
        for loop in _loops_of(node):
            sources = values.get(dotted(loop.iterated), [loop.iterated])
            if any(map(_is_of_object, sources)):
                yield from _filter_of(loop, own, sources)
        if not (isinstance(node, ast.Call | ast.Attribute) and _is_of_object(node)):
            continue
        is_alone = node not in written and not any(_is_entries(one, *_ENTRIES, _CONVERTS) for one in walk(node))
        if is_alone and _is_view(node, own):
            yield _filter(node, by_truth=False)
        if isinstance(node, ast.Call) and node.args and (_is_view(node, own) or dotted(node.func) in _CALLBACKS):
            arguments = (*node.args, *(one.value for one in node.keywords))
            is_test = any(isinstance(one, ast.Lambda) or dotted(one) in _KINDS for one in arguments)
            if is_test and _is_view(node.args[-1], own):
                yield _filter(node.args[-1], by_truth=True)


def _filter_of(loop: _Loop, own: Collection[str], sources: Sequence[ast.expr]) -> Iterator[EntryFilter]:
    """Yield what a loop looks at in attributes; ``sources`` are the values of what it goes through."""
    bound = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    looks_at_all = _looks(loop, own, sources)
    parts = frozenset(_parts_distinguished(loop)) if not looks_at_all and _is_view(loop.iterated, own) else frozenset()
    if parts or looks_at_all:
        is_truth = any(_is_truth(test, bound) for test in loop.nodes())
        is_truth = is_truth or any(isinstance(test, ast.Name) and test.id in bound for test in loop.tests)
        yield replace(_filter(loop.iterated, by_truth=is_truth), parts=parts, types=_types_tested(loop))


def _written_in(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the views that are only written to: `vars(config).update(values)`."""
    for node in walk(tree):
        match node:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr="update", value=view))):
                yield view


def _values_of_variables(tree: ast.AST) -> dict[str, list[ast.expr]]:
    """Return the values that a file gives to each variable."""
    values: dict[str, list[ast.expr]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            values.setdefault(node.targets[0].id, []).append(node.value)
    return values


def _filter(iterated: ast.expr, *, by_truth: bool) -> EntryFilter:
    return EntryFilter(iterated.lineno, ast.unparse(iterated)[:60], by_truth)


def _is_of_object(node: ast.expr) -> bool:
    """Return whether an expression has all attributes of an object in it."""
    return any(
        one.attr in _TABLES if isinstance(one, ast.Attribute) else dotted(one.func).rpartition(".")[2] in _VIEWS
        for one in walk(node)
        if isinstance(one, ast.Call | ast.Attribute)
    )


def _loops_of(node: ast.AST) -> Iterator[_Loop]:
    match node:
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            body = list(ast.iter_child_nodes(node))
            yield from (_Loop(one.target, one.iter, body, one.ifs) for one in node.generators)
        case ast.For(target=target, iter=iterated, body=statements):
            tests = [one.test for part in statements for one in walk(part) if isinstance(one, (ast.If, ast.While))]
            yield _Loop(target, iterated, statements, tests)


def _looks(loop: _Loop, own: Collection[str], sources: Sequence[ast.expr]) -> bool:
    """Return whether a loop looks at the values of all entries, or at parts of their keys.

    ``sources`` are the values of what it goes through.
    """
    bound = [one.id for one in walk(loop.target) if isinstance(one, ast.Name)]
    if not bound:
        return False
    is_view, is_values = _is_view(loop.iterated, own), _is_entries(loop.iterated, "values")
    key, value = bound[0], bound[-1] if len(bound) > 1 or is_values else ""
    for node in loop.nodes():
        is_test = node in loop.tests or _is_test(node)
        if is_test and (_reads_by(node, key, sources) or (is_view and value and _has(node, value))):
            return True
        if is_view and _spells_flags(node, key, loop):
            return True
    return False


def _types_tested(loop: _Loop) -> frozenset[str] | None:
    """Return the types for which a loop tests values, None if it looks at them in another way.

    What has attributes or keys of its own is a mapping or an object, and no value of a setting.
    """
    bound = [one.id for one in walk(loop.target) if isinstance(one, ast.Name)]
    value = bound[-1] if len(bound) > 1 or _is_entries(loop.iterated, "values") else ""
    key = bound[0] if bound[0] != value else ""
    if any(_spells_flags(node, bound[0], loop) for node in loop.nodes()):
        return None
    kinds = [_kind_tested(test, key, value) for test in loop.nodes() if test in loop.tests or _is_test(test)]
    known = [one for one in kinds if one is not None]
    return frozenset().union(*known) if known and len(known) == len(kinds) else None


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, _TESTS) or _is_call_of(node, _KINDS)


def _kind_tested(test: ast.AST, key: str, value: str) -> frozenset[str] | None:
    """Return the types for which a test looks in a value of a loop, None if it looks at anything else of a value."""
    types: set[str] = set()
    known = 0
    for above in walk(test):
        match above:
            case ast.Call(func=ast.Name(id="isinstance"), args=[first, kinds]) if _is_value(first, key, value):
                types |= {dotted(one).rpartition(".")[2] for one in walk(kinds)} - {""}
            case ast.Attribute(value=of) | ast.Subscript(value=of) if _is_value(of, key, value):
                pass
            case _:
                continue
        known += 1
    values = [one for one in walk(test) if _is_value(one, key, value)]
    parts = {part for one in values for part in walk(one) if part is not one}
    return frozenset(types) if known == len([one for one in values if one not in parts]) else None


def _is_value(node: ast.AST, key: str, value: str) -> bool:
    """Return whether an expression is the value of an entry, by the variables of a loop."""
    match node:
        case ast.Name(id=name):
            return name == value
        case ast.Subscript(slice=ast.Name(id=name)):
            return name == key
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]):
            return _has(name, key)
    return False


def _is_truth(test: ast.AST, names: Collection[str]) -> bool:
    """Return whether a condition is about one of some variables being true or false, or a boolean."""
    match test:
        case ast.BoolOp(values=parts):
            return any(isinstance(one, ast.Name) and one.id in names for one in parts)
        case ast.UnaryOp(op=ast.Not(), operand=ast.Name(id=name)):
            return name in names
        case (
            ast.Compare(comparators=[ast.Constant(value=bool()) | ast.Attribute(attr="default")])
            | ast.Compare(left=ast.Attribute(attr="default") | ast.Call(func=ast.Name(id="type")))
        ):
            return any(_has(test, name) for name in names)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
            return _has(kinds, "bool") or _has(kinds, "int")
    return False


def _is_view(node: ast.AST, own: Collection[str]) -> bool:
    """Return whether an expression is all entries of something that may be settings."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=args) if name in _AROUND:
            return any(_is_view(one, own) for one in args)
        case ast.Call(func=ast.Attribute(attr=name, value=of), args=[]) if name in _ENTRIES:
            return not isinstance(of, (ast.Dict, ast.DictComp)) and (_is_view(of, own) or not _is_other(of, own))
        case ast.Call(func=func, args=[of, *_]) if dotted(func).rpartition(".")[2] in _VIEWS:
            return not _is_other(of, own)
        case ast.Attribute(attr=attribute, value=of) if attribute in _TABLES:
            return not _is_other(of, own)
    return False


def _is_other(node: ast.expr, own: Collection[str]) -> bool:
    """Return whether an expression is surely no settings of a model."""
    if dotted(node).rpartition(".")[2] in _OTHERS:
        return True
    if not isinstance(node, ast.Call):
        return False
    callee = dotted(node.func)
    last = callee.rpartition(".")[2]
    if last in _PARSES or last in _OTHERS or callee in own:
        return True
    return last in _VIEWS and bool(node.args) and _is_other(node.args[0], own)


def _is_entries(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in names


def _is_call_of(node: ast.AST, names: Collection[str]) -> bool:
    return isinstance(node, ast.Call) and dotted(node.func) in names


def _has(node: ast.AST, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in walk(node))


def _reads_by(node: ast.AST, key: str, sources: Sequence[ast.expr]) -> bool:
    """Return whether a test reads a value by the key of a loop: ``getattr(cfg, f.name)``, ``model[k]``.

    Where the file shows what the loop goes through, it is that of which a value is read.
    """
    texts = [ast.unparse(one) for one in sources]
    for one in walk(node):
        match one:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]) if _has(name, key):
                return True
            case ast.Subscript(value=of, slice=ast.Name(id=name)) if name == key:
                return any(isinstance(source, ast.Name) for source in sources) or any(
                    ast.unparse(of) in text for text in texts
                )
    return False


def _parts_distinguished(loop: _Loop) -> Iterator[str]:
    """Yield the parts by which code distinguishes names: `"graph" in key`."""
    for node in loop.nodes():
        match node:
            case ast.Compare(left=ast.Constant(value=str(part)), ops=[ast.In() | ast.NotIn()]):
                yield part


def _spells_flags(node: ast.AST, key: str, loop: _Loop) -> bool:
    """Return whether code makes flags of keys: `"--" + key.replace("_", "-")`."""
    if not _is_call_of(node, (f"{key}.replace",)):
        return False
    texts = (one.value for one in loop.nodes() if isinstance(one, ast.Constant))
    return any(isinstance(one, str) and one.startswith("--") for one in texts)
