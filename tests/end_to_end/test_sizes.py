"""The budgets of lines in ci/sizes.yaml, and the tables of cases in tests/tables."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

from tests.support.paths import ROOT
from tests.support.tables import TABLES


def checked(root: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, root / "ci/sizes.py"], capture_output=True, text=True, timeout=60)


def test_a_package_above_its_budget_and_one_without_fail(tmp_path: Path) -> None:
    (tmp_path / "ci").mkdir()
    shutil.copy(ROOT / "ci/sizes.py", tmp_path / "ci")
    for name in ("cgmigrate/cli/a.py", "cgmigrate/cli/below/b.py", "cgmigrate/cli/__init__.py", "cgmigrate/c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("A = 1\n" * 10)
    entries = {
        "all": {"folders": ["cgmigrate"], "budget": 40},
        "without": {"folders": ["cgmigrate"], "without": ["cgmigrate/cli"], "budget": 10},
        "cli": {"folders": ["cgmigrate/cli"], "budget": 30},
        "own": {"folders": ["cgmigrate"], "below": False, "budget": 10},
    }
    budgets = tmp_path / "ci/sizes.yaml"
    budgets.write_text(yaml.safe_dump(entries))
    result = checked(tmp_path)
    assert (result.returncode, result.stderr) == (0, "")
    (tmp_path / "cgmigrate/cli/a.py").write_text("A = 1\n" * 11)
    (tmp_path / "cgmigrate/new").mkdir()
    (tmp_path / "cgmigrate/new/__init__.py").touch()
    result = checked(tmp_path)
    assert result.returncode == 1
    assert "error: cli: 31 lines, and the budget is 30" in result.stderr
    assert "error: cgmigrate/new has no budget" in result.stderr and "without:" not in result.stderr


def test_every_budget_is_of_folders_that_exist() -> None:
    entries = yaml.safe_load((ROOT / "ci/sizes.yaml").read_text(encoding="utf-8"))
    for entry in entries.values():
        assert all((ROOT / folder).is_dir() for folder in (*entry["folders"], *entry.get("without", ())))


def test_every_table_of_cases_is_that_of_a_test() -> None:
    for path in TABLES.glob("*/*.yaml"):
        module = ROOT / f"tests/{path.parent.name}/test_{path.stem}.py"
        text = module.read_text(encoding="utf-8")
        tests = re.findall(r'table_of\(__name__, "(\w+)"\)', text)
        tests += re.findall(r"@from_table\n(?:.*\n)*? *def (\w+)\(", text)
        names = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert [name.rpartition(".")[2] for name in names] == tests, path
