"""Mutation testing: changes cgmigrate in one place at a time, and says which changes no test notices.

    python tests/mutation.py --sample 150

Every test runs once, to learn which lines it executes. Then each mutant of the sample (``tests/support/mutants.py``) is
tried in a copy of the committed tree with the tests that execute its line, those of its package first. A mutant is
killed when a test fails or takes far too long. ``tests/mutation-equivalents.txt`` lists mutants that change nothing a
user can see, with the reason. Exit status 1: more than ``--limit`` per cent of the sample survive and are not listed.

A sample is the mutants whose hash with the seed is smallest. Where the code has not changed, it is the same as before,
and so is the verdict; of changed code as large a part is drawn as of all other code.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.support.mutants import Mutant, mutants_of  # noqa: E402 (this file is run as a script)

EQUIVALENTS = ROOT / "tests/mutation-equivalents.txt"
MODULES = (
    "cgmigrate/megatron/*.py",
    "cgmigrate/lint/*.py",
    "cgmigrate/linking/*.py",
    "cgmigrate/documents/*/equivalence.py",
    "cgmigrate/verify/compare.py",
)
"""Where a wrong line makes a wrong verdict. ``--module`` names others."""
TESTS = ("tests/*/test_*.py",)
NOT_RUN = (
    # They run other programs only: none of their lines can be seen.
    "tests/end_to_end/test_action.py",
    "tests/end_to_end/test_docs.py",
    "tests/cli/test_hooks.py",
    # Most of their tests take longer than one mutant may cost.
    "tests/end_to_end/test_bridge_recipes.py",
    "tests/end_to_end/test_fuzz.py",
    "tests/end_to_end/test_next_release.py",
    "tests/end_to_end/test_properties.py",
    "tests/verify/test_config.py",
)
"""Test files whose tests are not tried."""
BUDGET = 60.0
"""CPU seconds of tests, as measured without a mutant, that one mutant may cost."""
SEED = 1
"""Which sample the nightly run judges. Raise it when all survivors of this one are judged, to judge 150 others."""
FIRST = 3
"""How many test files are run before all others."""


@dataclass
class Copy:
    """A copy of the committed tree, in which one mutant at a time is tried."""

    folder: Path
    stamp: int = field(default_factory=lambda: int(time.time()))

    def write(self, path: str, text: str) -> None:
        """Write a file; no two versions have one time stamp, so that Python compiles each."""
        self.stamp += 1
        (self.folder / path).write_text(text, encoding="utf-8")
        os.utime(self.folder / path, (self.stamp, self.stamp))

    def pytest(self, *words: str, timeout: float) -> int:
        """Run pytest; return its exit status, 1 where it takes too long."""
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-p"]
        environment = {**os.environ, "PYTHONPATH": str(self.folder), "HYPOTHESIS_STORAGE_DIRECTORY": "/dev/null"}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # each run would compile everything
        process = subprocess.Popen(
            [*command, "tests.support.executed_lines", *words],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return 1


@dataclass
class Record:
    """What each test executes: ``seconds`` of each test, ``tests`` of each (module, line), ``imports`` by file."""

    seconds: dict[str, float] = field(default_factory=dict)
    tests: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    whole: dict[tuple[str, int], set[str]] = field(default_factory=lambda: defaultdict(set))
    """Test files that execute a line when they are imported, or that cache its result for all of their tests."""
    of_module: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def add(self, name: str, tests: dict[str, dict[str, object]]) -> None:
        """Add what one test file's run has written."""
        counts: dict[tuple[str, int], int] = defaultdict(int)
        for test, data in tests.items():
            for module, lines in data["lines"].items():  # type: ignore[attr-defined]
                for line in lines:
                    counts[module, line] += 1
                    if test == "(file)":
                        self.whole[module, line].add(name)
                    else:
                        self.tests[module, line].add(test)
                        self.of_module[module].add(test)
            if test != "(file)":
                self.seconds[test] = float(data["seconds"])  # type: ignore[arg-type]
        for place, count in counts.items():
            if count == 1:
                self.whole[place].add(name)

    def chosen(self, mutant: Mutant) -> dict[str, list[str]]:
        """Return the tests for a mutant by file: those that execute its line, the files most likely to fail first."""
        place = (mutant.module, mutant.line)
        direct = self.tests.get(place, set())
        beside = {test for test in self.seconds if test.partition("::")[0] in self.whole.get(place, ())}
        if not mutant.function:
            beside |= self.of_module[mutant.module]
        files: dict[str, list[str]] = defaultdict(list)
        left = BUDGET
        for test in sorted(direct | beside, key=lambda test: (test not in direct, self.seconds[test])):
            left -= self.seconds[test]
            if left < 0:
                break
            files[test.partition("::")[0]].append(test)
        folder = "tests/" + mutant.module.split("/")[1] + "/"
        touching = {name: len(direct.intersection(tests)) for name, tests in files.items()}
        order = sorted(files, key=lambda name: (not name.startswith(folder), "end_to_end" in name, -touching[name]))
        return {name: files[name] for name in order}


