"""Types whose fields are keys of a mapping: TypedDicts, and classes that a mapping fills (``Options(**config)``).

The fields of a TypedDict are optional keys. Those of a dataclass or of a pydantic model have defaults.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.megatron.settings import MODULES, SCOPE

_PLAIN_TYPES = frozenset(
    ("NotRequired", "bool", "str", "list", "List", "Sequence", "Optional", "Union", "Any", "object")
)
"""The names in annotations that admit every value of a setting."""


@dataclass(frozen=True, slots=True, eq=False)
class KeyType:
    """A class whose fields are captured settings."""

    node: ast.ClassDef
    fields: tuple[ast.AnnAssign, ...]

    @property
    def names(self) -> frozenset[str]:
        """The names of the keys."""
        return frozenset(field.target.id for field in self.fields if isinstance(field.target, ast.Name))

    def restricted(self) -> Iterator[tuple[str, int]]:
        """Yield the keys whose annotation is more than the types of all values, each with its line."""
        for one in self.fields:
            names = (dotted(node).rpartition(".")[2] for node in walk(one.annotation))
            if isinstance(one.target, ast.Name) and not _PLAIN_TYPES.issuperset(filter(None, names)):
                yield one.target.id, one.lineno

    def deprecated(self, source: PythonSource) -> list[ast.AnnAssign]:
        """Return the fields that are deprecated settings."""
        return [field for field in self.fields if source.of(field.target) in source.catalogue.deprecated]

    def field_of(self, name: str, source: PythonSource) -> str:
        """Return the annotation of a new key of a TypedDict as text."""
        old = self.deprecated(source)
        assert isinstance(old[0].annotation, ast.Subscript)
        return f"{source.of(old[0].annotation.value)}[{_type_of(name, old, source)}]"


def _type_of(name: str, old: Sequence[ast.AnnAssign], source: PythonSource) -> str:
    """Return the type of a new key of a TypedDict; a scope that may be a string may be one afterwards, too."""
    if name != MODULES:
        return "str"
    scopes = [source.of(field.annotation) for field in old if source.of(field.target) == SCOPE]
    is_list = all("[list[str]" in text or "[List[str]" in text for text in scopes)
    return "list[str]" if is_list else "list[str] | str"


def _admits_new(field: ast.AnnAssign) -> bool:
    """Return whether a field admits what it gets beside the new ones: a scope becomes None."""
    if not isinstance(field.target, ast.Name) or field.target.id != SCOPE:
        return True
    words = {dotted(node).rpartition(".")[2] for node in walk(field.annotation)}
    is_none = any(isinstance(node, ast.Constant) and node.value is None for node in walk(field.annotation))
    return is_none or bool(words & {"Optional", "Any", "object"})


def typed_dicts_in(source: PythonSource) -> list[KeyType]:
    """Return the TypedDicts of a file with captured settings as keys; each of these keys is optional."""
    return [one for one in _key_types(source) if _is_typed_dict(one) and all(map(_is_optional, one.fields))]


def filled_classes_in(source: PythonSource) -> list[KeyType]:
    """Return the classes of a file that a mapping may fill: each captured setting has a default that the code shows.

    They admit what the settings get beside the new ones.
    """
    return [
        one
        for one in _key_types(source)
        if _may_be_filled(one.node)
        and all(default_of(field.value) is not None and _admits_new(field) for field in one.fields)
        and not any(one.restricted())
    ]


def _key_types(source: PythonSource) -> Iterator[KeyType]:
    for node in source.walk():
        if isinstance(node, ast.ClassDef) and (fields := tuple(_captured_fields(node, source))):
            yield KeyType(node, fields)


def _captured_fields(node: ast.ClassDef, source: PythonSource) -> Iterator[ast.AnnAssign]:
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name)) if name in source.catalogue.captures:
                yield statement


def _is_typed_dict(one: KeyType) -> bool:
    return any(dotted(base).endswith("TypedDict") for base in one.node.bases)


def _is_optional(field: ast.AnnAssign) -> bool:
    return dotted(getattr(field.annotation, "value", field)).endswith("NotRequired")


def _may_be_filled(node: ast.ClassDef) -> bool:
    decorators = (dotted(getattr(one, "func", one)) for one in node.decorator_list)
    is_dataclass = any(name in ("dataclass", "dataclasses.dataclass") for name in decorators)
    return (is_dataclass and not node.bases) or any(dotted(base).endswith("BaseModel") for base in node.bases)


def default_of(value: ast.expr | None) -> ast.expr | None:
    """Return the expression of the default of a field, None if it has none or it is not known."""
    match value:
        case ast.Call(func=func, args=args, keywords=keywords) if dotted(func).rpartition(".")[2] in ("field", "Field"):
            named = {keyword.arg: keyword.value for keyword in keywords}
            if named.keys() & {"alias", "validation_alias", "default_factory", "init"}:
                return None
            value = args[0] if args else named.get("default")
    try:
        ast.literal_eval(value) if value is not None else None
    except (ValueError, TypeError):
        return None
    return value
