"""Code of a checkout that reads settings by name: a key that such code reads cannot be renamed in YAML alone.

A reader is a subscript, a ``.get`` or another call with the name, a comparison, a pattern, a variable or a list that
has the name, a field of a class or a parameter of a function of the project's own (``build(**config)``), or an
attribute (also by ``getattr``): libraries such as OmegaConf give the keys of a file as attributes.
Code that sets a name, reads a part of it, or spells it in another way, is an open place (``open_places``).
A file that is too large or cannot be parsed may be a reader of each old name that it contains.
megatron-core's own files are no readers.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from cgmigrate.documents.python.source import PythonSource, lines_with
from cgmigrate.linking.key_code import KeyCode, KeyReader
from cgmigrate.linking.name_reads import (
    OPTION_METHOD,
    SEARCHES,
    SPLITS,
    names_read,
    option_words,
)
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import MAX_GENERATED, read_bytes

_INTERPOLATION = re.compile(r"\$\{[^}]*\}")
_WORD = re.compile(r"\w+")
_WRITTEN = r"[\"']?[ \t]*:(?=[ \t\n{\[\"'\\]|$)"
"""What is behind a key in a text that code writes."""
_MOST_BYTES = 1024 * 1024
_MOST_KEPT = 4 * 1024 * 1024
"""Bytes of the files whose trees are kept; the trees take about thirty times as many."""
_METHODS = "|".join((*SPLITS, *SEARCHES))
_READ_AS_TEXT = re.compile(rf"[.]({_METHODS})\(|namedtuple|[\"'][ \t]+(not[ \t]+)?in\b|^[ \t\w.,]*$")
"""The line of a text in which code may look for a name."""


@lru_cache(maxsize=8)
def _candidate(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of a line that may read a deprecated setting by its name."""
    name = catalogue.alternatives(deprecated=True)
    return re.compile(
        rf"[\"']([A-Za-z_0-9]+[.])*(?P<quoted>{name})[\"']|(^|[(,*]|lambda)[ \t]*(?P<field>{name})[ \t]*[:=,)]|"
        rf"[.](?P<attribute>{name})(?![A-Za-z_0-9])|"
        rf"(?<![A-Za-z_0-9])(?P<written>{name}){_WRITTEN}"
    )


class _UnreadError(Exception):
    """Code that is not read; the message says why."""


@dataclass
class ProjectCode:
    """The code of a project that may read settings by name, and its other files; each is read and parsed once."""

    top: str | None
    """The checkout to search, None where there is none."""
    texts: Mapping[str, bytes]
    """The Python files that the run has read."""
    catalogue: Catalogue
    _read: list[KeyCode] = field(default_factory=list)
    _waiting: Iterator[KeyCode] | None = None
    _trees: dict[str, ast.Module] = field(default_factory=dict)
    """By path, of the first files: they are examined later."""

    def __iter__(self) -> Iterator[KeyCode]:
        if self._waiting is None:
            self._waiting = self._code()
        at = 0
        while at < len(self._read) or self._read_next():
            yield self._read[at]
            at += 1

    @cached_property
    def readers(self) -> dict[str, KeyReader]:
        """Return old name → the code that reads it by name; code that is known before code that is not."""
        readers: dict[str, KeyReader] = {}
        for code in self:
            for name, reader in code.reads:
                if name not in readers or (readers[name].unread and not reader.unread):
                    readers[name] = reader
            if len(readers) == len(self.catalogue.deprecated) and not any(one.unread for one in readers.values()):
                break
        return readers

    def taken_tree(self, path: str) -> ast.Module | None:
        """Return the tree of a file of the run once, None if it is not kept or was returned before."""
        return self._trees.pop(path, None)

    def _code(self) -> Iterator[KeyCode]:
        kept = 0
        for path in self._paths():
            code = read_code(path, self.texts.get(path), self.catalogue)
            if code.tree is not None and path in self.texts and kept < _MOST_KEPT:
                self._trees[path] = code.tree
                kept += len(self.texts[path])
            yield replace(code, tree=None)

    def _read_next(self) -> bool:
        code = next(self._waiting, None) if self._waiting else None
        self._read += [code] if code else []
        return code is not None

    def _paths(self) -> list[str]:
        """Return the Python files of the run, and those of the checkout, that may read a setting by its name."""
        from cgmigrate.project.checkout import tracked_files

        every = {*self.texts, *(tracked_files(self.top, self.catalogue.deprecated, "*.py") if self.top else ())}
        # A test that reads a name shows less than the code under test.
        ordered = sorted(every, key=lambda path: ("test" in path, path))
        return [path for path in ordered if not is_part_of_megatron(os.path.abspath(path))]


