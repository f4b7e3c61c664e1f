"""Files that are not Python and read keys by their names: schemas, lists of names, scripts, templates, other code.

They are read as text: a schema that refuses unknown keys, or `sed` in a script, depends on the names as code does.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from cgmigrate.documents.syntax import Syntax, is_documentation, syntax_of
from cgmigrate.linking.key_code import KeyCode, KeyReader
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.files import read_bytes

_PROSE = frozenset((".html", ".adoc", ".tex", ".patch", ".diff", ".log"))
_JSON = frozenset((".json", ".ipynb"))
_TEMPLATES = frozenset((".j2", ".jinja", ".jinja2", ".tmpl", ".tpl", ".template", ".mustache", ".mako"))
_MOST_BYTES = 1024 * 1024
_AROUND = 200
"""Characters before and behind a name that are read."""

_BASELINE = re.compile(r"\{\s*\"diagnostics\": \{")
"""Begins a baseline of cgmigrate, which has the places of settings."""
_COMMENT = re.compile(r"(^|[ \t])(#|//)")
_TEMPLATE = re.compile(r"(\$\{|\{\{)[^{}]*$")
_TOOL = re.compile(r"\b(yq|jq|sed|awk|perl|grep|rg)\b")
_BEFORE_STRING = re.compile(r"([\[(,:=]|\b(if|elif|and|or|not))\s*\\?[\"']([A-Za-z_0-9]+[.])*$")
_AFTER_STRING = re.compile(r"\\?[\"'][ \t]*(\s*[\]),}]|(not[ \t]+)?in\b|$)", re.MULTILINE)
_BEFORE_WORD = re.compile(r"(^[ \t]*(-[ \t]+)?|[\[,:][ \t]+|\[)[\"']?([A-Za-z_0-9]+[.])*$", re.MULTILINE)
_AFTER_WORD = re.compile(r"[\"']?[ \t]*([\],]|#|$)", re.MULTILINE)
_AFTER_SCHEMA = re.compile(r"[\"']?[ \t]*:\s*\{(?!\{)")
_AFTER_KEY = re.compile(r"[\"']?[ \t]*:([ \t]|$)", re.MULTILINE)
_BLOCK = re.compile(r"[\"']?:[ \t]*(#.*)?\n(?P<indent>[ ]+)[^\s#-]")
_ATTRIBUTE = re.compile(r"(?![ \t]*=[^=])")


class _Mention(NamedTuple):
    """A name in a text with some characters around it."""

    before: str
    after: str
    suffix: str
    """Of the file, in lower case."""
    catalogue: Catalogue

    @property
    def line(self) -> str:
        """The part of the line before the name."""
        return self.before.rpartition("\n")[2]


def text_readers(top: str, catalogue: Catalogue) -> Iterator[KeyCode]:
    """Yield the tracked files of a checkout, other than Python, that read deprecated settings by their names."""
    from cgmigrate.project.checkout import tracked_files

    for path in sorted(tracked_files(top, sorted(catalogue.deprecated))):
        suffix = os.path.splitext(path)[1].lower()
        if syntax_of(path) is Syntax.PYTHON or is_documentation(path) or suffix in _PROSE:
            continue
        if not is_part_of_megatron(os.path.abspath(path)) and (reads := list(_reads(path, suffix, catalogue))):
            yield KeyCode(path, reads)


def _reads(path: str, suffix: str, catalogue: Catalogue) -> Iterator[tuple[str, KeyReader, None]]:
    try:
        text = read_bytes(path, _MOST_BYTES).decode("utf-8")
    except (OSError, ValueError):
        return
    for match in () if _BASELINE.match(text) else _names(catalogue).finditer(text):
        before, after = text[max(0, match.start() - _AROUND) : match.start()], text[match.end() :][:_AROUND]
        if what := _what(_Mention(before, after, suffix, catalogue)):
            yield match.group(), KeyReader(f"{path}:{text.count(chr(10), 0, match.start()) + 1}", what=what), None


@lru_cache(maxsize=8)
def _names(catalogue: Catalogue) -> re.Pattern[str]:
    return re.compile(rf"(?<![A-Za-z_0-9-]){catalogue.alternatives(deprecated=True)}(?![A-Za-z_0-9-])")


def _what(mention: _Mention) -> str:
    """Return what reads a name, empty if it is only set or mentioned."""
    if mention.suffix not in _JSON and _COMMENT.search(mention.line):
        return ""
    return next((what for what, is_read in _FORMS.items() if is_read(mention)), "")


@lru_cache(maxsize=8)
def _value(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of an interpolation that is the value of a setting.

    What reads the settings of its file follows it.
    """
    return re.compile(rf"^[ \t]*(-[ \t]+)?[\"']?({catalogue.alternatives()})[\"']?:[ \t]*[\"']?\$\{{[^{{}}]*$")


def _is_template(mention: _Mention) -> bool:
    is_value = _value(mention.catalogue).match(mention.line) is not None
    return _TEMPLATE.search(mention.before) is not None and not is_value


def _is_in_template(mention: _Mention) -> bool:
    """Return whether a name is a key in the template of a file, which may be merged with others."""
    return mention.suffix in _TEMPLATES and _AFTER_KEY.match(mention.after) is not None


def _is_schema(mention: _Mention) -> bool:
    """Return whether a name is a key whose value is a mapping."""
    block = _BLOCK.match(mention.after) if mention.suffix in (".yaml", ".yml") else None
    indent = mention.line.rstrip("\"'")
    is_block = block is not None and not indent.strip() and len(block["indent"]) > len(indent)
    return is_block or _AFTER_SCHEMA.match(mention.after) is not None


def _is_string(mention: _Mention) -> bool:
    return bool(_BEFORE_STRING.search(mention.before) and _AFTER_STRING.match(mention.after))


def _is_word(mention: _Mention) -> bool:
    """Return whether a name without quotes is an element, a value, or a line of its own."""
    is_word = _BEFORE_WORD.search(mention.before) and _AFTER_WORD.match(mention.after)
    return mention.suffix not in _JSON and is_word is not None


def _is_attribute(mention: _Mention) -> bool:
    is_notebook = mention.suffix == ".ipynb" and mention.before.endswith(".")
    return is_notebook and _ATTRIBUTE.match(mention.after) is not None


_FORMS: Mapping[str, Callable[[_Mention], bool]] = {
    "a template": lambda mention: _is_template(mention) or _is_in_template(mention),
    "a command": lambda mention: _TOOL.search(mention.line) is not None,
    "a schema": _is_schema,
    "a list or code": _is_string,
    "a list": _is_word,
    "a notebook": _is_attribute,
}
"""What may read a name → whether it does."""
