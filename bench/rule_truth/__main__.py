"""How much of what releases refuse because of graphs is reported, and how much of what is reported is refused.

    python bench/rule_truth --judge 0.19=PYTHON [--judge 0.17=PYTHON ...] [--bridge FOLDER] [--count 600]
    python bench/rule_truth --statements 200 --judge ...

PYTHON is the interpreter of an environment with torch and that release of megatron-core, FOLDER a Megatron-Bridge for
the newest of them. Random configurations around the settings of graphs are put to the release itself and, as files, to
`cgmigrate check` of the environment that runs this. A configuration counts as refused where the release accepts the
same without graphs, or its text is about graphs; it counts as reported if a diagnostic is an error.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import report
import statements
from cases import READERS, Case, Reader, cases

JUDGE = Path(__file__).with_name("judge.py")


def judged(python: str, mode: str, questions: Sequence[dict[str, Any]], path: str) -> list[dict[str, Any]]:
    """The verdicts of a release on cases."""
    environment = {**os.environ, "PYTHONPATH": path, "WORLD_SIZE": "8", "RANK": "0", "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    environment.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    command = [python, str(JUDGE), mode]
    ran = subprocess.run(command, input=lines, capture_output=True, text=True, env=environment)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stderr[-2000:]}")
    verdicts = [json.loads(line) for line in ran.stdout.splitlines()]
    assert mode == "defaults" or len(verdicts) == len(questions), "the judge answered another number of cases"
    return verdicts


def written(folder: Path, made: Sequence[Case]) -> None:
    """Write each case into a folder of its own, so that no file is linked with another."""
    for number, case in enumerate(made):
        place = folder / f"case{number}"
        place.mkdir(parents=True)
        (place / case.name).write_text(case.text, encoding="utf-8")


def checked(folder: Path, release: str, *options: str) -> dict[str, list[dict[str, str]]]:
    """What `cgmigrate check` reports, by the folder of the case."""
    command = [sys.executable, "-m", "cgmigrate", "check", "--isolated", "--from", release, "--to", release]
    command += ["--exit-zero", "--output-format", "jsonlines", *options, "."]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if ran.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{ran.stderr[-2000:]}")
    found: dict[str, list[dict[str, str]]] = {}
    for line in ran.stdout.splitlines():
        finding = json.loads(line)
        if "rule" in finding:
            found.setdefault(finding["path"].partition("/")[0], []).append(finding)
    return found


def balanced(pool: list[tuple[Case, Any]], count: int) -> list[tuple[Case, Any]]:
    """As many of a pool as are wanted: accepted ones, and ones refused because of graphs, each at most half."""
    halves: dict[bool, list[tuple[Case, Any]]] = {True: [], False: []}
    for case, verdict in pool:
        row = report.Judged(case, verdict, [], [])
        if row.because_of_graphs or not row.refused:
            halves[row.because_of_graphs].append((case, verdict))
    return [*halves[False][: count // 2], *halves[True][: count // 2]]


def compared(reader: Reader, release: str, options: argparse.Namespace, defaults: dict[str, Any]) -> report.Comparison:
    """Judge the cases of a reader, and check their files."""
    path = str(options.bridge.resolve()) if reader.judge == "bridge" else ""
    pool = cases(reader, release, 4 * options.count, options.seed, defaults)
    answers = judged(options.judges[release], reader.judge, [case.question for case in pool], path)
    chosen = balanced(list(zip(pool, answers, strict=True)), options.count)
    made = [case for case, _ in chosen]
    with tempfile.TemporaryDirectory() as folder:
        written(Path(folder), made)
        found = checked(Path(folder), release)
        previewed = checked(Path(folder), release, "--preview")
    judgements = []
    for number, (case, verdict) in enumerate(chosen):
        key = f"case{number}"
        judgements.append(report.Judged(case, verdict, found.get(key, []), previewed.get(key, [])))
    return report.Comparison(reader.name, release, judgements)


def comparisons(options: argparse.Namespace) -> Iterator[report.Comparison]:
    """Compare each reader with each release that there is a judge for."""
    defaults = {release: judged(python, "defaults", [], "")[0] for release, python in sorted(options.judges.items())}
    for reader in READERS:
        if options.reader and options.reader.lower() not in reader.name.lower():
            continue
        for release in reader.releases:
            if release not in options.judges:
                print(f"left out: {reader.name} of {release}, since no --judge {release}=PYTHON is given")
            elif reader.judge == "bridge" and not options.bridge:
                print(f"left out: {reader.name}, since no --bridge FOLDER is given")
            else:
                yield compared(reader, release, options, defaults[release])


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
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
    given = options.judge or os.environ.get("RULE_TRUTH_JUDGES", "").split()
    options.judges = dict(one.split("=", 1) for one in given)
    kept = os.environ.get("RULE_TRUTH_BRIDGE")
    options.bridge = options.bridge or (Path(kept) if kept else None)
    if not options.judges:
        parser.error("no judge is given: --judge RELEASE=PYTHON, or RULE_TRUTH_JUDGES")
    return options


def main() -> int:
    """Print the comparisons; 1 if something is missed or reported wrongly."""
    options = _arguments()
    if options.statements:
        return statements.compare(options, judged)
    done = []
    for comparison in comparisons(options):
        print(comparison.details(options.warnings, options.examples), flush=True)
        done.append(comparison)
    print(report.table(done, options.warnings))
    return any(one.missed(options.warnings) or one.false(options.warnings) for one in done)


if __name__ == "__main__":
    sys.exit(main())
