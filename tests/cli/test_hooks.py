"""The pre-commit hooks: what they select agrees with the code, and the real pre-commit runs them on real commits."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from cgmigrate.cli.commands import main
from cgmigrate.documents.syntax import SYNTAXES, syntax_of, syntax_of_file
from tests.support.installing import copy_of_checkout, skip_without_registry
from tests.support.paths import ROOT
from tests.support.reports import places_in

HOOKS = {hook["id"]: hook for hook in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())}
LEGACY = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: true\n"
MIGRATED = "MODEL_ARGS:\n  --bf16: true\n  --cuda-graph-impl: local\n"
UNDECIDED = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: ${GRAPHS}\n"


def passed_on(hook: dict, name: str) -> bool:
    """Whether pre-commit would hand a text file of this name to the hook."""
    # Which kinds of text it is only the name decides: pre-commit knows no kind of `.sbatch` or `.args`.
    return bool(re.search(hook["files"], name)) and hook["types"] == ["text"]


# --- what they select -----------------------------------------------------------------------------


def test_there_is_a_hook_that_checks_and_one_that_fixes() -> None:
    assert {name: hook["entry"] for name, hook in HOOKS.items()} == {
        "cgmigrate-check": "cgmigrate check",
        "cgmigrate-fix": "cgmigrate fix --fix-only",
    }
    for hook in HOOKS.values():
        program, command, *_ = hook["entry"].split()
        assert program == "cgmigrate" and command in main.commands
        assert hook["require_serial"] and hook["language"] == "python"


def test_one_hook_gets_all_text_and_the_other_what_is_read() -> None:
    assert HOOKS["cgmigrate-check"]["types"] == ["text"] and "files" not in HOOKS["cgmigrate-check"]
    hook = HOOKS["cgmigrate-fix"]
    suffixes = [suffix for syntax in SYNTAXES for suffix in syntax.suffixes]
    assert suffixes
    for suffix in suffixes:
        assert passed_on(hook, f"conf/a.{suffix}") and passed_on(hook, f"conf/A.{suffix.upper()}")
    for name in [".clang-format", ".yamllint", "wscript", "a.eyaml", "a.gyp", "Dockerfile", "a.json", "a.yaml.j2"]:
        assert syntax_of(name) is None and not passed_on(hook, name), name


def test_the_manifest_is_one_that_pre_commit_reads() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_the_readme_gives_to_copy_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"^```yaml\n(repos:.*?)^```$", (ROOT / "README.md").read_text(), re.M | re.S)
    path = tmp_path / ".pre-commit-config.yaml"
    path.write_text(block)
    done = subprocess.run(
        [sys.executable, "-m", "pre_commit", "validate-config", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_entry_for_scripts_without_a_suffix_selects_them_and_no_other_file(tmp_path: Path) -> None:
    identify = pytest.importorskip("identify.identify")
    (block,) = re.findall(r"^```yaml\n(      - id: .*?)^```$", (ROOT / "docs/gates.md").read_text(), re.M | re.S)
    (entry,) = yaml.safe_load(block)
    assert entry["id"] in HOOKS and HOOKS[entry["id"]]["types"] == ["text"]
    files = {
        "bin/launch": "#!/bin/bash",
        "bin/train": "#!/usr/bin/env python3",
        "LICENSE": "Apache",
        "a.sh": "#!/bin/sh",
    }
    (tmp_path / "bin").mkdir()
    selected = []
    for name, first in files.items():
        path = tmp_path / name
        path.write_text(f"{first}\n")
        path.chmod(0o755)
        if re.search(entry["files"], name) and identify.tags_from_path(str(path)) & set(entry["types_or"]):
            selected.append(name)
            assert syntax_of_file(name, first.encode()) is not None
    assert selected == ["bin/launch", "bin/train"]


# --- the real pre-commit --------------------------------------------------------------------------


def run(*command: str, cwd: Path, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def done(*command: str, cwd: Path, env: dict[str, str]) -> str:
    result = run(*command, cwd=cwd, env=env)
    assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
    return result.stdout.strip()


@pytest.fixture(scope="module")
def env(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A user of git and pre-commit who has no settings of their own."""
    home = tmp_path_factory.mktemp("home")
    (home / ".gitconfig").write_text("[user]\n\tname = A\n\temail = a@example.org\n[init]\n\tdefaultBranch = main\n")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
    path = f"{Path(sys.executable).parent}{os.pathsep}{clean['PATH']}"
    return clean | {
        "PATH": path,
        "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
        "PRE_COMMIT_HOME": str(home / "cache"),
        "PRE_COMMIT_COLOR": "never",
    }


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, env: dict[str, str]) -> tuple[Path, str]:
    """This working tree as a repository with one commit, as pre-commit would clone it: its path and the commit."""
    folder = copy_of_checkout(tmp_path_factory.mktemp("release"))
    done("git", "init", "-q", cwd=folder, env=env)
    done("git", "add", ".", cwd=folder, env=env)
    done("git", "commit", "-qm", "release", cwd=folder, env=env)
    return folder, done("git", "rev-parse", "HEAD", cwd=folder, env=env)


