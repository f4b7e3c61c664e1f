"""The JSON schema of the configuration, for editors: from the keys that the program reads and what the page says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from cgmigrate.megatron.releases import ACCEPTED
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.megatron.versions import AFTER_RELEASE, BEFORE_RELEASE
from cgmigrate.project.configuration_file import KEYS, STYLES, known_codes
from cgmigrate.project.options import FORMATS

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
_TEAM_CODES = "^(?:[A-Za-z]{1,5}|[A-Za-z]{2,5}[0-9]{1,3})$"
"""Beginnings of the codes that a team's own rules may have, as in rules/schema.json."""


def _ecosystems() -> dict[str, Any]:
    names = sorted(path.stem for path in (rules_folder() / "ecosystems").glob("*.yaml"))
    return {"type": "object", "additionalProperties": {"enum": names}}


def _forms() -> Mapping[str, Mapping[str, Any]]:
    """Return what a value has to be, by the name of the function that reads it."""
    return {
        "_text": _TEXT,
        "_release": _TEXT | {"pattern": _releases()},
        "_path": _TEXT,
        "_boolean": {"type": "boolean"},
        "_codes": _TEXTS,
        "_patterns": _TEXTS,
        "_folders": _TEXTS,
        "_setters": _TEXTS | {"items": _TEXT | {"pattern": r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+$"}},
        "_per_file": {"type": "object", "additionalProperties": _TEXTS},
        "_ecosystems": _ecosystems(),
        "_is_explicit": {"enum": list(STYLES)},
        "_format": {"enum": list(FORMATS)},
    }


def _releases() -> str:
    """Return the pattern of versions and tags of the accepted releases."""
    numbers = "|".join(rf"0{{0,5}}{release.major}\.0{{0,4}}{release.minor}" for release in reversed(ACCEPTED))
    return rf"^\s*{_in_any_case(BEFORE_RELEASE)}(?:{numbers}){_in_any_case(AFTER_RELEASE)}\s*$"


def _in_any_case(pattern: str) -> str:
    """Return a pattern that letters match in both cases; patterns of JSON schemas have no flag for it."""
    sets_or_letters = re.compile(r"\[([^]]*)\]|[a-z]")
    return sets_or_letters.sub(
        lambda match: f"[{_both(match[1])}]" if match[1] else f"[{match[0]}{match[0].upper()}]", pattern
    )


def _both(members: str) -> str:
    return members + "".join(letters.upper() for letters in re.findall("[a-z]-[a-z]|[a-z]", members))


def _beginnings(codes: Iterable[str]) -> str:
    """Return the pattern of the beginnings of some codes, in any case, empty ones included."""
    firsts = groupby(sorted(filter(None, codes)), key=lambda code: code[0])
    ways = [_letter(first) + _beginnings(code[1:] for code in group) for first, group in firsts]
    return f"(?:{'|'.join(ways)})?" if ways else ""


def _letter(character: str) -> str:
    return f"[{character}{character.lower()}]" if character.isalpha() else character


def _with_codes(pattern: str) -> dict[str, Any]:
    """Return the keys that have codes, each of which has to match a pattern."""
    codes = {"items": {"pattern": pattern}}
    lists = {name: codes for name, key in KEYS.items() if key.read is KEYS["select"].read}
    return {"properties": {**lists, "per-file-ignores": {"additionalProperties": codes}}}


def schema(page: str) -> str:
    """Return the schema; ``page`` is ``configuration.md``, whose sections describe the keys."""
    forms = _forms()
    properties = {
        name: {**forms[key.read.__name__], "description": _description(page, name)} for name, key in KEYS.items()
    }
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of cgmigrate: cgmigrate.toml, or [tool.cgmigrate] in pyproject.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        # Only with rules of a team's own are there other codes than those of the shipped rules.
        "if": {"required": ["extend-rules"], "properties": {"extend-rules": {"minItems": 1}}},
        "then": _with_codes(_TEAM_CODES),
        "else": _with_codes(f"^{_beginnings(known_codes())}$"),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _description(page: str, key: str) -> str:
    """Return the first paragraph of the section that describes a key, as plain text."""
    heading = re.search(rf"(?m)^### .*`{re.escape(key)}`.*$", page)
    assert heading is not None, f"no section of configuration.md describes {key}"
    text = page[heading.end() :].strip().partition("\n\n")[0]
    text = re.sub(r"<!--.*?-->", "", text)
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).split())
