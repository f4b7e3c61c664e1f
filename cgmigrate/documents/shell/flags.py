"""Flags of settings among the words of a command line, as argparse reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

from cgmigrate.documents.overrides import value_of_words
from cgmigrate.documents.shell.words import Word
from cgmigrate.documents.sites import Use
from cgmigrate.megatron.catalogue import Catalogue, Setting
from cgmigrate.megatron.settings import Undecided
from cgmigrate.text.spans import Span

_DEFAULT = re.compile(r"\"?\$\{(\w+):?-(.*)\}\"?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Flag:
    """A flag of a setting with its words. ``values`` are the spans of those that follow it.

    ``name`` is where the flag itself is; with ``--flag=value``, ``values`` is the part of the word after the sign.
    """

    use: Use
    name: Span
    values: tuple[Span, ...]
    first: int
    """The position of its first word."""
    last: int
    """The position of its last word."""
    variable: str = ""
    """The variable that has its value, where that is known."""

    @property
    def span(self) -> Span:
        """The flag with its values."""
        return self.use.span


class Variables(Protocol):
    """What a script assigns to variables."""

    def words(self, word: Word) -> list[str] | None:
        """Return the words that a variable is, None if that is not known."""

    def may_begin_with_value(self, word: Word) -> bool:
        """Return whether a variable, or a part of it, may begin with a word that the flag before it takes."""


def flags_in(words: Sequence[Word], text: str, catalogue: Catalogue, variables: Variables) -> list[Flag]:
    """Return the flags of settings among words."""
    return [
        _flag(words, at, catalogue[name], text, variables)
        for at, word in enumerate(words)
        # Most words are no flags.
        if (word.text is None or word.text.startswith("--")) and (name := setting_of(word, text, catalogue))
    ]


def setting_of(word: Word, text: str, catalogue: Catalogue) -> str:
    """Return the setting whose flag a word is, empty if it is none."""
    if word.text is not None:
        return catalogue.by_key.get(word.text.partition("=")[0], "") if word.text.startswith("--") else ""
    written = text[word.start : word.end].lstrip("\"'")
    name, equals, _ = written.partition("=")
    return catalogue.by_key.get(name, "") if equals and name.startswith("--") else ""


def options_in(words: Sequence[Word], text: str) -> dict[str, object]:
    """Return every option of a command line with its value: the words behind it, None if there are none."""
    result: dict[str, object] = {}
    last = ""
    for word in words:
        if word.text is not None and word.text.startswith("--"):
            last, equals, value = word.text.partition("=")
            result[last] = value if equals else None
            last = "" if equals else last
        elif last:
            result[last] = _extended(result[last], word, text)
    return result


def _extended(before: object, word: Word, text: str) -> object:
    if word.text is None or isinstance(before, Undecided):
        return Undecided(text[word.start : word.end], "words that the shell computes")
    if before is None:
        return word.text
    return [*before, word.text] if isinstance(before, list) else [before, word.text]


def _flag(words: Sequence[Word], at: int, setting: Setting, text: str, variables: Variables) -> Flag:
    word = words[at]
    start = word.start + (text[word.start] in "\"'")
    name = Span(start, start + len(setting.flag))
    if text[name.start : name.end] != setting.flag:
        unusual = Undecided(_at(text, word.span), "a flag that is written in an unusual way")
        return Flag(Use(setting.name, setting.flag, unusual, word.span), name, (), at, at)
    if word.text is None or "=" in word.text:
        # What follows the sign ends with the word, before a quote around all of it.
        part = Span(name.end + 1, word.end - (start - word.start))
        known = word.text.partition("=")[2] if word.text is not None else None
        use = Use(setting.name, setting.flag, _value(setting, [known], _at(text, part)), word.span)
        return Flag(use, name, (part,), at, at)
    values = [] if setting.is_flag else _values(words[at + 1 :])
    span = Span(word.start, values[-1].span.end if values else word.end)
    shown = text[values[0].span.start : span.end] if values else ""
    texts: list[str | None] = [one.text for one in values]
    variable = values[0].variable if len(values) == 1 else ""
    if variable and (of_variable := variables.words(values[0])):
        texts = list(of_variable)
    behind = takewhile(lambda one: one.text is None, words[at + 1 + len(values) :])
    if values and (more := next(filter(variables.may_begin_with_value, behind), None)):
        shown, texts = text[values[0].span.start : more.end], [*texts, None]
    value = _value(setting, texts, shown)
    use = Use(setting.name, setting.flag, value, span)
    is_known = not isinstance(value, Undecided)
    return Flag(use, name, tuple(one.span for one in values), at, at + len(values), variable if is_known else "")


def _at(text: str, span: Span) -> str:
    return text[span.start : span.end]


def _values(words: Sequence[Word]) -> list[Word]:
    """Return the words that belong to a flag: up to the next flag, or to a variable that follows the first of them."""
    values: list[Word] = []
    for word in words:
        is_flag = word.text is not None and word.text.startswith("-")
        if is_flag or (word.text is None and values) or word.text in _CONTROL:
            break
        values.append(word)
        if word.text is None:
            break
    return values


_CONTROL = ("&&", "||", "|", ";", "&", ">", "<", ">>", "2>&1")


def _value(setting: Setting, texts: Sequence[str | None], written: str) -> object:
    if setting.is_flag:
        return True if not texts else Undecided(written, "a value of a flag that takes none")
    if not texts:
        return Undecided("", "a flag without a value that can be seen")
    known = [text for text in texts if text is not None]
    if len(known) != len(texts):
        return Undecided(written, _reason(written))
    return value_of_words(setting, known)


def _reason(written: str) -> str:
    """Return why a value that the shell computes is not known."""
    match = _DEFAULT.fullmatch(written)
    if match:
        return f"`{match[1]}` if that variable is set, `{match[2]}` if it is not"
    return "words that the shell computes"


def written(setting: Setting, value: object) -> list[str] | None:
    """Return the words that write a value behind a flag, None if a command line cannot express it."""
    if setting.is_flag:
        return [] if value is True else None
    if value is None or isinstance(value, bool | Undecided) or value == []:
        return None
    return [str(item) for item in value] if isinstance(value, list) else [str(value)]


def same_options(options: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the options of several command lines; one that differs has a value that is not known."""
    if len(options) == 1:
        return dict(options[0])
    result: dict[str, object] = {}
    for name in dict.fromkeys(name for one in options for name in one):
        values = [one.get(name, Undecided(name, "not on every command line")) for one in options]
        same = all(type(value) is type(values[0]) and value == values[0] for value in values)
        result[name] = values[0] if same else Undecided(name, "it differs between the command lines")
    return result
