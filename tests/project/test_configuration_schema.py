"""The JSON schema of the configuration: editors refuse only what cgmigrate refuses, and accept what it accepts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.project.configuration import ConfigurationError
from cgmigrate.project.configuration_file import KEYS, read
from cgmigrate.project.options import FORMATS
from cgmigrate.project.pins.pyproject import load_toml
from tests.support.paths import ROOT
from tests.support.tables import from_table

SCHEMA = json.loads((ROOT / "docs/configuration.schema.json").read_text(encoding="utf-8"))
CHECKER = jsonschema.Draft7Validator(SCHEMA)
VALID: dict[str, st.SearchStrategy[Any]] = {
    "required-version": st.just(">=0.1"),
    "from": st.sampled_from(["0.16", "core_v0.17.0", "CORE_R0.16.1", " v0.17 "]),
    "to": st.sampled_from(["0.18", "0.19.2", "0.18.0RC1", "0.019", "0.20.0.dev3+a.B", "0.19-alpha_1"]),
    "select": st.lists(st.sampled_from(["CG1", "cg301", "c", "Cg"]), max_size=2),
    **dict.fromkeys(
        ("extend-select", "ignore", "fixable", "unfixable"), st.lists(st.sampled_from(["CG1", "CG6"]), max_size=2)
    ),
    "preview": st.booleans(),
    "docs": st.booleans(),
    "style": st.sampled_from(["delete", "explicit"]),
    "setters": st.lists(st.just("team.graphs.set_modules"), max_size=2),
    "per-file-ignores": st.dictionaries(st.sampled_from(["a/", "!b.yaml"]), st.lists(st.just("CG1")), max_size=2),
    "exclude": st.lists(st.sampled_from(["a/", "*.yaml"])),
    "extend-exclude": st.lists(st.sampled_from(["a/", "*.yaml"])),
    "extend-rules": st.just([]),
    "ecosystems": st.dictionaries(st.just("a/"), st.sampled_from(["nemo-rl", "other-systems"]), max_size=1),
    "output-format": st.sampled_from(FORMATS),
    "baseline": st.just("known.json"),
    "prove": st.just("pytest tests/recipes"),
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
    assert all(one["description"] for one in SCHEMA["properties"].values())


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


RULE = """
id: TEAM001
name: a-rule
summary: A rule of a team's own
fields: [cuda_graph_impl]
when: {cuda_graph_impl: local}
explanation: It is here so that there is a code besides those of the shipped rules.
sources: [this test]
"""


@from_table
def test_an_editor_and_cgmigrate_refuse_the_same_files(
    text: str, is_valid: bool, project: Path, cgmigrate: Callable[..., Result]
) -> None:
    (project / "rules").mkdir()
    (project / "rules/TEAM001-a-rule.yaml").write_text(RULE)
    (project / "a.yaml").write_text("clean: true\n")
    (project / "cgmigrate.toml").write_text(text)
    shown = cgmigrate("check", "a.yaml")
    assert (CHECKER.is_valid(load_toml(text)), shown.exit_code == 0) == (is_valid, is_valid), shown.stderr


def test_a_program_reads_the_schema(tmp_path: Path) -> None:
    program = str(Path(sys.executable).with_name("check-jsonschema"))
    if subprocess.run([program, "--version"], capture_output=True).returncode:
        pytest.skip("check-jsonschema does not start with the lowest version of click that the core admits")
    path = tmp_path / "cgmigrate.toml"
    for text, status in (('from = "0.16"\n', 0), ('from = "banana"\n', 1)):
        path.write_text(text)
        words = [program, "--schemafile", str(ROOT / "docs/configuration.schema.json"), str(path)]
        assert subprocess.run(words, capture_output=True).returncode == status


def test_the_page_names_the_schema() -> None:
    page = Path(ROOT / "docs/configuration.md").read_text(encoding="utf-8")
    assert "#:schema configuration.schema.json" in page
