"""Recipes of Megatron-Bridge that build a GPTModel: calls that make a provider, with the fields that the code shows.

A provider is a class of ``rules/gpt_providers.json``, or what `AutoBridge` makes for a checkpoint whose name the code
has. Its fields are the defaults of the class, what the call passes, and what the same function assigns to it later.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from cgmigrate.documents.python.scopes import bound_by
from cgmigrate.documents.python.source import NOT_LITERAL, dotted, literal_value
from cgmigrate.megatron.gpt_providers import AUTO, about_provider, row_of
from cgmigrate.megatron.settings import Missing

_MAKERS = ("to_megatron_provider", "get_model_config")
_PATHS = ("path", "pretrained_model_name_or_path")


def about_recipe(call: ast.Call, scopes: Sequence[ast.AST], resolved: Callable[[ast.expr], str]) -> str:
    """Return the message about a call that makes a provider of a GPTModel; empty for any other call.

    ``scopes`` are the function of the call and the file, or the file alone.
    """
    match call.func:
        case ast.Attribute(value=made, attr=name) if name in _MAKERS:
            match _value_of(made, scopes):
                case ast.Call(func=ast.Attribute(value=maker, attr="from_hf_pretrained")) as made if (
                    resolved(maker) in AUTO
                ):
                    named = (one.value for one in made.keywords if one.arg in _PATHS)
                    path = next(iter(made.args), next(named, None))
                    return _about_checkpoint(call, path, scopes)
            return ""
    package, _, name = resolved(call.func).rpartition(".")
    row = row_of("classes", name) if package.startswith("megatron.bridge") else None
    return "" if row is None else about_provider(name, {**row, **_passed(call), **_assigned(call, scopes[0])})


def _about_checkpoint(call: ast.Call, path: ast.expr | None, scopes: Sequence[ast.AST]) -> str:
    name = literal_value(_value_of(path, scopes)) if path is not None else None
    row = row_of("checkpoints", name) if isinstance(name, str) else None
    return "" if row is None else about_provider("AutoBridge", {**row, **_assigned(call, scopes[0])}, str(name))


def _value_of(node: ast.expr, scopes: Sequence[ast.AST]) -> ast.expr:
    """Return the expression that a name stands for, if the nearest scope that binds it does so once."""
    if not isinstance(node, ast.Name):
        return node
    for scope in scopes:
        own = [*_own_nodes(scope), *ast.walk(getattr(scope, "args", ast.Pass()))]
        if bound := [one for one in own if node.id in bound_by(one)]:
            values = [one.value for one in own if isinstance(one, ast.Assign) and bound[0] in one.targets]
            values += [
                one.value for one in own if isinstance(one, ast.AnnAssign) and one.target is bound[0] and one.value
            ]
            return values[0] if len(bound) == len(values) == 1 else node
    return node


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of the body of a function or file, without those of functions and classes in it."""
    for statement in getattr(scope, "body", ()):
        stack: list[ast.AST] = [statement]
        while stack:
            node = stack.pop()
            yield node
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
                stack += ast.iter_child_nodes(node)


def _passed(call: ast.Call) -> dict[str, object]:
    shown = {one.arg: _plain(one.value) for one in call.keywords if one.arg is not None}
    is_open = bool(call.args) or any(one.arg is None for one in call.keywords)
    # What `**arguments` has is not shown, not even the number of layers.
    return {"num_layers": Missing.UNKNOWN, **shown} if is_open else shown


def _assigned(call: ast.Call, scope: ast.AST) -> dict[str, object]:
    """Return the fields that the function or file of a call assigns to the object after the call."""
    fields: dict[str, object] = {}
    owner, body = "", getattr(scope, "body", ())
    for node in sorted((one for one in _own_nodes(scope) if isinstance(one, ast.Assign)), key=lambda one: one.lineno):
        paths = [dotted(one) for one in node.targets]
        if node.value is call:
            owner = paths[0]
        elif owner in paths:
            break
        for path in paths if owner else ():
            if path.rpartition(".")[0] == owner:
                fields[path.rpartition(".")[2]] = _plain(node.value) if node in body else Missing.UNKNOWN
    return fields


def _plain(node: ast.expr) -> object:
    value = literal_value(node)
    return Missing.UNKNOWN if value is NOT_LITERAL else value
