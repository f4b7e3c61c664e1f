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
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache

from cgmigrate.documents.python.source import dotted
from cgmigrate.documents.unread import code_in_notebook
from cgmigrate.linking.entry_filters import filters_in
from cgmigrate.linking.import_graph import ImportGraph, is_around, is_of_project, names_file
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import is_test, shown_path
from cgmigrate.text.files import read_bytes

_MOST_BYTES = 1024 * 1024
_AFTER = 200
"""Characters behind a name that are read."""
_PAST = (".patch", ".diff", ".log", ".orig", ".sarif")
_YAML = (".yaml", ".yml")
_CODE = (".py", ".pyi")
_CLASS = "transformer_config.py"
"""The file of megatron-core that has the settings, of which a checkout may have a copy."""
_PAGES = (".md", ".rst", ".mdx", ".txt", ".adoc", ".html", ".htm", ".svg", ".tex")
_OVERLAYS = (".toml", ".ini", ".cfg", ".conf", ".env", ".properties", ".csv", ".tsv", ".json", ".jsonl", ".json5")
_PROGRAMS = ("args", "argv", "options", "opts", "namespace")
"""What objects with the flags of a program are called: they are none that a constructor makes."""
_SPEAKS = re.compile(r"(warn|warning|info|debug|error|exception|log|print|fail|skip|help|deprecated|Error|Exception)$")
"""What a function is called that shows a text to people."""
_TEMPLATE = re.compile(r"\{[{%][^{}]*$|\$\{[^{}]*$")
_COMMENT = re.compile(r"^\s*(#|//|;|--\s|<!--)|\s#\s")
_DOCTEST = re.compile(r"^\s*>>>")
_IS_KEY = re.compile(r"[\"']?\s*[=:]")
_OVERRIDES = re.compile(r"(^|\s)[\w.+]*\.$")
_VALUE = re.compile(r"=[^=\s]")
_KEY = re.compile(r"^\s*(-\s+)?[\"']?([\w-]+\.)*$")
_BEFORE_ELEMENT = re.compile(r"(^\s*(-\s+)?|[\[,:({=]\s*)\\?[\"']?(\w+\.)*$")
_AFTER_ELEMENT = re.compile(r"\\?[\"']?[ \t]*([\],)};#\n]|$)")
_SCHEMA = re.compile(r"[\"']?:(\s*\{(?!\{)|[ \t]*(#.*)?\n[ ]+(type|enum|anyOf|oneOf|items|description|default)[\"']?:)")
_TOOL = re.compile(r"\b(yq|jq|sed|awk|gawk|perl|[ef]?grep|rg|cut|tr|python3?)\b")
_LOADS = re.compile(r"safe_load|yaml\.load|full_load|OmegaConf\.load")
_MERGES = re.compile(r"\.update\(|\bmerge\w*\(|\{\*\*|\]\s*\|\s*\w|\|=")
_REPLACED = re.compile(r"\b(\w+)\.__(?:setattr|getattribute|init|post_init)__\s*=(?!=)")
_MAY_FILTER = re.compile(r"\.items\(\)|\bvars\(|__dict__|asdict\(")


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """An appearance of a name, or of a part of it, that is not accounted for."""

    path: str
    line: int
    text: str
    """The name or the part, as it is written."""
    of_python: bool = False
    """Whether it is code of Python, in which objects are followed."""
    is_overlay: bool = False
    """Whether it is a key of a file that may be merged over others, or an override."""
    is_data: bool = False
    """Whether it is a key of a file of data in another format, which has no place of its own in a plan."""
    is_for_objects: bool = True
    """Whether an object of Python code can meet it."""

    def __str__(self) -> str:
        return f"{shown_path(self.path)}:{self.line}"


