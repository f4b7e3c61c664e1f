"""The value that a flag of a command line has: that of the words behind it."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.megatron.catalogue import Setting, SettingKind


def value_of_words(setting: Setting, words: Sequence[str]) -> object:
    """Return the value of a setting that takes words: a list for a list and for several words, or else the word."""
    if setting.kind is SettingKind.LIST or len(words) != 1:
        return list(words)
    return number_in(words[0]) if setting.kind is SettingKind.NUMBER else words[0]


def number_in(text: str) -> object:
    """Return the number that a word is; any other word as it is."""
    for convert in (int, float):
        try:
            return convert(text)
        except ValueError:
            continue
    return text
