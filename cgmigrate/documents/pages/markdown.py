"""The code blocks of Markdown, fenced and indented ones, also in lists; markdown-it-py parses the page."""

from __future__ import annotations

import re

from cgmigrate.documents.pages.blocks import CodeBlock, language_of
from cgmigrate.documents.pages.lines import PageLine, lines_of

_FRONT_MATTER = re.compile(r"---[ \t]*\r?\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\r?\n|\Z)")
_BESIDE_CODE = re.compile(r"[ \t>]*")
"""What may be in front of code on its line."""
_NOT_NEEDED = ["inline", "reference", "text_join"]
"""Rules of the parser that find no blocks; some take time that is quadratic in the text."""


def markdown_blocks(text: str) -> list[CodeBlock]:
    """Return the code blocks of a page in Markdown that have lines, in the order of the text."""
    from markdown_it import MarkdownIt

    front = _FRONT_MATTER.match(text)
    hidden = text[: front.end()] if front else ""
    parser = MarkdownIt("commonmark").disable(_NOT_NEEDED)
    lines, result = lines_of(text), []
    # A tab or a NUL is one character for the parser as well.
    for token in parser.parse(re.sub(r"[^\r\n]", " ", hidden) + text[len(hidden) :]):
        if token.type not in ("fence", "code_block") or token.map is None or not token.content:
            continue
        first = token.map[0] + (token.type == "fence")
        inside = _with_code(lines[first:], token.content.removesuffix("\n").split("\n"), text)
        if inside is not None:
            result.append(CodeBlock(language_of(token.info), inside))
    return result


def _with_code(lines: list[PageLine], code: list[str], text: str) -> tuple[PageLine, ...] | None:
    """Return the lines of a page that have the lines of a block, None where tabs or bullets make that unclear."""
    known = [one.ending_in(content, text) for one, content in zip(lines, code, strict=False)]
    result = tuple(one for one in known if one is not None)
    is_plain = all(_BESIDE_CODE.fullmatch(text, one.first, one.start) for one in result)
    return result if is_plain and len(result) == len(code) else None
