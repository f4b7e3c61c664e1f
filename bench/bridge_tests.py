"""Run the unit tests of Megatron-Bridge that concern the settings in two trees, and compare the outcomes test by test.

    python bench/bridge_tests.py BEFORE AFTER [--megatron MEGATRON_LM]

A test file counts if it names a setting in the first tree, or if the second tree has another text of it. It needs the
`verify` extra, pytest, transformers (5.8 to 5.12), accelerate, datasets, diffusers, peft, einops and tensorboard.
Transformer Engine and what else is not installed is a stand-in for the Bridge and its tests, as in `bridge_recipes.py`;
for megatron-core it is absent.
MEGATRON_LM is a checkout of the megatron-core that the tree pins, else the installed one is used.
The exit status is 1 if a test passes before and not after.
"""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import os
import re
import signal
import subprocess
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridge_recipes import _StandIn

NAMES = re.compile(r"(?i)cuda_graph|CudaGraph")
SECONDS = 60
"""How long a test may take."""
OUTCOMES, TREE = "BRIDGE_TESTS_OUTCOMES", "BRIDGE_TESTS_TREE"


# --- as a plugin of pytest --------------------------------------------------------------------------


class _Absent(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that are not installed, where the tree or its tests import them."""

    def find_spec(
        self,
        name: str,
        path: Any = None,  # noqa: ARG002 - the signature is importlib's
        target: Any = None,  # noqa: ARG002 - the signature is importlib's
    ) -> importlib.machinery.ModuleSpec | None:
        if name.startswith(("megatron.bridge", "megatron.core", "tests.")):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if self._is_for_tree() else None

    def _is_for_tree(self) -> bool:
        frame = sys._getframe(2)
        while frame is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back  # type: ignore[assignment]
        return frame is not None and os.path.abspath(frame.f_code.co_filename).startswith(os.environ[TREE] + os.sep)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:  # noqa: ARG002 - the signature is importlib's
        return None


def _late(*_: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def pytest_load_initial_conftests() -> None:
    """Put the stand-ins behind everything that can be imported, before the tree's first module is."""
    sys.meta_path.append(_Absent())
    signal.signal(signal.SIGALRM, _late)


def pytest_runtest_logstart() -> None:
    """Start the clock of a test."""
    signal.alarm(SECONDS)


def pytest_runtest_logfinish() -> None:
    """Stop it."""
    signal.alarm(0)


def pytest_runtest_logreport(report: Any) -> None:
    """Write the outcome of a test: that of its call, or of what failed or skipped around it."""
    if report.when == "call" or report.outcome != "passed":
        _write(report.nodeid, report.outcome)


def pytest_collectreport(report: Any) -> None:
    """Write which files cannot be imported."""
    if report.failed:
        _write(report.nodeid, "not collected")


def _write(name: str, outcome: str) -> None:
    with open(os.environ[OUTCOMES], "a", encoding="utf-8") as file:
        file.write(f"{outcome}\t{name!r}\n")


# --- as a command -----------------------------------------------------------------------------------


def files_of(before: Path, after: Path) -> Iterator[str]:
    """Yield the test files that name a setting in the first tree, or differ in the second."""
    for path in sorted(before.joinpath("tests/unit_tests").rglob("test_*.py")):
        name, text = path.relative_to(before).as_posix(), path.read_text(encoding="utf-8")
        other = after / name
        if NAMES.search(text) or (other.is_file() and text != other.read_text(encoding="utf-8")):
            yield name


def run(tree: Path, files: list[str], megatron: Path | None, outcomes: Path) -> subprocess.Popen[bytes]:
    """Start the tests of a tree."""
    folders = [Path(__file__).parent, tree / "src", tree, *([megatron] if megatron else [])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder.resolve()) for folder in folders]),
        "HF_HUB_OFFLINE": "1",
        TREE: str(tree.resolve()),
        OUTCOMES: str(outcomes),
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "bridge_tests", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", "--tb=no", *files]
    return subprocess.Popen(command, cwd=tree, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def read(outcomes: Path) -> dict[str, str]:
    """Return the outcome of each test; a test that fails in a phase has failed."""
    result: dict[str, str] = {}
    for row in outcomes.read_text(encoding="utf-8").splitlines() if outcomes.is_file() else ():
        outcome, name = row.split("\t", 1)
        result[name] = outcome if result.get(name, "passed") in ("passed", "skipped") else result[name]
    return result


def main() -> int:
    """Print the tests that pass before and not after."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("trees", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    parser.add_argument("--megatron", type=Path, metavar="MEGATRON_LM")
    options = parser.parse_args()
    files = list(files_of(*options.trees))
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("before", "after")]
        started = [run(tree, files, options.megatron, path) for tree, path in zip(options.trees, paths, strict=True)]
        statuses = [process.wait() for process in started]
        before, after = map(read, paths)
    lost = [name for name, outcome in before.items() if outcome == "passed" and after.get(name) != "passed"]
    print(*(f"passes before, {after.get(name, 'is not run')} after: {name}" for name in lost), sep="\n")
    same = sum(after.get(name) == outcome for name, outcome in before.items())
    print(
        f"{len(files)} test files, pytest ends with {statuses}: {len(before)} outcomes {dict(Counter(before.values()))}"
    )
    print(f"{same} the same after, {len(lost)} pass before and not after")
    return 1 if lost or not before else 0


if __name__ == "__main__":
    sys.exit(main())
