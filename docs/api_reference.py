"""The reference of the Python API: each field of its types, from the docstrings beside the fields."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum

import cgmigrate

TYPES = (
    *(cgmigrate.Options, cgmigrate.Diagnostic, cgmigrate.Result, cgmigrate.Report, cgmigrate.Unread),
    cgmigrate.Diagnosis,
    *(cgmigrate.Reader, cgmigrate.Capture, cgmigrate.Layers, cgmigrate.Iteration, cgmigrate.Blocks),
    *(cgmigrate.Backend, cgmigrate.Rejected),
)
"""The types that the reference describes, in its order."""
_REFERENCE = re.compile(r"(?<=<!-- reference, by docs/build.py -->\n\n).*?(?=<!-- end of the reference -->)", re.DOTALL)


def with_reference(page: str) -> str:
    """Return the page with the reference between its comments."""
    parts = [part for kind in TYPES for part in (f"### `{kind.__name__}`", *_described(kind))]
    text, count = _REFERENCE.subn("\n\n".join(parts).replace("\\", r"\\") + "\n\n", page)
    assert count == 1, "the page has a place for the reference"
    return text


def _described(kind: type) -> Iterator[str]:
    """Yield what a type is, and its fields or members as a table."""
    yield _inline(inspect.cleandoc(kind.__doc__ or ""))
    says = {**_docstrings(kind), **_properties(kind)}
    if issubclass(kind, Enum):
        rows = [("member", "value", "what it is"), *((one.name, f"`{one.value}`", says[one.name]) for one in kind)]
    else:
        assert is_dataclass(kind)
        rows = [("field", "type", "meaning"), *((one.name, _type(one), says[one.name]) for one in fields(kind))]
        rows += [(name, f"`{_returned(kind, name)}`", says[name]) for name in _properties(kind)]
    if len(rows) > 1:
        head, *others = rows
        yield "\n".join([_row(*head), "|---|---|---|", *(_row(f"`{name}`", *rest) for name, *rest in others)])


def _docstrings(kind: type) -> dict[str, str]:
    """Return the text below each field or member in the source of a type."""
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    texts: dict[str, str] = {}
    for one, following in zip(definition.body, definition.body[1:], strict=False):
        target = (
            one.target if isinstance(one, ast.AnnAssign) else one.targets[0] if isinstance(one, ast.Assign) else None
        )
        if (
            isinstance(target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            texts[target.id] = _inline(str(following.value.value))
    return texts


def _properties(kind: type) -> dict[str, str]:
    """Return the text of each property of a dataclass."""
    members = {} if issubclass(kind, Enum) else vars(kind)
    return {name: _inline(one.__doc__ or "") for name, one in members.items() if isinstance(one, property)}


def _returned(kind: type, name: str) -> str:
    return str(inspect.signature(vars(kind)[name].fget).return_annotation)


def _type(field: Field[object]) -> str:
    """Return the type of a field and its default, where it has one."""
    name = str(field.type).replace("AnyPath", "str | os.PathLike[str]")
    default = "" if field.default is MISSING else f", default `{field.default!r}`"
    return f"`{name}`{default}"


def _row(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _inline(text: str) -> str:
    """Return a docstring as one paragraph of Markdown."""
    return " ".join(text.replace("``", "`").split())
