"""What the log of a job says about graphs and settings: which rule, or which release, explains a line.

The messages are data (``rules/messages``). Errors about names that a release does not have, a flag, a field, an
import or an argument, are compared with the tables of all releases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache

from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.code import load as load_code
from cgmigrate.megatron.gone import gone_names
from cgmigrate.megatron.rule_data import load_yaml, rules_folder, text_of

_RANK = re.compile(r"\[rank(\d+)\]|^\s*(\d+):\s")
"""What torchrun and srun put before a line."""
_FLAGS = re.compile(r"error: unrecognized arguments: (.+)")
_FIELD = re.compile(r"(?:(\w+)\.)?__init__\(\) got an unexpected keyword argument '(\w+)'")
_ARGUMENT = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_IMPORT = re.compile(r"cannot import name '(\w+)' from '(megatron\.[\w.]+)'")
_MODULE = re.compile(r"No module named '(megatron\.[\w.]+)'")
_ATTRIBUTE = re.compile(r"'(?:Namespace|[\w.]*Config)' object has no attribute '(\w+)'")


@dataclass(frozen=True, slots=True)
class MessageMeaning:
    """What a line means: ``code`` is the rule that explains it, empty if none does; ``setting`` is what to look at."""

    code: str
    setting: str
    cause: str
    help: str


@dataclass(slots=True)
class Finding:
    """An explanation, with the first line of a log that it is about, how often there is one, and on which ranks."""

    explanation: MessageMeaning
    path: str
    line: int
    text: str
    count: int = 0
    ranks: set[int] = field(default_factory=set)


def findings_in(path: str, lines: Iterable[str], rules: Mapping[str, Rule]) -> list[Finding]:
    """Return what a log says, in the order of its lines; the log is read once, line by line."""
    known: dict[MessageMeaning, Finding] = {}
    for number, line in enumerate(lines, 1):
        for one in _explanations(line, rules):
            finding = known.setdefault(one, Finding(one, path, number, line.strip()))
            finding.count += 1
            finding.ranks |= {int(next(filter(None, match))) for match in _RANK.findall(line)}
    return list(known.values())


def _explanations(line: str, rules: Mapping[str, Rule]) -> Iterator[MessageMeaning]:
    words, pattern, by_text = _messages()
    for match in pattern.finditer(line) if any(word in line for word in words) else ():
        code, cause = by_text[match.group()]
        if code:
            rule = rules[code]
            yield MessageMeaning(code, rule.fields[0] if rule.fields else "", rule.summary, rule.help)
        else:
            yield MessageMeaning("", cause["setting"], cause["cause"], cause["help"])
    if "rror" in line:
        yield from _of_names(line)


_Messages = tuple[tuple[str, ...], re.Pattern[str], Mapping[str, tuple[str, Mapping[str, str]]]]


@cache
def _messages() -> _Messages:
    """Return few words of which each message has one, a pattern of all messages, and what explains each part of one.

    That is a rule, or else a cause.
    """
    path = rules_folder() / "messages/jobs.yaml"
    data = load_yaml(text_of(path), str(path))
    by_text: dict[str, tuple[str, Mapping[str, str]]] = {
        text: (code, {}) for code, texts in data["rules"].items() for text in texts
    }
    by_text |= {cause["text"]: ("", cause) for cause in data["causes"]}
    longest_first = sorted(by_text, key=len, reverse=True)
    return _few_words(list(by_text)), re.compile("|".join(map(re.escape, longest_first))), by_text


def _few_words(texts: list[str]) -> tuple[str, ...]:
    """Return words of which each text has one: to look for them is faster than for the texts."""
    words: list[str] = []
    while texts:
        counts = Counter(word for text in texts for word in {*re.findall(r"\w{4,}", text)})
        word, _ = counts.most_common(1)[0]
        words.append(word)
        texts = [text for text in texts if word not in text]
    return tuple(words)


def _of_names(line: str) -> Iterator[MessageMeaning]:
    """Yield what the tables know of a name that the installed release does not have."""
    if match := _FLAGS.search(line):
        names = [word.lstrip("-").partition("=")[0].replace("-", "_") for word in match[1].split() if word[:2] == "--"]
        yield from (one for name in names if (one := _of_setting(name)))
    for match in (*_FIELD.finditer(line), *_ATTRIBUTE.finditer(line)):
        if one := _of_setting(match[match.lastindex or 1]):
            yield one
    if (match := _IMPORT.search(line)) and (gone := load_code().gone_name(match[2], match[1])):
        place = f"; `{gone.module}` has it" if gone.module else ""
        yield _of_code("UPG401", match[2], f"`{match[2]}` has no `{match[1]}` since {gone.since}{place}")
    if (match := _MODULE.search(line)) and (gone := load_code().gone_name(match[1], "")):
        yield _of_code("UPG401", match[1], f"there is no module `{match[1]}` since {gone.since}")
    if (match := _ARGUMENT.search(line)) and (since := load_code().parameter_gone(match[1], match[2])):
        yield _of_code("UPG402", match[1], f"`{match[1]}` has no parameter `{match[2]}` since {since}")


def _of_code(code: str, name: str, cause: str) -> MessageMeaning:
    return MessageMeaning(code, name, cause, "`cgmigrate upgrade` shows every place in the code")


def _of_setting(name: str) -> MessageMeaning | None:
    """Return what became of a setting, None if no release had it."""
    gone = next((one for one in gone_names() if one.setting.name == name), None)
    if gone is None:
        return None
    since = min(gone.since.values())
    near = f"; `{gone.nearest}` is new there" if gone.nearest else ""
    help = "`cgmigrate upgrade` shows every place, and what to write"
    return MessageMeaning("UPG001", name, f"megatron-core {since} has no `{name}`{near}", help)
