"""Code that looks at all attributes of an object, by their values or by parts of a name.

It has no name of a setting in it, and sees that a fix writes another one: `[k for k, v in vars(cfg).items() if v]`.
Code that copies attributes without looking at them sees nothing. `whole_mappings` is about those that code loads.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.documents.python.source import dotted

_VIEWS = ("vars", "asdict", "fields", "astuple", "to_dict", "to_container", "model_dump", "dir", "getmembers")
VIEWS = ("__dict__", *(f"{one}{gap}(" for one in _VIEWS for gap in ("", " ")))
"""One of them is in code that goes through the attributes of an object."""
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
_CALLBACKS = ("filter", "sorted", "map", "any", "all")


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Code that looks at entries: its line, and what it goes through."""

    line: int
    text: str
    by_truth: bool
    """Whether it distinguishes true values from false ones."""


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
    tree = parsed(text)
    if tree is None:
        return
    own = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    written, values = set(_written_in(tree)), _values_of_variables(tree)
    for node in walk(tree):
        for loop in _loops_of(node):
            sources = values.get(dotted(loop.iterated), [loop.iterated])
            parts = (part for one in sources if _is_of_object(one) for part in walk(one))
            if any(_is_view(part, own) for part in parts if isinstance(part, ast.expr)):
                yield from _filter_of(loop)
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


def _filter_of(loop: _Loop) -> Iterator[EntryFilter]:
    """Yield what a loop looks at in attributes: it has a condition, or makes flags of the names."""
    bound = {one.id for one in walk(loop.target) if isinstance(one, ast.Name)}
    tests = [node for node in loop.nodes() if node in loop.tests or _is_test(node)]
    if tests or any(_spells_flags(node, key, loop) for node in loop.nodes() for key in bound):
        is_truth = any(_is_truth(test, bound) for test in tests)
        is_truth = is_truth or any(isinstance(test, ast.Name) and test.id in bound for test in loop.tests)
        yield _filter(loop.iterated, by_truth=is_truth)


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
        one.attr == "__dict__" if isinstance(one, ast.Attribute) else dotted(one.func).rpartition(".")[2] in _VIEWS
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


def _is_test(node: ast.AST) -> bool:
    return isinstance(node, _TESTS) or _is_call_of(node, _KINDS)


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
        case ast.Attribute(attr="__dict__", value=of):
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


def _spells_flags(node: ast.AST, key: str, loop: _Loop) -> bool:
    """Return whether code makes flags of keys: `"--" + key.replace("_", "-")`."""
    if not _is_call_of(node, (f"{key}.replace",)):
        return False
    texts = (one.value for one in loop.nodes() if isinstance(one, ast.Constant))
    return any(isinstance(one, str) and one.startswith("--") for one in texts)