def copy_to(folder: Path) -> Copy:
    """Clone the committed tree, with links to the corpora, which are not committed."""
    subprocess.run(["git", "clone", "-q", str(ROOT), str(folder / "checkout")], check=True)
    for path, name in ((ROOT.parent / "shared", "shared"), (ROOT / ".corpus", "checkout/.corpus")):
        if path.exists():
            (folder / name).symlink_to(path.resolve())
    return Copy(folder / "checkout")


def record(copies: Queue[Copy], jobs: int, folder: Path, patterns: Iterable[str]) -> Record:
    """Run test files, one process each, and note what they execute."""
    folder.mkdir(exist_ok=True)

    def run(name: str) -> Path:
        output = folder / (name.replace("/", "-") + ".json")
        if not output.exists():
            copy = copies.get()
            copy.pytest(name, "--maxfail=1000", f"--lines-file={output}", timeout=900)
            copies.put(copy)
        return output

    paths = {path for pattern in patterns for path in ROOT.glob(pattern)}
    names = sorted({str(path.relative_to(ROOT)) for path in paths}.difference(NOT_RUN))
    result = Record()
    with ThreadPoolExecutor(jobs) as pool:
        for name, output in zip(names, pool.map(run, names), strict=True):
            if output.exists():
                result.add(name, json.loads(output.read_text(encoding="utf-8")))
            else:
                print(f"no record of {name}: it did not finish")
    return result


def survives(mutant: Mutant, recorded: Record, copies: Queue[Copy]) -> bool:
    """Whether all tests that execute a mutant's line still pass."""
    files = recorded.chosen(mutant)
    copy = copies.get()
    source = (copy.folder / mutant.module).read_text(encoding="utf-8")
    copy.write(mutant.module, mutant.apply(source))
    try:
        names = list(files)
        return all(
            _passes(copy, {name: files[name] for name in part}, recorded)
            for part in (names[:FIRST], names[FIRST:])
            if part
        )
    finally:
        copy.write(mutant.module, source)
        copies.put(copy)


def _passes(copy: Copy, files: dict[str, list[str]], recorded: Record) -> bool:
    tests = [test for name in files for test in files[name]]
    listed = copy.folder.parent / "tests.txt"
    listed.write_text("\n".join(tests), encoding="utf-8")
    timeout = 60 + 5 * sum(recorded.seconds[test] for test in tests)
    status = copy.pytest(*files, f"--tests-file={listed}", timeout=timeout)
    if status in (3, 4):
        raise RuntimeError(f"pytest itself failed on {list(files)}")
    return status in (0, 5)


