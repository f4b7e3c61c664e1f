"""Documentation: code blocks are read as documents of their own syntaxes, all else is text for people."""

from __future__ import annotations

from cgmigrate.documents.pages.blocks import CodeBlock
from cgmigrate.documents.pages.document import PageDocument
from cgmigrate.documents.pages.markdown import markdown_blocks, mdx_blocks
from cgmigrate.documents.pages.restructuredtext import restructuredtext_blocks


class MarkdownDocument(PageDocument):
    """A page in Markdown."""

    @staticmethod
    def blocks_of(text: str) -> list[CodeBlock]:
        """Return the code blocks of a text."""
        return markdown_blocks(text)


class MdxDocument(PageDocument):
    """A page in MDX, which is Markdown with tags of components."""

    @staticmethod
    def blocks_of(text: str) -> list[CodeBlock]:
        """Return the code blocks of a text."""
        return mdx_blocks(text)


class ReStructuredTextDocument(PageDocument):
    """A page in reStructuredText."""

    @staticmethod
    def blocks_of(text: str) -> list[CodeBlock]:
        """Return the code blocks of a text."""
        return restructuredtext_blocks(text)


__all__ = ["MarkdownDocument", "MdxDocument", "PageDocument", "ReStructuredTextDocument"]
