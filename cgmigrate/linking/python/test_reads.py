"""What code of a test reads that cannot be followed: a deprecated setting, or all attributes of an object."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.proof.flow.modules import Module
from cgmigrate.linking.python.name_texts import names_setting
from cgmigrate.linking.python.own_objects import has_slots
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.megatron.settings import DEPRECATED, IMPL

_READS_ALL = frozenset(("asdict", "astuple", "vars", "fields", "getmembers"))
"""Functions that read all attributes of an object."""
_ACCESSES = frozenset(("__setattr__", "__delattr__", "__getattribute__"))
"""Methods that see which attributes code sets or reads."""
OF_OBJECTS = frozenset(("getattr", "setattr", "hasattr", "delattr", "isinstance"))
"""Functions whose first argument is an object of which they use one attribute."""
_IN_TEXT = re.compile(rf"[^\w.](?:{'|'.join(sorted(DEPRECATED))})\b|\b(?:{'|'.join(sorted(DEPRECATED))})[^\w.=]")
"""The name of a deprecated setting among other characters, which is no path and no override."""
WATCHING = (*sorted(_READS_ALL - {"fields"}), "__dict__", "__slots__", *sorted(_ACCESSES))
"""Words of tests that see which settings an object has, without their names."""


def reads_settings(nodes: Iterable[ast.AST], function: AnyFunction | None, module: Module, *, replaces: bool) -> bool:
    """Return whether code of a function reads a deprecated setting, or all attributes of an object, or has one itself.

    A test with such code that cannot be followed stays as it is, so that what it reads has to stay, too. What stands in
    for an object may be used by all code of the test; ``replaces`` says that it stands in for code that leads to
    settings.
    """
    parts = [part for node in nodes for part in walk(node)]
    around = parts if function is None else list(walk(function))
    modules = frozenset(name for part in around for name in _names_of_modules(part))
    if (
        any(map(_gives_setting, around))
        or any(map(_has_key, parts))
        or any(_reads(part) or _reads_all(part, modules) for part in parts)
    ):
        return True
    return replaces and _names_settings([*around, *_parts_used_by(around, module)])


def has_recorder(function: AnyFunction, module: Module) -> bool:
    """Return whether a test uses a class of its file that sees which attributes code sets, or has only some of them."""
    own = list(walk(function))
    return any(map(_records, (*own, *_parts_used_by(own, module))))


def reads_all(test: AnyFunction) -> bool:
    """Return whether a test reads all attributes of an object."""
    own = list(walk(test))
    modules = frozenset(name for part in own for name in _names_of_modules(part))
    return test.name.startswith("test") and any(_reads_all(part, modules) for part in own)


def _gives_setting(node: ast.AST) -> bool:
    """Return whether code gives a setting to something: `SimpleNamespace(cuda_graph_scope=[])`."""
    return isinstance(node, ast.keyword) and node.arg in DEPRECATED


def _has_key(node: ast.AST) -> bool:
    """Return whether code has a setting as a key, or at the end of a path: ``{"model.cuda_graph_scope": []}``."""
    match node:
        case ast.Dict(keys=keys):
            return any(key_of_data(one) in DEPRECATED for one in keys)
    return False


def key_of_data(key: ast.expr | None) -> str:
    """Return the attribute that a key of a dictionary names: the end of its path. Empty if it is no text."""
    match key:
        case ast.Constant(value=str() as text):
            return text.rpartition(".")[2]
    return ""


def _records(node: ast.AST) -> bool:
    """Return whether a class sees which attributes code sets, or has only some with the names of settings."""
    if not isinstance(node, ast.ClassDef):
        return False
    functions = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    return not functions.isdisjoint(_ACCESSES) or any(has_slots(one) for one in node.body)


def _parts_used_by(parts: Iterable[ast.AST], module: Module) -> list[ast.AST]:
    """Return the nodes of the functions and classes of a module that code uses, also through others."""
    own = {one.name: one for one in module.tree.body if isinstance(one, (ast.FunctionDef, ast.ClassDef))}
    waiting = [part.id for part in parts if isinstance(part, ast.Name)]
    used: dict[str, ast.AST] = {}
    while waiting:
        name = waiting.pop()
        if name in own and name not in used:
            used[name] = own[name]
            waiting += [part.id for part in walk(own[name]) if isinstance(part, ast.Name)]
    return [part for one in used.values() for part in walk(one)]


def _names_settings(parts: Iterable[ast.AST]) -> bool:
    """Return whether code has a text or an attribute with the name of a setting, or a text with a part of one."""
    return any(
        (isinstance(part, ast.Constant) and names_setting(part.value))
        or (isinstance(part, ast.Attribute) and part.attr in DEPRECATED)
        or _gives_setting(part)
        for part in parts
    )


def _reads(node: ast.AST) -> bool:
    match node:
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.Call(args=[_, ast.Constant(value=str() as name), *_]):
            return name in DEPRECATED or name == "__dict__"
        case ast.Compare(left=ast.Attribute(attr=name), comparators=[ast.Constant(value="local")]):
            return name == IMPL
        case ast.Constant(value=str() as text):
            # An override: `model.cuda_graph_scope=[]`.
            return any(f"{name}=" in text for name in DEPRECATED)
    return False


def _reads_all(node: ast.AST, modules: frozenset[str]) -> bool:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments) if name in _READS_ALL:
            return not (arguments and dotted(arguments[0]) in modules)
    return False


def _names_of_modules(node: ast.AST) -> Iterator[str]:
    """Yield the names that code gives to modules: their attributes are functions and classes."""
    match node:
        case ast.arg(arg=name, annotation=ast.expr() as annotation) if _is_module_type(annotation):
            yield name
        case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation) if _is_module_type(annotation):
            yield name
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
            if dotted(function).rpartition(".")[2] == "import_module":
                yield name


def _is_module_type(annotation: ast.expr) -> bool:
    return dotted(annotation).rpartition(".")[2] == "ModuleType"


def reads_computed(node: ast.AST) -> bool:
    """Return whether code reads an attribute by a name that it computes, other than to get at an object."""
    objects = {id(one) for part in walk(node) for one in _objects_in(part)}
    bound = {
        part.targets[0].id: id(part.value)
        for part in walk(node)
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name)
    }
    used = [part for part in walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    read = {part.id for part in used if id(part) not in objects}
    objects |= {value for name, value in bound.items() if name not in read}
    return any(_reads_computed(part) and id(part) not in objects for part in walk(node))


def _objects_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that are objects of which it uses an attribute, or calls, or names in an error."""
    match node:
        case ast.Raise():
            yield from walk(node)
        case ast.Attribute(value=value):
            yield value
        case ast.Call(func=function, args=arguments):
            yield function
            if isinstance(function, ast.Name) and function.id in OF_OBJECTS:
                yield from arguments[:1]


def _reads_computed(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="getattr"), args=[_, name, *_]):
            return not isinstance(name, ast.Constant)
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) | ast.Attribute(attr=name):
            return name in WATCHING or name == "attrgetter"
    return False


def asks_text(node: ast.AST) -> bool:
    """Return whether code has a part of the text of an object with a deprecated setting: ``"cuda_graph_scope: attn"``.

    Names, paths, overrides and what errors are to say are none.
    """
    patterns = {
        id(part)
        for one in walk(node)
        if (isinstance(one, ast.keyword) and one.arg == "match") or isinstance(one, (ast.Raise, ast.Expr, ast.Assert))
        for part in _shown_in(one)
    }
    return any(
        isinstance(one, ast.Constant)
        and isinstance(one.value, str)
        and id(one) not in patterns
        and _IN_TEXT.search(one.value) is not None
        for one in walk(node)
    )


def _shown_in(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the texts of a docstring, of the message of an assertion, or of an error."""
    match node:
        case ast.Expr(value=ast.Constant() as text):
            yield text
        case ast.Assert(msg=ast.expr() as message):
            yield from walk(message)
        case ast.keyword() | ast.Raise():
            yield from walk(node)
