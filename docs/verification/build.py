"""Writes the reports of this folder from the recorded runs, and the tables of README.md between their marks.

``python docs/verification/build.py`` writes; with ``--check`` it says what is out of date and ends with 1. The runs
were recorded with ``cgmigrate verify --json`` on the GPU machine (tests/fixtures/verify, paths of that machine
shortened); the verdicts are those of this version.
"""

from __future__ import annotations

import gzip
import re
import sys
from dataclasses import replace
from pathlib import Path

from cgmigrate.verify.arms import LEGACY_SOURCE, LEGACY_TARGET, MIGRATED, ROLES, TRAINING, Result
from cgmigrate.verify.compare import Comparison, judge
from cgmigrate.verify.metrics import all_graphs, census_lines, label, parameters_digest, short
from cgmigrate.verify.page import page
from cgmigrate.verify.report import from_json, text

FOLDER = Path(__file__).parent
RECORDED = FOLDER.parents[1] / "tests/fixtures/verify"
TITLES = {
    "matrix": "one H200",
    "two-gpus": "two H200 of one host",
    "packed-padded": "packed sequences, 2, 3, 5 or 4 documents a microbatch, padded to 8",
    "packed-unpadded": "the same, not padded",
    "packed-over-the-cap": "2, 3, 5 or 12 documents, padded to 8",
}


def recorded(name: str) -> tuple[list[Comparison], dict[str, Result]]:
    """The comparisons of a recording, judged again, and the results of its arms."""
    text = gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()).decode()
    comparisons, results = from_json(text)
    return [_judged(comparison, results) for comparison in comparisons], results


def _judged(comparison: Comparison, results: dict[str, Result]) -> Comparison:
    verdict, reason, notes = judge({role: results[key] for role, key in comparison.roles.items()})
    return replace(comparison, verdict=verdict, reason=reason, notes=notes)


def files() -> dict[Path, str]:
    """Every file that the script writes, by path."""
    result: dict[Path, str] = {}
    readme = (FOLDER / "README.md").read_text(encoding="utf-8")
    for name, title in TITLES.items():
        comparisons, results = recorded(name)
        result[FOLDER / f"{name}.html"] = page(comparisons, results, {"machine": title, "recorded": "2026-11-21"})
        shown = [text(comparison, results, lambda word, _: word) for comparison in comparisons]
        result[FOLDER / f"{name}.txt"] = "\n".join(shown)
        table = "\n".join(_table(comparisons, results))
        readme = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, t=table: f"{m[1]}\n{t}\n\n{m[2]}", readme, flags=re.S
        )
    result[FOLDER / "README.md"] = readme
    return result


def _table(comparisons: list[Comparison], results: dict[str, Result]) -> list[str]:
    lines = ["| configuration | workload | verdict | captured | digests |", "|---|---|---|---|---|"]
    for comparison in comparisons:
        arms = {role: results[comparison.roles[role]] for role in ROLES if role in comparison.roles}
        file = comparison.name.rpartition("/")[2].partition(".")[0]
        verdict = comparison.verdict.replace("but", "but …")
        cells = [comparison.workload, verdict, _captured(arms), _digests(arms, comparison.workload)]
        lines.append("| " + " | ".join([f"`{file}`", *cells]) + " |")
    return lines


def _captured(arms: dict[str, Result]) -> str:
    """What each arm captured, arms that agree together."""
    arms_of: dict[str, list[str]] = {}
    for role in (LEGACY_SOURCE, LEGACY_TARGET, MIGRATED):
        result = arms[role]
        if result.outcome == "done":
            graphs = all_graphs(result)
            graphs_in_words = "nothing" if not graphs else "; ".join(census_lines(result.ranks[0]))
        else:
            graphs_in_words = result.outcome
        arms_of.setdefault(graphs_in_words, []).append(label(role, result.arm.release))
    return " — ".join(f"{', '.join(names)}: {captured}" for captured, names in arms_of.items())


def _digests(arms: dict[str, Result], workload: str) -> str:
    arms_of: dict[str, list[str]] = {}
    for role, result in arms.items():
        if result.outcome == "done":
            digest = parameters_digest(result) if workload == TRAINING else result.ranks[0].logits
            arms_of.setdefault(short(digest), []).append(label(role, result.arm.release))
    return "; ".join(f"`{digest}` {', '.join(names)}" for digest, names in arms_of.items())


def main(check: bool) -> int:
    """Write what differs, or only name it; return the exit status."""
    stale = {path: text for path, text in files().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, written in stale.items():
        print(f"{'out of date' if check else 'wrote'}: {path.name}")
        if not check:
            path.write_text(written, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv[1:]))
