"""Edits of code that copies keys of a mapping by their names, so that it copies further names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from cgmigrate.documents.python.key_copies import KeyCopier, NameList
from cgmigrate.documents.python.key_types import KeyType
from cgmigrate.documents.python.lines import line_end, line_start, newline_near, rest_of_line
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.documents.sites import CannotEditError
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
        if not copier.lists:
            raise CannotEditError(-1, "code copies its keys one by one, which is not rewritten")
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
