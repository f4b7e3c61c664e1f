"""Types whose fields are keys of a mapping: TypedDicts, and classes that a mapping fills (``Options(**config)``).

The fields of a TypedDict are optional keys. Those of a dataclass or of a pydantic model have defaults.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import Source, dotted
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
    is_filled: bool = False
    """Whether a mapping may fill objects of the class; otherwise it is a TypedDict."""

    @property
    def name(self) -> str:
        """The name of the class."""
        return self.node.name

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

    def field_of(self, name: str, source: Source) -> str:
        """Return the annotation of a new key of a TypedDict as text."""
        old = [field for field in self.fields if source.of(field.target) in source.catalogue.deprecated]
        assert isinstance(old[0].annotation, ast.Subscript)
        return f"{source.of(old[0].annotation.value)}[{_type_of(name, old, source)}]"


def _type_of(name: str, old: Sequence[ast.AnnAssign], source: Source) -> str:
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


def key_types_in(source: Source) -> list[KeyType]:
    """Return the TypedDicts and other classes of a file whose fields are captured settings.

    Each such field is optional, or it has a default that the code shows.
    """
    types = (_key_type(node, source) for node in source.walk() if isinstance(node, ast.ClassDef))
    return [one for one in types if one is not None]


def _key_type(node: ast.ClassDef, source: Source) -> KeyType | None:
    fields = tuple(
        statement
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id in source.catalogue.captures
    )
    if not fields:
        return None
    if any(dotted(base).endswith("TypedDict") for base in node.bases):
        optional = (dotted(getattr(field.annotation, "value", field)).endswith("NotRequired") for field in fields)
        return KeyType(node, fields) if all(optional) else None
    is_filled = _is_dataclass(node) or any(dotted(base).endswith("BaseModel") for base in node.bases)
    if not is_filled or any(default_of(field.value) is None for field in fields):
        return None
    filled = KeyType(node, fields, is_filled=True)
    return None if any(filled.restricted()) or not all(map(_admits_new, fields)) else filled


def _is_dataclass(node: ast.ClassDef) -> bool:
    names = (dotted(getattr(one, "func", one)) for one in node.decorator_list)
    return any(name in ("dataclass", "dataclasses.dataclass") for name in names) and not node.bases


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
