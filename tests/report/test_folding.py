"""Several codes for one fix of one setting are shown and counted once for a person, one by one for programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

PAIR = "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: [attn, full_iteration_inference]\n"
START = {
    "full": "[CG105, CG106] scope-full-iteration-inference, cuda-graph-scope: the scope",
    "concise": "a.yaml:3:3: CG105, CG106 [*] the scope",
}


@pytest.mark.parametrize("format", ["full", "concise"])
@pytest.mark.parametrize("file", [(), ("--output-file", "out.txt")])
def test_a_pair_is_one_place(project: Path, cgmigrate, format: str, file: tuple[str, ...]) -> None:
    (project / "a.yaml").write_text(PAIR)
    result = cgmigrate("check", "--format", format, *file, "a.yaml")
    shown = (project / "out.txt").read_text() if file else result.stdout
    assert START[format] in shown
    assert "`cuda_graph_modules`" in shown
    assert shown.count("3:3") == 1
    assert "Found 1 diagnostic (1 warning) in 1 of 1 file.\n" in result.stderr


def test_programs_get_each_code(project: Path, cgmigrate) -> None:
    (project / "a.yaml").write_text(PAIR)
    result = cgmigrate("check", "--format", "json", "a.yaml")
    report = json.loads(result.stdout)
    assert [diagnostic["rule"] for diagnostic in report["findings"]] == ["CG105", "CG106"]
    assert report["summary"]["findings"] == 2
    assert "Found 2 diagnostics" in result.stderr


def test_fix_counts_a_pair_once(project: Path, cgmigrate) -> None:
    (project / "a.yaml").write_text(PAIR)
    result = cgmigrate("fix", "a.yaml")
    assert "rewrote a.yaml (1 diagnostic)" in result.stderr
    assert "Fixed 1 diagnostic in 1 file of 1 file." in result.stderr


def test_different_fixes_stay_apart(project: Path, cgmigrate) -> None:
    (project / "a.yaml").write_text("model: {enable_cuda_graph: true, cuda_graph_scope: [attn]}\n")
    result = cgmigrate("check", "--format", "concise", "a.yaml")
    assert result.stdout.count("\n") == 2
    assert "Found 2 diagnostics" in result.stderr
