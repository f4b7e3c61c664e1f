"""The first example of a rule in the other languages: how cgmigrate rewrites the same settings there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml

import cgmigrate
from cgmigrate.lint.rules import Rule
from cgmigrate.megatron import tables
from cgmigrate.megatron.catalogue import flag_of
from cgmigrate.megatron.releases import NEWEST
from cgmigrate.megatron.tables import Tables

_LAST_OF_THE_OLD = "0.17"
"""The release that files are taken to be written for where nothing else is known."""


@dataclass(frozen=True, slots=True)
class Form:
    """An example in another language: its name in a title, the language of the code, and the two texts."""

    title: str
    language: str
    before: str
    after: str
    is_unsafe: bool

    @property
    def before_and_after(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Both texts as fenced code, each with the line above it."""
        after = "After, with `--unsafe-fixes`" if self.is_unsafe else "After"
        return ("Before", self._fenced(self.before)), (after, self._fenced(self.after))

    def _fenced(self, text: str) -> str:
        return f"```{self.language}\n{text.rstrip()}\n```"


def forms(rule: Rule) -> Iterator[Form]:
    """Yield the first rewritten example of a rule in Python and on a command line, where the rule rewrites it, too."""
    example = next((one for one in rule.examples if {"after", "unsafe-after"} & one.keys()), None)
    settings = _settings(example) if example else None
    if example is None or not settings:
        return
    for title, language, name, text in _written(settings, str(example.get("from", _LAST_OF_THE_OLD)), tables.load()):
        if made := _form(rule, example, (title, language, name, text)):
            yield made


def _settings(example: Mapping[str, Any]) -> dict[str, Any] | None:
    """The settings of an example that is one mapping in YAML; None for any other, or one with a file beside it."""
    if example["syntax"] != "yaml" or "beside" in example or not example.get("reported", True):
        return None
    try:
        document = yaml.safe_load(example["before"])
    except yaml.YAMLError:
        return None
    while isinstance(document, dict) and len(document) == 1 and isinstance(next(iter(document.values())), dict):
        (document,) = document.values()
    plain = isinstance(document, dict) and all(isinstance(name, str) for name in document)
    return document if plain and not any(isinstance(one, dict) for one in document.values()) else None


def _written(settings: Mapping[str, Any], source: str, accepted: Tables) -> Iterator[tuple[str, str, str, str]]:
    """Yield title, language, file name and text of the settings, where a release accepts all of them."""
    release = tables.release_of(source)
    if settings.keys() <= accepted.fields("TransformerConfig", release).keys():
        arguments = "".join(f"    {name}={_in_python(value)},\n" for name, value in settings.items())
        code = f"from megatron.core.transformer import TransformerConfig\n\nconfig = TransformerConfig(\n{arguments})\n"
        yield "in Python", "python", "train.py", code
    flags = {flag_of(name): value for name, value in settings.items()}
    if flags.keys() <= accepted.flags(release).keys() and None not in settings.values():
        words = [text for flag, value in flags.items() if (text := _on_a_line(flag, value))]
        yield "on a command line", "sh", "train.sh", " \\\n    ".join(["python pretrain_gpt.py", *words]) + "\n"


def _in_python(value: object) -> str:
    return "[" + ", ".join(map(_in_python, value)) + "]" if isinstance(value, list) else _literal(value)


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _on_a_line(flag: str, value: object) -> str:
    """A flag with its value; empty for a switch that is off."""
    if isinstance(value, bool):
        return flag if value else ""
    return " ".join([flag, *map(str, value if isinstance(value, list) else [value])])


def _form(rule: Rule, example: Mapping[str, Any], written: tuple[str, str, str, str]) -> Form | None:
    """How cgmigrate rewrites a text; None if another rule rewrites it, or none does."""
    title, language, name, text = written
    source = str(example.get("from", _LAST_OF_THE_OLD))
    options = {"source": source, "target": str(example.get("to", NEWEST)), "preview": True, "isolated": True}
    for unsafe in (False, True):
        result = cgmigrate.migrate_text(text, name, cgmigrate.Options(**options, unsafe_fixes=unsafe))  # type: ignore[arg-type]
        if any(one.rule == rule.id for one in result.fixed):
            return Form(title, language, text, result.text, unsafe)
    return None
