"""Fixes of rules: values that change with the name, and deprecated settings that the catalogue describes."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.fixes import RuleFix, RuleRename
from cgmigrate.lint.rules import RuleKind, load
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from cgmigrate.megatron.rule_data import RuleError
from tests.support.plans import examine
from tests.support.tables import from_table
from tests.support.teams import write_entries

PAIRS = ((True, "local"), (1, "one"), (False, "absent"), ("8", 8))
VALUES = RuleFix(rename={"old": RuleRename("new", PAIRS)})

HEAD = """\
id: TEAM001
name: our-rule
summary: This rule renames a setting
kind: deprecated
explanation: A rule of a test, which explains nothing at all.
sources: [a test]
"""
BOOLEAN = f"""{HEAD}
fields: [enable_cuda_graph]
when:
  enable_cuda_graph: {{written: true}}
message: renamed
fix:
  rename:
    enable_cuda_graph: {{to: cuda_graph_impl, values: {{true: local}}}}
"""


@from_table
def test_a_value_changes_with_the_name(before: dict, after: dict) -> None:
    assert VALUES.unmapped(before) == ""
    assert VALUES.apply(before) == after


@pytest.mark.parametrize("value", ["local", 8, None, []])
def test_a_value_that_is_not_listed_is_a_choice(value: object) -> None:
    shown = {None: "null"}.get(value, str(value)) if not isinstance(value, list) else "[]"
    assert VALUES.unmapped({"old": value}) == (
        f"`{{new}}` has no value that corresponds to {shown}: choose local, one or 8, and delete `{{old}}`"
    )


def test_a_rename_without_values_keeps_every_value() -> None:
    rename = RuleFix.of({"rename": {"old": "new"}})
    assert rename.apply({"old": [1]}) == {"new": [1]}
    assert rename.unmapped({"old": [1]}) == ""


def examined(tmp_path: Path, rule: str, text: str) -> list[tuple[str, str, str]]:
    """The rule, fix and help of each diagnostic if a team has this rule and no other rule renames its setting."""
    (tmp_path / "rule.yaml").write_text(rule)
    rules = {name: rule for name, rule in load([tmp_path]).items() if name != "CG101"}
    context = Context(LAST_OLD, NEWEST, rules, ecosystems.load())
    return [(one.rule, one.fix_text, one.help) for one in examine(YamlDocument(text), context).diagnostics]


def test_a_rule_maps_values_of_a_document(tmp_path: Path) -> None:
    text = "model:\n  enable_cuda_graph: true\n  hidden_size: 4096\n  num_attention_heads: 32\n"
    assert examined(tmp_path, BOOLEAN, text) == [("TEAM001", "write `cuda_graph_impl: local`", "")]


def test_a_diagnostic_says_what_to_choose_for_a_value_without_replacement(tmp_path: Path) -> None:
    text = "model:\n  enable_cuda_graph: false\n  hidden_size: 4096\n  num_attention_heads: 32\n"
    choice = "`cuda_graph_impl` has no value that corresponds to false: choose local, and delete `enable_cuda_graph`"
    assert examined(tmp_path, BOOLEAN, text) == [("TEAM001", "", choice)]


# --- the catalogue --------------------------------------------------------------------------------

ENTRY = """\
summary: The number of things, by its former name
kind: choice
owner: TransformerConfig
fork: ours
since: "0.15"
deprecated-in: "0.18"
replaced-by: moe_new_way
values:
  - {old: fast, new: quick}
  - {old: slow, new: absent}
sources: [a test]
"""


@pytest.fixture
def team(tmp_path: Path) -> Path:
    write_entries(tmp_path, moe_old_way=ENTRY)
    (tmp_path / "rule.yaml").write_text(f"{HEAD}fix: {{migrate: moe_old_way}}\n")
    return tmp_path


def test_a_rule_that_migrates_a_setting_is_as_the_catalogue_says(team: Path) -> None:
    rule = load([team])["TEAM001"]
    assert (rule.kind, rule.fields, rule.since) == (RuleKind.DEPRECATED, ("moe_old_way",), Release(0, 18))
    both, alone = rule.cases
    assert both.when == {"moe_old_way": {"written": True}, "moe_new_way": {"written": True}}
    assert both.fix is None and "delete `{moe_old_way}`" in both.decide
    assert alone.message == "`{moe_old_way}` is deprecated since megatron-core 0.18; `{moe_new_way}` replaces it"
    assert alone.fix is not None
    assert alone.fix.apply({"moe_old_way": "fast"}) == {"moe_new_way": "quick"}
    assert alone.fix.apply({"moe_old_way": "slow"}) == {}
    assert "choose quick" in alone.choice({"moe_old_way": "medium"})


def test_a_rule_that_migrates_a_setting_may_say_more(team: Path) -> None:
    more = 'since: "0.18"\nmessage: our words\nfix: {migrate: moe_old_way, unsafe: it may differ}\n'
    (team / "rule.yaml").write_text(HEAD + more)
    rule = load([team])["TEAM001"]
    assert (rule.since, rule.cases[1].message) == (Release(0, 18), "our words")
    assert rule.cases[1].fix is not None and rule.cases[1].fix.unsafe == "it may differ"


def test_a_case_may_migrate_a_setting(team: Path) -> None:
    cases = (
        "fields: [moe_old_way]\ncases:\n  - {when: {moe_old_way: fast}, message: fast, fix: {migrate: moe_old_way}}\n"
    )
    (team / "rule.yaml").write_text(HEAD + cases)
    (case,) = load([team])["TEAM001"].cases
    assert case.fix is not None and case.fix.apply({"moe_old_way": "fast"}) == {"moe_new_way": "quick"}


@from_table
def test_a_wrong_name_is_reported_with_the_nearest_one(team: Path, text: str, line: int | None, message: str) -> None:
    (team / "rule.yaml").write_text(f"{HEAD}{text}\n")
    with pytest.raises(RuleError) as error:
        load([team])
    place = f"{team / 'rule.yaml'}:" + ("" if line is None else f"{line}: ")
    assert str(error.value).startswith(place), str(error.value)
    assert message in str(error.value)