class Project:
    """A scratch repository in which one of the hooks guards every commit."""

    def __init__(self, folder: Path, env: dict[str, str]) -> None:
        self.folder, self.env = folder, env

    def git(self, *words: str) -> str:
        return done("git", *words, cwd=self.folder, env=self.env)

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.write_text(text)
        return path

    def commit(self, *names: str) -> subprocess.CompletedProcess[str]:
        """Stage these files and commit; what the hook says is in stderr."""
        self.git("add", *names)
        return run("git", "commit", "-m", "change", cwd=self.folder, env=self.env)


@pytest.fixture
def guarded(tmp_path: Path, release: tuple[Path, str], env: dict[str, str], request: pytest.FixtureRequest) -> Project:
    project = Project(tmp_path, env)
    project.git("init", "-q")
    repo = {"repo": str(release[0]), "rev": release[1], "hooks": [{"id": name} for name in request.param.split()]}
    project.write(".pre-commit-config.yaml", yaml.safe_dump({"repos": [repo]}))
    installed = run(sys.executable, "-m", "pre_commit", "install", "--install-hooks", cwd=tmp_path, env=env)
    if installed.returncode != 0:
        skip_without_registry(tmp_path, env)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    project.git("add", ".")
    project.git("commit", "-qm", "start")
    return project


@pytest.mark.parametrize("guarded", ["cgmigrate-check"], indirect=True)
def test_a_commit_with_a_diagnostic_is_refused_and_one_without_goes_in(guarded: Project) -> None:
    guarded.write("train.yaml", LEGACY)
    refused = guarded.commit("train.yaml")
    assert refused.returncode == 1
    assert "cgmigrate check" in refused.stderr and "Failed" in refused.stderr
    assert "train.yaml:3:3: CG101" in places_in(refused.stderr)
    assert "enable-cuda-graph: `--enable-cuda-graph` is deprecated" in refused.stderr
    assert guarded.git("log", "--format=%s") == "start"

    guarded.write("train.yaml", MIGRATED)
    accepted = guarded.commit("train.yaml")
    assert accepted.returncode == 0 and "Passed" in accepted.stderr
    assert guarded.git("show", "HEAD:train.yaml") == MIGRATED.strip()


@pytest.mark.parametrize("guarded", ["cgmigrate-check"], indirect=True)
def test_only_what_is_staged_is_judged(guarded: Project) -> None:
    guarded.write("untracked.yaml", LEGACY)
    guarded.write("new.yaml", MIGRATED)
    guarded.git("add", "new.yaml")
    guarded.write("new.yaml", LEGACY)  # changed again after it was staged

    accepted = run("git", "commit", "-m", "change", cwd=guarded.folder, env=guarded.env)

    assert accepted.returncode == 0, accepted.stderr
    assert guarded.git("show", "HEAD:new.yaml") == MIGRATED.strip()
    assert (guarded.folder / "new.yaml").read_text() == LEGACY
    guarded.write("notes.log", LEGACY)
    assert guarded.commit("notes.log").returncode == 0


@pytest.mark.parametrize("guarded", ["cgmigrate-fix"], indirect=True)
def test_the_fix_hook_rewrites_refuses_and_passes_when_the_result_is_staged(guarded: Project) -> None:
    path = guarded.write("train.yaml", LEGACY)
    refused = guarded.commit("train.yaml")
    assert refused.returncode == 1 and "files were modified by this hook" in refused.stderr
    assert path.read_text() == MIGRATED
    assert guarded.git("log", "--format=%s") == "start"

    assert guarded.commit("train.yaml").returncode == 0
    assert guarded.git("show", "HEAD:train.yaml") == MIGRATED.strip()


BOTH = ["cgmigrate-fix cgmigrate-check", "cgmigrate-check cgmigrate-fix"]


@pytest.mark.parametrize("guarded", BOTH, indirect=True)
def test_both_hooks_together_report_what_needs_a_decision_once(guarded: Project) -> None:
    path = guarded.write("train.yaml", UNDECIDED)
    both = guarded.write("both.yaml", LEGACY + "OTHER:\n  --bf16: true\n  --enable-cuda-graph: ${GRAPHS}\n")
    refused = guarded.commit("train.yaml", "both.yaml")
    assert refused.returncode == 1
    for place in ("train.yaml:3:3: CG003", "both.yaml:6:3: CG003"):
        assert places_in(refused.stderr).count(place) == 1, refused.stderr
    assert path.read_text() == UNDECIDED
    assert both.read_text().startswith(MIGRATED)
    # Nothing is left to rewrite, and what needs a decision still stops the commit.
    refused = guarded.commit("train.yaml", "both.yaml")
    assert refused.returncode == 1 and "files were modified" not in refused.stderr
    assert places_in(refused.stderr).count("train.yaml:3:3: CG003") == 1
    assert guarded.git("log", "--format=%s") == "start"


@pytest.mark.parametrize("guarded", BOTH[:1], indirect=True)
def test_the_hooks_do_not_rewrite_a_parent_whose_child_is_not_staged(guarded: Project) -> None:
    guarded.write("child.yaml", "defaults: base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: [mlp]\n")
    guarded.git("add", "child.yaml")
    guarded.git("commit", "-qm", "child", "--no-verify")
    text = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: [attn]\n"
    parent = guarded.write("base.yaml", text)
    refused = guarded.commit("base.yaml")
    assert refused.returncode == 1
    assert "blocked by: child.yaml, which has to change with this file" in refused.stderr
    assert "help: run `cgmigrate fix base.yaml child.yaml`" in refused.stderr
    assert parent.read_text() == text
