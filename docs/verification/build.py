"""Writes the reports of this folder from the recorded runs, and the matrices of runs.md between their marks.

``python docs/verification/build.py`` writes; with ``--check`` it says what is out of date and ends with 1. The runs
were recorded with ``cgmigrate verify --json`` on the GPU machine (tests/fixtures/verify, paths of that machine
shortened); the verdicts are those of this version.
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path

from cgmigrate.verify.arms import LEGACY_SOURCE, LEGACY_TARGET, MIGRATED, ROLES, TRAINING, ArmResult
from cgmigrate.verify.compare import EQUIVALENT, ArmComparison, judge
from cgmigrate.verify.metrics import all_graphs, census_lines, label, parameters_digest, short
from cgmigrate.verify.page import page
from cgmigrate.verify.page.answer import Judged
from cgmigrate.verify.page.badges import badges_of
from cgmigrate.verify.page.matrix import workload_name
from cgmigrate.verify.page.runs import judged_run
from cgmigrate.verify.release_changes import GRAPHS, NUMBERS, SUPPORT
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


def recorded(name: str) -> tuple[list[ArmComparison], dict[str, ArmResult]]:
    """The comparisons of a recording, judged again, and the results of its arms."""
    text = gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()).decode()
    comparisons, results = from_json(text)
    return [_judged(comparison, results) for comparison in comparisons], results


def _judged(comparison: ArmComparison, results: dict[str, ArmResult]) -> ArmComparison:
    verdict, reason, notes = judge({role: results[key] for role, key in comparison.roles.items()})
    return replace(comparison, verdict=verdict, reason=reason, notes=notes)


def files() -> dict[Path, str]:
    """Every file that the script writes, by path."""
    result: dict[Path, str] = {}
    runs = (FOLDER / "runs.md").read_text(encoding="utf-8")
    for name, title in TITLES.items():
        comparisons, results = recorded(name)
        result[FOLDER / f"{name}.html"] = page(comparisons, results, {"machine": title, "recorded": "2026-11-21"})
        shown = [text(comparison, results, lambda word, _: word) for comparison in comparisons]
        result[FOLDER / f"{name}.txt"] = "\n".join(shown)
        part = _part(comparisons, results, f"{name}.html")
        runs = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, t=part: f"{m[1]}\n{t}\n\n{m[2]}", runs, flags=re.S
        )
    result[FOLDER / "runs.md"] = runs
    return result


_CHANGED = {NUMBERS: "numbers", GRAPHS: "graphs", SUPPORT: "fails"}
"""What the release changed by itself, in a word; the page explains them above its tables."""

Rows = Mapping[str, Sequence[tuple[Judged, dict[str, ArmResult]]]]
"""The comparisons of each configuration, by its name, each with its arms by their role."""


def _part(comparisons: Sequence[ArmComparison], results: Mapping[str, ArmResult], report: str) -> str:
    """What the page has of one recording: the matrix, and below it what each configuration captured and computed."""
    rows: dict[str, list[tuple[Judged, dict[str, ArmResult]]]] = {}
    for number, comparison in enumerate(comparisons, 1):
        arms = {role: results[comparison.roles[role]] for role in ROLES if role in comparison.roles}
        name = comparison.name.rpartition("/")[2].partition(".")[0]
        rows.setdefault(name, []).append((judged_run(comparison, results, f"c{number}"), arms))
    return "\n".join([*_matrix(rows, report), "", *_details(rows)])


def _matrix(rows: Rows, report: str) -> list[str]:
    """A row a configuration and a column a workload. A cell has the verdict and what the release changed."""
    known = dict.fromkeys(judged.workload for row in rows.values() for judged, _ in row)
    lines = [_row(["configuration", *map(workload_name, known)]), "|---" * (len(known) + 1) + "|"]
    for name, row in rows.items():
        cells = {judged.workload: _cell(judged, report) for judged, _ in row}
        lines.append(_row([f"`{name}`", *(cells.get(workload, "") for workload in known)]))
    return lines


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(judged: Judged, report: str) -> str:
    badge = badges_of(judged.verdict, judged.changes)[0]
    # A narrow column breaks no sign from its word.
    changes = (f"Δ\N{NO-BREAK SPACE}{_CHANGED[change]}" for change in judged.changes)
    return "<br>".join([f"[{badge.sign}\N{NO-BREAK SPACE}{badge.word}]({report}#{judged.anchor})", *changes])


def _details(rows: Rows) -> list[str]:
    """A block a configuration that opens with a click, in HTML: Markdown inside of it is not read everywhere."""
    lines: list[str] = []
    for name, row in rows.items():
        lines += ["<details>", f"<summary><code>{name}</code>: graphs and digests</summary>", "<dl>"]
        for judged, arms in row:
            facts = [*_reason(judged), *_captured(arms), *_digests(arms, judged.workload)]
            shown = "".join(f"<li>{fact}</li>" for fact in facts)
            lines += [f"<dt>{workload_name(judged.workload)}</dt>", f"<dd><ul>{shown}</ul></dd>"]
        lines += ["</dl>", "</details>"]
    return lines


def _reason(judged: Judged) -> list[str]:
    return [] if judged.verdict == EQUIVALENT and not judged.changes else [escape(judged.reason)]


def _captured(arms: Mapping[str, ArmResult]) -> list[str]:
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
    if len(arms_of) == 1:
        return [f"legacy and migrated: {escape(captured)}" for captured in arms_of]
    return [f"{', '.join(names)}: {escape(captured)}" for captured, names in arms_of.items()]


def _digests(arms: Mapping[str, ArmResult], workload: str) -> list[str]:
    arms_of: dict[str, list[str]] = {}
    for role, result in arms.items():
        if result.outcome == "done":
            digest = parameters_digest(result) if workload == TRAINING else result.ranks[0].logits
            arms_of.setdefault(short(digest), []).append(label(role, result.arm.release))
    if len(arms_of) == 1 and all(result.outcome == "done" for result in arms.values()):
        return [f"digest <code>{digest}</code>: all arms" for digest in arms_of]
    return [f"digest <code>{digest}</code>: {', '.join(names)}" for digest, names in arms_of.items()]


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
