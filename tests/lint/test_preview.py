"""Rules in preview, versions that a configuration requires, and codes that are never reused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cgmigrate import __version__
from cgmigrate.lint import rules as loader
from cgmigrate.lint.rules import RuleKind, load
from cgmigrate.megatron.rule_data import RuleError, rules_folder

RULE = """\
id: TEAM001
name: no-block-graphs
summary: Our servers run without graphs of blocks
preview: true
fields: [inference_cuda_graph_scope]
when:
  inference_cuda_graph_scope: block
message: our servers run without graphs of blocks
explanation: The servers of this team run without graphs, so the block scope is a mistake.
sources: [our runbook]
examples:
  - syntax: yaml
    before: |
      megatron_cfg:
        cuda_graph_impl: local
        inference_cuda_graph_scope: block
  - syntax: yaml
    reported: false
    before: |
      megatron_cfg:
        cuda_graph_impl: none
"""
TEXT = "megatron_cfg:\n  cuda_graph_impl: local\n  inference_cuda_graph_scope: block\n"


@pytest.fixture
def team(project: Path) -> Path:
    (project / "team").mkdir()
    (project / "team/rule.yaml").write_text(RULE)
    (project / "a.yaml").write_text(TEXT)
    return project


def codes(result) -> list[str]:
    return [one["rule"] for one in json.loads(result.stdout)["findings"]]


def test_a_rule_in_preview_is_off(team: Path, cgmigrate) -> None:
    result = cgmigrate("check", "--rules", "team", "--format", "json", "a.yaml")
    assert codes(result) == [] and result.exit_code == 0


def test_an_option_enables_rules_in_preview(team: Path, cgmigrate) -> None:
    result = cgmigrate("check", "--preview", "--rules", "team", "--format", "json", "a.yaml")
    assert codes(result) == ["TEAM001"] and result.exit_code == 1


def test_a_configuration_enables_rules_in_preview(team: Path, cgmigrate) -> None:
    (team / "cgmigrate.toml").write_text('preview = true\nextend-rules = ["team"]\n')
    assert codes(cgmigrate("check", "--format", "json", "a.yaml")) == ["TEAM001"]


def test_a_configuration_says_preview_with_true_or_false(team: Path, cgmigrate) -> None:
    (team / "cgmigrate.toml").write_text('preview = "yes"\n')
    result = cgmigrate("check", "a.yaml")
    assert "cgmigrate.toml:1: `preview`: true or false is expected, not 'yes'" in result.stderr
    assert result.exit_code == 2


def test_selecting_a_rule_in_preview_alone_is_noted(team: Path, cgmigrate) -> None:
    result = cgmigrate("check", "--rules", "team", "--select", "TEAM", "a.yaml")
    assert "TEAM selects rules in preview only: add --preview" in result.stderr
    result = cgmigrate("check", "--rules", "team", "--select", "TEAM", "--preview", "a.yaml")
    assert "preview only" not in result.stderr and result.exit_code == 1


def test_a_comment_may_suppress_a_rule_in_preview_that_is_off(team: Path, cgmigrate) -> None:
    (team / "a.yaml").write_text(TEXT.replace("block", "block  # cgmigrate: ignore[TEAM001] a test"))
    assert codes(cgmigrate("check", "--rules", "team", "--format", "json", "a.yaml")) == []
    assert codes(cgmigrate("check", "--preview", "--rules", "team", "--format", "json", "a.yaml")) == []


def test_rules_in_preview_are_marked_and_tested(team: Path, cgmigrate) -> None:
    assert "Our servers run without graphs of blocks (preview)" in cgmigrate("rules", "--rules", "team").stdout
    assert "In preview: off without --preview" in cgmigrate("explain", "--rules", "team", "TEAM001").stdout
    assert "ok    TEAM001" in cgmigrate("rules", "test", "team").stdout


def test_the_next_command_has_the_option(team: Path, cgmigrate) -> None:
    (team / "a.yaml").write_text("model:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n  hidden_size: 4096\n")
    assert "cgmigrate fix --preview a.yaml" in cgmigrate("check", "--preview", "a.yaml").stderr


def test_no_rule_that_must_be_enabled_is_in_preview() -> None:
    assert not [rule.id for rule in load().values() if rule.preview and rule.kind is RuleKind.FILE]


# --- versions -------------------------------------------------------------------------------------


@pytest.mark.parametrize("required", [f"=={__version__}", __version__, ">=0.0.1", ">=0.0.1,<999"])
def test_a_version_that_fits_is_used(team: Path, cgmigrate, required: str) -> None:
    (team / "cgmigrate.toml").write_text(f'required-version = "{required}"\n')
    assert cgmigrate("check", "a.yaml").exit_code == 0


@pytest.mark.parametrize("command", ["check", "fix"])
def test_another_version_ends_the_run_with_2(team: Path, cgmigrate, command: str) -> None:
    text = "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n  hidden_size: 4096\n"
    (team / "a.yaml").write_text(text)
    # The keys of another version need not be known.
    (team / "pyproject.toml").write_text('[tool.cgmigrate]\nnew-key = 1\nrequired-version = ">=999"\n')
    result = cgmigrate(command, "a.yaml")
    assert f"pyproject.toml:3: `required-version`: >=999 is required, and this is cgmigrate {__version__}" in (
        result.stderr
    )
    assert result.exit_code == 2
    assert (team / "a.yaml").read_text() == text


@pytest.mark.parametrize("value", ['"new"', "0.1", '">=a"'])
def test_a_version_that_is_none_is_an_error(team: Path, cgmigrate, value: str) -> None:
    (team / "cgmigrate.toml").write_text(f"required-version = {value}\n")
    result = cgmigrate("check", "a.yaml")
    assert "cgmigrate.toml:1: `required-version`: a" in result.stderr and "expected" in result.stderr
    assert result.exit_code == 2


# --- codes ----------------------------------------------------------------------------------------


def test_a_code_that_was_released_names_the_same_rule_or_none() -> None:
    """A new release adds its codes to the list."""
    listed = Path(__file__).with_name("released_codes.txt").read_text(encoding="utf-8")
    released = dict(line.split() for line in listed.splitlines())
    retired = json.loads((rules_folder() / "retired.json").read_text(encoding="utf-8"))
    shipped = {rule.id: rule.name for rule in load().values()}
    assert not shipped.keys() & retired.keys()
    assert {code: shipped.get(code, name) for code, name in released.items()} == released
    assert released.keys() <= shipped.keys() | retired.keys()


def test_a_team_cannot_use_a_code_of_an_earlier_release(team: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader, "_retired", lambda: {"TEAM001": "gone"})
    with pytest.raises(RuleError, match="TEAM001 is the code of a rule of an earlier release; choose another"):
        load([team / "team"])
