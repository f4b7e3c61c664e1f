"""A new output format is one file and one line: the change that the documentation shows, applied to a copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGE = (ROOT / "docs/writing-rules.md").read_text(encoding="utf-8")
SECTION = PAGE.split("## An output format\n")[1].split("\n## ")[0]
TEXT = "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n  hidden_size: 4096\n"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of the package and the rules with the change of the page."""
    for folder in ("cgmigrate", "rules"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__"))
    (change,) = re.findall(r"^```diff\n(.*?)^```$", SECTION, re.MULTILINE | re.DOTALL)
    lines = change.splitlines()
    assert sum(line.startswith("diff --git") for line in lines) == 2
    options = change[: change.index("diff --git a/cgmigrate/report")]
    assert re.findall(r"^[+-](?![+-]).*", options, re.MULTILINE) == ['+    Format("csv"),']
    done = subprocess.run(
        ["git", "apply", "--recount", "-"], cwd=tmp_path, input=change, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return tmp_path


def run(checkout: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command of a checkout in a folder."""
    command = [sys.executable, "-m", "cgmigrate", *arguments]
    environment = os.environ | {"PYTHONPATH": str(checkout)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_the_format_is_an_option_a_key_and_a_report(changed: Path) -> None:
    project = changed / "project"
    project.mkdir()
    (project / "a.yaml").write_text(TEXT)
    row = (
        "a.yaml,3,3,CG106,`cuda_graph_scope` is deprecated since megatron-core 0.18; "
        "write the modules to capture in `cuda_graph_modules`\n"
    )
    done = run(changed, project, "check", "--isolated", "--output-format", "csv", "a.yaml")
    assert (done.stdout, done.returncode) == (row, 1), done.stderr
    (project / "cgmigrate.toml").write_text('output-format = "csv"\n')
    assert run(changed, project, "check", "a.yaml").stdout == row
    assert "csv" in run(changed, project, "check", "--help").stdout


def test_the_format_is_unknown_without_the_change(project: Path, cgmigrate) -> None:
    assert cgmigrate("check", "--output-format", "csv", ".").exit_code == 2
