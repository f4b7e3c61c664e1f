"""The places of a text that have the name of a setting, or a part of it: how it is written there, and its value.

Comments and prose are none. What is not surely another form is `TEXT`: something that a program may read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, auto

import yaml

from cgmigrate.documents.unread import code_in_notebook
from cgmigrate.linking.name_appearances import NameAppearance, SoughtNames, appearances_in
from cgmigrate.project.paths import is_test, shown_path

CODE = (".py", ".pyi", ".pyx")
YAML = (".yaml", ".yml")
_PAGES = (".md", ".rst", ".mdx", ".adoc", ".tex", ".html", ".htm", ".svg")
_DATA = (".toml", ".ini", ".cfg", ".conf", ".env", ".properties", ".csv", ".tsv", ".json", ".jsonl", ".json5")
_SHELL = (".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".sub", ".mk")
_FILLED = (".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".template", ".in", ".txt")
"""Files in which a hash need not begin a comment."""
_TEMPLATE = re.compile(r"\{[{%][^{}]*$|\$\{?$|\$\{[^{}\n]*$|%\([^()\n]*$")
"""Before a name that a template fills in, which may begin on a line above."""
_BEFORE = 300
"""Characters before a name in which a template may begin."""
_NO_VALUES = (yaml.YAMLError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What PyYAML raises for a text that is no value: also for a tag that does not fit, as in ``!!bool 1``."""
_MOST_LINES = 30
"""Lines of a value that are read."""
_KEYWORD = re.compile(r"=(?:[\w.\"']*\s*[,)]|None\b)")
"""After a name in a page that is a keyword of Python."""
_FIELD = re.compile(r"\{[\w.\[\]]*$")
"""Before a name that ``str.format`` fills in."""
_COMMENT = re.compile(r"^\s*(?:#|//|;|--\s|<!--|\*\s)")
DOCTEST = re.compile(r"^\s*(?:>>>|\.\.\.)")
_KEY = re.compile(r"(?:^|[{,?])\s*(?:-\s+)*[\"']?(?:[\w-]+\.)*$")
_ELEMENT = re.compile(r"[\[:,-]\s*$")
_VALUE = re.compile(r"[\"']?\s*:(?:\s+|$)([^#\n]*)")
_ASSIGNED = re.compile(r"[\"']?=[^=\s]")
FLAG = re.compile(r"(?:^|[\s\"'=\[(,])--?(?:no-)?$")


class PlaceKind(Enum):
    """How a name is written."""

    CODE = auto()
    """Python: an attribute, a field, a text."""
    PARAMETER = auto()
    """A parameter of a function, or an argument for it: no object by itself, a proof follows what it is used for."""
    OWN = auto()
    """What a test sets for itself: an entry of a dictionary, an attribute. It meets what the test gets."""
    KEYWORD = auto()
    """A keyword of a call that makes an object of a class of Megatron."""
    KEY = auto()
    """A key of a mapping in YAML or JSON."""
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
    """A place of a file that may use a setting."""

    path: str
    line: int
    text: str
    """The name, the part, or the code, as it is written."""
    kind: PlaceKind = PlaceKind.TEXT
    names: frozenset[str] = frozenset()
    """The settings that it may be about."""
    value: object = None
    """The value of a key."""
    is_in_group: bool = False
    """Whether it is a name only for code that cuts the word before it."""

    def __str__(self) -> str:
        return f"{shown_path(self.path)}:{self.line}"

    @property
    def is_word_of_command(self) -> bool:
        """Whether it is a flag in a file that has command lines, not in one that lists flags or output."""
        has_commands = self.path.endswith((*CODE, *YAML, *_PAGES, *_SHELL, ".env", ".ipynb"))
        return self.kind is PlaceKind.FLAG and (has_commands or "." not in os.path.basename(self.path))


def is_set_in(text: str, place: OpenPlace) -> bool:
    """Return whether the line of a place has an assignment of what it names, or a key."""
    line, name = "".join(text.split("\n")[place.line - 1 : place.line]), re.escape(place.text)
    return re.search(rf"{name}[\"']?\]?\s*=(?!=)|[\"']{name}[\"']\s*:|^\s*{name}\s*:", line) is not None


def may_run(path: str) -> bool:
    """Return whether a file may be a program: code, a notebook, a script, a template, a build file."""
    return not path.endswith((*YAML, *_DATA, *_PAGES, ".txt"))


def places_in(path: str, text: str, sought: SoughtNames) -> Iterator[OpenPlace]:
    """Yield the places in a text that is no Python file."""
    cells = code_in_notebook(text) if path.endswith(".ipynb") else None
    in_form = next((form for suffixes, form in _FORMS.items() if path.lower().endswith(suffixes)), _in_other)
    for one in appearances_in(text, sought):
        if cells is None or any(cell.start <= one.start < cell.end for cell in cells):
            kind, value = _kind_of(path, text, one, in_form)
            if kind is not None:
                line = text.count("\n", 0, one.start) + 1
                yield OpenPlace(path, line, one.text, kind, one.names, value, one.is_in_group)


