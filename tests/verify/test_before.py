"""`verify --before`: a project that is migrated already, compared with its form in a revision or a folder."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write
from tests.support.release_judges import read_in_forks

OLD = """\
model:
  num_layers: 4
  tensor_model_parallel_size: 1
  cuda_graph_impl: transformer_engine
  cuda_graph_scope: [attn, mlp]
"""
RIGHT = OLD.replace("cuda_graph_scope", "cuda_graph_modules")
WRONG = RIGHT.replace(", mlp", "")
RELEASES = ("--from", "0.17", "--to", "0.19")


def git(folder: Path, *words: str) -> None:
    identity = ("-c", "user.email=a@example.org", "-c", "user.name=a")
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def migrated(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    read_in_forks(monkeypatch)
    git(project, "init", "-q")
    write(project / "conf/right.yaml", OLD)
    write(project / "conf/wrong.yaml", OLD)
    write(project / "conf/same.yaml", OLD)
    git(project, "add", "-A")
    git(project, "commit", "-qm", "old")
    write(project / "conf/right.yaml", RIGHT)
    write(project / "conf/wrong.yaml", WRONG)
    return project


def verdicts(result: Any) -> dict[str, str]:
    return {line.split(":")[0]: line.split(": ")[1] for line in result.stdout.splitlines()}


def test_files_are_compared_with_a_revision(migrated: Path, cgmigrate: Callable[..., Any]) -> None:
    result = cgmigrate("verify", *RELEASES, "--before", "HEAD", ".")
    assert result.exit_code == 1
    assert {name: verdict.split(",")[0] for name, verdict in verdicts(result).items()} == {
        "conf/right.yaml": "equivalent",
        "conf/wrong.yaml": "different",
    }


def test_files_are_compared_with_a_folder(
    migrated: Path, cgmigrate: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    old = tmp_path_factory.mktemp("old")
    shutil.copytree(migrated, old, dirs_exist_ok=True)
    git(old, "checkout", "-q", ".")
    result = cgmigrate("verify", *RELEASES, "--before", str(old), "conf/right.yaml")
    assert result.exit_code == 0
    assert list(verdicts(result)) == ["conf/right.yaml"]


def test_nothing_changed_since_then(migrated: Path, cgmigrate: Callable[..., Any]) -> None:
    result = cgmigrate("verify", *RELEASES, "--before", "HEAD", "conf/same.yaml")
    assert (result.exit_code, result.stdout) == (0, "")


@pytest.mark.parametrize("before", ["gone", "HEAD~9"])
def test_an_unknown_state_is_an_error(migrated: Path, cgmigrate: Callable[..., Any], before: str) -> None:
    result = cgmigrate("verify", *RELEASES, "--before", before, ".")
    assert result.exit_code == 2
    assert "no folder, and no revision" in result.stderr
