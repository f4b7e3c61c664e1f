"""The JSON schema of the configuration, for editors: from the keys that the program reads and what the page says."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.project.configuration_file import KEYS
from cgmigrate.project.options import FORMATS, FORMER_NAMES

_TEXT = {"type": "string", "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
_FORMER = frozenset(("format",))
"""Names that keys had in earlier releases."""


def _ecosystems() -> dict[str, Any]:
    names = sorted(path.stem for path in (rules_folder() / "ecosystems").glob("*.yaml"))
    return {"type": "object", "additionalProperties": {"enum": names}}


def _forms() -> Mapping[str, Mapping[str, Any]]:
    """Return what a value has to be, by the name of the function that reads it."""
    return {
        "_text": _TEXT,
        "_release": _TEXT,
        "_path": _TEXT,
        "_boolean": {"type": "boolean"},
        "_codes": _TEXTS,
        "_patterns": _TEXTS,
        "_folders": _TEXTS,
        "_per_file": {"type": "object", "additionalProperties": _TEXTS},
        "_ecosystems": _ecosystems(),
        "_format": {"enum": [*FORMATS, *FORMER_NAMES]},
    }


def schema(page: str) -> str:
    """Return the schema; ``page`` is ``configuration.md``, whose sections describe the keys."""
    forms = _forms()
    properties = {
        name: {**forms[key.read.__name__], "description": _description(page, name)}
        for name, key in KEYS.items()
        if name not in _FORMER
    }
    properties |= {name: {**forms[KEYS[name].read.__name__], "deprecated": True} for name in sorted(_FORMER)}
    document = {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of cgmigrate: cgmigrate.toml, or [tool.cgmigrate] in pyproject.toml",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _description(page: str, key: str) -> str:
    """Return the first paragraph of the section that describes a key, as plain text."""
    heading = re.search(rf"(?m)^### .*`{re.escape(key)}`.*$", page)
    assert heading is not None, f"no section of configuration.md describes {key}"
    text = page[heading.end() :].strip().partition("\n\n")[0]
    text = re.sub(r"<!--.*?-->", "", text)
    return " ".join(re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).split())
