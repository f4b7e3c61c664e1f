"""Rules of a team's own: `cgmigrate rules test`, and the page that shows how to write them."""

from __future__ import annotations

import json
import re
import textwrap
from pathlib import Path

import pytest

from cgmigrate.lint.rule_tests import failures_of
from cgmigrate.lint.rules import RuleKind, load, of_entries
from cgmigrate.megatron.rule_data import RuleError, rules_folder, upgrade_rules
from cgmigrate.megatron.settings import FIELDS
from tests.support.files import write
from tests.support.nightly import nightly_only
from tests.support.paths import ROOT
from tests.support.release_judges import read_in_forks
from tests.support.tables import from_table

PAGE = (ROOT / "docs/writing-rules.md").read_text(encoding="utf-8")

GOOD = """\
id: TEAM001
name: idle-modules
summary: "Modules are named where nothing is captured; the list is removed"
fields: [cuda_graph_modules]
when:
  cuda_graph_impl: none
  cuda_graph_modules: {has: attn}
message: "`{cuda_graph_modules}` does nothing under `none`"
fix:
  remove: [cuda_graph_modules]
explanation: In our configurations `none` is meant, so the list of modules goes.
sources: [our runbook]
examples:
  - syntax: yaml
    before: |
      model:
        cuda_graph_impl: none
        cuda_graph_modules: [attn]
        hidden_size: 4096
    after: |
      model:
        cuda_graph_impl: none
        hidden_size: 4096
  - syntax: yaml
    why: the modules are captured
    reported: false
    before: |
      model:
        cuda_graph_impl: transformer_engine
        cuda_graph_modules: [attn]
        hidden_size: 4096
"""


@pytest.fixture
def team(project: Path) -> Path:
    (project / "team").mkdir()
    return project / "team"


def test_rules_that_hold(team: Path, cgmigrate) -> None:
    (team / "a.yaml").write_text(GOOD)
    result = cgmigrate("rules", "test", "team")
    assert result.stdout == "ok    TEAM001 idle-modules (2 examples)\n"
    assert result.stderr == "Tested 1 rule, 2 examples: all pass.\n"
    assert result.exit_code == 0


def test_without_a_folder_the_rules_that_ship_are_tested(project: Path, cgmigrate, monkeypatch) -> None:
    read_in_forks(monkeypatch)
    result = cgmigrate("rules", "test")
    shipped = load([Path(upgrade_rules())]).values()
    examples = sum(len(rule.examples) for rule in shipped)
    lines = [line.split()[:2] for line in result.stdout.splitlines()]
    assert sorted(line for line in lines if line[0] == "ok") == [["ok", rule.id] for rule in shipped]
    assert result.stderr.startswith(f"Tested {len(shipped)} rules, {examples} examples: all pass.\nCompared ")
    assert result.exit_code == 0


def test_an_example_that_fails_shows_what_comes_out(team: Path, cgmigrate) -> None:
    (team / "a.yaml").write_text(GOOD.replace("    after: |\n      model:", "    after: |\n      modell:"))
    result = cgmigrate("rules", "test", "team")
    assert result.stdout == (
        "FAIL  TEAM001 idle-modules\n"
        "  team/a.yaml:14: example 1: `fix` does not give `after` (- what the example says, + what comes out):\n"
        "      -modell:\n"
        "      +model:\n"
        "         cuda_graph_impl: none\n"
        "         hidden_size: 4096\n"
    )
    assert result.stderr == "Tested 1 rule, 2 examples: 1 rule failed.\n"
    assert result.exit_code == 1


@from_table
def test_a_mistake_in_a_rule_is_reported(team: Path, cgmigrate, wrong: str, right: str, message: str) -> None:
    assert wrong in GOOD
    (team / "a.yaml").write_text(GOOD.replace(wrong, right, 1))
    (team / "b.yaml").write_text(GOOD.replace("TEAM001", "TEAM002").replace("has: attn", "has: moe"))
    result = cgmigrate("rules", "test", "team")
    assert message in result.stdout and result.exit_code == 1
    assert "b.yaml:14: example 1: " in result.stdout, "the other rule is tested, too"


