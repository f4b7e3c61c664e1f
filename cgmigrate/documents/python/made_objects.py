"""What makes an object that has a name: a class of Megatron, or a function of the checkout that returns one.

An object belongs to Megatron by what makes it, whatever its name is: ``student = make_student()``.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cgmigrate.documents.python.class_origins import owner_of
from cgmigrate.documents.python.definitions import Definitions
from cgmigrate.documents.python.name_resolution import MEGATRON, Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted

_MOST_FUNCTIONS = 3
"""How many functions may return what the next one makes."""


def class_of_megatron(names: Names, name: str) -> str:
    """Return the full name of a class of Megatron, or of the one that a class is derived from; empty for any other."""
    if not name or name.partition(".")[0] in names.shadowed:
        return ""
    full = owner_of(names, name)
    is_class = full.rpartition(".")[2][:1].isupper()
    return full if is_class and full.partition(".")[0] in MEGATRON else ""


def is_of_hugging_face(path: str, made_by: str = "") -> bool:
    """Return whether an object is a configuration of Hugging Face, which has names of Megatron's.

    The name of the object says so (``hf_config``), or the full name of what makes it.
    """
    words = path.rpartition(".")[2].lower().split("_")
    return "hf" in (words[0], words[-1]) or made_by.startswith("transformers.")


def class_made_by(call: ast.Call, definitions: Definitions) -> str:
    """Return the class of Megatron of which a call makes an object; empty if that is not known.

    A function of the checkout makes one if its annotation says so, or if it returns nothing but such calls.
    """
    return _class_made_by(call, definitions, _MOST_FUNCTIONS)


def _class_made_by(call: ast.Call, definitions: Definitions, depth: int) -> str:
    name = dotted(call.func)
    if full := class_of_megatron(definitions.module.names, name):
        return full
    definition = definitions.of(name) if depth else None
    if definition is None or not isinstance(definition.node, ast.FunctionDef) or definition.node.decorator_list:
        return ""
    node, inner = definition.node, Definitions(definition.module, definition.examined)
    if annotated := class_of_megatron(definition.module.names, _class_in(node.returns)):
        return annotated
    results = list(_results(node))
    classes = {_class_made_by(one, inner, depth - 1) if isinstance(one, ast.Call) else "" for one in results}
    return classes.pop() if len(classes) == 1 else ""


def _class_in(annotation: ast.expr | None) -> str:
    match annotation:
        case ast.Name() | ast.Attribute():
            return dotted(annotation)
        case ast.Constant(value=str() as text):
            return text if text.replace(".", "_").isidentifier() else ""
    return ""


def _results(node: ast.FunctionDef) -> Iterator[ast.expr | None]:
    """Yield what a function returns: for a name the value that it is bound to, if that is the only one."""
    bound: dict[str, list[ast.expr]] = {}
    for part in walk(node):
        match part:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                bound.setdefault(name, []).append(value)
    for part in walk(node):
        if isinstance(part, ast.Return):
            values = bound.get(part.value.id, []) if isinstance(part.value, ast.Name) else []
            yield values[0] if len(values) == 1 else part.value
