"""The code blocks of reStructuredText: `code-block` and its other names, and literal blocks behind `::`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.documents.pages.blocks import CodeBlock, language_of
from cgmigrate.documents.pages.lines import PageLine, lines_of

_INDENT = r"(?P<indent> *(?:[-*+] +|\d+[.)] +|#\. +)*)"
"""What may be in front of a paragraph: spaces and bullets."""
_DIRECTIVE = re.compile(_INDENT + r"\.\. (?P<name>[\w:-]+)::(?:[ ]+(?P<argument>\S.*))?$")
_MARKUP = re.compile(_INDENT + r"\.\.(?: (?P<rest>.*))?$")
_PARAGRAPH = re.compile(_INDENT)
_NO_COMMENT = re.compile(r"_|\[|\||[\w:-]+::")
"""Begins explicit markup that is no comment: targets, footnotes, substitutions, directives."""
_OPTION = re.compile(r" +:[\w-]+:")
_CODE = ("code-block", "code", "sourcecode")
_LITERAL = ("raw", "parsed-literal", "math", "literalinclude", "prompt", "productionlist", "only", "highlight")
"""Directives whose content is no reStructuredText, or may not be part of the page."""


def restructuredtext_blocks(text: str) -> list[CodeBlock]:
    """Return the code blocks of a page that have lines, in the order of the text."""
    return list(_Reader(text).blocks())


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.lines = lines_of(text)

    def blocks(self) -> Iterator[CodeBlock]:
        at = 0
        while at < len(self.lines):
            line = self._written(at)
            directive, markup = _DIRECTIVE.match(line), _MARKUP.match(line)
            if directive and directive["name"] in _CODE:
                first = self._behind_options(at + 1, len(directive["indent"]))
                end = self._end_of_block(first, len(directive["indent"]))
                yield from self._block(first, end, language_of(directive["argument"] or ""))
                at = max(end, at + 1)
            elif (directive and directive["name"] in _LITERAL) or (markup and self._is_comment(markup["rest"])):
                at = max(self._end_of_block(at + 1, len((directive or markup)["indent"])), at + 1)  # type: ignore[index]
            elif line.endswith("::") and not markup:
                indent = len(_PARAGRAPH.match(line).group())  # type: ignore[union-attr]
                end = self._end_of_block(at + 1, indent)
                is_block = at + 1 < len(self.lines) and not self._written(at + 1)
                yield from self._block(at + 1, end, "") if is_block else ()
                at = max(end, at + 1) if is_block else at + 1
            else:
                at += 1

    def _written(self, at: int) -> str:
        """Return a line without the spaces at its end."""
        return self.text[self.lines[at].start : self.lines[at].end].rstrip()

    def _is_comment(self, rest: str | None) -> bool:
        return not rest or not _NO_COMMENT.match(rest)

    def _behind_options(self, at: int, indent: int) -> int:
        """Return the first line behind the options of a directive."""
        while at < len(self.lines) and self._is_option(self._written(at), indent):
            at += 1
        return at

    def _is_option(self, line: str, indent: int) -> bool:
        match = _OPTION.match(line)
        return match is not None and match.group().index(":") > indent

    def _end_of_block(self, at: int, indent: int) -> int:
        """Return the first line, from one on, that is not empty and not indented by more than ``indent``."""
        while at < len(self.lines):
            line = self._written(at)
            if line and len(line) - len(line.lstrip(" ")) <= indent:
                return at
            at += 1
        return at

    def _block(self, first: int, end: int, language: str) -> Iterator[CodeBlock]:
        """Yield the block of some lines, if they are indented by spaces and not empty."""
        while first < end and not self._written(first):
            first += 1
        while end > first and not self._written(end - 1):
            end -= 1
        lines = self.lines[first:end]
        if not lines or any("\t" in self._indent(one) for one in lines):
            return
        common = min(len(self._indent(one)) for one in lines if self.text[one.start : one.end].strip())
        yield CodeBlock(language, tuple(one.shortened(min(common, len(self._indent(one)))) for one in lines))

    def _indent(self, one: PageLine) -> str:
        written = self.text[one.start : one.end]
        return written[: len(written) - len(written.lstrip(" \t"))]