def test_an_unsafe_fix_needs_an_unsafe_example(team: Path, cgmigrate) -> None:
    unsafe = GOOD.replace("  remove: [cuda_graph_modules]\n", '  set: {cuda_graph_impl: local}\n  unsafe: "on"\n')
    start, end = unsafe.index("    after"), unsafe.index("  - syntax: yaml\n    why")
    unsafe, quiet = unsafe[:start], unsafe[end:]
    after = "model:\n  cuda_graph_impl: local\n  cuda_graph_modules: [attn]\n  hidden_size: 4096\n"
    (team / "a.yaml").write_text(unsafe + quiet)
    assert "`fix --unsafe-fixes` does not give `unsafe-after`" in cgmigrate("rules", "test", "team").stdout
    (team / "a.yaml").write_text(unsafe + "    unsafe-after: |\n" + textwrap.indent(after, " " * 6) + quiet)
    assert cgmigrate("rules", "test", "team").exit_code == 0


def test_an_example_that_is_not_megatrons_says_whose_it_is(team: Path, cgmigrate) -> None:
    rule = GOOD.replace("cuda_graph_modules", "enable_cuda_graph").replace("  cuda_graph_impl: none\n", "", 1)
    rule = rule.replace("{has: attn}", "true").replace("[attn]", "true").replace("        cuda_graph_impl: none\n", "")
    (team / "a.yaml").write_text(rule.replace("      model:", "      mcore_generation_config:"))
    assert (
        "example 1: TEAM001 is not reported; the settings are left alone, since they belong to NeMo-RL"
        in cgmigrate("rules", "test", "team").stdout
    )


def test_a_rule_without_an_example_fails(team: Path, cgmigrate) -> None:
    (team / "a.yaml").write_text(GOOD[: GOOD.index("examples:")])
    result = cgmigrate("rules", "test", "team")
    assert "no example shows what TEAM001 does" in result.stdout and result.exit_code == 1


def test_a_rule_without_an_example_that_it_does_not_report_fails(team: Path, cgmigrate) -> None:
    (team / "a.yaml").write_text(GOOD[: GOOD.index("  - syntax: yaml\n    why")])
    result = cgmigrate("rules", "test", "team")
    assert "a.yaml:1: no example shows what TEAM001 does not report" in result.stdout and result.exit_code == 1


@pytest.mark.parametrize(
    ("rule", "key"),
    [("CG007", "encoding"), ("CG008", "size"), ("CG013", "repeat"), ("CG010", "beside")],
)
def test_an_example_of_a_file_passes_for_what_it_says_of_the_file(rule: str, key: str) -> None:
    rules = load()
    example = next(example for example in rules[rule].examples if key in example)
    assert failures_of(rules[rule], example, rules) == []
    without = {name: value for name, value in example.items() if name != key}
    assert failures_of(rules[rule], without, rules) != []


@from_table
def test_a_second_file_with_a_rule_is_reported(team: Path, cgmigrate, name: str, message: str) -> None:
    (team / "a.yaml").write_text(GOOD)
    (team / name).write_text(GOOD)
    result = cgmigrate("rules", "test", "team")
    assert f"team/{name}:1: {message}" in result.stdout
    assert "ok    TEAM001" in result.stdout and result.exit_code == 1


@pytest.mark.parametrize("made", [False, True], ids=["missing", "empty"])
def test_a_folder_that_cannot_be_used_is_status_2(project: Path, cgmigrate, made: bool) -> None:
    if made:
        (project / "team").mkdir()
    result = cgmigrate("rules", "test", "team")
    assert result.exit_code == 2 and result.stdout == ""
    assert result.stderr.startswith("Error: team: no")


def test_rules_are_still_listed(team: Path, cgmigrate) -> None:
    (team / "a.yaml").write_text(GOOD)
    assert cgmigrate("rules").stdout == cgmigrate("rules", "list").stdout
    own = cgmigrate("rules", "--rules", "team").stdout
    assert "TEAM001  idle-modules " in own
    assert own == cgmigrate("rules", "list", "--rules", "team").stdout
    assert own == cgmigrate("rules", "--rules", "team", "list").stdout


