"""Edits of code that copies keys of a mapping by their names, so that it copies further names."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from cgmigrate.documents.python.key_copies import CopyStatement, KeyCopier, NameList
from cgmigrate.documents.python.key_types import KeyType
from cgmigrate.documents.python.lines import line_end, line_start, newline_near, rest_of_line
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.edits import Edit


class KeyCopyText(NamedTuple):
    """What to report about a copied key: ``message`` with ``{name}`` for the key, and what the fix does."""

    message: str
    field: str
    """The message about a field of a TypedDict."""
    fix: str


def edits_of(copiers: Mapping[int, Collection[str]], every: Sequence[KeyCopier], source: PythonSource) -> list[Edit]:
    """Return the edits with which copiers copy further names as well, by their positions in ``every``.

    Raises CannotEditError.
    """
    edits: list[Edit] = []
    lists: dict[int, tuple[NameList, dict[str, None]]] = {}
    for at, names in copiers.items():
        copier = every[at]
        for of_list in copier.lists:
            lists.setdefault(id(of_list.node), (of_list, {}))[1].update(dict.fromkeys(names))
        if not copier.lists or copier.required:
            edits += _statement_edits(copier, [] if copier.lists else list(names), source)
    for of_list, required in lists.values():
        present = {str(element.value) for element in of_list.names}
        edits += _list_edits(of_list, [name for name in required if name not in present], source)
    return edits


def type_edits(types: Sequence[KeyType], names: Collection[str], source: PythonSource) -> Iterator[Edit]:
    """Yield the edits with which TypedDicts have further keys as well. Raises CannotEditError."""
    for key_type in types:
        new = [name for name in names if name not in key_type.names]
        if new and key_type.deprecated(source):
            yield from _field_edits(key_type, new, source)


def _field_edits(key_type: KeyType, names: Sequence[str], source: PythonSource) -> Iterator[Edit]:
    text = source.text
    spans = [source.span(field) for field in key_type.deprecated(source)]
    starts, ends = [line_start(text, span.start) for span in spans], [line_end(text, span.end) for span in spans]
    for start, span in zip(starts, spans, strict=True):
        if text[start : span.start].strip() or rest_of_line(text, span.end):
            raise CannotEditError(-1, "a key shares its line with something else")
    indent, newline = text[starts[0] : spans[0].start], newline_near(text, starts[0])
    fields = "".join(f"{indent}{name}: {key_type.field_of(name, source)}{newline}" for name in names)
    yield Edit(ends[-1], ends[-1], ("" if text[: ends[-1]].endswith("\n") else newline) + fields)


def _list_edits(of_list: NameList, names: Sequence[str], source: PythonSource) -> Iterator[Edit]:
    if not names:
        return
    elements = of_list.names
    spans = [source.span(element) for element in elements]
    old = [at for at, element in enumerate(elements) if element.value in source.catalogue.deprecated]
    last = spans[old[-1] if old else -1]
    quote = source.text[last.start]
    if quote not in "\"'" or any(source.text[span.start] not in "\"'" for span in spans):
        raise CannotEditError(-1, "a name is written in an unusual way")
    first = line_start(source.text, last.start)
    indent = source.text[first : last.start]
    own_line = not indent.strip() and len(elements) > 1
    between = f",{newline_near(source.text, first)}{indent}" if own_line else ", "
    text = between.join(f"{quote}{name}{quote}" for name in names)
    yield Edit(last.end, last.end, between + text)


def _statement_edits(copier: KeyCopier, names: Sequence[str], source: PythonSource) -> Iterator[Edit]:
    """Yield the edits that copy further names with statements, beside the deprecated ones."""
    text = source.text
    old = [one for one in copier.statements if one.name in source.catalogue.deprecated]
    starts = [line_start(text, source.span(one.nodes[0]).start) for one in old]
    for statement, start in zip(old, starts, strict=True):
        span = source.span(statement.nodes[0])
        if text[start : span.start].strip() or rest_of_line(text, source.span(statement.nodes[-1]).end):
            raise CannotEditError(-1, "the statement shares its line with another one")
    if not old:
        return
    indent = text[starts[0] : source.span(old[0].nodes[0]).start]
    layout = indent, newline_near(text, starts[0])
    copies = "".join(_copy(name, copier, old[0], source, layout) for name in names)
    ends = [line_end(text, source.span(one.nodes[-1]).end) for one in old]
    for statement, start, end in zip(old, starts, ends, strict=True):
        added = copies if statement is old[-1] else ""
        if names and statement.default is not None:
            changed = _span_of_changed(statement.name, statement.default, source)
            yield from [Edit(*changed, "None")] if changed else []
        if not statement.is_guarded:
            yield Edit(start, end, _copy(statement.name, copier, statement, source, layout) + added)
        elif added:
            yield Edit(end, end, ("" if text[:end].endswith("\n") else layout[1]) + added)


def _span_of_changed(name: str, default: ast.expr, source: PythonSource) -> tuple[int, int] | None:
    """Return the span of a default that must not be set beside a new name, None if it may stay."""
    value = ast.literal_eval(default)
    if not hasattr(default, "lineno") or new_default(name, value, source.catalogue) == value:
        return None
    span = source.span(default)
    return span.start, span.end


def new_default(name: str, value: object, catalogue: Catalogue) -> object:
    """Return what a deprecated setting is if its mapping lacks it, once the new names are copied beside it."""
    setting = catalogue[name]
    return None if setting.deprecated and not setting.is_flag else value


def _copy(name: str, copier: KeyCopier, like: CopyStatement, source: PythonSource, layout: tuple[str, str]) -> str:
    """Return the statement that copies a key if the mapping has it, in the style of another one."""
    indent, newline = layout
    quote = '"' if like.is_attribute else source.text[source.span(like.key).start]
    if quote not in "\"'" or "\n" in copier.mapping:
        raise CannotEditError(-1, "a name is written in an unusual way")
    key = f"{quote}{name}{quote}"
    value = f"{copier.mapping}.{name}" if like.is_attribute else f"{copier.mapping}[{key}]"
    target = f"{copier.target}[{key}]" if like.is_item else f"{copier.target}.{name}"
    step = _step(like, source, indent)
    return f"{indent}if {key} in {copier.mapping}:{newline}{indent}{step}{target} = {value}{newline}"


def _step(like: CopyStatement, source: PythonSource, indent: str) -> str:
    """Return by how much the body of the statement is indented."""
    last = like.nodes[-1]
    if not isinstance(last, ast.If):
        return "\t" if indent.endswith("\t") else "    "
    inner = source.span(last.body[0]).start
    column = source.text[line_start(source.text, inner) : inner]
    return column[len(indent) :] if column.startswith(indent) and not column.strip() and column != indent else "    "
