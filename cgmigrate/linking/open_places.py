"""Places outside of a fix that may meet what it changes: each appearance of a name that nothing accounts for.

A fix is safe only if every appearance of its names in the project is accounted for. This module lists those that are
not, in any text of the project: whatever its kind, encoding, case or notation. Accounted for are comments, prose,
megatron-core's own files, keywords of calls that make an object of their own, keys of other mappings with the same
value, flags on command lines, and lines of code that a proof followed.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from functools import cached_property

import yaml

from cgmigrate.documents.python.source import dotted
from cgmigrate.documents.unread import code_in_notebook
from cgmigrate.linking.class_changes import class_changes_in
from cgmigrate.linking.entry_filters import WORDS, filters_in
from cgmigrate.linking.name_appearances import NameAppearance, appearances_in, words_of
from cgmigrate.linking.project_texts import ProjectTexts, is_of_project
from cgmigrate.linking.text_tools import (
    TextChange,
    name_parts_in,
    name_tests_in,
    reaches,
    readers_of_exports,
    searched_in,
    tools_about,
    uses_of_output,
)
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import is_test, shown_path
from cgmigrate.project.unread_files import is_report

_CODE = (".py", ".pyi", ".pyx")
_YAML = (".yaml", ".yml")
_PAGES = (".md", ".rst", ".mdx", ".adoc", ".tex", ".html", ".htm", ".svg")
_PAST = (".log", ".orig", ".sarif")
_DATA = (".toml", ".ini", ".cfg", ".conf", ".env", ".properties", ".csv", ".tsv", ".json", ".jsonl", ".json5")
_FILLED = (".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".template", ".in", ".txt")
"""Files in which a hash need not begin a comment."""
_TEMPLATE = re.compile(r"\{[{%][^{}]*$|\$\{?$|\$\{[^{}\n]*$|%\([^()\n]*$")
"""Before a name that a template fills in, which may begin on a line above."""
_FIELD = re.compile(r"\{[\w.\[\]]*$")
"""Before a name that ``str.format`` fills in."""
_BEFORE = 300
_COMMENT = re.compile(r"^\s*(?:#|//|;|--\s|<!--|\*\s)")
_DOCTEST = re.compile(r"^\s*(?:>>>|\.\.\.)")
_KEY = re.compile(r"(?:^|[{,?])\s*(?:-\s+)*[\"']?(?:[\w-]+\.)*$")
_VALUE = re.compile(r"[\"']?\s*:(?:\s+|$)([^#\n]*)")
_ASSIGNED = re.compile(r"[\"']?=[^=\s]")
_WITH_COMMANDS = (*_CODE, *_YAML, *_PAGES, ".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".sub", ".mk", ".env", ".ipynb")
"""Files in which a flag is part of a command line."""
_FLAG = re.compile(r"(?:^|[\s\"'=\[(,])--?(?:no-)?$")


class PlaceKind(Enum):
    """How an appearance of a name is written."""

    CODE = auto()
    """Python: an attribute, an argument, a text."""
    PARAMETER = auto()
    """A parameter of a function, or an argument for it: no object by itself, a proof follows what it is used for."""
    KEYWORD = auto()
    """A keyword of a call that makes an object of a class of Megatron."""
    KEY = auto()
    """A key of a mapping in YAML."""
    DATA = auto()
    """An entry of another format, or an element of a list."""
    OVERRIDE = auto()
    """``name=value`` in a page or a command."""
    FLAG = auto()
    """A flag of a command line."""
    TEXT = auto()
    """Anything else that a program may read: a pattern, a template, a script."""


@dataclass(frozen=True, slots=True)
class OpenPlace:
    """An appearance of a name, or of a part of it, that is not accounted for."""

    path: str
    line: int
    text: str
    """The name, the part, or the code, as it is written."""
    kind: PlaceKind = PlaceKind.TEXT
    value: object = None
    """The value of a key."""

    def __str__(self) -> str:
        return f"{shown_path(self.path)}:{self.line}"


@dataclass(frozen=True, slots=True)
class FixOutline:
    """What a fix changes: ``before`` are the settings that change, with their values; ``lines`` those of the file that
    it accounts for; ``old`` and ``new`` the text of the changed lines.
    """

    path: str
    before: Mapping[str, object]
    names: frozenset[str]
    lines: Collection[int]
    old: str
    new: str
    accounted: Collection[tuple[str, int]] = ()
    """The lines of code, by the real paths of their files, that a proof followed."""
    is_proved: bool = False
    """Whether a proof followed the object through the code of the project."""
    is_object: bool = False
    """Whether it is about an object of code, not the keys of a mapping."""


_FOR_OBJECTS = frozenset((PlaceKind.CODE, PlaceKind.TEXT))


@dataclass
class OpenPlaces:
    """The open places of a checkout; its files are read once, when the first one is needed."""

    top: str
    catalogue: Catalogue
    texts: ProjectTexts = field(init=False)
    _known: dict[str, list[tuple[frozenset[str], OpenPlace]]] = field(default_factory=dict)
    """File → its places, each with the names that it may be about."""
    _looking: dict[frozenset[str], list[tuple[OpenPlace, bool]]] = field(default_factory=dict)
    """Names → the code that looks at all entries."""

    def __post_init__(self) -> None:
        self.texts = ProjectTexts(self.top)

    def meeting(self, fix: FixOutline) -> OpenPlace | None:
        """Return the first place that can meet what a fix changes; None if everything is accounted for."""
        own = os.path.realpath(fix.path)
        named = (
            place
            for path in self.texts.holding(words_of(self.catalogue))
            if is_of_project(path, own, self.top) or self._is_script(path)
            for names, place in self._in_file(path)
            if not names.isdisjoint(fix.names) and self._counts(place, fix, own)
        )
        return next(named, None) or next(self._looking_at(fix, own), None)

    def meeting_command(self, fix: FixOutline, *, is_open: bool) -> OpenPlace | None:
        """Return the first place that can meet the words of a command line.

        ``is_open`` says that the line may get more words than it shows: then whatever has the name can be one of them.
        """
        own = os.path.realpath(fix.path)
        for path in self.texts.holding(words_of(self.catalogue)):
            for names, place in self._in_file(path):
                is_own = path == own and place.line in fix.lines
                if is_own or names.isdisjoint(fix.names) or not _meets_words(place, is_open=is_open):
                    continue
                # A file of flags or of output has no name of the script in it, programs have.
                is_list = place.kind is PlaceKind.FLAG
                if (
                    names & self.catalogue.deprecated
                    if is_list
                    else reaches(self.texts.text(path), os.path.basename(own))
                ):
                    return place
        if is_open and (part := next(name_parts_in(self.texts, fix.names, own), None)):
            return OpenPlace(*part)
        if (reader := next(readers_of_exports(own, fix.old, self.texts), None)) is not None:
            return OpenPlace(*reader)
        # What runs a script can look at what it prints; a mapping is not run.
        outputs = () if own.endswith(_YAML) else uses_of_output(own, self.texts)
        found = (*outputs, *tools_about(TextChange(own, fix.old, fix.new, fix.names), self.texts))
        return OpenPlace(*found[0]) if found else None

    def _is_script(self, path: str) -> bool:
        return not path.endswith((*_CODE, *_YAML, *_DATA, *_PAGES, ".ipynb", ".txt"))

    def _counts(self, place: OpenPlace, fix: FixOutline, own: str) -> bool:
        """Return whether a place is not accounted for by a fix."""
        is_flag = place.kind is PlaceKind.FLAG and not place.path.endswith(_CODE)
        if is_flag or place.kind is PlaceKind.KEYWORD or (place.path == own and place.line in fix.lines):
            return False
        if fix.is_proved:
            # No attribute has a hyphen.
            is_about = place.kind in _FOR_OBJECTS and "-" not in place.text
            # Tests are followed as well: what they compare is part of the proof.
            if place.kind is PlaceKind.CODE and is_test(place.path):
                return False
            return is_about and (place.path, place.line) not in fix.accounted
        name = place.text.lower()
        same = place.kind is PlaceKind.KEY and name in fix.before and _same(place.value, fix.before[name])
        return not same

    def _looking_at(self, fix: FixOutline, own: str) -> Iterator[OpenPlace]:
        """Yield code that looks at all of a mapping, object or file, and has no name in it."""
        if fix.is_object:
            yield from (one for one in self._class_changes if not (fix.is_proved and is_test(one.path)))
        yield from (one for one, of_object in self._filters(fix.names) if of_object or not fix.is_proved)
        if not fix.is_proved:
            change = TextChange(own, fix.old, fix.new, fix.names)
            found = (*name_parts_in(self.texts, fix.names, own), *tools_about(change, self.texts))
            yield from (OpenPlace(*one) for one in found)

    @cached_property
    def _class_changes(self) -> list[OpenPlace]:
        return [OpenPlace(*one) for one in class_changes_in(self.texts)]

    def _filters(self, names: frozenset[str]) -> list[tuple[OpenPlace, bool]]:
        """Return the code that tells names or values from others, and whether it is about attributes of an object."""
        if names not in self._looking:
            tests = [(OpenPlace(*one), True) for one in name_tests_in(self.texts, names)]
            loops = [
                (OpenPlace(path, one.line, one.text), one.of_object and one.by_truth and not is_test(path))
                for path in self.texts.holding(WORDS)
                if path.endswith(_CODE) and not is_part_of_megatron(path)
                for one in filters_in(self.texts.text(path), names)
            ]
            self._looking[names] = [*tests, *loops]
        return self._looking[names]

    def _in_file(self, path: str) -> list[tuple[frozenset[str], OpenPlace]]:
        """Return the places in a file, each with the names of the settings."""
        if path not in self._known:
            text = self.texts.text(path)
            skipped = is_part_of_megatron(path) or path.lower().endswith(_PAST) or is_report(text.encode())
            self._known[path] = [] if skipped else list(_places_in(path, text, self.catalogue))
        return self._known[path]


def _meets_words(place: OpenPlace, *, is_open: bool) -> bool:
    """Return whether a place may be about words of a command line: it has a flag, and is no command line itself."""
    if place.kind is PlaceKind.FLAG:
        return not place.path.endswith(_WITH_COMMANDS) and "." in os.path.basename(place.path)
    if place.kind in (PlaceKind.KEYWORD, PlaceKind.OVERRIDE):
        return False
    return "-" in place.text or (is_open and place.kind is not PlaceKind.TEXT)


def _same(first: object, second: object) -> bool:
    return type(first) is type(second) and first == second


def _places_in(path: str, text: str, catalogue: Catalogue) -> Iterator[tuple[frozenset[str], OpenPlace]]:
    found = list(appearances_in(text, catalogue))
    if not found:
        return
    if path.endswith(_CODE):
        yield from _in_python(path, text, found, catalogue)
        return
    cells = code_in_notebook(text) if path.endswith(".ipynb") else None
    in_form = next((form for suffixes, form in _FORMS.items() if path.lower().endswith(suffixes)), _in_other)
    for one in found:
        if cells is not None and not any(cell.start <= one.start < cell.end for cell in cells):
            continue
        before, after = text[text.rfind("\n", 0, one.start) + 1 : one.start], text[one.end :].partition("\n")[0]
        is_filled = _TEMPLATE.search(text[max(0, one.start - _BEFORE) : one.start]) is not None
        result = (PlaceKind.TEXT, None) if is_filled else in_form(path, before, after)
        if result is not None and result[0] is PlaceKind.FLAG and "_" in one.text:
            # Flags of Megatron have hyphens: it is an option of another program.
            result = PlaceKind.OVERRIDE, None
        if result is not None:
            kind, value = result
            yield one.names, OpenPlace(path, text.count("\n", 0, one.start) + 1, one.text, kind, value)


def _in_data(_path: str, _before: str, _after: str) -> tuple[PlaceKind, object] | None:
    return PlaceKind.DATA, None


def _in_page(path: str, before: str, after: str) -> tuple[PlaceKind, object] | None:
    """Return what a name in a page is; None for prose and examples. A page among tests is what these expect."""
    if is_test(path) or _DOCTEST.match(before) or _FIELD.search(before):
        return PlaceKind.TEXT, None
    return (PlaceKind.OVERRIDE, None) if _ASSIGNED.match(after) and not _FLAG.search(before) else None


def _in_yaml(path: str, before: str, after: str) -> tuple[PlaceKind, object] | None:
    if _COMMENT.match(before):
        return None
    if _FLAG.search(before):
        return PlaceKind.FLAG, None
    if _KEY.search(before) and (match := _VALUE.match(after)):
        return PlaceKind.KEY, _value_of(match[1])
    if _ASSIGNED.match(after):
        return PlaceKind.OVERRIDE, None
    return (
        PlaceKind.DATA if _KEY.search(before) or before.rstrip().endswith(("[", ":", ",", "-")) else PlaceKind.TEXT
    ), None


def _value_of(text: str) -> object:
    """Return the value of a key on its line; the text itself where it is none alone."""
    text = text.strip()
    for one in (text, text.rstrip(" ,}")):
        try:
            return yaml.safe_load(one)
        except yaml.YAMLError:
            continue
    return text


def _in_other(path: str, before: str, after: str) -> tuple[PlaceKind, object] | None:
    if _COMMENT.match(before) and not path.endswith(_FILLED):
        return None
    if _FLAG.search(before):
        return PlaceKind.FLAG, None
    return (PlaceKind.OVERRIDE if before.endswith((".", "+")) and _ASSIGNED.match(after) else PlaceKind.TEXT), None


_FORMS: Mapping[tuple[str, ...], Callable[[str, str, str], tuple[PlaceKind, object] | None]] = {
    _DATA: _in_data,
    _PAGES: _in_page,
    _YAML: _in_yaml,
}
"""How the names of files end → what a name in them is, by the text of its line before and after it."""


# --- Python ---------------------------------------------------------------------------------------


def _in_python(
    path: str, text: str, found: list[NameAppearance], catalogue: Catalogue
) -> Iterator[tuple[frozenset[str], OpenPlace]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        for one in found:
            yield one.names, OpenPlace(path, text.count("\n", 0, one.start) + 1, one.text, PlaceKind.CODE)
        return
    made, shown, compared = _keywords_of_megatron(tree), _shown_texts(tree), _compared(tree)
    parsed = _parsed_arguments(tree)
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        match node:
            case ast.Attribute(value=of, attr=name, ctx=context) if dotted(of) not in parsed:
                # Validation writes the new names from the old ones: a read sees what it saw.
                if name not in catalogue.new_names or not isinstance(context, ast.Load):
                    yield from _named(path, line, name, catalogue)
            case ast.arg(arg=name):
                yield from _named(path, line, name, catalogue, PlaceKind.PARAMETER)
            case ast.keyword(arg=str(name)):
                kind = PlaceKind.KEYWORD if id(node) in made else PlaceKind.PARAMETER
                yield from _named(path, line, name, catalogue, kind)
            case ast.MatchClass(kwd_attrs=names):
                for name in names:
                    yield from _named(path, line, name, catalogue)
            case ast.ClassDef(body=body):
                for name in _fields_in(body):
                    yield from _named(path, name.lineno, name.id, catalogue)
            case ast.Constant(value=(str() | bytes()) as value):
                if id(node) not in shown or ">>>" in str(value):
                    yield from _in_constant(path, node, value, catalogue, is_compared=id(node) in compared)


def _named(
    path: str, line: int, name: str, catalogue: Catalogue, kind: PlaceKind = PlaceKind.CODE
) -> Iterator[tuple[frozenset[str], OpenPlace]]:
    if "_" in name or name != name.lower():
        for one in appearances_in(name, catalogue):
            if one.end - one.start == len(name):
                yield one.names, OpenPlace(path, line, one.text, kind)


def _in_constant(
    path: str, node: ast.Constant, value: str | bytes, catalogue: Catalogue, *, is_compared: bool
) -> Iterator[tuple[frozenset[str], OpenPlace]]:
    text = value if isinstance(value, str) else value.decode("latin-1")
    for one in appearances_in(text, catalogue):
        before = text[text.rfind("\n", 0, one.start) + 1 : one.start]
        kind = PlaceKind.CODE
        if _DOCTEST.match(before):
            # A doctest is no code that is followed.
            kind = PlaceKind.TEXT
        elif _FLAG.search(before) and "_" not in one.text and not is_compared:
            kind = PlaceKind.FLAG
        yield one.names, OpenPlace(path, node.lineno + text.count("\n", 0, one.start), one.text, kind)


def _compared(tree: ast.Module) -> set[int]:
    """Return the texts that code compares with others, or looks for in them."""
    result = set(map(id, searched_in(tree)))
    for node in ast.walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                result.update(id(part) for one in (left, *others) for part in ast.walk(one))
            case ast.Subscript(value=value):
                result.add(id(value))
    return result


def _parsed_arguments(tree: ast.Module) -> set[str]:
    """Return the names of variables and parameters that are the parsed arguments of a program."""
    names: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                if dotted(annotation).rpartition(".")[2] == "Namespace":
                    names.add(name)
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(attr="parse_args"))):
                names.add(dotted(target))
    return names - {""}


def _shown_texts(tree: ast.Module) -> set[int]:
    """Return the texts for people: docstrings, and messages of errors that are raised."""
    shown: set[int] = set()
    for node in ast.walk(tree):
        match node:
            case ast.Expr(value=value):
                shown.add(id(value))
            case ast.Raise(exc=ast.Call(args=args)):
                shown.update(id(part) for one in args for part in (one, *getattr(one, "values", ())))
            case ast.Assert(msg=ast.expr() as message):
                shown.update(id(part) for part in (message, *getattr(message, "values", ())))
    return shown


def _fields_in(body: list[ast.stmt]) -> Iterator[ast.Name]:
    for one in body:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        yield from (target for target in targets if isinstance(target, ast.Name))


def _keywords_of_megatron(tree: ast.Module) -> set[int]:
    """Return the keywords of calls that make an object of a class that is imported from Megatron."""
    imported = {
        name.asname or name.name.partition(".")[0]
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "megatron")
        or (isinstance(node, ast.Import) and any(one.name.partition(".")[0] == "megatron" for one in node.names))
        for name in node.names
    }
    return {
        id(one)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and (callee := dotted(node.func))
        and callee.partition(".")[0] in imported
        and callee.rpartition(".")[2][:1].isupper()
        for one in node.keywords
    }
