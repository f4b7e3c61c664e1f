"""The steps of docs/new-release.md on a copy of this checkout, with a release that is made up."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cgmigrate.megatron.releases import NEWEST, OLDEST, UPSTREAM
from tests.support.next_release import copy_with_next_release
from tests.support.nightly import nightly_only
from tests.support.paths import ROOT

PAGE = (ROOT / "docs/new-release.md").read_text(encoding="utf-8")
ENTRY = "tests/megatron/test_catalogue.py::test_the_tables_have_the_default_and_the_choices_of_the_entry"
DIFFER = [f"{ENTRY}[{name}]" for name in ("cuda_graph_impl", "cuda_graph_warmup_steps")]
COMPARED = ("tests/megatron/test_catalogue.py", "tests/megatron/test_tables.py", "tests/project/test_releases.py")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this checkout, in which the next release is the newest."""
    return copy_with_next_release(tmp_path_factory.mktemp("next"))


def run(checkout: Path, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(checkout)}
    command = [sys.executable, *words]
    return subprocess.run(
        command, cwd=folder or checkout, env=env, capture_output=True, text=True, check=False, timeout=500
    )


def test_the_generator_prints_what_changed(checkout: Path) -> None:
    done = run(checkout, "scripts/release_tables.py", "--diff", str(NEWEST), str(UPSTREAM))
    changes = [line for line in PAGE.splitlines() if re.match("(changed|new|gone) {2,}", line)]
    assert len(changes) == 3
    assert done.stdout.splitlines() == changes


def test_a_generated_table_is_as_small_as_the_others(checkout: Path) -> None:
    sizes = [(folder / "rules/releases.json").stat().st_size for folder in (ROOT, checkout)]
    assert sizes[1] - sizes[0] < 1000


def test_the_program_knows_the_release(checkout: Path, project: Path) -> None:
    (project / "a.yaml").write_text("model:\n  cuda_graph_scope: full\n")
    check = ("-m", "cgmigrate", "check", "a.yaml")
    assert run(checkout, *check, "--to", str(UPSTREAM), folder=project).returncode == 1
    assert re.search(rf" to {UPSTREAM} \(", run(checkout, *check, folder=project).stderr)


@nightly_only
def test_only_what_differs_fails(checkout: Path) -> None:
    done = run(checkout, "-m", "pytest", "-q", "-p", "no:cacheprovider", *COMPARED)
    failed = [line.partition(" - ")[0].removeprefix("FAILED ") for line in done.stdout.splitlines() if "FAILED" in line]
    assert failed == DIFFER, done.stdout[-3000:] + done.stderr
    assert "".join(f"FAILED {test}\n" for test in DIFFER) in PAGE


@nightly_only
def test_pages_follow(checkout: Path) -> None:
    assert run(checkout, "docs/build.py", "--check").returncode == 1
    assert run(checkout, "docs/build.py").returncode == 0
    assert run(checkout, "docs/build.py", "--check").returncode == 0
    for name in ("README.md", "docs/configuration.md", "docs/migrate.md"):
        before, after = ((folder / name).read_text(encoding="utf-8") for folder in (ROOT, checkout))
        changed = [new for old, new in zip(before.splitlines(), after.splitlines(), strict=True) if old != new]
        assert changed and all(str(UPSTREAM) in line for line in changed), name


BY_HAND = sorted(
    path
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md"))
    if path.name != "new-release.md" and "\n<!-- Generated from " not in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.name)
def test_prose_names_the_newest_release_only_where_it_is_generated(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"<!--(\w+)-->[^<]*<!--/\1-->", "", text)
    for release in (NEWEST, UPSTREAM, f"{OLDEST} to"):
        assert not re.search(rf"(?<![\d.]){re.escape(str(release))}(?![\d.]*\d)", text), release
