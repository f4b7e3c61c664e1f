"""Code that gets functions by names that it computes: it may call each function of a checkout.

What it calls may be a recipe. Where code of the checkout also sets attributes by names that it computes, that may be
settings of the recipe's object, and no proof is possible: names do not show which code has the object.
"""

from __future__ import annotations

import ast

from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.modules import Import, Module

_LOOKUPS = ("globals", "import_module", "__import__")
_OF_MODULES = ("vars", "getattr")
_BY_TEXT = ("exec", "eval", "__setattr__")


def gets_computed_functions(module: Module) -> bool:
    """Return whether code of a module gets functions by names that it computes."""
    words = (*_LOOKUPS, *_OF_MODULES, "sys.modules", "__dict__")
    return any(word in module.text for word in words) and any(
        _is_lookup(node, module) for node in ast.walk(module.tree)
    )


def _is_lookup(node: ast.AST, module: Module) -> bool:
    match node:
        case ast.Call(func=function, args=arguments):
            name = dotted(function).rpartition(".")[2]
            if name in _LOOKUPS:
                return True
            of_module = bool(arguments) and _is_module(arguments[0], module)
            return name in _OF_MODULES and of_module and not any(map(_is_text, arguments[1:]))
        case ast.Attribute(attr="__dict__", value=value):
            return _is_module(value, module)
        case ast.Attribute(attr="modules", value=ast.Name(id="sys")):
            return True
    return False


def _is_module(node: ast.expr, module: Module) -> bool:
    """Return whether an expression may be a module, or a name that is imported."""
    first = dotted(node).partition(".")[0]
    return bool(first) and isinstance(module.bindings.get(first), Import)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def sets_computed_names(module: Module) -> bool:
    """Return whether code of a module may set attributes by names that it computes."""
    words = ("setattr", "vars", "__dict__", *_BY_TEXT)
    return any(word in module.text for word in words) and any(map(_is_set, ast.walk(module.tree)))


def _is_set(node: ast.AST) -> bool:
    match node:
        case ast.Call(func=ast.Name(id="setattr"), args=arguments):
            return len(arguments) < 2 or not _is_text(arguments[1])
        case ast.Call(func=function):
            return dotted(function).rpartition(".")[2] in (*_BY_TEXT, "vars")
        case ast.Attribute(attr="__dict__"):
            return True
    return False
