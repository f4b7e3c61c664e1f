"""Places outside of a fix that may meet what it changes: each appearance of a name that nothing accounts for.

A fix is safe only if every appearance of its old names in the checkout is accounted for. This module lists those that
are not, in any text file that git knows or ignores by name: a read of an attribute in code that is imported together
with the object, a text of a program that has the name, a pattern of `grep` or `sed` with a part of it, an override in
a page or a justfile, a key of an overlay in TOML. A longer identifier is another name. Comments, prose, megatron-core's
own files and what the documents list as a write are accounted for.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.import_graph import ImportGraph
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import shown_path
from cgmigrate.text.files import read_bytes

_MOST_BYTES = 1024 * 1024
_PAST = (".patch", ".diff", ".log", ".orig")
_YAML = (".yaml", ".yml")
_PAGES = (".md", ".rst", ".mdx", ".txt", ".adoc", ".html", ".htm", ".tex")
_OVERLAYS = (".toml", ".ini", ".cfg", ".conf", ".env", ".properties", ".csv", ".tsv", ".json", ".jsonl", ".json5")
_PROGRAMS = ("args", "argv", "options", "opts", "namespace")
"""What objects with the flags of a program are called: they are none that a constructor makes."""
_SPEAKS = re.compile(r"(warn|warning|info|debug|error|exception|log|print|fail|skip|help|deprecated|Error|Exception)$")
"""What a function is called that shows a text to people."""
_TEMPLATE = re.compile(r"\{[{%][^{}]*$|\$\{[^{}]*$")
_COMMENT = re.compile(r"^\s*(#|//|;|--\s|<!--)|\s#\s")
_DOCTEST = re.compile(r"^\s*>>>")
_KEY = re.compile(r"^\s*(-\s+)?[\"']?([\w-]+\.)*$")
_TOOL = re.compile(r"\b(yq|jq|sed|awk|gawk|perl|[ef]?grep|rg|cut|tr|python3?)\b")


@dataclass(frozen=True, slots=True)
class Place:
    """An appearance of a name, or of a part of it, that is not accounted for."""

    path: str
    line: int
    text: str
    """The name or the part, as it is written."""
    of_python: bool = False
    """Whether it is code of Python, in which objects are followed."""
    is_overlay: bool = False
    """Whether it is a key of a file that may be merged over others, or an override."""
    is_for_objects: bool = True
    """Whether an object of Python code can meet it."""

    def __str__(self) -> str:
        return f"{shown_path(self.path)}:{self.line}"


@dataclass
class OpenPlaces:
    """The open places of a checkout; its files are read once, when the first one is asked for."""

    top: str
    catalogue: Catalogue
    _graph: ImportGraph = field(init=False)

    def __post_init__(self) -> None:
        self._graph = ImportGraph(self.top)

    def meeting_object(self, path: str, names: Collection[str], *, followed: bool) -> Place | None:
        """Return the first place that can meet an object of Python code in a file.

        ``followed`` says that the code of the checkout is accounted for: a proof followed it.
        """
        for name in names:
            for place in self._by_name.get(name, ()):
                if place.is_overlay or not place.is_for_objects or (followed and place.of_python):
                    continue
                if not place.of_python or self._graph.may_meet(path, place.path):
                    return place
        return None

    def meeting_mapping(self, path: str, names: Collection[str]) -> Place | None:
        """Return the first place, in other files than Python, that can meet the keys of a mapping in a file."""
        for name in names:
            for place in self._by_name.get(name, ()):
                if not place.of_python and os.path.realpath(place.path) != os.path.realpath(path):
                    return place
        return None

    @cached_property
    def _by_name(self) -> dict[str, list[Place]]:
        from cgmigrate.project.checkout import files_with

        result: dict[str, list[Place]] = {}
        for path in sorted(files_with(self.top, _words(self.catalogue))):
            if path.lower().endswith(_PAST) or is_part_of_megatron(os.path.abspath(path)):
                continue
            try:
                text = read_bytes(path, _MOST_BYTES).decode("utf-8")
            except (OSError, ValueError):
                continue
            for name, place in self._places_in(path, text):
                result.setdefault(name, []).append(place)
        return result

    def _places_in(self, path: str, text: str) -> Iterator[tuple[str, Place]]:
        if path.endswith((".py", ".pyi")):
            yield from _in_python(path, text, self.catalogue)
            return
        for match in _pattern(self.catalogue).finditer(text):
            found = _in_text(path, text, match)
            if found is not None:
                for name in _names_of(match.group(), self.catalogue):
                    yield name, found


# --- names and parts of them ----------------------------------------------------------------------


@lru_cache(maxsize=8)
def _parts(catalogue: Catalogue) -> dict[str, frozenset[str]]:
    """Return name or part → the settings that it may be: two words or more, or one with the underscore beside it."""
    parts: dict[str, set[str]] = {}
    names = {*catalogue.deprecated, *catalogue.captures}
    for name in names:
        parts.setdefault(name, set()).add(name)
    for name in catalogue.deprecated:
        words = name.split("_")
        for start in range(len(words)):
            for end in range(start + 1, len(words) + 1):
                part = "_".join(words[start:end])
                for one in (part, f"_{part}" if start else part, f"{part}_" if end < len(words) else part):
                    if "_" in one and one not in names and one != "cuda_graph":
                        parts.setdefault(one, set()).add(name)
    return {part: frozenset(of) for part, of in parts.items()}


def _names_of(text: str, catalogue: Catalogue) -> frozenset[str]:
    return _parts(catalogue).get(text, frozenset())


@lru_cache(maxsize=8)
def _pattern(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of an identifier that is a name or a part of one."""
    every = "|".join(sorted(_parts(catalogue), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9_])({every})(?![A-Za-z0-9_])")


