"""Edits of the import of ``CudaGraphScope``: renamed, joined by ``CudaGraphModule``, or deleted."""

from __future__ import annotations

import ast
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence

from cgmigrate.documents.python.name_resolution import MODULE_CLASS, SCOPE_CLASS, Names
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.release_checks import caught_for_releases
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.text.edits import Edit
from cgmigrate.text.remembered import remembered
from cgmigrate.text.spans import Span

# Not as an attribute of a module: `enums.CudaGraphModule` needs no import of its own.
_NEW = re.compile(rf"(?<![\w.]){MODULE_CLASS}\b")


def import_edits(source: PythonSource, names: Names, edits: Sequence[Edit]) -> list[Edit]:
    """Return the edits of imports that other edits of the file require; none when those change no class."""
    before = references(source, names)
    replaced = _inside(before, edits)
    if not replaced:
        return []
    remaining = Counter(name for name, _ in before) - Counter(name for name, _ in replaced)
    uses_new = any(_NEW.search(edit.text) for edit in edits)
    has_new = any(full.endswith("." + MODULE_CLASS) for full in names.full.values())
    changed = {name for name, _ in replaced}
    result: list[Edit] = []
    for statement in imports_of_scope(source, names):
        result += _rewritten(source, statement, changed, remaining, uses_new and not has_new)
    return result


def _inside(named: Sequence[tuple[str, Span]], edits: Sequence[Edit]) -> list[tuple[str, Span]]:
    """Return the names that edits replace; ``named`` is in the order of the text."""
    replaced: dict[int, tuple[str, Span]] = {}
    for edit in edits:
        at = bisect_left(named, edit.start, key=lambda pair: pair[1].start)
        while at < len(named) and named[at][1].end <= edit.end:
            replaced[at] = named[at]
            at += 1
    return list(replaced.values())


@remembered
def imports_of_scope(source: PythonSource, names: Names) -> list[ast.ImportFrom]:
    """Return the imports of ``CudaGraphScope`` that may be edited; those that check the release may not."""
    imports = []
    for node in source.walk():
        if isinstance(node, ast.ImportFrom) and any(alias.name == SCOPE_CLASS for alias in node.names):
            tries = [above for above in source.ancestors(node) if isinstance(above, ast.Try)]
            guarded = any(caught_for_releases(above, source.catalogue) for above in tries)
            local = next(alias.asname or alias.name for alias in node.names if alias.name == SCOPE_CLASS)
            if not guarded and local not in names.shadowed and names.full.get(local, "").startswith("megatron."):
                imports.append(node)
    return imports


@remembered
def references(source: PythonSource, names: Names) -> list[tuple[str, Span]]:
    """Return where the file names ``CudaGraphScope``, by its local names; a string that is the name counts as well.

    Read once, since each fix is also checked by itself.
    """
    return sorted(_references(source, names), key=lambda pair: pair[1].start)


def _references(source: PythonSource, names: Names) -> list[tuple[str, Span]]:
    locals_ = {local for local, full in names.full.items() if full.rpartition(".")[2] == SCOPE_CLASS}
    if not locals_:
        return []
    named: list[tuple[str, Span]] = []
    # Lines with the class under its own name are known; another name may be on any line.
    for node in source.walk() if locals_ == {SCOPE_CLASS} else walk(source.tree):
        if isinstance(node, ast.Name) and node.id in locals_:
            named.append((node.id, source.span(node)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in locals_:
            named.append((node.value, source.span(node)))
    return named


def _rewritten(
    source: PythonSource, statement: ast.ImportFrom, changed: set[str], remaining: Counter[str], needs_new: bool
) -> Iterable[Edit]:
    at = next(at for at, alias in enumerate(statement.names) if alias.name == SCOPE_CLASS)
    alias = statement.names[at]
    local = alias.asname or alias.name
    span = source.span(alias)
    if local not in changed:
        return []
    if remaining[local]:
        if not needs_new:
            return []
        first = source.text.rfind("\n", 0, span.start) + 1
        lead = source.text[first : span.start]
        own_line = not lead.strip() and first > source.span(statement).start
        return [
            Edit(span.start, span.start, MODULE_CLASS + ("," + _newline(source, first) + lead if own_line else ", "))
        ]
    if needs_new:
        return [Edit(span.start, span.end, MODULE_CLASS)]
    return [_deleted(source, statement, at)]


def _newline(source: PythonSource, at: int) -> str:
    return "\r\n" if source.text[max(at - 2, 0) : at] == "\r\n" else "\n"


def _behind_blanks(text: str, first: int, end: int) -> int:
    """Return where to cut behind a line that is deleted, so that no more blank lines meet than were above it."""
    below = re.compile(r"(?:[ \t]*\r?\n)*").match(text, end)
    assert below is not None  # it can be empty
    spare = below.group().count("\n")
    if above := len(text[:first].rstrip(" \t\r\n")):
        # The line break that ends the statement above is no blank line.
        spare = min(spare, text.count("\n", above, first) - 1)
    for _ in range(max(spare, 0)):
        end = text.index("\n", end) + 1
    return end


def _deleted(source: PythonSource, statement: ast.ImportFrom, at: int) -> Edit:
    text = source.text
    spans = [source.span(alias) for alias in statement.names]
    if len(spans) == 1:
        whole = source.span(statement)
        first = text.rfind("\n", 0, whole.start) + 1
        end = text.find("\n", whole.end)
        alone = not text[first : whole.start].strip() and not text[whole.end : end].strip() and end >= 0
        if alone and not text[first : whole.start]:
            return Edit(first, _behind_blanks(text, first, end + 1), "")
        return Edit(whole.start, whole.end, "pass")
    first = text.rfind("\n", 0, spans[at].start) + 1
    # A comment on a line of its own name is about that name, and is deleted with it.
    tail = re.compile(r"[ \t]*,?[ \t]*(?:#[^\r\n]*)?\r?\n").match(text, spans[at].end)
    if not text[first : spans[at].start].strip() and tail:
        return Edit(first, tail.end(), "")
    cut = Span(spans[at].start, spans[at + 1].start) if at + 1 < len(spans) else Span(spans[at - 1].end, spans[at].end)
    return Edit(cut.start, cut.end, "")
