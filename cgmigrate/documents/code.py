"""Code: text that a file has in parts, with the way back to the file.

The characters of code are those of the file, but some are written otherwise there: a line break may be two characters
in the file, and `$` may be `$$`. Lines of the file that are no code, such as comments, are skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from cgmigrate.text.spans import Span


class CannotMapError(ValueError):
    """A change of code has no counterpart in the file; the message says why."""


@dataclass(frozen=True)
class CodeText:
    """Code of a file. ``starts`` and ``ends`` are where each of its characters begins and ends in the file."""

    text: str = ""
    starts: Sequence[int] = ()
    ends: Sequence[int] = ()

    @classmethod
    def of(cls, file: str, start: int, end: int) -> CodeText:
        """Return a part of a file as it is written, with line feeds as line breaks."""
        parts = []
        at = file.find("\r\n", start, end)
        while at >= 0:
            parts += [cls._same(file, start, at), cls.written_as("\n", at, at + 2)]
            start = at + 2
            at = file.find("\r\n", start, end)
        rest = cls._same(file, start, end)
        return cls.joined([*parts, rest]) if parts else rest

    @classmethod
    def _same(cls, file: str, start: int, end: int) -> CodeText:
        return cls(file[start:end], range(start, end), range(start + 1, end + 1))

    @classmethod
    def written_as(cls, character: str, start: int, end: int) -> CodeText:
        """Return one character that the file writes otherwise, from ``start`` to ``end``."""
        return cls(character, (start,), (end,))

    @classmethod
    def joined(cls, parts: Sequence[CodeText]) -> CodeText:
        """Return several parts as one."""
        starts = [start for part in parts for start in part.starts]
        return cls("".join(part.text for part in parts), starts, [end for part in parts for end in part.ends])

    def inside(self, around: CodeText) -> CodeText:
        """Return code whose places are those of other code as code of the file."""
        starts = [around.starts[start] for start in self.starts]
        return CodeText(self.text, starts, [around.ends[end - 1] for end in self.ends])

    def __bool__(self) -> bool:
        return bool(self.text)

    @cached_property
    def _positions(self) -> dict[int, int]:
        return {start: at for at, start in enumerate(self.starts)}

    def position(self, offset: int) -> int | None:
        """Return where a character of the file is in the code, None if it is not in it."""
        return self._positions.get(offset)

    def span(self, span: Span) -> Span:
        """Return where a part of the code is in the file: from its first character there to its last one."""
        starts, ends = self.starts[span.start : span.end], self.ends[span.start : span.end]
        return Span(min(starts), max(ends)) if starts else Span(*[self._place(span.start)] * 2)

    def replaced(self, start: int, end: int) -> Span:
        """Return the part of the file to replace for a part of the code. Raises CannotMapError."""
        if start == end:
            return Span(*[self._place(start)] * 2)
        starts, ends = self.starts[start:end], self.ends[start:end]
        if any(one != other for one, other in zip(ends, starts[1:], strict=False)):
            raise CannotMapError("a comment or an empty line is between the lines that would change")
        return Span(starts[0], ends[-1])

    def _place(self, at: int) -> int:
        """Return where an insertion is in the file."""
        return self.ends[at - 1] if at else self.starts[0]
