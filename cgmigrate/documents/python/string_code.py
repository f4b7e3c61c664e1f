"""The text of a string literal that is code, with the way from each character back to the file.

The text has to be that which Python reads; where it is not, as with rare escapes, there is none. A string of several
literals is read as one text; what is between two of them is no part of it.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.code import CannotMapError, Code
from cgmigrate.documents.python.source import Source
from cgmigrate.text.spans import Span

_LITERAL = re.compile(
    r"(?P<raw>[rRuU]?)(?:(?P<quote>\"\"\"|''')(?:[^\\]|\\.)*?(?P=quote)"
    r"|(?P<one>[\"'])(?:(?!(?P=one))[^\\\n]|\\(?:\r\n|.))*(?P=one))",
    re.DOTALL,
)
_BETWEEN = re.compile(r"(?:[ \t\f\r\n]|\\\r?\n|#[^\n]*)+")
"""What may be between two literals of one string."""
_ESCAPE = re.compile(r"\\(\r\n|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "'": "'", "\\": "\\"}
_RAW = ("r", "R")
_JOINED = ("\n", "\r\n")
"""Line breaks that a backslash takes out of the text."""
_NEW = re.compile(r"[\w./=@%+:, \n\\-]*", re.ASCII)
"""New text that no quotes and no escapes end; its backslashes and line breaks are written as the string does it."""
_WORD = re.compile(r"[\w./:=,@%+^-]+", re.ASCII)
"""A word that is the same for a shell and for whoever divides the text."""
_OTHER_BLANK = re.compile(r"[^\S \t\n]")
"""A character that divides words for Python, and not for a shell."""
_WORDS = re.compile(r"\S+")
_QUOTED_WORDS = re.compile(r"(?:[^\s\"'\\]|\"[^\"\\]*\"|'[^']*')+")
_UNKNOWN = '"$_"'
"""A word that is not followed."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string literal: where its text begins and ends in the file, all of it, and how it is written."""

    start: int
    end: int
    span: Span
    is_raw: bool
    is_long: bool


def literals(node: ast.Constant, source: Source) -> list[Literal]:
    """Return the literals that a string consists of, none if that is not certain."""
    span = source.span(node)
    result: list[Literal] = []
    at = span.start
    while match := _LITERAL.match(source.text, at, span.end):
        width = 3 if match["quote"] else 1
        inner = Span(match.end("raw") + width, match.end() - width)
        result.append(Literal(inner.start, inner.end, Span(*match.span()), match["raw"] in _RAW, width > 1))
        between = _BETWEEN.match(source.text, match.end(), span.end)
        at = between.end() if between else match.end()
    is_same_kind = len({(one.is_raw, one.is_long) for one in result}) == 1
    return result if result and result[-1].span.end == span.end and is_same_kind else []


def string_code(node: ast.Constant, source: Source) -> Code | None:
    """Return the text of a string as Python reads it, None if the way back to the file is not certain."""
    parts = [_code(one, source.text) for one in literals(node, source)]
    code = Code.joined([part for part in parts if part is not None])
    return code if parts and None not in parts and code.text == node.value else None


def _code(literal: Literal, text: str) -> Code | None:
    start, end = literal.start, literal.end
    return Code.of(text, start, end) if literal.is_raw else _unescaped(text, start, end)


def script_code(node: ast.Constant, source: Source) -> Code | None:
    """Return the text of a string for a shell, None if the way back to the file is not certain.

    Where Python joins the lines of a command, the text has them as they are written: a shell would join them as well.
    """
    if _OTHER_BLANK.search(str(node.value)):
        return None
    every = literals(node, source)
    joined = _joins(every[0], source.text) if len(every) == 1 else 0
    if not joined:
        return string_code(node, source)
    (literal,) = every
    code = Code.of(source.text, joined, literal.end)
    is_same = code.text.replace("\\\n", "") == node.value
    # A shell keeps a backslash in single quotes, and a comment ends with its line.
    return code if is_same and "'" not in code.text and "#" not in code.text else None


def _joins(literal: Literal, text: str) -> int:
    """Return where a text begins, behind a join at its start; 0 if Python joins no lines in it, or it has escapes."""
    escapes = [] if literal.is_raw else list(_ESCAPE.finditer(text, literal.start, literal.end))
    start = escapes[0].end() if escapes and escapes[0].start() == literal.start else literal.start
    inside = [match for match in escapes if match.start() >= start]
    return start if inside and all(match[1] in _JOINED for match in escapes) else 0


def _unescaped(text: str, start: int, end: int) -> Code | None:
    parts: list[Code] = []
    for match in _ESCAPE.finditer(text, start, end):
        parts.append(Code.of(text, start, match.start()))
        if match[1] not in _JOINED:
            if match[1] not in _ESCAPES:
                return None
            parts.append(Code.written_as(_ESCAPES[match[1]], *match.span()))
        start = match.end()
    return Code.joined([*parts, Code.of(text, start, end)])


def written_in(node: ast.Constant, source: Source) -> Callable[[str], str]:
    """Return the function that writes new text in the way of a string; it raises CannotMapError."""
    literal, *others = literals(node, source)
    joins = not others and bool(_joins(literal, source.text))

    def written(text: str) -> str:
        rest = text.replace("\\\n", "") if joins else text
        is_broken = "\n" in rest and not literal.is_long and (literal.is_raw or joins)
        if not _NEW.fullmatch(text) or is_broken or (joins and "\\" in rest):
            raise CannotMapError("the new text cannot be written in this string")
        if literal.is_raw or joins:
            return text
        text = text.replace("\\", "\\\\")
        return text if literal.is_long else text.replace("\n", "\\n")

    return written


def words_of(code: Code, names: Sequence[int], *, quoted: bool) -> Code | None:
    """Return a text as the words of a command, None if one with a flag of a setting is not followed.

    ``quoted`` says that quotes hold words together. ``names`` is where flags of settings begin in the file.
    """
    tokens = list(_tokens(code.text, quoted=quoted))
    if not tokens or (quoted and not _are_all(tokens, code.text)):
        return None
    parts: list[Code] = []
    before = 0
    for token in tokens:
        word = _unquoted(code[token.start : token.end]) if quoted else code[token.start : token.end]
        if parts:
            # All that is between two words is one blank: a line break in it ends no command.
            parts.append(Code.written_as(" ", code.starts[before], code.ends[token.start - 1]))
        if not _WORD.fullmatch(word.text):
            if any(word.starts[0] <= name < word.ends[-1] for name in names):
                return None
            word = Code.added(_UNKNOWN)
        parts.append(word)
        before = token.end
    return Code.joined(parts)


def _unquoted(word: Code) -> Code:
    """Return a word without the quotes around all of it: they belong to its first and last characters."""
    if len(word.text) < 3 or word.text[0] not in "\"'" or not _WORD.fullmatch(word.text[1:-1]):
        return word
    starts, ends = list(word.starts[1:-1]), list(word.ends[1:-1])
    starts[0], ends[-1] = word.starts[0], word.ends[-1]
    return Code(word.text[1:-1], starts, ends)


def _tokens(text: str, *, quoted: bool) -> Iterator[Span]:
    return (Span(*match.span()) for match in (_QUOTED_WORDS if quoted else _WORDS).finditer(text))


def _are_all(tokens: Sequence[Span], text: str) -> bool:
    """Return whether each token is one word as ``shlex`` divides the text."""
    try:
        return [shlex.split(text[one.start : one.end]) for one in tokens] == [[word] for word in shlex.split(text)]
    except ValueError:
        return False
