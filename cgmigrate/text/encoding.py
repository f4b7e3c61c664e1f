"""Decoding and encoding of files: UTF-8, with or without a byte order mark (BOM)."""

from __future__ import annotations

_BOM = b"\xef\xbb\xbf"


def decode(data: bytes) -> tuple[str, bool]:
    """Return a file's UTF-8 bytes as text without the byte order mark, and whether there was one.

    Raises:
        UnicodeDecodeError: the bytes are not UTF-8; its ``start`` counts from the first byte of ``data``.
    """
    text = data.decode("utf-8")
    if data.startswith(_BOM):
        return text[1:], True
    return text, False


def encode(text: str, bom: bool) -> bytes:
    """Return the bytes of a text, after a byte order mark if ``bom``: ``encode(*decode(data)) == data``."""
    return (_BOM if bom else b"") + text.encode("utf-8")
