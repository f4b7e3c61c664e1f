"""The program as a process: how it is started, and how a person or the system ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

LEGACY = "model:\n  external_cuda_graph: true\n  hidden_size: 8\n"


def started(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cgmigrate", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def test_the_package_runs_as_a_module(project: Path) -> None:
    (project / "a.yaml").write_text(LEGACY)
    result = started("check", "--format", "concise", ".", cwd=project)
    assert (result.returncode, result.stdout.split()[:2]) == (1, ["a.yaml:2:3:", "CG102"])
    assert started("--version", cwd=project).stdout.startswith("cgmigrate ")
    assert started("check", cwd=project).stderr.startswith("Usage: python -m cgmigrate check ")
