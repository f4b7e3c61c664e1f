"""The syntaxes: which one a file is written in, and the document that reads it."""

from __future__ import annotations

import os
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document


class Syntax(Enum):
    """The syntax of a file."""

    YAML = "YAML"
    PYTHON = "Python"
    COMMAND_LINE = "command line"
    MARKDOWN = "Markdown"


_BY_SUFFIX = {
    "yaml": Syntax.YAML,
    "yml": Syntax.YAML,
    "py": Syntax.PYTHON,
    "pyi": Syntax.PYTHON,
    "sh": Syntax.COMMAND_LINE,
    "bash": Syntax.COMMAND_LINE,
    "args": Syntax.COMMAND_LINE,
    "slurm": Syntax.COMMAND_LINE,
    "sbatch": Syntax.COMMAND_LINE,
    "dockerfile": Syntax.COMMAND_LINE,
    "md": Syntax.MARKDOWN,
    "markdown": Syntax.MARKDOWN,
    "mdx": Syntax.MARKDOWN,
}


def syntax_of(path: str) -> Syntax | None:
    """Return the syntax of a file by its name, or None for a kind of file that is not read.

    The suffix decides, in any case (``README.MD``); after it, a name that starts with ``Dockerfile``.
    """
    name = path.rpartition("/")[2]
    stem, _, suffix = name.rpartition(".")
    syntax = _BY_SUFFIX.get(suffix.lower()) if stem else None
    if syntax is None and name.startswith("Dockerfile"):
        return Syntax.COMMAND_LINE
    return syntax


READ = (Syntax.YAML, Syntax.PYTHON)
"""The syntaxes that this version reads. In others it only counts the files that contain the names."""


def document_of(path: str, text: str, syntax: Syntax) -> Document:
    """Return the document that reads a file's text; ``syntax`` is one of ``READ``."""
    if syntax is Syntax.PYTHON:
        from cgmigrate.documents.python import PythonDocument

        return PythonDocument(text, os.path.abspath(path))
    from cgmigrate.documents.yaml import YamlDocument

    return YamlDocument(text)