def may_read_keys(text: str, catalogue: Catalogue) -> bool:
    """Return whether Python text may read a deprecated setting by its name."""
    return next(_candidates(text, catalogue), None) is not None


def _candidates(text: str, catalogue: Catalogue) -> Iterator[tuple[str, int]]:
    """Yield the deprecated settings that Python text may read by their names, each with its line."""
    for start, line in lines_with(text, catalogue.deprecated):
        number = text.count("\n", 0, start) + 1
        for match in _candidate(catalogue).finditer(line):
            yield next(filter(None, match.group("quoted", "field", "attribute", "written"))), number
        if _READ_AS_TEXT.search(line):
            yield from ((name, number) for name in _WORD.findall(line) if name in catalogue.deprecated)
    if OPTION_METHOD in text:
        for option in option_words(catalogue):
            if (at := text.find(option)) >= 0:
                yield option.replace("-", "_"), text.count("\n", 0, at) + 1


def interpolations_of(path: str, text: str, catalogue: Catalogue) -> dict[str, KeyReader]:
    """Return old name → the first ``${...}`` of a YAML file that reads it."""
    readers: dict[str, KeyReader] = {}
    for match in _INTERPOLATION.finditer(text):
        for name in catalogue.deprecated.intersection(_WORD.findall(match.group())):
            readers.setdefault(name, KeyReader(f"{path}:{text.count(chr(10), 0, match.start()) + 1}"))
    return readers


def read_code(path: str, data: bytes | None, catalogue: Catalogue) -> KeyCode:
    """Return what a file does with keys; ``data`` is None if the run has not read it."""
    limit = _MOST_BYTES if data is None else len(data)
    try:
        data = read_bytes(path, MAX_GENERATED) if data is None else data
    except OSError as error:
        reader = KeyReader(path, f"cannot be read ({error.strerror or error})")
        return KeyCode(path, [(name, reader) for name in sorted(catalogue.deprecated)])
    try:
        if len(data) > limit:
            raise _UnreadError(f"is larger than {limit:,} bytes")
        return _read(path, data, catalogue)
    except _UnreadError as error:
        text = data.decode("utf-8", "replace")
        names = _candidates(text, catalogue)
        return KeyCode(path, [(name, KeyReader(f"{path}:{line}", str(error))) for name, line in names])


def _read(path: str, data: bytes, catalogue: Catalogue) -> KeyCode:
    """Return what the code of a file does with keys. Raises _UnreadError."""
    try:
        text, _ = decode(data)
        if not may_read_keys(text, catalogue):
            return KeyCode(path)
        source = PythonSource(text, catalogue)
    except UnicodeDecodeError as error:
        raise _UnreadError("is not UTF-8") from error
    except (SyntaxError, ValueError) as error:
        raise _UnreadError("is not valid Python") from error
    except (RecursionError, MemoryError) as error:
        raise _UnreadError("is nested too deeply to be read") from error
    nodes, deprecated = source.walk(), catalogue.deprecated
    reads = [(name, node) for node in nodes for name in names_read(node, source) if name in deprecated]
    return KeyCode(
        path,
        [(name, KeyReader(f"{path}:{getattr(node, 'lineno', 0)}")) for name, node in reads],
        source.tree,
    )
