"""Sites in lists of arguments: flags of a command line, and override strings such as ``model.cuda_graph_scope=[]``."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.overrides import override_pattern, override_value, value_beside, value_of_words
from cgmigrate.documents.python.programs import PROGRAM, names_program
from cgmigrate.documents.python.site_nodes import Item, SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Missing, Undecided
from cgmigrate.text.spans import Span

_OPENING = re.compile(r"[rRuUfF]{0,2}[\"']")


@dataclass(frozen=True, slots=True)
class _Word:
    """An element of a list; ``text`` is None unless it is a string."""

    node: ast.expr
    text: str | None
    span: Span
    field: str
    """The setting whose flag this is (``--flag`` or ``--flag=value``), empty for all other words."""
    is_option: bool
    """Whether it begins with a dash, so that it is no value of the flag before it."""


def places_in_words(elements: Sequence[ast.expr], source: PythonSource, *, is_call: bool = False) -> list[SiteNodes]:
    """Return the places of flags and override strings among the elements of a list, tuple or call."""
    words = [_word(element, source) for element in elements]
    places = [_flags(words, source)] if not is_call and any(word.field for word in words) else []
    by_prefix: dict[str, list[Item]] = {}
    pattern = override_pattern(source.catalogue)
    for word in words:
        match = pattern.fullmatch(word.text) if word.text else None
        if match and (match[2] or not is_call):
            by_prefix.setdefault(match[2], []).append(_override(word, match, source))
    for prefix, items in by_prefix.items():
        path, spans = prefix.rstrip("."), [word.span for word in words]
        place = SiteNodes(SiteForm.OVERRIDES, items, spans, owner=path, object=path, overrides=True, prefix=prefix)
        place.words = () if is_call else _other_words(words, by_prefix)
        places.append(place)
    return places


def _other_words(words: Sequence[_Word], by_prefix: Mapping[str, Sequence[Item]]) -> tuple[str, ...]:
    """Return the words that are known and no overrides of settings."""
    overrides = {item.span for items in by_prefix.values() for item in items}
    return tuple(word.text for word in words if word.text is not None and word.span not in overrides)


def _word(node: ast.expr, source: PythonSource) -> _Word:
    text, start = _text(node)
    name = source.catalogue.by_key.get(start.partition("=")[0], "") if start.startswith("-") else ""
    # Of a flag that code completes (`f"--cuda-graph-{kind}"`), the name is not known.
    is_name = text is not None or "=" in start
    return _Word(node, text, source.span(node), name if is_name else "", start.startswith("-"))


def _text(node: ast.expr) -> tuple[str | None, str]:
    """Return the text of a string, None if it is computed, and its known beginning."""
    match node:
        case ast.Constant(value=str() as text):
            return text, text
        case ast.JoinedStr(values=[ast.Constant(value=str() as text)]):
            return text, text
        case ast.JoinedStr(values=[ast.Constant(value=str() as start), *_]):
            return None, start
    return None, ""


def _override(word: _Word, match: re.Match[str], source: PythonSource) -> Item:
    field, value = match[3], match[4]
    written = source.text[word.span.start : word.span.end]
    at = written.find(field + "=")
    start = word.span.start + at
    item = Item(field, Span(start, start + len(field)), [word.node], word.span, word.node, span=word.span)
    if at < 0 or written[at + len(field) + 1 :].rstrip("\"'") != value.rstrip("\"'"):
        item.value = Undecided(written, "a string with escapes or several parts")
    else:
        item.value = override_value(source.catalogue[field], match)
    return item


def _flags(words: Sequence[_Word], source: PythonSource) -> SiteNodes:
    """Return the place of the flags in a list; each flag takes the words up to the next one."""
    place = SiteNodes(SiteForm.FLAGS, [], [word.span for word in words], owner="this list of arguments")
    texts = [word.text for word in words if word.text]
    place.scripts = tuple(text.rpartition("/")[2] for text in texts if text.endswith(".py"))
    is_named = any(map(PROGRAM.fullmatch, texts))
    place.starts_megatron = is_named or (not place.scripts and names_program(source))
    for at, word in enumerate(words):
        if not word.field:
            continue
        if any(other.field == word.field for other in place.items):
            place.blocked_by = f"`{source.catalogue[word.field].flag}` is written twice"
        place.items.append(_flag(word, _values_behind(words, at, source.catalogue), source))
    return place


def _values_behind(words: Sequence[_Word], at: int, catalogue: Catalogue) -> list[_Word]:
    flag = words[at]
    if catalogue[flag.field].is_flag or flag.text is None or "=" in flag.text:
        return []
    values: list[_Word] = []
    for word in words[at + 1 :]:
        if word.is_option:
            break
        values.append(word)
    return values


def _flag(flag: _Word, values: Sequence[_Word], source: PythonSource) -> Item:
    setting = source.catalogue[flag.field]
    whole = Span(flag.span.start, values[-1].span.end if values else flag.span.end)
    opening = _OPENING.match(source.text, flag.span.start)
    start = opening.end() if opening else flag.span.start
    name = Span(start, start + len(setting.flag))
    item = Item(flag.field, name, [value.node for value in values], whole, flag.node, span=whole)
    written = source.text[whole.start : whole.end]
    if source.text[name.start : name.end] != setting.flag:
        item.value = Undecided(written, "a flag that is written in an unusual way")
    elif flag.text is None or "=" in flag.text or any(value.text is None for value in values):
        item.value = Undecided(written, "words computed at run time")
    else:
        item.value = True if setting.is_flag else value_of_words(setting, [value.text or "" for value in values])
    return item


# --- values of arguments --------------------------------------------------------------------------


def value_in_words(
    words: ast.AST | None, source: PythonSource, prefix: str, section: Sequence[str], keys: Sequence[str]
) -> object:
    """Return the value of a flag or override in a list of arguments; ``prefix`` is that of the site's overrides.

    A flag without a word behind it is true.
    """
    elements = words.elts if isinstance(words, (ast.List, ast.Tuple)) else getattr(words, "args", [])
    if prefix or section:
        constants = (element.value for element in elements if isinstance(element, ast.Constant))
        return value_beside((text for text in constants if isinstance(text, str)), prefix, section, keys)
    value = _flag_in_words(elements, keys[-1])
    extended = not isinstance(words, (ast.List, ast.Tuple)) or _is_part(words, source)
    computed = any(not isinstance(element, ast.Constant) for element in elements)
    return Missing.UNKNOWN if value is Missing.ABSENT and (extended or computed) else value


def _is_part(words: ast.AST, source: PythonSource) -> bool:
    """Whether a list is added to another one."""
    above = source.parent(words)
    if isinstance(above, (ast.BinOp, ast.AugAssign, ast.Starred)):
        return True
    return isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and above.func.attr == "extend"


def _flag_in_words(elements: Sequence[ast.expr], flag: str) -> object:
    texts = [element.value if isinstance(element, ast.Constant) else None for element in elements]
    value: object = Missing.ABSENT
    for at, text in enumerate(texts):
        if isinstance(text, str) and text.startswith(flag + "="):
            value = text.partition("=")[2]
        elif text == flag:
            value = _words_behind(texts[at + 1 :])
    return value


def _words_behind(texts: Sequence[object]) -> object:
    words: list[str] = []
    for text in texts:
        if isinstance(text, str) and text.startswith("-"):
            break
        if not isinstance(text, str):
            return Undecided("…", "words computed at run time")
        words.append(text)
    return words[0] if len(words) == 1 else words or True
