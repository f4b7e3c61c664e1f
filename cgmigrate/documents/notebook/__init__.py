"""Notebooks: their code cells are one program in Python, and their shell commands are command lines."""

from cgmigrate.documents.notebook.document import NotebookDocument
from cgmigrate.documents.notebook.parts import parts_of

__all__ = ["NotebookDocument", "parts_of"]
