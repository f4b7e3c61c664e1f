"""JSON files: `document.py` reads the command lines in their values; their keys and other texts stay."""

from cgmigrate.documents.json.document import JsonDocument, parts_of

__all__ = ["JsonDocument", "parts_of"]
