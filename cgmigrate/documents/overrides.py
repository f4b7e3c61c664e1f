"""Override strings as Hydra and OmegaConf read them: ``++model.cuda_graph_scope=[attn]``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from cgmigrate.megatron.catalogue import Catalogue, Setting, SettingKind
from cgmigrate.megatron.settings import Missing, Undecided

# --- values ---------------------------------------------------------------------------------------


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


# --- overrides ------------------------------------------------------------

ELSEWHERE = "`{prefix}` overrides a configuration that this file does not show"
"""Why a fix of an override is not safe."""
COMPUTED = "a value computed at run time"
DELETES = "an override that deletes the key"


@lru_cache(maxsize=8)
def override_pattern(catalogue: Catalogue) -> re.Pattern[str]:
    """Return the pattern of an override of a setting: signs, path with its final dot, name and value."""
    return re.compile(rf"([+~]{{0,2}})((?:[A-Za-z_][\w-]*\.)*?)({catalogue.alternatives()})=(.*)", re.DOTALL)


def override_value(setting: Setting, match: re.Match[str]) -> object:
    """Return the value that Hydra reads from an override of a setting."""
    text = match[4].strip()
    if "~" in match[1]:
        return Undecided(text, DELETES)
    if re.search(r"[${}\\]", text):
        return Undecided(text, COMPUTED)
    if text.startswith("[") and text.endswith("]"):
        return [word.strip().strip("'\"") for word in text[1:-1].split(",") if word.strip()]
    word = text.strip("'\"")
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    return _flag_value(text) if setting.is_flag else _word_value(setting, word, text)


def _flag_value(text: str) -> object:
    return False if text.lower() == "null" else Undecided(text, "not a boolean")


def _word_value(setting: Setting, word: str, text: str) -> object:
    if text.lower() == "null":
        return None
    return number_in(word) if setting.kind is SettingKind.NUMBER else word


def override_text(value: object) -> str:
    """Return a value in Hydra's notation."""
    if isinstance(value, list):
        return f"[{','.join(map(str, value))}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


_KEY = re.compile(r"[+~]{0,2}([A-Za-z_][\w-]*(?:\.[\w-]+)+)=")


def keys_of(texts: Iterable[str]) -> dict[str, object]:
    """Return the keys of the overrides among some words; their values are not read."""
    matches = (_KEY.match(text) for text in texts)
    return {match[1]: Undecided(match[1], COMPUTED) for match in matches if match}


def value_beside(texts: Iterable[str], prefix: str, section: Sequence[str], keys: Sequence[str]) -> object:
    """Return the value of another override among some texts; ``prefix`` is that of the site's own, with its dot.

    ``section`` and ``keys`` are the path of the other setting in the configuration around the site.
    """
    names = prefix.rstrip(".").split(".") if prefix else []
    if section and names[-len(section) :] != list(section):
        return Missing.UNKNOWN
    path = re.escape(".".join((*names[: len(names) - len(section)], *keys)))
    pattern = re.compile(rf"[+~]{{0,2}}{path}=(.*)", re.DOTALL)
    matches = [match for text in texts if (match := pattern.fullmatch(text))]
    if not matches:
        return Missing.UNKNOWN
    text = matches[-1][1].strip()
    if "$" in text:
        return Undecided(text, COMPUTED)
    if text.startswith("[") and text.endswith("]"):
        return [_plain(item.strip()) for item in text[1:-1].split(",") if item.strip()]
    return _plain(text)


def _plain(text: str) -> object:
    """Return the value that Hydra reads from a word: a truth, null, a whole number, or else the word."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if text.lower() == "null":
        return None
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text.strip("'\"")
