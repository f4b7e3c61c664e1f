"""Git in a checkout whose configuration is hostile starts no program."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.project.discovery import Discovery
from cgmigrate.project.git import run_git

LEGACY = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: true\n"
CHILD = "defaults: [a]\ncuda: 1\n"

Command = Callable[..., Result]


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with a file to rewrite and one that builds on it."""
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    folder = tmp_path / "checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)
    (folder / "a.yaml").write_text(LEGACY)
    (folder / "b.yaml").write_text(CHILD)
    git("init", "-q")
    git("add", ".")
    return folder


def git(*words: str) -> str:
    return subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout


def program(tmp_path: Path) -> tuple[Path, Path]:
    """A program, and the file that it writes when it runs."""
    marker, script = tmp_path / "executed", tmp_path / "program"
    script.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{marker}'\nexit 1\n")
    script.chmod(0o755)
    return marker, script


def lacks_a_blob(checkout: Path) -> None:
    """Make git fetch a blob from a promisor remote as soon as it reads `b.yaml`."""
    git("update-index", "--assume-unchanged", "b.yaml")
    name = git("hash-object", "b.yaml").strip()
    (checkout / ".git/objects" / name[:2] / name[2:]).unlink()
    for key, value in (
        ("core.repositoryformatversion", "1"),
        ("extensions.partialClone", "origin"),
        ("remote.origin.promisor", "true"),
    ):
        git("config", key, value)


@pytest.mark.parametrize("how", ["ext", "helper", "uploadpack", "ssh", "included"])
def test_a_missing_blob_is_not_fetched(checkout: Path, tmp_path: Path, cgmigrate: Command, how: str) -> None:
    marker, script = program(tmp_path)
    settings = {
        "ext": {"remote.origin.url": f"ext::{script}", "protocol.ext.allow": "always"},
        "helper": {"remote.origin.url": str(script), "remote.origin.vcs": "ext", "protocol.ext.allow": "always"},
        "uploadpack": {"remote.origin.url": str(checkout), "remote.origin.uploadpack": str(script)},
        "ssh": {"remote.origin.url": "ssh://localhost/x", "core.sshCommand": str(script)},
        "included": {"include.path": str(tmp_path / "more")},
    }[how]
    (tmp_path / "more").write_text(f'[remote "origin"]\nurl = "ext::{script}"\n[protocol]\nallow = always\n')
    lacks_a_blob(checkout)
    for key, value in settings.items():
        git("config", key, value)
    subprocess.run(["git", "grep", "-q", "cuda"], check=False, capture_output=True)
    assert marker.exists(), "this configuration runs nothing, so the test shows nothing"
    marker.unlink()
    done = cgmigrate("check", "--format", "concise", ".")
    assert not marker.exists(), marker.read_text()
    assert done.exit_code == 1 and "a.yaml:3:3: CG101" in done.stdout


@pytest.mark.parametrize("key", ["core.fsmonitor", "core.pager", "pager.grep", "core.hooksPath", "diff.external"])
def test_programs_of_the_configuration_are_not_run(
    checkout: Path, tmp_path: Path, cgmigrate: Command, key: str
) -> None:
    marker, script = program(tmp_path)
    (tmp_path / "hooks").mkdir()
    for name in ("post-index-change", "fsmonitor-watchman"):
        os.link(script, tmp_path / "hooks" / name)
    git("config", key, str(tmp_path / "hooks" if key == "core.hooksPath" else script))
    if key == "core.fsmonitor":
        subprocess.run(["git", "ls-files", "--others"], check=True, capture_output=True)
        assert marker.exists(), "this configuration runs nothing, so the test shows nothing"
        marker.unlink()
    assert cgmigrate("check", ".").exit_code == 1
    assert not marker.exists(), marker.read_text()


def test_a_folder_that_looks_like_a_bare_repository_is_not_one(checkout: Path, tmp_path: Path) -> None:
    bare = checkout / "sub"
    git("init", "-q", "--bare", str(bare))
    subprocess.run(["git", "config", "core.worktree", str(tmp_path)], cwd=bare, check=True)
    assert run_git(str(bare), "ls-files") is None


def test_colours_of_the_configuration_are_not_part_of_names(checkout: Path) -> None:
    git("config", "color.ui", "always")
    git("config", "color.grep.filename", "red")
    listed = run_git(str(checkout), "grep", "-lzF", "-e", "cuda", "--", "*.yaml")
    assert listed is not None and listed[0].split(b"\0") == [b"a.yaml", b"b.yaml", b""]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root may give a folder to another user")
@pytest.mark.parametrize("safe", ["*", ""])
def test_of_the_systems_configuration_only_the_safe_folders_count(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, safe: str
) -> None:
    system = tmp_path / "gitconfig"
    system.write_text(f"[safe]\ndirectory = /elsewhere\ndirectory = {safe}\n[core]\nexcludesFile = {tmp_path}/all\n")
    (tmp_path / "all").write_text("*\n")
    monkeypatch.delenv("GIT_CONFIG_NOSYSTEM")
    monkeypatch.setenv("GIT_CONFIG_SYSTEM", str(system))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.quotePath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "false")
    (checkout / "c.yaml").write_text(LEGACY)
    for path in (checkout, checkout / ".git"):
        os.chown(path, 12345, 12345)
    listed = run_git(str(checkout), "ls-files", "--cached", "--others", "--exclude-standard")
    assert listed == ((b"c.yaml\na.yaml\nb.yaml\n", "") if safe else None)
    assert [item.path for item in Discovery(["."])] == ["a.yaml", "c.yaml"]
