"""The identity of a diagnostic: distinct for each of a file, and the same when lines, values and messages change."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.lint.identity import fingerprint
from cgmigrate.text.spans import Span
from tests.support.files import write
from tests.support.paths import ROOT

GOLDEN = sorted((ROOT / "tests/golden").glob("*.check.json"))

YAML = """\
model:
  cuda_graph_scope: full
  external_cuda_graph: true
list:
- model:
    external_cuda_graph: true
- model:
    external_cuda_graph: true
---
model:
  external_cuda_graph: true
"""
PYTHON = """\
from megatron.core.transformer import TransformerConfig


class Recipe:
    def config(self):
        config = TransformerConfig(enable_cuda_graph=True)
        if config.enable_cuda_graph and config.enable_cuda_graph:
            print("on")
        return config


def other(cfg: TransformerConfig):
    @register
    def inner():
        cfg.cuda_graph_scope = "full"

    return TransformerConfig(enable_cuda_graph=True)


CONFIG = TransformerConfig(enable_cuda_graph=True)
"""


def places(cgmigrate, *words: str) -> list[tuple[str, str, str]]:
    """Path, rule and place of each diagnostic, after checking that the fingerprints differ where these do."""
    findings = json.loads(cgmigrate("check", "--isolated", "--format", "json", *words).stdout)["findings"]
    result = [(one["path"], one["rule"], one["place"]) for one in findings]
    assert len({one["fingerprint"] for one in findings}) == len(set(result)) == len(findings)
    return result


def test_two_diagnostics_of_a_rule_in_one_mapping_are_distinct(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "model:\n  enable_cuda_graph: ${graphs}\n  cuda_graph_scope: ${scope}\n")
    assert places(cgmigrate, "a.yaml") == [
        ("a.yaml", "CG003", "model.enable_cuda_graph"),
        ("a.yaml", "CG003", "model.cuda_graph_scope"),
    ]


def test_places_of_yaml_are_paths_of_keys(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", YAML)
    of_rule = [place for _, rule, place in places(cgmigrate, "a.yaml") if rule == "CG102"]
    assert of_rule == [
        "model.external_cuda_graph",
        "list.model.external_cuda_graph",
        "list.model.external_cuda_graph (2)",
        "model.external_cuda_graph (2)",
    ]


def test_places_of_python_name_class_function_and_object(project: Path, cgmigrate) -> None:
    write(project / "a.py", PYTHON)
    callee = "megatron.core.transformer.TransformerConfig.enable_cuda_graph"
    assert [(rule, place) for _, rule, place in places(cgmigrate, "a.py")] == [
        ("CG101", f"Recipe.config: {callee}"),
        ("CG603", "Recipe.config: config.enable_cuda_graph"),
        ("CG603", "Recipe.config: config.enable_cuda_graph (2)"),
        ("CG103", "other.inner: cfg.cuda_graph_scope"),
        ("CG101", f"other: {callee}"),
        ("CG101", callee),
    ]


@pytest.mark.parametrize(("name", "text"), [("a.yaml", YAML), ("a.py", PYTHON)])
def test_identities_stay_when_lines_move(project: Path, cgmigrate, name: str, text: str) -> None:
    path = write(project / name, text)
    before = places(cgmigrate, name)
    path.write_text("# a comment\n\n" + text.replace("\n", "\n\n"))
    assert places(cgmigrate, name) == before
    path.write_text(text.replace("full", "[attn]" if name == "a.yaml" else "attn"))
    assert {place for _, _, place in places(cgmigrate, name)} <= {place for _, _, place in before}, "a value is no part"


def test_a_file_that_cannot_be_read_is_its_own_place(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "enable_cuda_graph: [true\n")
    write(project / "b.py", "from megatron.core import x\nenable_cuda_graph = (\n")
    write(project / "c.yaml", b"enable_cuda_graph: \xff\n")
    expected = [("a.yaml", "CG001", ""), ("b.py", "CG009", ""), ("c.yaml", "CG007", "")]
    assert places(cgmigrate, ".") == expected


def test_a_suppression_without_effect_is_named_by_its_text(project: Path, cgmigrate) -> None:
    write(
        project / "a.yaml",
        "a: 1  # cgmigrate: ignore[CG101]\nexternal_cuda_graph: true\nb: 1 # cgmigrate: ignore[CG101]\n",
    )
    unused = [place for _, rule, place in places(cgmigrate, "a.yaml") if rule == "CG012"]
    assert unused == ["# cgmigrate: ignore[CG101]", "# cgmigrate: ignore[CG101] (2)"]


def test_what_a_baseline_hides_changes_no_identity(project: Path, cgmigrate) -> None:
    path = write(project / "a.py", PYTHON)
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", ".")
    path.write_text(PYTHON + "if CONFIG.enable_cuda_graph or CONFIG.enable_cuda_graph:\n    print()\n")
    everything = places(cgmigrate, "a.py")
    new = places(cgmigrate, "--baseline", "known.json", "a.py")
    assert new == [one for one in everything if one[2].startswith("CONFIG.")] and len(new) == 2


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_all_diagnostics_of_real_files_are_distinct(path: Path) -> None:
    findings = json.loads(path.read_text(encoding="utf-8").rpartition("exit status")[0])["findings"]
    assert findings
    assert len({(one["path"], one["rule"], one["place"]) for one in findings}) == len(findings)
    assert len({one["fingerprint"] for one in findings}) == len(findings)


@given(st.tuples(*[st.text(max_size=3)] * 3), st.tuples(*[st.text(max_size=3)] * 3))
def test_a_fingerprint_keeps_its_three_parts_apart(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    def of(file: str, rule: str, place: str) -> str:
        return fingerprint(file, LintDiagnostic(rule, "error", Span(0, 1), "a message", place=place))

    no_nul = "\0" not in "".join((*one, *other))
    assert (of(*one) == of(*other)) == (one == other) or not no_nul
