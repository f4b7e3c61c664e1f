"""Fixes of objects that several functions and files set: each fixture runs before and after ``fix``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Importing it takes most of a minute; the recipes import it in a process of their own.
if find_spec("megatron") is None or find_spec("megatron.core") is None:
    pytest.skip("the judge is the installed megatron-core", allow_module_level=True)

from cgmigrate.lint import planning, python_objects
from cgmigrate.megatron.releases import NEWEST
from tests.support.checkouts import project_of
from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from bridge_recipes import compare, failing_now, results_of

CASES = sorted((ROOT / "tests/fixtures/linking").iterdir())


def _changed(before: Path, after: Path) -> list[str]:
    pairs = [(path, before / path.relative_to(after)) for path in sorted(after.rglob("*.py"))]
    return [path.stem for path, old in pairs if path.read_bytes() != old.read_bytes()]


def test_what_is_written_runs_as_before(tmp_path: Path, cgmigrate: Callable[..., Any]) -> None:
    trees = []
    changed = {}
    for case in CASES:
        before = project_of(case, tmp_path / case.name / "before")
        after = project_of(case, tmp_path / case.name / "after")
        result = cgmigrate("fix", "--from", "0.17", "--to", str(NEWEST), str(after))
        assert "internal error" not in result.output, (case.name, result.output)
        changed[case.name] = _changed(before, after)
        trees += [before, after]
    results = results_of(*trees)
    wrong = {}
    executed = 0
    for at, case in enumerate(CASES):
        comparison = compare(results[2 * at], results[2 * at + 1])
        executed += bool(comparison.executed)
        failing = failing_now(results[2 * at], results[2 * at + 1])
        if comparison.raises or comparison.differs or failing:
            wrong[case.name] = f"{comparison}; failing: {failing}"
    expected = {case.name: (case / "expected.txt").read_text().removeprefix("changed:").split() for case in CASES}

    assert not wrong, wrong
    assert changed == expected
    assert executed == len(CASES)


def test_only_fix_of_a_folder_follows_the_objects_of_a_large_checkout(
    tmp_path: Path, cgmigrate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_MOST_FILES_OF_CODE", 1)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(project_of(ROOT / "tests/fixtures/linking/base-recipe", tmp_path / "work"))
    releases = ("--from", "0.17", "--to", str(NEWEST))

    Path("skills").mkdir()
    one = "megatron/bridge/recipes/base.py"

    for arguments in (("check", "."), ("fix", "--diff", one), ("fix", "--diff", "skills", one)):
        result = cgmigrate(*arguments, *releases)
        assert "only `fix` follows objects across 3 files of code" in result.stderr
        assert "\n+" not in result.stdout
        assert re.search(r"^Fixes: \d+ not analysed", result.stderr, re.MULTILINE)
        assert "unsafe" not in result.stdout
        assert f"\nNext: cgmigrate fix --from 0.17 --to {NEWEST} --diff .\n" in result.stderr

    result = cgmigrate("fix", "--diff", *releases, ".")
    assert "\n+" in result.stdout
    assert "follows objects across" not in result.stderr


def test_a_proof_that_ends_with_an_error_is_reported_once(
    tmp_path: Path, cgmigrate: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def fail(*_arguments: object) -> None:
        calls.append(1)
        raise ValueError("no unit")

    monkeypatch.setattr(python_objects, "proved_sites", fail)
    project = project_of(ROOT / "tests/fixtures/linking/base-recipe", tmp_path)

    result = cgmigrate("fix", "--from", "0.17", "--to", str(NEWEST), "--diff", str(project))

    assert result.output.count("internal error") == 1
    assert len(calls) == 1
    assert result.exit_code == 2
    assert "\n+" not in result.stdout
