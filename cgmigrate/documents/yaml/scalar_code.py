"""The text of a scalar that is code, with the way from each character back to the file.

The five styles of scalars are read: plain, in single and double quotes, literal (``|``) and folded (``>``). The text
has to be that which YAML reads; where it is not, as with rare escapes, there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from cgmigrate.documents.code import CannotMapError, CodeText
from cgmigrate.documents.yaml.tree import STR, Node

_HEADER = re.compile(r"[|>][+-]?[1-9]?[+-]?[ \t]*(?:#[^\n]*)?\r?\n")
_LINE = re.compile(r"([^\n]*?)\r?(?:\n|\Z)")
_FOLD = re.compile(r"[ \t]*\r?\n[ \t]*")
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\", "/": "/", " ": " "}
_SAFE = re.compile(r"[\w./=@%+ -]*", re.ASCII)
"""New text that is the same in every style."""


def scalar_code(node: Node, text: str) -> CodeText | None:
    """Return the text of a scalar as YAML reads it, None if the way back to the file is not certain."""
    if node.kind != "scalar" or node.tag not in (None, "!", STR) or not node.value:
        return None
    code = _READERS[node.style or ""](node, text)
    return code if code is not None and _is_same(code.text, node) else None


def _is_same(text: str, node: Node) -> bool:
    """Return whether a text is that of a scalar; line breaks at the end of a block are not counted."""
    return text == node.value or (node.style in ("|", ">") and text.rstrip("\n") == node.value.rstrip("\n"))


def _literal(node: Node, text: str) -> CodeText | None:
    lines = _block_lines(node, text)
    if lines is None:
        return None
    parts = _joined_by("\n", lines, text)
    if node.value.endswith("\n") and (match := re.compile(r"\r?\n").match(text, lines[-1][1])):
        parts.append(CodeText.written_as("\n", *match.span()))
    return CodeText.joined(parts)


def _joined_by(between: str, lines: Sequence[tuple[int, int]], text: str) -> list[CodeText]:
    """Return lines as code, with what the scalar's text has between them."""
    parts = []
    for (start, end), (after, _) in zip(lines, [*lines[1:], (None, None)], strict=True):
        parts.append(CodeText.of(text, start, end))
        if after is not None:
            parts.append(CodeText.written_as(between, end, after))
    return parts


def _block_lines(node: Node, text: str) -> list[tuple[int, int]] | None:
    """Return where the lines of a block begin, behind their indentation, and end."""
    header = _HEADER.match(text, node.start)
    if header is None:
        return None
    last = text.find("\n", node.end)
    lines, at = list[tuple[int, int]](), header.end()
    while at < (len(text) if last < 0 else last):
        match = _LINE.match(text, at)
        assert match is not None
        lines.append(match.span(1))
        at = match.end()
    indents = [end - start - len(text[start:end].lstrip(" ")) for start, end in lines if text[start:end].strip()]
    if not indents:
        return None
    # A block that begins with blanks says how many of them are indentation.
    indent = min(indents)
    return [(min(start + indent, end), end) for start, end in lines]


def _folded(node: Node, text: str) -> CodeText | None:
    lines = _block_lines(node, text)
    return None if lines is None else CodeText.joined(_joined_by(" ", lines, text))


def _plain(node: Node, text: str) -> CodeText:
    return CodeText.joined(list(_with_folds(text, node.start, node.end)))


def _with_folds(text: str, start: int, end: int) -> Iterator[CodeText]:
    """Yield text whose line breaks are blanks."""
    for fold in _FOLD.finditer(text, start, end):
        yield CodeText.of(text, start, fold.start())
        yield CodeText.written_as(" ", *fold.span())
        start = fold.end()
    yield CodeText.of(text, start, end)


def _single(node: Node, text: str) -> CodeText:
    return CodeText.joined(list(_with_escapes(text, node, re.compile("''"), lambda _: "'")))


def _double(node: Node, text: str) -> CodeText:
    escapes = re.compile(r"\\(.)", re.DOTALL)
    return CodeText.joined(list(_with_escapes(text, node, escapes, lambda match: _ESCAPES.get(match[1], "\0"))))


def _with_escapes(
    text: str, node: Node, escape: re.Pattern[str], meaning: Callable[[re.Match[str]], str]
) -> Iterator[CodeText]:
    start, end = node.start + 1, node.end - 1
    for match in escape.finditer(text, start, end):
        yield from _with_folds(text, start, match.start())
        yield CodeText.written_as(meaning(match), *match.span())
        start = match.end()
    yield from _with_folds(text, start, end)


_READERS: dict[str, Callable[[Node, str], CodeText | None]] = {
    "": _plain,
    "'": _single,
    '"': _double,
    "|": _literal,
    ">": _folded,
}


def written_in(node: Node) -> Callable[[str], str]:
    """Return the function that writes new text in the style of a scalar; it raises CannotMapError."""

    def written(text: str) -> str:
        if node.style == "|" or _SAFE.fullmatch(text):
            return text
        if "\n" in text or not node.style or node.style == ">":
            raise CannotMapError("the value cannot be written in the style of the scalar")
        return text.replace("'", "''") if node.style == "'" else re.sub(r'["\\]', r"\\\g<0>", text)

    return written