def equivalents() -> dict[str, str]:
    """Read the list of equivalents: identity, then the reason on indented lines."""
    reasons: dict[str, str] = {}
    name = ""
    for line in EQUIVALENTS.read_text(encoding="utf-8").splitlines():
        if line.startswith("    ") and name:
            reasons[name] = f"{reasons[name]} {line.strip()}".strip()
        elif line.strip() and not line.startswith("#"):
            name = line.strip()
            reasons[name] = ""
    return reasons


def all_mutants(patterns: Iterable[str]) -> list[Mutant]:
    """Return the mutants of all modules."""
    paths = sorted({path for pattern in patterns for path in ROOT.glob(pattern)})
    return [
        mutant for path in paths for mutant in mutants_of(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8"))
    ]


def sample_of(options: argparse.Namespace) -> list[Mutant]:
    """Return the mutants to try, and print listed equivalents that no longer exist."""
    listed = equivalents()
    known = {mutant.identity for mutant in all_mutants({name.partition(" | ")[0] for name in listed})}
    for name in listed:
        if name not in known:
            print(f"listed as equivalent, but no such mutant: {name}")
    return first_by_hash(all_mutants(options.module or MODULES), options.seed, options.sample)


def first_by_hash(mutants: Iterable[Mutant], seed: int, number: int) -> list[Mutant]:
    """Return ``number`` mutants in an order that depends only on the seed and on what each of them is."""

    def order(mutant: Mutant) -> bytes:
        return hashlib.sha256(f"{seed} {mutant.identity}".encode()).digest()

    return sorted(mutants, key=order)[:number]


def arguments(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sample", type=int, default=150, help="how many mutants (default: 150)")
    parser.add_argument("--seed", type=int, default=SEED, help=f"another number draws another sample (default: {SEED})")
    parser.add_argument("--jobs", type=int, default=2, help="how many at a time (default: 2)")
    parser.add_argument("--limit", type=float, default=5.0, help="per cent that may survive (default: 5)")
    parser.add_argument("--module", action="append", help="glob of modules to mutate, instead of the default ones")
    parser.add_argument("--tests", action="append", help="glob of test files to run, instead of all")
    parser.add_argument("--lines", type=Path, help="folder to keep what tests execute, or to take it from")
    return parser.parse_args(words)


def main() -> int:
    """Try a sample of mutants; return the exit status."""
    options, start = arguments(), time.perf_counter()
    chosen, listed = sample_of(options), equivalents()
    with tempfile.TemporaryDirectory(prefix="cgmigrate-mutants-") as scratch:
        copies: Queue[Copy] = Queue()
        for number in range(options.jobs):
            (Path(scratch) / str(number)).mkdir()
            copies.put(copy_to(Path(scratch) / str(number)))
        recorded = record(copies, options.jobs, options.lines or Path(scratch) / "lines", options.tests or TESTS)
        print(f"{len(recorded.seconds)} tests recorded in {time.perf_counter() - start:.0f} s; seed {options.seed}")

        def verdict(mutant: Mutant) -> str:
            if mutant.identity in listed:
                return "equivalent"
            return "survived" if survives(mutant, recorded, copies) else "killed"

        counts: dict[str, int] = defaultdict(int)
        with ThreadPoolExecutor(options.jobs) as pool:
            for mutant, outcome in zip(chosen, pool.map(verdict, chosen), strict=True):
                counts[outcome] += 1
                if outcome == "survived":
                    print(f"{mutant.module}:{mutant.line}\n  {mutant.identity}\n  with {mutant.new}", flush=True)
    share = 100 * counts["survived"] / len(chosen)
    print(
        f"{len(chosen)} mutants: "
        + ", ".join(f"{counts[name]} {name}" for name in ("killed", "survived", "equivalent"))
    )
    print(f"{share:.1f} % survive ({options.limit:g} % may); {(time.perf_counter() - start) / 60:.0f} minutes")
    return 1 if share > options.limit else 0


if __name__ == "__main__":
    sys.exit(main())
