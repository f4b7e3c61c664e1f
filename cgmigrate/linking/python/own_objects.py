"""Objects of a project's own that have the names of settings: records, and the options of its programs.

What defines such a name shows that it is the project's own: a field of a class that is not Megatron's, or an option of
a parser that the project builds. Their values keep their names, and mean what they meant before.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Sequence
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.proof.flow.modules import Import, Module, Modules
from cgmigrate.proof.flow.world import SETTINGS
from cgmigrate.megatron.settings import DEPRECATED

_MAKING = frozenset(("__init__", "__post_init__", "__new__", "__setattr__", "__getattribute__", "__getattr__"))
_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def own_parameters(node: _Function, module: Module, modules: Modules) -> tuple[frozenset[str], frozenset[str]]:
    """Return the parameters of a function that are records, and those that are options."""
    every = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    records = {one.arg for one in every if one.annotation is not None and _is_record(one.annotation, module, modules)}
    used = _attributes(node)
    options = {
        one.arg
        for one in every
        if not SETTINGS.isdisjoint(used.get(one.arg, ())) and used[one.arg] <= _options(module, modules)
    }
    return frozenset(records), frozenset(options - records)


def reads_record(lines: Collection[int], module: Module, modules: Modules) -> str:
    """Return the parameter that is a record of which some lines read a deprecated setting, empty if there is none.

    Its class has the field under the old name only.
    """
    for node in (one for one in walk(module.tree) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))):
        reads = {
            (part.value.id, part.lineno)
            for part in walk(node)
            if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.attr in DEPRECATED
            if isinstance(part.ctx, ast.Load) and part.lineno in lines
        }
        records = own_parameters(node, module, modules)[0] if reads else frozenset()
        if names := sorted(name for name, _ in reads if name in records):
            return names[0]
    return ""


@lru_cache(maxsize=16384)
def _attributes(node: _Function) -> dict[str, frozenset[str]]:
    """Return the attributes of names that a function uses."""
    result: dict[str, set[str]] = {}
    for part in walk(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            result.setdefault(part.value.id, set()).add(part.attr)
    return {name: frozenset(attributes) for name, attributes in result.items()}


def _is_record(annotation: ast.expr, module: Module, modules: Modules) -> bool:
    name = annotation.value if isinstance(annotation, ast.Constant) else dotted(annotation)
    node = class_named(name, module, modules, 4) if isinstance(name, str) else None
    is_plain = node is not None and not node.bases and not SETTINGS.isdisjoint(fields_of(node.body))
    return node is not None and is_plain and not _is_base(node.name, modules)


def _is_base(name: str, modules: Modules) -> bool:
    """Return whether a class of the checkout has a base with a name: what is annotated with that may be a model."""
    every = (*modules.others_with(name), *modules.tests_with(name))
    return any(not _bases(one).isdisjoint(one.names_for(name) | {name}) for one in every)


@lru_cache(maxsize=4096)
def _bases(module: Module) -> frozenset[str]:
    """Return the last names of all bases of the classes of a module."""
    classes = (part for part in walk(module.tree) if isinstance(part, ast.ClassDef))
    return frozenset(dotted(base).rpartition(".")[2] for one in classes for base in one.bases)


def class_named(name: str, module: Module, modules: Modules, depth: int) -> ast.ClassDef | None:
    """Return the class of the checkout that a module has under a name, through so many imports at most."""
    match module.bindings.get(name):
        case ast.ClassDef() as node:
            return node
        case Import(module=source, name=imported) if imported and depth:
            inner = modules.imported(source, module)
            return None if inner is None else class_named(imported, inner, modules, depth - 1)
    return None


def fields_of(body: Sequence[ast.stmt]) -> list[str]:
    """Return the fields of a class by its body, in their order."""
    return [one.target.id for one in body if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)]


def is_record(node: ast.ClassDef) -> bool:
    """Return whether objects of a class without bases have only what code gives them, settings among that."""
    methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
    return not node.bases and not SETTINGS.isdisjoint(fields_of(node.body)) and methods.isdisjoint(_MAKING)


def _options(module: Module, modules: Modules) -> frozenset[str]:
    """Return the options of the parsers that are built in the folder of a module, or above it."""
    return _options_in(module) | frozenset().union(*map(_options_in, modules.near(module)))


@lru_cache(maxsize=4096)
def _options_in(module: Module) -> frozenset[str]:
    names = set[str]()
    if "add_argument" not in module.text:
        return frozenset()
    for part in walk(module.tree):
        match part:
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=flags, keywords=keywords):
                own = [one.value.value for one in keywords if one.arg == "dest" and isinstance(one.value, ast.Constant)]
                texts = [one.value for one in flags if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                names.update(str(one) for one in own)
                names.update(
                    one.lstrip("-").replace("-", "_") for one in texts if one.startswith("--") or one[:1] != "-"
                )
    return frozenset(names) if names & SETTINGS else frozenset()


def has_slots(statement: ast.stmt) -> bool:
    """Return whether a statement of a class says which attributes its objects may have, some of them settings."""
    match statement:
        case ast.Assign(targets=[ast.Name(id="__slots__")], value=value):
            return any(isinstance(part, ast.Constant) and part.value in SETTINGS for part in walk(value))
    return False