# --- the page -------------------------------------------------------------------------------------


def test_the_page_names_all_that_the_schema_knows() -> None:
    schema = json.loads((rules_folder() / "schema.json").read_text())
    reference = PAGE.split("## Everything that a rule can say")[1]
    keys, tests = (re.findall(r"^\| (`.*?) \|", table, re.M) for table in reference.split("| test |"))
    assert [key.strip("`") for key in keys] == [
        *("id", "name", "kind", "reports", "summary", "severity", "stage", "preview"),
        *("since", "until", "replacement-available-in"),
        *("fields", "when", "unless", "message", "fix", "decide", "help", "cases"),
        *("explanation", "sources", "examples"),
    ]
    assert {key.strip("`") for key in keys} == schema["properties"].keys() - {"deprecated-in", "gone", "hybrid-form"}
    conditions = schema["$defs"]["condition"]["oneOf"][1]["properties"]
    assert set(re.findall(r"{([a-z-]+):", " ".join(tests))) == set(conditions)
    prose = reference.split("| test |")[1]
    named = {
        *schema["$defs"]["when"]["properties"].keys() - set(FIELDS),
        *schema["$defs"]["fix"]["properties"],
        *schema["properties"]["examples"]["items"]["properties"],
    }
    assert {name for name in named if not re.search(rf"`{name}(: false)?`", prose)} == set()


@nightly_only
def test_the_folder_that_ships_is_tested_as_without_a_folder(project: Path, cgmigrate) -> None:
    result = cgmigrate("rules", "test", str(rules_folder()))
    assert result.exit_code == 0, result.stdout
    assert "FAIL" not in result.stdout and "CG101 enable-cuda-graph" in result.stdout


def renamed() -> str:
    """The entry that the page shows."""
    entry = re.search(r"Write `more-rules/settings/\w+.yaml`:\n\n```yaml\n(.*?)```", PAGE, re.S)
    assert entry is not None
    return entry[1]


def test_an_entry_brings_its_rule_along(tmp_path: Path) -> None:
    write(tmp_path / "settings/moe_deepep_num_sms.yaml", renamed())
    [rule] = of_entries(tmp_path, (tmp_path,))
    assert (rule.id, rule.kind, str(rule.since)) == ("MORE001", RuleKind.DEPRECATED, "0.19")
    assert rule.cases[-1].fix is not None and rule.cases[-1].fix.proved_by


@from_table
def test_an_entry_that_releases_contradict_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in renamed()
    write(tmp_path / "settings/moe_deepep_num_sms.yaml", renamed().replace(old, new))
    with pytest.raises(RuleError, match=re.escape(message)):
        list(of_entries(tmp_path, (tmp_path,)))


CHECKPOINT = """\
summary: Each rank writes a part of a checkpoint
kind: flag
owner: training.CheckpointConfig
flag: false
since: "0.12"
until: "0.16"
deprecated-in: "0.17"
replaced-by: fully_parallel_save
rule: TEAM009
sources: [Megatron-LM 3570]
"""


@from_table
def test_facts_of_a_class_are_compared(tmp_path: Path, old: str, new: str, message: str) -> None:
    write(tmp_path / "settings/ckpt_fully_parallel_save.yaml", CHECKPOINT.replace(old, new))
    if not message:
        assert [rule.id for rule in of_entries(tmp_path, (tmp_path,))] == ["TEAM009"]
        return
    with pytest.raises(RuleError, match=re.escape(message)):
        list(of_entries(tmp_path, (tmp_path,)))


@from_table
def test_the_release_that_deprecates_a_name_is_compared(
    tmp_path: Path, name: str, old: str, new: str, message: str
) -> None:
    for path in ("settings/moe_enable_deepep.yaml", name):
        write(tmp_path / path, (Path(upgrade_rules()) / path).read_text())
    load([tmp_path])
    write(tmp_path / name, (tmp_path / name).read_text().replace(old, new, 1))
    with pytest.raises(RuleError, match=re.escape(message)):
        load([tmp_path])
