"""One sweep: configurations, the verdicts of releases, and what cgmigrate reports."""

from __future__ import annotations

import argparse
import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sweeping import nemo_rl, report, statements
from sweeping.cases import READERS, Case, Reader, cases

JUDGE = Path(__file__).with_name("judge.py")


@contextmanager
def answering(python: str, mode: str, path: str) -> Iterator[Callable[[dict[str, Any]], dict[str, Any]]]:
    """A release that answers one question after the other."""
    environment = {**os.environ, "PYTHONPATH": path, "WORLD_SIZE": "8", "RANK": "0", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    environment.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    command = [python, str(JUDGE), mode]
    with tempfile.TemporaryFile("w+") as errors:
        judge = subprocess.Popen(command, env=environment, **{**pipes, "stderr": errors})

        def ask(question: dict[str, Any]) -> dict[str, Any]:
            judge.stdin.write(json.dumps(question) + "\n")
            judge.stdin.flush()
            if line := judge.stdout.readline():
                return json.loads(line)
            errors.seek(0)
            raise SystemExit(f"{' '.join(command)} failed:\n{errors.read()[-2000:]}")

        try:
            yield ask
        finally:
            judge.stdin.close()
            judge.wait()


_started = ExitStack()
atexit.register(_started.close)


@functools.lru_cache(maxsize=1)
def last_judge(python: str, mode: str, path: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The judge of the questions before, if it is the same: to import a release takes longer than all its answers."""
    _started.close()
    return _started.enter_context(answering(python, mode, path))


@functools.cache
def defaults_of(python: str) -> dict[str, Any]:
    """The defaults of a release."""
    ran = subprocess.run([python, str(JUDGE), "defaults"], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


def written(folder: Path, made: Sequence[Case]) -> None:
    """Write each case into a folder of its own, so that no file is linked with another."""
    for number, case in enumerate(made):
        place = folder / f"case{number}"
        place.mkdir(parents=True)
        (place / case.name).write_text(case.text, encoding="utf-8")


def checked(folder: Path, release: str, *options: str) -> dict[str, list[dict[str, str]]]:
    """What `cgmigrate check` reports, by the folder of the case."""
    command = [sys.executable, "-m", "cgmigrate", "check", "--isolated", "--from", release, "--to", release]
    command += ["--exit-zero", "--output-format", "json", *options, "."]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stderr[-2000:]}")
    reported: dict[str, list[dict[str, str]]] = {}
    for finding in json.loads(ran.stdout)["findings"]:
        reported.setdefault(finding["path"].partition("/")[0], []).append(finding)
    return reported


def balanced(
    pool: Iterable[Case], judge: Callable[[dict[str, Any]], dict[str, Any]], count: int
) -> list[tuple[Case, dict[str, Any]]]:
    """As many of a pool as are requested: accepted ones, and ones refused because of graphs, each at most half."""
    halves: dict[bool, list[tuple[Case, dict[str, Any]]]] = {True: [], False: []}
    for case in pool:
        verdict = judge(case.question)
        row = report.Judged(case, verdict, [], [])
        half = halves[row.because_of_graphs]
        if len(half) < count // 2 and (row.because_of_graphs or not row.refused):
            half.append((case, verdict))
        if all(len(half) == count // 2 for half in halves.values()):
            break
    return [*halves[False], *halves[True]]


def chosen(reader: Reader, release: str, options: argparse.Namespace) -> list[tuple[Case, dict[str, Any]]]:
    """The cases of a reader, with the verdicts of the release."""
    python = options.judges[release]
    path = str(options.bridge.resolve()) if reader.judge == "bridge" else ""
    pool = cases(reader, release, 8 * options.count, options.seed, defaults_of(python))
    if reader.judge == "nemo-rl":
        return balanced(pool, nemo_rl.asking(), options.count)
    return balanced(pool, last_judge(python, reader.judge, path), options.count)


def compared(reader: Reader, release: str, options: argparse.Namespace) -> report.Comparison:
    """Judge the cases of a reader, and check their files."""
    rows = chosen(reader, release, options)
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), [case for case, _ in rows])
        reported = checked(Path(folder), release)
        previewed = checked(Path(folder), release, "--preview")
    judgements = []
    for number, (case, verdict) in enumerate(rows):
        key = f"case{number}"
        judgements.append(report.Judged(case, verdict, reported.get(key, []), previewed.get(key, [])))
    return report.Comparison(reader.name, release, judgements)


def lacks(reader: Reader, release: str, options: argparse.Namespace) -> str:
    """What the judge of a reader lacks, empty if it can run."""
    if release not in options.judges:
        return f"no --judge {release}=PYTHON"
    if reader.judge == "bridge" and not options.bridge:
        return "no --bridge FOLDER"
    return nemo_rl.missing() if reader.judge == "nemo-rl" else ""


def comparisons(options: argparse.Namespace) -> Iterator[report.Comparison]:
    """Compare each reader with each release that there is a judge for."""
    for reader in READERS:
        if options.reader and options.reader.lower() not in reader.name.lower():
            continue
        for release in reader.releases:
            if why := lacks(reader, release, options):
                print(f"skipped: {reader.name}, {release}: {why}")
            else:
                yield compared(reader, release, options)


def _arguments(description: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--judge", action="append", metavar="RELEASE=PYTHON", default=[])
    parser.add_argument("--bridge", type=Path, metavar="FOLDER", help="the folder that has megatron/bridge")
    parser.add_argument("--count", type=int, default=600, help="configurations of each reader and release")
    parser.add_argument("--seed", type=int, default=20261124)
    parser.add_argument("--reader", help="only readers whose name contains this")
    parser.add_argument("--warnings", action="store_true", help="warnings count as reports")
    parser.add_argument("--statements", type=int, metavar="COUNT", help="compare `explain` with the release instead")
    parser.add_argument("--examples", type=Path, metavar="FOLDER", help="write a file of each class of difference")
    options = parser.parse_args()
    # RULE_TRUTH_JUDGES and RULE_TRUTH_BRIDGE are for machines that keep the environments.
    judges = options.judge or os.environ.get("RULE_TRUTH_JUDGES", "").split()
    options.judges = dict(one.split("=", 1) for one in judges)
    kept = os.environ.get("RULE_TRUTH_BRIDGE")
    options.bridge = options.bridge or (Path(kept) if kept else None)
    if not options.judges:
        parser.error("no judge is given: --judge RELEASE=PYTHON, or RULE_TRUTH_JUDGES")
    return options


def main(description: str) -> int:
    """Print the comparisons; 1 if something is missed or reported wrongly."""
    options = _arguments(description)
    if options.statements:
        return statements.compare(options, lacks, chosen)
    done = []
    for comparison in comparisons(options):
        print(comparison.details(options.warnings, options.examples), flush=True)
        done.append(comparison)
    print(report.table(done, options.warnings))
    return any(one.missed(options.warnings) or one.false(options.warnings) for one in done)
