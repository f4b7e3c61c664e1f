"""The registry of syntaxes: which files are written in each, and the class of documents that reads them.

To add a syntax, write a class with the members of ``sites.Document`` and register it below. Discovery, diagnostics,
suppression comments and fixes need no change.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Collection

    from cgmigrate.documents.comments import UnreadText
    from cgmigrate.documents.nesting import NestedText
    from cgmigrate.documents.sites import Document
    from cgmigrate.megatron.catalogue import Catalogue


@dataclass(frozen=True, eq=False, slots=True)
class Syntax:
    """One syntax.

    ``suffixes`` are those of its files, in lower case.
    ``document`` is the module and class that reads a file (``package.module:Class``), which gets the text, the
    path and the catalogue.
    ``parts`` is the module and function that finds the parts of a file in other syntaxes
    (``package.module:function``). It gets the document, and the numbers of the parts to return; without those, it
    returns the parts with names of settings.
    ``is_documentation`` says that people read its files, and no program does.
    """

    YAML: ClassVar[Syntax]
    PYTHON: ClassVar[Syntax]
    SHELL: ClassVar[Syntax]
    MARKDOWN: ClassVar[Syntax]
    RESTRUCTUREDTEXT: ClassVar[Syntax]
    TEXT: ClassVar[Syntax]

    name: str
    suffixes: tuple[str, ...]
    document: str
    is_documentation: bool = False
    parts: str = ""


SYNTAXES: list[Syntax] = []
_BY_SUFFIX: dict[str, Syntax] = {}


def register(syntax: Syntax) -> Syntax:
    """Add a syntax to the registry, and return it."""
    SYNTAXES.append(syntax)
    _BY_SUFFIX.update(dict.fromkeys(syntax.suffixes, syntax))
    return syntax


Syntax.YAML = register(Syntax("YAML", ("yaml", "yml"), "cgmigrate.documents.yaml:YamlDocument"))
Syntax.PYTHON = register(Syntax("Python", ("py", "pyi"), "cgmigrate.documents.python:PythonDocument"))
Syntax.SHELL = register(
    Syntax(
        "shell",
        ("sh", "bash", "sbatch", "slurm", "sub", "pbs", "args"),
        "cgmigrate.documents.shell:ShellDocument",
        parts="cgmigrate.documents.shell:parts_of",
    )
)
Syntax.MARKDOWN = register(
    Syntax("Markdown", ("md", "markdown", "mdx"), "cgmigrate.documents.pages:MarkdownDocument", is_documentation=True)
)
Syntax.RESTRUCTUREDTEXT = register(
    Syntax("reStructuredText", ("rst",), "cgmigrate.documents.pages:ReStructuredTextDocument", is_documentation=True)
)


Syntax.TEXT = Syntax("other text", (), "cgmigrate.documents.unread:UnreadDocument")
"""Text of any other kind, which is only searched."""


def syntax_of(path: str) -> Syntax | None:
    """Return the syntax of a file by its suffix, in any case (``README.MD``); None for a kind that is not read."""
    stem, _, suffix = path.rpartition("/")[2].rpartition(".")
    return _BY_SUFFIX.get(suffix.lower()) if stem else None


_INTERPRETER = rb"#![ \t]*(?:/\S*/)?(?:env[ \t]+(?:-S[ \t]*)?(?:/\S*/)?)?"
_SHEBANGS = (
    (Syntax.SHELL, _INTERPRETER + rb"(?:ba|da|a)?sh\d*(?=\s|\Z)"),
    (Syntax.PYTHON, _INTERPRETER + rb"python[\d.]*(?=\s|\Z)"),
)
SHEBANG_BYTES = 128
"""The bytes of a file that show whether it is a script, and in which language."""


def may_be_script(path: str) -> bool:
    """Return whether the first line of a file decides what it is: its name has no suffix."""
    return "." not in path.rpartition("/")[2]


def syntax_of_file(path: str, start: bytes) -> Syntax | None:
    """Return the syntax of a file by its name, or by its first bytes if the name has no suffix."""
    if (syntax := syntax_of(path)) is not None or not may_be_script(path):
        return syntax
    return next((syntax for syntax, first_line in _SHEBANGS if re.match(first_line, start)), None)


def is_documentation(path: str) -> bool:
    """Return whether people read a file, and no program does, by its name."""
    syntax = syntax_of(path)
    return syntax is not None and syntax.is_documentation


def document_of(path: str, text: str, syntax: Syntax, catalogue: Catalogue) -> Document:
    """Return the document that reads the settings of a catalogue in a text."""
    return _read(os.path.abspath(path), text, syntax, catalogue, None)


def _read(path: str, text: str, syntax: Syntax, catalogue: Catalogue, numbers: Collection[int] | None) -> Document:
    """Return the document of a text, with those of its parts that have some numbers."""
    return with_parts(_named(syntax.document)(text, path, catalogue), syntax, numbers)


def with_parts(document: Document, syntax: Syntax, numbers: Collection[int] | None = None) -> Document:
    """Return a document that is read already with its parts: those with names of settings, or with some numbers."""
    parts = _named(syntax.parts)(document, numbers) if syntax.parts else ()
    if not parts:
        return document
    from cgmigrate.documents.nesting import NestingDocument

    path, catalogue = document.path, document.catalogue
    inner = [(part, _part(part, catalogue)) for part in parts]
    return NestingDocument(document, inner, lambda edited, numbers: _read(path, edited, syntax, catalogue, numbers))


def _part(part: NestedText, catalogue: Catalogue) -> Document:
    """Return the document of a part, whose name says its syntax."""
    syntax = syntax_of_file(part.name, part.code.text[:SHEBANG_BYTES].encode())
    assert syntax is not None, "it has been found by its name"
    # Without a folder: what a script writes is no file of the project.
    return _read(part.name, part.code.text, syntax, catalogue, None)


def unread_text(text: str, syntax: Syntax) -> UnreadText:
    """Return a text without a document, such as one that is not UTF-8, with the comments that it surely has."""
    from cgmigrate.documents.comments import UnreadText

    return UnreadText(text, _named(syntax.document).comment_form)


def _named(path: str) -> Any:
    """Return the class or function of a module (``package.module:name``)."""
    from importlib import import_module

    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