_Form = tuple[PlaceKind | None, object]
"""How a name is written, None for a comment or prose, and the value of a key."""


def _kind_of(path: str, text: str, one: NameAppearance, in_form: Callable[[str, str, str], _Form]) -> _Form:
    if _TEMPLATE.search(text, max(0, one.start - _BEFORE), one.start):
        return PlaceKind.TEXT, None
    before, after = text[text.rfind("\n", 0, one.start) + 1 : one.start], text[one.end :].partition("\n")[0]
    kind, value = in_form(path, before, after)
    if kind is PlaceKind.KEY:
        value = _value_of_key(path, before, str(value), text[one.end :])
    # Flags of Megatron have hyphens: one with underscores is an option of another program.
    return (PlaceKind.OVERRIDE, None) if kind is PlaceKind.FLAG and "_" in one.text else (kind, value)


def _value_of_key(path: str, before: str, value: str, below: str) -> object:
    """Return the value of a key, by its line before and after it, and the lines below."""
    if not value:
        return _block_below(below, len(before) - len(before.lstrip()))
    is_in_braces = path.endswith(".json") or before.count("{") > before.count("}")
    return _value_in_braces(value) if is_in_braces else _value_of(value)


def _in_data(path: str, _before: str, after: str) -> _Form:
    if path.endswith(".json") and (match := _VALUE.match(after)) and match[1].strip():
        return PlaceKind.KEY, match[1].strip()
    return PlaceKind.DATA, None


def _in_page(path: str, before: str, after: str) -> _Form:
    """Return what a name in a page is: none for prose and examples. A page among tests is what these expect."""
    if is_test(path) or DOCTEST.match(before) or _FIELD.search(before):
        return PlaceKind.TEXT, None
    # In quotes of its own, it is the name of a setting with its value, and no word of a command.
    is_override = _ASSIGNED.match(after) and not FLAG.search(before) and not before.endswith("`")
    is_override = is_override and not _KEYWORD.match(after)
    return (PlaceKind.OVERRIDE if is_override else None), None


def _in_yaml(_path: str, before: str, after: str) -> _Form:
    if _COMMENT.match(before):
        return None, None
    if FLAG.search(before):
        return PlaceKind.FLAG, None
    is_key = _KEY.search(before) is not None
    if is_key and (match := _VALUE.match(after)):
        return PlaceKind.KEY, match[1].strip()
    if _ASSIGNED.match(after):
        return PlaceKind.OVERRIDE, None
    return (PlaceKind.DATA if is_key or _ELEMENT.search(before) else PlaceKind.TEXT), None


def _value_of(text: str) -> object:
    """Return the value that a text is; the text itself where it is none alone."""
    try:
        return yaml.safe_load(text)
    except _NO_VALUES:
        return text


def _value_in_braces(text: str) -> object:
    """Return the value that a text begins with, inside of braces; the text itself where it has no end."""
    loader = yaml.SafeLoader("{a: " + text)
    try:
        for _ in ("stream", "document", "mapping", "key"):
            loader.get_event()  # type: ignore[no-untyped-call]
        return loader.construct_object(loader.compose_node(None, 0), deep=True)
    except _NO_VALUES:
        return text
    finally:
        loader.dispose()


def _is_behind_hash(before: str) -> bool:
    """Return whether a comment begins before a name, outside of quotes."""
    head, hash_sign, _ = before.rpartition(" #")
    return bool(hash_sign) and head.count('"') % 2 == 0 and head.count("'") % 2 == 0


def _block_below(text: str, indent: int) -> object:
    """Return the value of a key that is written on the lines below it."""
    lines = []
    for line in text.split("\n", _MOST_LINES)[1:_MOST_LINES]:
        depth = len(line) - len(line.lstrip())
        if line.strip() and depth < indent + (not line.lstrip().startswith("- ")):
            break
        lines.append(line)
    return _value_of("\n".join(lines))


def _in_other(path: str, before: str, after: str) -> _Form:
    if (_COMMENT.match(before) or _is_behind_hash(before)) and not path.endswith(_FILLED):
        return None, None
    if FLAG.search(before):
        return PlaceKind.FLAG, None
    return (PlaceKind.OVERRIDE if before.endswith((".", "+")) and _ASSIGNED.match(after) else PlaceKind.TEXT), None


_FORMS: Mapping[tuple[str, ...], Callable[[str, str, str], _Form]] = {_DATA: _in_data, _PAGES: _in_page, YAML: _in_yaml}
"""How the names of files end → what a name in them is, by the text of its line before and after it."""