@lru_cache(maxsize=8)
def _words(catalogue: Catalogue) -> tuple[str, ...]:
    return tuple(sorted(_parts(catalogue)))


# --- text -----------------------------------------------------------------------------------------


def _in_text(path: str, text: str, match: re.Match[str]) -> Place | None:
    """Return the place of a name in a file other than Python; None if it is accounted for."""
    start, end = match.span()
    first = text.rfind("\n", 0, start) + 1
    before, line = text[first:start], text[first : text.find("\n", end) if "\n" in text[end:] else len(text)]
    after, lower = line[len(before) + len(match.group()) :], path.lower()
    number = text.count("\n", 0, start) + 1
    if _COMMENT.search(before) and not lower.endswith(".ipynb"):
        return None
    overlay = re.match(r"[\"']?\s*[=:]", after) is not None
    if lower.endswith(_OVERLAYS):
        return Place(path, number, match.group(), is_overlay=True, is_for_objects=False) if overlay else None
    if lower.endswith(".ipynb"):
        return Place(path, number, match.group()) if before.rstrip("\"'").endswith((".", "[\\", "[")) else None
    if lower.endswith(_PAGES):
        return _in_page(Place(path, number, match.group()), before, after)
    if _TEMPLATE.search(before):
        return Place(path, number, match.group())
    if lower.endswith(_YAML):
        return None if _KEY.match(before) or not _TOOL.search(before) else Place(path, number, match.group())
    if before.endswith("--"):
        return None
    return Place(path, number, match.group(), is_overlay=before.endswith(".") and overlay)


def _in_page(place: Place, before: str, after: str) -> Place | None:
    """Return the place of a name in a page: a template, a doctest, an override; None for prose and examples."""
    if _TEMPLATE.search(before) or _DOCTEST.match(before):
        return place
    is_override = re.search(r"(^|\s)[\w.+]*\.$", before) is not None and re.match(r"=[^=\s]", after) is not None
    return Place(place.path, place.line, place.text, is_overlay=True) if is_override else None


# --- Python ---------------------------------------------------------------------------------------


def _in_python(path: str, text: str, catalogue: Catalogue) -> Iterator[tuple[str, Place]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for match in _pattern(catalogue).finditer(text):
            for name in _names_of(match.group(), catalogue):
                yield name, Place(path, text.count("\n", 0, match.start()) + 1, match.group(), of_python=True)
        return
    accounted = _accounted(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in catalogue.deprecated and not _of_program(node):
                yield name, Place(path, line, name, of_python=True)
            case ast.Constant(value=str() as value) if "_" in value:
                yield from _in_string(path, node, value, id(node) in accounted, catalogue)


def _in_string(
    path: str, node: ast.Constant, value: str, accounted: bool, catalogue: Catalogue
) -> Iterator[tuple[str, Place]]:
    for found in _pattern(catalogue).finditer(value):
        line = value[value.rfind("\n", 0, found.start()) + 1 :].partition("\n")[0]
        is_doctest = _DOCTEST.match(line) is not None
        if accounted and not is_doctest:
            continue
        for name in _names_of(found.group(), catalogue) & catalogue.deprecated:
            number = node.lineno + value.count("\n", 0, found.start())
            # A doctest is no code that is followed.
            yield name, Place(path, number, found.group(), of_python=not is_doctest)


def _accounted(tree: ast.Module) -> set[int]:
    """Return the strings that mention a name, or write a setting of another object: docstrings, messages, keys."""
    result: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=ast.Constant() as text):
                result.add(id(text))
            case ast.Dict(keys=keys):
                result.update(map(id, keys))
            case ast.Subscript(slice=ast.Constant() as key, ctx=ast.Store() | ast.Del()):
                result.add(id(key))
            case ast.Raise() | ast.Assert():
                shown = node.exc if isinstance(node, ast.Raise) else node.msg
                result.update(map(id, ast.walk(shown)) if shown is not None else ())
            case ast.Call(func=func) if _SPEAKS.search(dotted(func) or ""):
                result.update(id(one) for part in node.args for one in ast.walk(part) if isinstance(one, ast.Constant))
            case ast.keyword(arg="help" | "reason" | "match" | "description", value=shown):
                result.update(map(id, ast.walk(shown)))
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant() as name, _]):
                result.add(id(name))
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=words):
                result.update(map(id, words))
    return result


def _of_program(node: ast.Attribute) -> bool:
    """Return whether an attribute is a flag of a program: of an object that is called ``args``."""
    return dotted(node.value).rpartition(".")[2] in _PROGRAMS
