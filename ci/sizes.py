"""Compare the lines of Python of each package with its budget in sizes.yaml.

`python ci/sizes.py` prints a table, and exits with 1 if a package is above its budget.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]
BUDGETS = Path(__file__).with_name("sizes.yaml")


def lines_in(folder: Path, below: bool = True) -> int:
    """Count the lines of Python files in a folder, and below it."""
    files = folder.rglob("*.py") if below else folder.glob("*.py")
    return sum(file.read_bytes().count(b"\n") for file in files)


def lines_of(entry: Mapping[str, Any], root: Path = ROOT) -> int:
    """Count the lines of an entry: of its folders, without some."""
    counted = sum(lines_in(root / folder, entry.get("below", True)) for folder in entry["folders"])
    return counted - sum(lines_in(root / folder) for folder in entry.get("without", ()))


def unlisted(entries: Mapping[str, Mapping[str, Any]], root: Path = ROOT) -> list[str]:
    """Return the packages that no entry has for itself: each needs a budget."""
    alone = {entry["folders"][0] for entry in entries.values() if len(entry["folders"]) == 1}
    packages = sorted(str(file.parent.relative_to(root)) for file in root.glob("cgmigrate/*/__init__.py"))
    return [package for package in packages if package not in alone]


def main() -> int:
    """Print the table; return the exit status."""
    entries: dict[str, dict[str, Any]] = yaml.safe_load(BUDGETS.read_text(encoding="utf-8"))
    problems = [f"{package} has no budget" for package in unlisted(entries)]
    print(f"{'lines of Python':32}{'now':>9}{'budget':>9}{'target':>9}")
    for name, entry in entries.items():
        lines, budget = lines_of(entry), entry["budget"]
        print(f"{name:32}{lines:9,}{budget:9,}{entry.get('target') or '':>9}")
        if lines > budget:
            problems.append(f"{name}: {lines:,} lines, and the budget is {budget:,}")
    for problem in problems:
        print(f"error: {problem} (ci/sizes.yaml)", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
