"""Python files: ``document.py`` reads one and rewrites its settings."""

from cgmigrate.documents.python.document import PythonDocument

__all__ = ["PythonDocument"]
