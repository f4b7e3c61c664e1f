"""Reading a code block as a document of its own syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from cgmigrate.documents.code import CodeText
from cgmigrate.documents.nesting import NestedText
from cgmigrate.documents.pages.blocks import CodeBlock
from cgmigrate.documents.pages.outline import is_contrast
from cgmigrate.documents.sites import BOTH_NAMES, FOLLOWS_USES, PROSE, UNREADABLE, Document, ProblemKind, Site
from cgmigrate.documents.syntax import Syntax, with_parts
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, SCOPE, names_in
from cgmigrate.text.edits import Edit

_PLACEHOLDER = re.compile(r"<[A-Za-z][\w .|-]*>|\{\{|\w\|\w|\[[^\]\n]*\|[^\]\n]*\]|…")
"""Text for the reader to fill in."""
_ELLIPSIS = re.compile(r"\.\.\.|…")
_FLAG_LINE = re.compile(r"[ \t]*-")
_CODE = frozenset(
    (
        ProblemKind.READ,
        ProblemKind.FULL_ITERATION_TEST,
        ProblemKind.MODULE_TEST,
        ProblemKind.NAME_IN_TEXT,
        ProblemKind.DEFINITION,
        ProblemKind.ENUM_CLASS,
        ProblemKind.OTHER_ASSIGNMENT,
    )
)
"""Problems that show that a block quotes code, which changes where the code is."""
_NO_IMPORTS = "the example imports nothing that shows whose object it is"
_NO_IMPLEMENTATION = "the example does not show the implementation, which decides what this captures"
_NO_LANGUAGE = "the code block has no language"
_MERGED = "the example is merged with other files (`{}`)"


@dataclass(frozen=True)
class ReadBlock:
    """A code block as a document.

    ``is_guessed`` says that the block does not say its language, ``output_has_names`` that what its commands print has
    deprecated names.
    """

    language: str
    code: CodeText
    document: Document
    is_guessed: bool = False
    output_has_names: bool = False

    def blocked_by(self, site: Site) -> str:
        """Return why a site of the block is not rewritten, empty if nothing prevents it."""
        if self._is_incomplete:
            return "the example is not complete (`...`)"
        lines = self._lines_of(site)
        if _PLACEHOLDER.search(lines) or _ELLIPSIS.search(lines):
            return "the example has a placeholder"
        if self.output_has_names:
            return "the output below the command shows deprecated names"
        if self._quotes_code:
            return "the example also has code that reads or defines the settings"
        if self._has_former_comment:
            return "a comment of the example compares former settings with others"
        return _NO_IMPLEMENTATION if _depends_on_implementation(site) else ""

    @cached_property
    def _is_incomplete(self) -> bool:
        return self.language != "python" and _ELLIPSIS.search(self.code.text) is not None

    @cached_property
    def _quotes_code(self) -> bool:
        if any(problem.kind in _CODE for problem in self.document.problems):
            return True
        others = (owner for _, owner in self.document.skipped if owner not in (PROSE, FOLLOWS_USES, BOTH_NAMES))
        return self.language == "python" and any(others)

    @cached_property
    def _has_former_comment(self) -> bool:
        return any(is_contrast(comment.text) for comment in self.document.comments())

    def _lines_of(self, site: Site) -> str:
        """Return the lines from the first setting of a site to the last one."""
        if not site.written:
            return ""
        text = self.code.text
        start = text.rfind("\n", 0, min(use.span.start for use in site.written)) + 1
        return text[start : text.find("\n", max(use.span.end for use in site.written))]

    def risk(self, index: int) -> str:
        """Return why the fix of a site of the block is not safe, empty if it is."""
        if reason := self.document.risk(index):
            return reason
        origin = self.document.sites[index].origin
        if origin is not None and not origin.imports:
            return _NO_IMPORTS
        if self.document.builds_on:
            return _MERGED.format(self.document.builds_on)
        return _NO_LANGUAGE if self.is_guessed else ""


class BlockPart(NestedText):
    """A code block as a part of a page: it is a part of a file, so what it does not set may be set elsewhere."""

    @classmethod
    def of(cls, number: int, read: ReadBlock, block: CodeBlock) -> BlockPart:
        """Return the part of a block that is read."""
        return cls(number, block.span, read.code, read.language, is_whole=False)

    def edit(self, edit: Edit, file: str) -> Edit:
        """Return the edit of the page that makes an edit of the code. Raises CannotMapError."""
        # What is in front of a line belongs to the line break above it, and the last line break has nothing of it.
        text, start, end = edit.text, edit.start, edit.end
        if text.endswith("\n") and start < end and self.code.text[end - 1] == "\n":
            edit = Edit(start, end - 1, text[:-1])
        elif text.endswith("\n") and 0 < start == end and self.code.text[start - 1] == "\n":
            edit = Edit(start - 1, start - 1, f"\n{text[:-1]}")
        return super().edit(edit, file)


def _depends_on_implementation(site: Site) -> bool:
    """Return whether the implementation decides what a site captures, and the example does not show it."""
    own = site.own
    if site.inherits or not own.keys().isdisjoint((IMPL, ENABLE, EXTERNAL)):
        return False
    return any(name.startswith("full_iteration") for name in names_in(own.get(SCOPE)))


def read_block(block: CodeBlock, page: str, catalogue: Catalogue, known: str = "") -> tuple[ReadBlock | None, str]:
    """Return a block as a document; if it cannot be read, None and why. ``known`` is its language if it says none."""
    code, language = block.code(page), block.language or known
    if language and language not in _READERS:
        return None, "its language is none of YAML, Python and shell"
    if code is None:
        return None, "it shows no prompt, so commands and output look the same"
    if language:
        document = _READERS[language](code.text, catalogue)
        problem = next((problem for problem in document.problems if problem.kind in UNREADABLE), None)
        return (None, problem.message) if problem else (ReadBlock(language, code, document), "")
    guesses = list(_guesses(code, catalogue))
    return (guesses[0], "") if len(guesses) == 1 else (None, "it has no language")


def _guesses(code: CodeText, catalogue: Catalogue) -> Iterator[ReadBlock]:
    """Yield the documents with deprecated settings that a text without a language may be."""
    for language in ("yaml", "python", "shell"):
        document = _READERS[language](code.text, catalogue)
        if any(problem.kind in UNREADABLE for problem in document.problems):
            continue
        if any(catalogue.deprecated & site.own.keys() and not site.blocked_by for site in document.sites):
            yield ReadBlock(language, code, document, is_guessed=True)


def _yaml(text: str, catalogue: Catalogue) -> Document:
    from cgmigrate.documents.yaml import YamlDocument

    return YamlDocument(text, "", catalogue)


def _python(text: str, catalogue: Catalogue) -> Document:
    from cgmigrate.documents.python import PythonDocument

    # Without the path: an example beside the code of megatron-core is no part of that code.
    return PythonDocument(text, "", catalogue)


def _shell(text: str, catalogue: Catalogue) -> Document:
    from cgmigrate.documents.shell import ShellDocument

    path = "example.args" if _is_arguments(text) else ""
    return with_parts(ShellDocument(text, path, catalogue), Syntax.SHELL)


def _is_arguments(text: str) -> bool:
    """Return whether a text is nothing but the arguments of one command.

    Lines that no backslash joins are those of one command only if nothing is between them: they may be alternatives.
    """
    lines = text.rstrip("\n").split("\n")
    if not all(_FLAG_LINE.match(line) for line in lines):
        return False
    joined = [line.rstrip().endswith("\\") for line in lines[:-1]]
    return all(joined) or not any(joined)


_READERS = {"yaml": _yaml, "python": _python, "shell": _shell, "console": _shell}
"""What a block is read as → the function that reads it."""