@dataclass
class OpenPlaces:
    """The open places of a checkout; its files are read once, when the first one is needed."""

    top: str
    catalogue: Catalogue
    _graph: ImportGraph = field(init=False)
    _known: dict[str, dict[str, list[OpenPlace]]] = field(default_factory=dict)
    """The places in a file, by names."""
    _filters: dict[str, list[OpenPlace]] = field(default_factory=dict)
    """Loops over entries that look at them, by file."""

    def __post_init__(self) -> None:
        self._graph = ImportGraph(self.top)

    def meeting_object(
        self, path: str, names: Collection[str], accounted: Collection[tuple[str, int]]
    ) -> OpenPlace | None:
        """Return the first place that can meet an object of Python code in a file.

        ``accounted`` are lines of code whose use of settings is known: a proof followed them.
        """
        for place in self._places_of(names, lambda other: self._may_meet(path, other)):
            if place.is_overlay or not place.is_for_objects:
                continue
            if place.of_python and (os.path.realpath(place.path), place.line) in accounted:
                continue
            return place
        return None

    def meeting_mapping(self, path: str, names: Collection[str]) -> OpenPlace | None:
        """Return the first place, in other files than Python, that can meet the keys of a mapping in a file."""
        own = os.path.realpath(path)
        for place in self._places_of(names, lambda other: os.path.realpath(other) != own, parts_only=True):
            if self._is_merged_over(place.path, path) if place.is_data else self._reaches(place.path, path):
                return place
        return None

    def _may_meet(self, path: str, other: str) -> bool:
        is_any = not other.endswith(_CODE) or os.path.basename(other) == _CLASS
        return is_any or self._graph.may_meet(path, other)

    def _places_of(
        self, names: Collection[str], is_near: Callable[[str], bool], *, parts_only: bool = False
    ) -> Iterator[OpenPlace]:
        """Yield the places of some names in the files that are near. Of names as a whole in Python others may know."""
        for name in names:
            for path, words in self._mentions.get(name, {}).items():
                in_part = parts_only and path.endswith(_CODE)
                if (words != {name} or not in_part) and is_near(path):
                    yield from (one for one in self._in_file(path).get(name, ()) if not in_part or one.text != name)

    def _is_merged_over(self, data: str, path: str) -> bool:
        """Return whether a file of data may be merged over a mapping: code of the checkout names it.

        It is in a folder around that of the mapping, or such code names the mapping's file or folder as well.
        """
        name = os.path.basename(data)
        loaders = [file for file, text in self._graph.texts.items() if name in text and not is_test(file)]
        return any(is_around(data, path) or self._names(one, path) for one in loaders)

    def _reaches(self, place: str, path: str) -> bool:
        """Return whether a file can meet a mapping: it is of its project and no test, or it names it or its folder."""
        is_near = is_around(place, path) if is_test(place) else is_of_project(place, path, self.top)
        return is_near or self._names(place, path)

    def _names(self, place: str, path: str) -> bool:
        return names_file(self._text_of(place), path, self.top)

    def filtering(self, path: str, *, of_object: bool) -> OpenPlace | None:
        """Return code that treats settings by their values or spells flags from keys, whatever they are called.

        ``path`` is the file that has them: code meets the keys of a file that it names.
        """
        for other in self._may_filter:
            text = self._graph.texts[other]
            met = self._graph.may_meet(path, other) if of_object else os.path.basename(path) in text
            if met and (
                place := next((one for one in self._filters_in(other) if one.is_for_objects == of_object), None)
            ):
                return place
        return None

    def replacing_methods(self, path: str) -> OpenPlace | None:
        """Return code that replaces what a class of Megatron does with its attributes, and that a file can meet."""
        return next((one for one in self._replaced if self._graph.may_meet(path, one.path)), None)

    @cached_property
    def _replaced(self) -> list[OpenPlace]:
        places = []
        for path, text in self._graph.texts.items():
            for match in _REPLACED.finditer(text):
                if re.search(rf"^from megatron[.\w]* import [^#\n]*\b{match[1]}\b", text, re.MULTILINE):
                    places.append(OpenPlace(path, text.count("\n", 0, match.start()) + 1, match.group().rstrip(" =")))
        return places

    def false_elsewhere(self, path: str, line: int, names: Collection[str]) -> OpenPlace | None:
        """Return another mapping in which one of some flags is false, where code merges mappings of YAML files."""
        own = os.path.realpath(path)
        for name in names:
            for one in self._falses.get(name, ()):
                is_other = (os.path.realpath(one.path), one.line) != (own, line)
                if is_other and is_of_project(one.path, path, self.top):
                    return one if any(self._reaches(code, path) for code in self._merging) else None
        return None

    @cached_property
    def _merging(self) -> list[str]:
        """The files with code that merges mappings of YAML files."""
        texts = self._graph.texts.items()
        return [path for path, text in texts if _LOADS.search(text) and _MERGES.search(text)]

    @cached_property
    def _may_filter(self) -> list[str]:
        """The files with loops over entries."""
        texts = self._graph.texts.items()
        return [path for path, text in texts if _MAY_FILTER.search(text) and not is_part_of_megatron(path)]

    def _filters_in(self, path: str) -> list[OpenPlace]:
        if path not in self._filters:
            filters = filters_in(self._graph.texts[path])
            self._filters[path] = [
                OpenPlace(path, line, what, of_python=True, is_for_objects=own) for line, what, own in filters
            ]
        return self._filters[path]

    @cached_property
    def _falses(self) -> dict[str, list[OpenPlace]]:
        from cgmigrate.project.checkout import files_with

        flags = [name for name in self.catalogue.deprecated if self.catalogue[name].is_flag]
        result: dict[str, list[OpenPlace]] = {}
        pattern = re.compile(
            rf"^\s*(?:-\s+)?({'|'.join(flags)})\s*:\s*(?:false|no|off)\b", re.MULTILINE | re.IGNORECASE
        )
        for path in files_with(self.top, flags, "*.yaml", "*.yml"):
            try:
                text = read_bytes(path, _MOST_BYTES).decode("utf-8", "replace")
            except OSError:
                continue
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start(1)) + 1
                result.setdefault(match[1], []).append(OpenPlace(path, line, match[1]))
        return result

    @cached_property
    def _mentions(self) -> dict[str, dict[str, set[str]]]:
        """Name → the files with the name or a part of it → how they spell it. Only files that are near are parsed."""
        from cgmigrate.project.checkout import files_with

        result: dict[str, dict[str, set[str]]] = {}
        pattern = _pattern(self.catalogue)
        for path in sorted(files_with(self.top, _words(self.catalogue))):
            if not path.lower().endswith(_PAST):
                for word in set(pattern.findall(self._text_of(path))):
                    for name in _names_of(word, self.catalogue):
                        result.setdefault(name, {}).setdefault(path, set()).add(word)
        return result

    def _text_of(self, path: str) -> str:
        """Return the text of a file, empty for one that is none."""
        if (text := self._graph.texts.get(os.path.realpath(path))) is not None:
            return text
        try:
            return read_bytes(path, _MOST_BYTES).decode("utf-8")
        except (OSError, ValueError):
            return ""

    def _in_file(self, path: str) -> dict[str, list[OpenPlace]]:
        """Return the places in a file by the names of the settings."""
        if path not in self._known:
            text, by_name = self._text_of(path), self._known.setdefault(path, {})
            places = () if is_part_of_megatron(os.path.abspath(path)) else self._places_in(path, text)
            for name, place in (*self._lacking(path, text), *places):
                by_name.setdefault(name, []).append(place)
        return self._known[path]

    def _lacking(self, path: str, text: str) -> Iterator[tuple[str, OpenPlace]]:
        """Yield the fields of megatron-core's class, in a copy of the checkout, that has no newer ones beside them."""
        if os.path.basename(path) == _CLASS and re.search(r"^class TransformerConfig\b", text, re.MULTILINE):
            for name in sorted(self.catalogue.deprecated):
                newer = self.catalogue[name].replaced_by
                if newer and (at := text.find(name)) >= 0 and not any(one in text for one in newer):
                    yield name, OpenPlace(path, text.count("\n", 0, at) + 1, name)

    def _places_in(self, path: str, text: str) -> Iterator[tuple[str, OpenPlace]]:
        if path.endswith(_CODE):
            yield from _in_python(path, text, self.catalogue)
            return
        cells = code_in_notebook(text) if path.endswith(".ipynb") else None
        for match in _pattern(self.catalogue).finditer(text):
            if cells is not None and not any(one.start <= match.start() < one.end for one in cells):
                continue
            place = _in_text(path, text, match)
            if place is not None:
                for name in _names_of(match.group(), self.catalogue):
                    yield name, place


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
    return re.compile(rf"(?:(?<![A-Za-z0-9_])|(?<=\\n))({every})(?![A-Za-z0-9_])")


