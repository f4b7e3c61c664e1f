"""Opens a document: one entry for each syntax."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from cgmigrate.documents.syntax import Syntax

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document


def document_of(path: str, text: str, syntax: Syntax) -> Document:
    """The document that reads a file's text."""
    if syntax is Syntax.PYTHON:
        from cgmigrate.documents.python import PythonDocument

        return PythonDocument(text, os.path.abspath(path))
    from cgmigrate.documents.yaml import YamlDocument

    return YamlDocument(text)
