"""The appearances of settings in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache

from cgmigrate.documents.sites import Role, Use
from cgmigrate.megatron.catalogue import FLAG_BEGINS, Catalogue
from cgmigrate.text.spans import Span


@dataclass(frozen=True, slots=True)
class Appearance:
    """One name of a setting in a text: the setting, the name as written, and where it is."""

    setting: str
    key: str
    span: Span

    def use(self, role: Role, span: Span | None = None) -> Use:
        """Return the use that it is; ``span`` is what a diagnostic underlines, without it the name."""
        return Use(self.setting, self.key, None, span or self.span, role)


def appearances_in(text: str, catalogue: Catalogue, *, named_only: bool = False) -> Iterator[Appearance]:
    """Yield each name and flag of a setting in a text that is no part of a longer name.

    ``named_only`` leaves those that the catalogue has for the surroundings of others.
    """
    by_key, pattern = _by_key(catalogue), _pattern(catalogue)
    for line in _lines_with(_words(catalogue, named_only), text):
        for match in pattern.finditer(text, line.start, line.end):
            key = match.group()
            setting = by_key[key.removeprefix("--").replace("-", "_")]
            if not named_only or setting in catalogue.name_set:
                yield Appearance(setting, key, Span(*match.span()))


def _lines_with(words: Iterable[str], text: str) -> list[Span]:
    """Return the lines with one of some words, in the order of the text: a search for words is fast, a pattern not."""
    lines: dict[int, int] = {}
    for word in words:
        at = text.find(word)
        while at >= 0:
            end = text.find("\n", at)
            end = len(text) if end < 0 else end
            lines[text.rfind("\n", 0, at) + 1] = end
            at = text.find(word, end)
    return [Span(*line) for line in sorted(lines.items())]


@lru_cache(maxsize=16)
def _words(catalogue: Catalogue, named_only: bool) -> tuple[str, ...]:
    """Return words one of which is in each name and flag, or in those that are not for surroundings only."""
    settings = [one for one in catalogue.settings.values() if not named_only or one.name in catalogue.name_set]
    flags = (flag.removeprefix("--") for one in settings for flag in (one.flag, one.no_flag) if flag)
    words: list[str] = []
    for word in sorted({*(one.name for one in settings), *flags}, key=len):
        if not any(one in word for one in words):
            words.append(word)
    return tuple(words)


@lru_cache(maxsize=16)
def _by_key(catalogue: Catalogue) -> dict[str, str]:
    """Return spelling → setting; a flag without its dashes, with underscores."""
    settings = catalogue.settings.values()
    flags = [(flag, setting.name) for setting in settings for flag in (setting.flag, setting.no_flag) if flag]
    return {flag.removeprefix("--").replace("-", "_"): name for flag, name in reversed(flags)} | {
        setting.name: setting.name for setting in settings
    }


@lru_cache(maxsize=16)
def _pattern(catalogue: Catalogue) -> re.Pattern[str]:
    names = "|".join(sorted(map(re.escape, catalogue.settings), key=len, reverse=True))
    settings = catalogue.settings.values()
    flags = sorted({flag for setting in settings for flag in (setting.flag, setting.no_flag) if flag})
    written = "|".join(sorted(map(re.escape, flags), key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:--)?(?:{names})(?![A-Za-z0-9_])|{FLAG_BEGINS}(?:{written})(?![\w-])")
