"""What `check` and `fix` cost on a small fixed tree, next to `python -c pass` and ruff: `python bench/costs.py`.

The tree is examples/configs and the Python fixtures of the tests. The median of the processor time of some runs, and
the peak of memory, are shown as ratios, which say more than seconds on a machine that other work is running on.
Nothing fails: commits are compared by a person.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KIB = 1 if sys.platform == "darwin" else 1024
PARTS = ("examples/configs", "tests/fixtures/linking")
"""Folders of the tree: YAML without code, and small projects of Python."""


@dataclass(frozen=True)
class Cost:
    """The processor time in seconds and the peak of memory in bytes of a command."""

    seconds: float
    memory: int


def once(command: Sequence[str], folder: Path, environment: dict[str, str]) -> Cost:
    """Run a command once. Raises SystemExit if it fails otherwise than with diagnostics."""
    # `wait4` measures one process; the peak of all children would be that of the largest so far.
    null = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=folder, env=environment, stdin=null, stdout=null, stderr=null)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss * KIB)


def commands(work: Path) -> dict[str, list[str]]:
    """Return the commands by name."""
    tool = [sys.executable, "-m", "cgmigrate"]
    releases = ["--from", "0.17", "--to", "0.19"]
    result = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "ruff check --select E9": ["ruff", "check", "--isolated", "--no-cache", "--select", "E9", "."],
        "cgmigrate --version": [*tool, "--version"],
    }
    for part in PARTS:
        folder = work / Path(part).name
        result[f"check, {part}"] = [*tool, "check", "--isolated", *releases, str(folder)]
        result[f"fix --diff, {part}"] = [*tool, "fix", "--diff", "--isolated", *releases, str(folder)]
    beside = Path(sys.executable).with_name("ruff")
    ruff = str(beside) if beside.exists() else shutil.which("ruff")
    if ruff is None:
        del result["ruff check --select E9"]
    else:
        result["ruff check --select E9"][0] = ruff
    return result


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=3, help="runs of each command (default: 3)")
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory(prefix="cgmigrate-costs-") as name:
        work = Path(name)
        environment = {**os.environ, "CGMIGRATE_CACHE_DIR": str(work / "cache"), "PYTHONPATH": str(ROOT)}
        tree = work / "tree"
        for part in PARTS:
            shutil.copytree(ROOT / part, tree / Path(part).name)
        every = commands(tree)
        costs: dict[str, list[Cost]] = {title: [] for title in every}
        for _ in range(rounds):
            for title, command in every.items():
                # What was proved before would not be proved again.
                shutil.rmtree(work / "cache", ignore_errors=True)
                costs[title].append(once(command, tree, environment))
        show(costs)


def show(costs: dict[str, list[Cost]]) -> None:
    """Print a row for each command, with its ratios to Python's own start and to ruff."""
    medians = {
        title: Cost(statistics.median(one.seconds for one in runs), max(one.memory for one in runs))
        for title, runs in costs.items()
    }
    start, ruff = medians["python -c pass"], medians.get("ruff check --select E9")
    print(f"{'':40}{'CPU':>9}{'/ python':>10}{'/ ruff':>10}{'peak':>12}{'/ python':>10}")
    for title, cost in medians.items():
        to_ruff = f"{cost.seconds / ruff.seconds:10.1f}" if ruff else f"{'-':>10}"
        print(
            f"{title:40}{cost.seconds:8.3f}s{cost.seconds / start.seconds:10.1f}{to_ruff}"
            f"{cost.memory / 2**20:8.1f} MiB{cost.memory / start.memory:10.1f}"
        )


if __name__ == "__main__":
    main()
