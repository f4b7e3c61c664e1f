"""The parts of a notebook: the Python code of all cells as one program, and each command of a shell."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.code import CannotMapError, Code
from cgmigrate.documents.nesting import Part
from cgmigrate.documents.notebook.cells import Cell
from cgmigrate.documents.notebook.document import NotebookDocument
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_PYTHON, _SCRIPT = "cells.py", "cell.sh"
_NOT_READ = "a cell that is not read names a setting, too"
_ANY_ORDER = "the cells may run in another order than they are written in"


@dataclass(frozen=True, eq=False, slots=True)
class CellsPart(Part):
    """Code of some cells."""

    cells: tuple[Cell, ...] = ()

    @property
    def pieces(self) -> Sequence[Span]:
        """The sources of the cells."""
        return [cell.span for cell in self.cells]

    def edit(self, edit: Edit, file: str) -> Edit:  # noqa: ARG002 (an override)
        """Return the edit of the file that makes an edit of the part. Raises CannotMapError."""
        error: CannotMapError | None = None
        for same in self._alike(edit):
            try:
                span = self.code.replaced(same.start, same.end)
            except CannotMapError as reason:
                error = error or reason
                continue
            return Edit(span.start, span.end, self._written(same.text, span.start))
        raise error or CannotMapError("no cell has the place")

    def _alike(self, edit: Edit) -> Iterator[Edit]:
        """Yield edits with the same result: whole lines have a line break above them, and one at their end."""
        text, start, end = self.code.text, edit.start, edit.end
        is_above = start > 0 and text[start - 1] == "\n"
        if is_above and end > start and text[end - 1] == "\n" and not edit.text:
            yield Edit(start - 1, end - 1, "")
        if is_above and start == end and edit.text.endswith("\n"):
            # Behind the last line of a cell is its own line break, not that of the next cell.
            yield Edit(start - 1, start - 1, f"\n{edit.text[:-1]}")
        else:
            yield edit

    def _written(self, text: str, offset: int) -> str:
        """Return new code as the strings of a cell have it."""
        between = next((cell.between for cell in self.cells if cell.span.start <= offset <= cell.span.end), "")
        line_break = f'\\n"{between}"' if between else "\\n"
        return line_break.join(json.dumps(line)[1:-1] for line in text.split("\n"))


def parts_of(document: NotebookDocument, numbers: Collection[int] | None) -> list[Part]:
    """Return the code in the cells of a notebook: that with some numbers, or that with settings."""
    names = document.names
    parts = [_python(document.cells, names)] if any(cell.python for cell in document.cells) else []
    commands = ((cell, command) for cell in document.cells for command in cell.commands)
    for number, (cell, command) in enumerate(commands, 1):
        span = Span(command.starts[0], command.ends[-1]) if command else cell.span
        parts.append(CellsPart(number, span, command, _SCRIPT, cells=(cell,)))
    if numbers is not None:
        return [part for part in parts if part.number in numbers]
    return [part for part in parts if any(part.has(name) for name in names)]


def _python(cells: Sequence[Cell], names: Sequence[int]) -> CellsPart:
    own = tuple(cell for cell in cells if cell.python is not None)
    code = Code.joined([one for cell in own for one in (cell.python or Code(), Code.added("\n"))])
    with_name = [cell for cell in own if any(_has(cell.python, name) for name in names)]
    is_unread = any(not any(cell.reads(name) for cell in cells) for name in names)
    return CellsPart(
        0,
        Span(own[0].span.start, own[-1].span.end),
        code,
        _PYTHON,
        cells=own,
        blocked_by=_NOT_READ if is_unread else "",
        risk=_ANY_ORDER if len(with_name) > 1 else "",
    )


def _has(code: Code | None, offset: int) -> bool:
    return code is not None and code.position(offset) is not None
