"""Files of kinds that cgmigrate does not read: those that may set a setting, by a search for its name.

A run that left them out would look as if it had read all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator

from cgmigrate.documents.syntax import Syntax
from cgmigrate.project.inputs import InputFile
from cgmigrate.project.seeds import Seeds, seeds_of
from cgmigrate.text.files import READ

_NOT_TEXT = frozenset(
    (
        *(".png", ".jpg", ".jpeg", ".gif", ".webp", ".ico", ".pdf", ".mp4", ".wav", ".ttf", ".woff", ".woff2"),
        *(".gz", ".xz", ".bz2", ".zst", ".zip", ".tar", ".tgz", ".whl", ".jar"),
        *(".so", ".o", ".a", ".exe", ".dll", ".pyc", ".bin", ".idx", ".db", ".sqlite", ".nsys-rep", ".qdrep"),
        *(".pt", ".pth", ".ckpt", ".safetensors", ".npy", ".npz", ".h5", ".onnx", ".parquet", ".arrow", ".pkl"),
    )
)
_QUOTING = frozenset((".html", ".htm", ".adoc", ".tex", ".svg", ".css", ".csv", ".tsv", ".jsonl", ".eml", ".po"))
"""Kinds that only quote settings: pages that are made, tables and data."""
_PROSE = frozenset(("readme", "changelog", "changes", "news", "history", "license", "notice", "authors", "copying"))
"""Names of files for people that have no suffix."""
_PIECE = 1024 * 1024
_REPORT = re.compile(rb"[\"']CG\d{3}\b")
"""A code of a rule: the file is a baseline or a report of cgmigrate, which quote the settings that it has seen."""


def may_hold_settings(path: str) -> bool:
    """Return whether a file of a kind that is not read may hold settings, by its name."""
    stem, suffix = os.path.splitext(os.path.basename(path).lower())
    return suffix not in _NOT_TEXT and suffix not in _QUOTING and not (not suffix and stem in _PROSE)


def is_report(data: bytes) -> bool:
    """Return whether a file is a baseline or a report of cgmigrate."""
    return _REPORT.search(data) is not None


def unread_source(path: str, seeds: Seeds) -> InputFile | None:
    """Return a file of text with a seed word, of any size; None for others, and for reports of cgmigrate."""
    data = _with_seed_word(path, seeds)
    if not data or b"\0" in data or is_report(data):
        return None
    # Whatever the encoding is: names of settings are ASCII.
    return InputFile(path, Syntax.TEXT, data.decode("utf-8", "replace").encode())


def names_setting(path: str, names: Callable[[str], Collection[str]]) -> bool:
    """Return whether a file that is not large contains one of the names for it."""
    try:
        data = next(_pieces(path), b"")
    except OSError:
        return False
    if not seeds_of().plain.are_in(data) or is_report(data):
        return False
    return _pattern(names(path)).search(data) is not None


def _with_seed_word(path: str, seeds: Seeds) -> bytes:
    """Return the bytes of a file with a seed word, empty without one, or if it is gone or cannot be read."""
    try:
        before = b""
        for piece in _pieces(path):
            if b"\0" in piece:
                return b""
            if seeds.plain.are_in(before + piece):
                return b"".join(_pieces(path))
            before = piece[-seeds.overlap :]
    except OSError:
        return b""
    return b""


def _pieces(path: str) -> Iterator[bytes]:
    descriptor = os.open(path, READ)
    try:
        while piece := os.read(descriptor, _PIECE):
            yield piece
    finally:
        os.close(descriptor)


def _pattern(names: Collection[str]) -> re.Pattern[bytes]:
    spellings = sorted({spelling for name in names for spelling in (name, name.replace("_", "-"))})
    either = "|".join(map(re.escape, spellings)) or "(?!)"
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{either})(?![A-Za-z0-9_])".encode())
