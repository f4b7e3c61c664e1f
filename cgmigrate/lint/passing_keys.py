"""Keys that code treats as optional, and whose type declares them as required."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.python.definitions import Definition, Definitions
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.lint.kinds import PassingKind
from cgmigrate.lint.passing_findings import WRAPPERS, Finding, Function, values_assigned

if TYPE_CHECKING:
    from cgmigrate.documents.python import PythonDocument

_MAX_STEPS = 6


@dataclass(frozen=True, slots=True)
class Read:
    """A place that treats a key as optional: the key, what has it, and whether it is an attribute."""

    node: ast.expr
    key: str
    holder: ast.expr
    is_attribute: bool = False


def key_findings(document: PythonDocument) -> Iterator[Finding]:
    """Yield the first place of each key that a file treats as optional, and that its type declares as required."""
    source = document.source
    assert source is not None
    types, seen = _Types(document), set[tuple[str, str]]()
    for node in source.walk():
        read = _optional_read(node)
        if read is None or read.key not in document.catalogue.names:
            continue
        declared = types.of(read.holder, source.function_of(node))
        if declared is None or (declared.node.name, read.key) in seen or not _requires(declared, read):
            continue
        seen.add((declared.node.name, read.key))
        text = f"`{read.key}` is treated as optional, and `{declared.node.name}` declares it as required"
        yield Finding(PassingKind.REQUIRED_KEY, read.node, text)


def _optional_read(node: ast.AST) -> Read | None:
    match node:
        case ast.Compare(left=ast.Constant(value=str() as key), ops=[ast.In() | ast.NotIn()], comparators=[holder]):
            return Read(node, key, holder)
        case ast.Call(func=ast.Attribute(value=holder, attr="get"), args=[ast.Constant(value=str() as key), *_]):
            return Read(node, key, holder)
        case ast.Call(func=ast.Name(id="hasattr"), args=[holder, ast.Constant(value=str() as key)]):
            return Read(node, key, holder, is_attribute=True)
        case ast.Call(func=ast.Name(id="getattr"), args=[holder, ast.Constant(value=str() as key), _]):
            return Read(node, key, holder, is_attribute=True)
    return None


def _requires(declared: Definition, read: Read) -> bool:
    """Whether a class declares a key itself, and as required: a TypedDict's key, or a field of a dataclass."""
    field = _field(declared, read.key)
    if field is None or not isinstance(declared.node, ast.ClassDef):
        return False
    if read.is_attribute:
        decorators = (one.func if isinstance(one, ast.Call) else one for one in declared.node.decorator_list)
        is_dataclass = any(dotted(one).rpartition(".")[2] == "dataclass" for one in decorators)
        return is_dataclass and field.value is None
    is_typed_dict = any(dotted(base).rpartition(".")[2] == "TypedDict" for base in declared.node.bases)
    partial = any(one.arg == "total" for one in declared.node.keywords)
    return is_typed_dict and not partial and not _is_marked(field.annotation)


def _is_marked(annotation: ast.expr) -> bool:
    """Whether a type says itself whether its key may be missing; one in quotes is not read."""
    if isinstance(annotation, ast.Constant):
        return True
    names = {
        dotted(node).rpartition(".")[2] for node in walk(annotation) if isinstance(node, (ast.Name, ast.Attribute))
    }
    return "NotRequired" in names


def _field(declared: Definition, key: str) -> ast.AnnAssign | None:
    for statement in declared.node.body:
        if isinstance(statement, ast.AnnAssign) and dotted(statement.target) == key:
            return statement
    return None


@dataclass
class _Types:
    """The classes of expressions in a file, as far as annotations of the checkout say them."""

    document: PythonDocument

    def of(self, node: ast.expr, function: ast.AST | None, steps: int = _MAX_STEPS) -> Definition | None:
        """Return the class of an expression in a function, None if it is not known."""
        if not steps or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return None
        match node:
            case ast.Name(id=name):
                return self._of_name(name, function, steps)
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return self._of_own_attribute(name, function, steps)
            case ast.Subscript(value=holder, slice=ast.Constant(value=str() as key)):
                return self._of_field(self.of(holder, function, steps - 1), key)
            case ast.Attribute(value=holder, attr=key):
                return self._of_field(self.of(holder, function, steps - 1), key)
        return None

    def _of_field(self, declared: Definition | None, key: str) -> Definition | None:
        field = _field(declared, key) if declared else None
        if declared is None or field is None:
            return None
        return _class(field.annotation, Definitions(declared.module, declared.examined))

    def _of_name(self, name: str, function: Function, steps: int) -> Definition | None:
        """Return the class of a variable that a function assigns once, or of a parameter that it never assigns."""
        every = function.args
        parameters = [one for one in (*every.posonlyargs, *every.args, *every.kwonlyargs) if one.arg == name]
        names = (node for node in walk(function) if isinstance(node, ast.Name) and node.id == name)
        stores = sum(not isinstance(node.ctx, ast.Load) for node in names)
        if parameters:
            return None if stores else _class(parameters[0].annotation, self.document.definitions)
        values = values_assigned(function, name)
        return self.of(values[0], function, steps - 1) if len(values) == stores == 1 else None

    def _of_own_attribute(self, name: str, function: Function, steps: int) -> Definition | None:
        """Return the class of an attribute that `__init__` sets once."""
        source = self.document.source
        assert source is not None
        around = source.parent(function)
        for method in around.body if isinstance(around, ast.ClassDef) else ():
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                values = values_assigned(method, f"self.{name}")
                return self.of(values[0], method, steps - 1) if len(values) == 1 else None
        return None


def _class(annotation: ast.expr | None, definitions: Definitions) -> Definition | None:
    """Return the class that an annotation names; None if it names several or is not of the checkout."""
    match annotation:
        case ast.Subscript(value=value, slice=inner) if dotted(value).rpartition(".")[2] in WRAPPERS:
            return _class(inner.elts[0] if isinstance(inner, ast.Tuple) else inner, definitions)
        case ast.Constant(value=str() as name):
            definition = definitions.of(name) if name.isidentifier() else None
        case ast.Name() | ast.Attribute():
            definition = definitions.of(dotted(annotation))
        case _:
            definition = None
    return definition if definition is not None and isinstance(definition.node, ast.ClassDef) else None