@lru_cache(maxsize=8)
def _words(catalogue: Catalogue) -> tuple[str, ...]:
    return tuple(sorted(_parts(catalogue)))


# --- text -----------------------------------------------------------------------------------------


def _in_text(path: str, text: str, match: re.Match[str]) -> OpenPlace | None:
    """Return the place of a name in a file other than Python; None if it is accounted for."""
    start, end = match.span()
    before, after = text[text.rfind("\n", 0, start) + 1 : start], text[end:][:_AFTER]
    place = OpenPlace(path, text.count("\n", 0, start) + 1, match.group())
    in_form = next((form for suffixes, form in _FORMS.items() if path.lower().endswith(suffixes)), _in_other)
    if in_form is not _in_overlay and _COMMENT.search(before):
        return None
    return in_form(place, before, after)


def _in_overlay(place: OpenPlace, before: str, after: str) -> OpenPlace | None:
    if _is_element(before, after) or _SCHEMA.match(after):
        return _listed(place)
    return replace(_listed(place), is_data=True) if _IS_KEY.match(after) else None


def _listed(place: OpenPlace) -> OpenPlace:
    """Return the place of a name in a list or a schema of keys, which only a mapping can meet."""
    return replace(place, is_overlay=True, is_for_objects=False)


def _is_element(before: str, after: str) -> bool:
    """Return whether a name is an element of a list, a value, or a line of its own."""
    return _BEFORE_ELEMENT.search(before) is not None and _AFTER_ELEMENT.match(after) is not None


