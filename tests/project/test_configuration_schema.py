"""The JSON schema of the configuration: editors refuse only what cgmigrate refuses, and accept what it accepts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.project.configuration import ConfigurationError
from cgmigrate.project.configuration_file import KEYS, read
from cgmigrate.project.options import FORMATS
from tests.support.paths import ROOT

SCHEMA = json.loads((ROOT / "docs/configuration.schema.json").read_text(encoding="utf-8"))
CHECKER = jsonschema.Draft7Validator(SCHEMA)
VALID: dict[str, st.SearchStrategy[Any]] = {
    "required-version": st.just(">=0.1"),
    "from": st.sampled_from(["0.16", "core_v0.17.0"]),
    "to": st.sampled_from(["0.18", "0.19.2"]),
    "select": st.lists(st.sampled_from(["CG1", "cg301"]), max_size=2),
    "ignore": st.lists(st.sampled_from(["CG1", "CG6"]), max_size=2),
    "preview": st.booleans(),
    "docs": st.booleans(),
    "per-file-ignores": st.dictionaries(st.sampled_from(["a/", "!b.yaml"]), st.lists(st.just("CG1")), max_size=2),
    "exclude": st.lists(st.sampled_from(["a/", "*.yaml"])),
    "extend-exclude": st.lists(st.sampled_from(["a/", "*.yaml"])),
    "extend-rules": st.just([]),
    "ecosystems": st.dictionaries(st.just("a/"), st.sampled_from(["nemo-rl", "other-systems"]), max_size=1),
    "output-format": st.sampled_from([*FORMATS, "text"]),
    "format": st.sampled_from(FORMATS),
    "baseline": st.just("known.json"),
}
ANYTHING = st.one_of(st.booleans(), st.integers(), st.just(0.17), st.just(""), st.just("word"), st.just(["", 1]))


def accepted(document: dict[str, Any]) -> bool:
    text = "".join(f"{json.dumps(key)} = {as_toml(value)}\n" for key, value in document.items())
    try:
        read("cgmigrate.toml", text.encode(), ".", (), required=True)
    except ConfigurationError:
        return False
    return True


def as_toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {as_toml(one)}" for key, one in value.items()) + "}"
    return "[" + ", ".join(map(as_toml, value)) + "]" if isinstance(value, list) else json.dumps(value)


def test_every_key_is_in_the_schema_with_its_description() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"].keys() == KEYS.keys() == VALID.keys()
    assert all(one.get("description") or one.get("deprecated") for one in SCHEMA["properties"].values())


@given(st.fixed_dictionaries({}, optional=VALID))
def test_what_cgmigrate_reads_fits_the_schema(document: dict[str, Any]) -> None:
    assert accepted(document) and CHECKER.is_valid(document)


@given(st.sampled_from([*VALID, "extend-ignore"]), ANYTHING)
def test_what_the_schema_refuses_cgmigrate_refuses(key: str, value: Any) -> None:
    if not CHECKER.is_valid({key: value}):
        assert not accepted({key: value})
    elif key != "extend-ignore" and not isinstance(value, str):
        # Only the content of a text can be wrong in a way that the schema does not see.
        assert accepted({key: value})


def test_the_page_names_the_schema() -> None:
    page = Path(ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert "#:schema configuration.schema.json" in page
