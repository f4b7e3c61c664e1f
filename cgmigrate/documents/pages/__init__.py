"""Documentation: code blocks are read as documents of their own syntaxes, all else is text for people."""

from __future__ import annotations

from cgmigrate.documents.pages.blocks import CodeBlock
from cgmigrate.documents.pages.document import PageDocument
from cgmigrate.documents.pages.markdown import markdown_blocks


class MarkdownDocument(PageDocument):
    """A page in Markdown, or in MDX, which is Markdown with tags of components."""

    blocks_of = staticmethod(markdown_blocks)


class ReStructuredTextDocument(PageDocument):
    """A page in reStructuredText: its code blocks are not read, so that each name in it is one of its text."""

    @staticmethod
    def blocks_of(_text: str) -> list[CodeBlock]:
        """Return nothing."""
        return []


__all__ = ["MarkdownDocument", "PageDocument", "ReStructuredTextDocument"]
