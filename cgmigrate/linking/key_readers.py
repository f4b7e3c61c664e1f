"""Code of a checkout that reads settings by name: a key that such code reads cannot be renamed in YAML alone.

A reader is a subscript, a ``.get`` or another call with the name, a comparison, a pattern, a variable or a list that
has the name, a field of a class or a parameter of a function of the project's own (``build(**config)``), or an
attribute (also by ``getattr``): libraries such as OmegaConf give the keys of a file as attributes.
A subscript that sets the old name counts as well: megatron-core refuses it beside the new one.
A file that is too large or cannot be parsed may be a reader of each old name that it contains.
megatron-core's own files are no readers.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from cgmigrate.documents.python.source import Source
from cgmigrate.linking.name_parts import candidate, names_read_in_part, parts_pattern
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import MAX_GENERATED, read_bytes

_FOR_GIT = (
    r"[\"']([A-Za-z_0-9]+[.])*NAME[\"']|(^|[(,*]|lambda)[[:blank:]]*NAME[[:blank:]]*[:=,)]|[.]NAME([^A-Za-z_0-9]|$)"
)
_INTERPOLATION = re.compile(r"\$\{[^}]*\}")
_WORD = re.compile(r"\w+")
_MOST_BYTES = 1024 * 1024
Followed = Callable[[Source], Collection[int]]
"""Returns the ids of the nodes of a file that are known to copy keys."""
_SETTERS = frozenset(("setattr", "delattr"))


@lru_cache(maxsize=8)
def _candidate(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of a line that may read a deprecated setting by its name."""
    name = catalogue.alternatives(deprecated=True)
    return re.compile(
        rf"[\"']([A-Za-z_0-9]+[.])*(?P<quoted>{name})[\"']|(^|[(,*]|lambda)[ \t]*(?P<field>{name})[ \t]*[:=,)]|"
        rf"[.](?P<attribute>{name})(?![A-Za-z_0-9])",
        re.MULTILINE,
    )


@dataclass(frozen=True, slots=True)
class KeyReader:
    """Code that reads a key by its name. ``unread`` says why the code is not known; then it may read the key."""

    place: str
    unread: str = ""


class _UnreadError(Exception):
    """Code that is not read; the message says why."""


def readers_of_keys(
    top: str | None, sources: Iterable[tuple[str, bytes]], catalogue: Catalogue
) -> dict[str, KeyReader]:
    """Return old name → the code that reads it by name; code that is known before code that is not.

    ``top`` is the checkout to search, None where there is none; ``sources`` are Python files that the run has read.
    """
    texts = dict(sources)
    readers: dict[str, KeyReader] = {}
    for path in files_that_may_read(top, texts, catalogue):
        for name, reader in readers_in(path, texts.get(path), catalogue):
            if name not in readers or (readers[name].unread and not reader.unread):
                readers[name] = reader
        if len(readers) == len(catalogue.deprecated) and not any(reader.unread for reader in readers.values()):
            break
    return readers


def files_that_may_read(top: str | None, paths: Iterable[str], catalogue: Catalogue) -> list[str]:
    """Return the Python files among ``paths``, and those of a checkout, that may read a setting by its name."""
    from cgmigrate.project.checkout import tracked_python

    pattern = _FOR_GIT.replace("NAME", f"({catalogue.alternatives(deprecated=True)})")
    pattern += "|" + parts_pattern(catalogue)
    every = {*paths, *(tracked_python(top, pattern) if top else ())}
    # A test that reads a name shows less than the code under test.
    ordered = sorted(every, key=lambda path: ("test" in path, path))
    return [path for path in ordered if not is_part_of_megatron(os.path.abspath(path))]


def may_read_keys(text: str, catalogue: Catalogue) -> bool:
    """Return whether Python text may read a deprecated setting by its name."""
    return _candidate(catalogue).search(text) is not None


def interpolations_of(path: str, text: str, catalogue: Catalogue) -> dict[str, KeyReader]:
    """Return old name → the first ``${...}`` of a YAML file that reads it."""
    readers: dict[str, KeyReader] = {}
    for match in _INTERPOLATION.finditer(text):
        for name in catalogue.deprecated.intersection(_WORD.findall(match.group())):
            readers.setdefault(name, KeyReader(f"{path}:{text.count(chr(10), 0, match.start()) + 1}"))
    return readers


def readers_in(
    path: str, data: bytes | None, catalogue: Catalogue, followed: Followed = lambda _: frozenset()
) -> Iterator[tuple[str, KeyReader]]:
    """Return the old names that a file reads by name; of a file that is not read, those in its text.

    ``followed`` returns the ids of nodes that do not count, since it is known what they do.
    """
    limit = _MOST_BYTES if data is None else len(data)
    try:
        data = read_bytes(path, MAX_GENERATED) if data is None else data
    except OSError as error:
        for name in sorted(catalogue.deprecated):
            yield name, KeyReader(path, f"cannot be read ({error.strerror or error})")
        return
    try:
        if len(data) > limit:
            raise _UnreadError(f"is larger than {limit:,} bytes")
        for name, line in _reads(data, catalogue, followed):
            yield name, KeyReader(f"{path}:{line}")
    except _UnreadError as error:
        text = data.decode("utf-8", "replace")
        for match in _candidate(catalogue).finditer(text):
            name = match["quoted"] or match["field"] or match["attribute"]
            line = text.count("\n", 0, match.end()) + 1
            yield name, KeyReader(f"{path}:{line}", str(error))


def _reads(data: bytes, catalogue: Catalogue, followed: Followed) -> Iterator[tuple[str, int]]:
    """Return the old names that a file reads by name, each with its line. Raises _UnreadError."""
    try:
        text, _ = decode(data)
        in_part = candidate(catalogue).search(text) is not None
        if not in_part and not _candidate(catalogue).search(text):
            return
        source = Source(text, catalogue)
    except UnicodeDecodeError as error:
        raise _UnreadError("is not UTF-8") from error
    except (SyntaxError, ValueError) as error:
        raise _UnreadError("is not valid Python") from error
    except (RecursionError, MemoryError) as error:
        raise _UnreadError("is nested too deeply to be read") from error
    known = followed(source)
    for node in source.walk():
        if id(node) not in known and (name := _name_read(node, source)) in catalogue.deprecated:
            yield name, getattr(node, "lineno", 0)
    if in_part:
        yield from names_read_in_part(source)


def _name_read(node: ast.AST, source: Source) -> str:
    """Return the key that a node reads, without the path before it; empty if it reads none."""
    above = source.parent(node)
    match node:
        case ast.AnnAssign(target=ast.Name(id=name)) if isinstance(above, ast.ClassDef):
            return name
        case ast.Attribute(attr=name, ctx=ast.Load()) | ast.arg(arg=name):
            return name
        case ast.Constant(value=str() as text) if above is not None and _is_read(node, above):
            return text.rpartition(".")[2]
    return ""


def _is_read(node: ast.Constant, above: ast.AST) -> bool:
    match above:
        case ast.Call(func=func):
            return not (isinstance(func, ast.Name) and func.id in _SETTERS)
        case ast.Dict(values=values):
            return any(value is node for value in values)
        case ast.List(elts=members) | ast.Tuple(elts=members) | ast.Set(elts=members):
            # A pair of a name and a value sets the name; a list of names is for code that copies or accepts them.
            return all(isinstance(member, ast.Constant) and isinstance(member.value, str) for member in members)
    # A statement of its own is a docstring.
    return not isinstance(above, (ast.Expr, ast.JoinedStr))
