"""Documentation: code blocks are read as documents of their own syntaxes, all else is text for people."""

from __future__ import annotations

from cgmigrate.documents.pages.document import PageDocument
from cgmigrate.documents.pages.markdown import markdown_blocks, mdx_blocks
from cgmigrate.documents.pages.restructuredtext import restructuredtext_blocks


class MarkdownDocument(PageDocument):
    """A page in Markdown."""

    blocks_of = staticmethod(markdown_blocks)


class MdxDocument(PageDocument):
    """A page in MDX, which is Markdown with tags of components."""

    blocks_of = staticmethod(mdx_blocks)


class ReStructuredTextDocument(PageDocument):
    """A page in reStructuredText."""

    blocks_of = staticmethod(restructuredtext_blocks)


__all__ = ["MarkdownDocument", "MdxDocument", "PageDocument", "ReStructuredTextDocument"]