def _in_page(place: OpenPlace, before: str, after: str) -> OpenPlace | None:
    """Return the place of a name in a page: a template, a doctest, an override; None for prose and examples.

    A page among tests is what these expect as output.
    """
    if is_test(place.path):
        return None
    if _TEMPLATE.search(before) or _DOCTEST.match(before):
        return place
    if _OVERRIDES.search(before) and _VALUE.match(after):
        return replace(place, is_overlay=True)
    return _listed(place) if place.path.endswith(".txt") and _is_element(before, after) else None


def _in_yaml(place: OpenPlace, before: str, after: str) -> OpenPlace | None:
    """Return the place of a name in a template, a command or a list of a YAML file, or the key of a schema.

    Its other keys are what the document lists.
    """
    if _TEMPLATE.search(before):
        return place
    if _is_element(before, after) or (_KEY.match(before) and _SCHEMA.match(after)):
        return _listed(place)
    return None if _KEY.match(before) or not _TOOL.search(before) else place


def _in_other(place: OpenPlace, before: str, after: str) -> OpenPlace | None:
    """Return the place of a name in a script or a program: no flag, which is about a command line."""
    if before.endswith("--"):
        return None
    return replace(place, is_overlay=before.endswith(".") and _VALUE.match(after) is not None)


_FORMS: Mapping[tuple[str, ...], Callable[[OpenPlace, str, str], OpenPlace | None]] = {
    _OVERLAYS: _in_overlay,
    _PAGES: _in_page,
    _YAML: _in_yaml,
}
"""How the names of files end → what a name in them is, by the text of its line before and after it."""


# --- Python ---------------------------------------------------------------------------------------


def _in_python(path: str, text: str, catalogue: Catalogue) -> Iterator[tuple[str, OpenPlace]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for match in _pattern(catalogue).finditer(text):
            for name in _names_of(match.group(), catalogue):
                yield name, OpenPlace(path, text.count("\n", 0, match.start()) + 1, match.group(), of_python=True)
        return
    accounted = _accounted(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Attribute(attr=name, ctx=ast.Load()) if name in catalogue.deprecated and not _of_program(node):
                yield name, OpenPlace(path, line, name, of_python=True)
            case ast.Constant(value=str() as value) if "_" in value:
                yield from _in_string(path, node, value, id(node) in accounted, catalogue)


def _in_string(
    path: str, node: ast.Constant, value: str, accounted: bool, catalogue: Catalogue
) -> Iterator[tuple[str, OpenPlace]]:
    for match in _pattern(catalogue).finditer(value):
        line = value[value.rfind("\n", 0, match.start()) + 1 :].partition("\n")[0]
        is_doctest = _DOCTEST.match(line) is not None
        if accounted and not is_doctest:
            continue
        for name in _names_of(match.group(), catalogue) & catalogue.deprecated:
            number = node.lineno + value.count("\n", 0, match.start())
            # A doctest is no code that is followed.
            yield name, OpenPlace(path, number, match.group(), of_python=not is_doctest)


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
                parts = shown.args if isinstance(shown, ast.Call) else [shown]
                result.update(id(one) for part in parts for one in _written_texts(part))
            case ast.Call(func=func) if _SPEAKS.search(dotted(func)):
                result.update(id(one) for part in node.args for one in _written_texts(part))
            case ast.keyword(arg="help" | "reason" | "match" | "description", value=shown):
                result.update(map(id, _written_texts(shown)))
            case ast.Call(func=ast.Name(id="setattr"), args=[_, ast.Constant() as name, _]):
                result.add(id(name))
            case ast.Call(func=ast.Attribute(attr="add_argument"), args=words):
                result.update(map(id, words))
    return result


def _written_texts(node: ast.AST | None) -> Iterator[ast.AST]:
    """Yield the strings of a text that is written at one place: not what code in it reads."""
    match node:
        case ast.Constant():
            yield node
        case ast.JoinedStr(values=parts):
            yield from (one for one in parts if isinstance(one, ast.Constant))
        case ast.BinOp(left=left, right=right):
            yield from (*_written_texts(left), *_written_texts(right))


def _of_program(node: ast.Attribute) -> bool:
    """Return whether an attribute is a flag of a program: of an object that is called ``args``."""
    return dotted(node.value).rpartition(".")[2] in _PROGRAMS
