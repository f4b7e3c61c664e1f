"""`explain` for a field or a flag: what each release accepts, from the tables; families of rules, and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cgmigrate.lint.rules import load as load_rules
from cgmigrate.megatron.releases import KNOWN, NEWEST, Release
from cgmigrate.megatron.tables import load
from cgmigrate.report.explain import rule_markdown, rule_text
from cgmigrate.report.release_tables import names, setting_text
from tests.support.tables import from_table

TABLES = load()


def test_a_field_is_shown_with_its_owner_its_releases_and_its_flag(project: Path, cgmigrate) -> None:
    lines = cgmigrate("explain", "moe_deepep_num_sms").stdout.splitlines()
    assert lines[0] == "TransformerConfig.moe_deepep_num_sms"
    assert lines[1] == "  0.13 to 0.18  int; default 20"
    assert "--moe-deepep-num-sms" in lines
    assert lines[-1] == "Flags are known since 0.12."


def test_a_flag_is_shown_by_its_own_name(project: Path, cgmigrate) -> None:
    result = cgmigrate("explain", "--cuda-graph-impl")
    assert result.stdout.startswith(
        "--cuda-graph-impl\n  0.15 to 0.17  one of none, local, transformer_engine; default none\n  0.18 to "
    )
    assert "TransformerConfig" not in result.stdout


@from_table
def test_a_flag_is_shown_as_it_is_typed(flag: str, shown: list[str]) -> None:
    lines = setting_text(flag, TABLES).split("\n\n")[0].splitlines()[1:]
    assert len(lines) >= len(shown)
    for line, expected in zip(lines, shown, strict=False):
        assert line[16:].startswith(expected)


def test_no_line_of_a_flag_names_a_function_or_an_action_of_a_parser() -> None:
    types = {row["type"] for history in TABLES.flags_of.values() for row in history.values() if row and "type" in row}
    internals = types - {"int", "float", "bool", "str"}
    assert "<lambda>" in internals
    for flag in TABLES.flags_of:
        text = setting_text(flag, TABLES)
        assert not any(word in text for word in (*internals, "nargs", "Store", "default []", "None")), text


def test_an_entry_that_is_gone_is_no_longer_there() -> None:
    lines = setting_text("--inference-dynamic-batching-cuda-graph-max-tokens", TABLES).splitlines()
    assert (
        lines[1].startswith("  0.16 to 0.17") and lines[2].startswith("  0.18") and lines[2].endswith("no longer there")
    )


@from_table
def test_an_unknown_name_gets_the_nearest_ones(project: Path, cgmigrate, name: str, similar: str) -> None:
    result = cgmigrate("explain", name)
    assert result.exit_code == 2
    before, _, after = result.stderr.partition("; did you mean ")
    assert before.endswith(f"no rule or setting {name}")
    suggested = after.partition("?")[0].split(", ")
    assert similar in suggested and len(set(suggested)) == len(suggested)


def test_an_unknown_name_that_is_near_to_nothing_gets_no_suggestion(project: Path, cgmigrate) -> None:
    result = cgmigrate("explain", "nonsense")
    assert (result.exit_code, "did you mean" in result.stderr) == (2, False)


@pytest.mark.parametrize("release", KNOWN, ids=str)
def test_the_line_of_a_release_has_its_default(release: Release) -> None:
    shown = 0
    for name, entry in TABLES.fields("ModelParallelConfig", release).items():
        lines = setting_text(name, TABLES).split("\n\n")[0].splitlines()[1:]
        (line,) = [line for line in lines if _covers(line.split("  ")[1], release)]
        if entry.init and not entry.required and not entry.expression:
            shown += 1
            assert line.endswith(f"; default {entry.default if entry.default != '' else repr('')}"), line
    assert shown > 30


def _covers(releases: str, release: Release) -> bool:
    first, _, last = releases.strip().partition(" to ")
    return Release(*map(int, first.split("."))) <= release <= Release(*map(int, (last or first).split(".")))


def test_every_name_is_explained() -> None:
    assert len(names(TABLES)) > 1500
    assert all(setting_text(name, TABLES) for name in names(TABLES))


def test_the_releases_of_an_example_follow_a_comma() -> None:
    """`Before from 0.16` reads as a time before that release."""
    texts = "".join(rule_text(rule) + rule_markdown(rule) for rule in load_rules().values())
    assert not re.search(r"Before (from|to) ", texts)
    assert {"Before:", "Before, from 0.16 "} <= set(re.findall(r"^Before(?:, from 0\.16 |:)", texts, re.MULTILINE))


# --- families and JSON -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["CG30", "cg30"])
def test_the_beginning_of_a_code_lists_its_family(cgmigrate, name: str) -> None:
    result = cgmigrate("explain", name)
    assert result.exit_code == 0
    listed = result.stdout.splitlines()
    assert [line.split()[0] for line in listed] == [f"CG30{number}" for number in range(1, 10)]
    assert listed == [line for line in cgmigrate("rules").stdout.splitlines() if line.startswith("CG30")]


def test_rules_as_json_have_what_their_pages_show(cgmigrate) -> None:
    every = json.loads(cgmigrate("rules", "--output-format", "json").stdout)["rules"]
    assert json.loads(cgmigrate("rules", "list", "--format", "json").stdout)["rules"] == every
    (one,) = json.loads(cgmigrate("explain", "CG103", "--format", "json").stdout)["rules"]
    assert one in every and len(every) == len(cgmigrate("rules").stdout.splitlines())
    assert (one["code"], one["name"], one["severity"]) == ("CG103", "scope-full", "warning")
    text = cgmigrate("explain", "CG103").stdout
    for word in (one["summary"], one["explanation"].splitlines()[0], one["fix"], *one["sources"]):
        assert word in text


def test_a_setting_as_json_has_its_releases_and_rules(cgmigrate) -> None:
    setting = json.loads(cgmigrate("explain", "cuda_graph_impl", "--format", "json").stdout)["setting"]
    field = next(one for one in setting["accepted"] if one["as"] == "TransformerConfig.cuda_graph_impl")
    assert field["releases"][-1]["to"] == str(NEWEST)
    assert "CG501" in setting["rules"] and setting["catalogue"]["flag"] == "--cuda-graph-impl"


def test_the_objects_of_a_file_as_json(project: Path, cgmigrate) -> None:
    (project / "a.yaml").write_text("model:\n  hidden_size: 8\n  external_cuda_graph: true\n")
    report = json.loads(cgmigrate("explain", "a.yaml:3", "--format", "json").stdout)
    (one,) = report["objects"]
    assert [setting["text"] for setting in one["settings"]] == ["external_cuda_graph: true"]
    assert one["edit_set"]["safety"] == "safe" and one["edit_set"]["files"] == ["a.yaml"]
    assert [diagnostic["rule"] for diagnostic in one["diagnostics"]] == ["CG102"]
    assert json.loads(cgmigrate("explain", "a.yaml", "--format", "json").stdout) == report
