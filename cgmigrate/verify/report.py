"""Verdicts for a person at a terminal, and for a program: a table of arms a comparison, and JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cgmigrate.text.escaping import in_json, in_line
from cgmigrate.verify.arms import DONE, ROLES, TRAINING, ArmResult, Rank
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE, ArmComparison
from cgmigrate.verify.config_level import ConfigVerdict
from cgmigrate.verify.metrics import (
    all_graphs,
    census_lines,
    label,
    losses,
    parameters_digest,
    peak_bytes,
    replays_per_step,
    short,
    step_seconds,
)

Style = Callable[[str, str], str]
"""(text, kind) → the text, coloured or not; the kinds are the verdicts."""
NOTHING = (
    "Nothing to compare: migration changes nothing. If PATHS are migrated already, `--before REV` has the old form."
)
VERSION = 1
"""Version of the JSON report's form."""


def text(comparison: ArmComparison, results: Mapping[str, ArmResult], style: Style) -> str:
    """One comparison: the verdict and its reason, a line an arm, the census of the migrated arm, the notes."""
    joint = " " if comparison.verdict == EQUIVALENT_BUT else ": "
    verdict = style(comparison.verdict, comparison.verdict)
    lines = [f"{in_line(comparison.name)} ({comparison.workload}): {verdict}{joint}{in_line(comparison.reason)}"]
    arms = [(role, results[comparison.roles[role]]) for role in ROLES if role in comparison.roles]
    lines += _table(arms, comparison.workload == TRAINING)
    lines += _census(dict(arms))
    lines += [f"  note: {in_line(note)}" for note in comparison.notes]
    return "\n".join(lines) + "\n"


def _table(arms: Sequence[tuple[str, ArmResult]], training: bool) -> list[str]:
    head = ("arm", "graphs", "replays", "loss" if training else "tokens", "parameters" if training else "logits")
    rows: list[tuple[str, ...]] = [(*head, "step", "peak")]
    rows += [_row(role, result, training) for role, result in arms]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    shown = []
    for row, (_, result) in zip(rows, [("", None), *arms], strict=True):
        if result is not None and result.outcome != DONE:
            shown.append(f"  {row[0]:<{widths[0]}}  {result.outcome}: {in_line(result.failure)}")
        else:
            cells = [f"{cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True)]
            shown.append("  ".join([f"  {row[0]:<{widths[0]}}", *cells]).rstrip())
    return shown


def _row(role: str, result: ArmResult, training: bool) -> tuple[str, ...]:
    name = label(role, result.arm.release)
    if result.outcome != DONE or not result.ranks:
        return (name, "", "", "", "", "", "")
    seconds = step_seconds(result)
    measured = (f"{losses(result)[-1]:.6f}" if losses(result) else "", short(parameters_digest(result)))
    generated = (_tokens(result.ranks[0]), short(result.ranks[0].logits))
    return (
        name,
        str(all_graphs(result)),
        str(sum(replays_per_step(rank) for rank in result.ranks)),
        *(measured if training else generated),
        f"{seconds * 1e3:.1f} ms" if seconds is not None else "",
        f"{peak_bytes(result) / 2**20:.0f} MiB",
    )


def _tokens(rank: Rank) -> str:
    return str(sum(len(ids) for ids in rank.tokens))


def _census(arms: Mapping[str, ArmResult]) -> list[str]:
    """What the arms that matter captured; said once where they agree."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for role in ("legacy-source", "legacy-target", "migrated"):
        if role in arms and arms[role].outcome == DONE and arms[role].ranks:
            lines = census_lines(arms[role].ranks[0]) or ("nothing",)
            groups.setdefault(lines, []).append(label(role, arms[role].arm.release))
    return [f"  {', '.join(names)} captured: {'; '.join(lines)}" for lines, names in groups.items()]


def config_text(item: ConfigVerdict, style: Style) -> str:
    """One verdict of the config level, with its notes."""
    joint = " " if item.verdict == EQUIVALENT_BUT else ": "
    lines = [f"{in_line(item.name)}: {style(item.verdict, item.verdict)}{joint}{in_line(item.reason)}"]
    return "\n".join([*lines, *(f"  note: {in_line(note)}" for note in item.notes)]) + "\n"


def write_page(
    path: str,
    comparisons: Sequence[ArmComparison],
    results: Mapping[str, ArmResult],
    verdicts: Sequence[ConfigVerdict] | None = None,
) -> None:
    """Write the HTML report: of runs, or of the level ``config`` if ``verdicts``, those of this level, are given."""
    from datetime import datetime, timezone

    from cgmigrate import __version__
    from cgmigrate.project.output_files import write_file
    from cgmigrate.verify.page import config_page, page

    now = datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    meta = {"cgmigrate": __version__, "written": now}
    text = page(comparisons, results, meta) if verdicts is None else config_page(verdicts, meta)
    write_file(path, text.encode())


def summary(verdicts: Sequence[str]) -> str:
    """How many comparisons ended how."""
    counts = [(verdict, verdicts.count(verdict)) for verdict in (EQUIVALENT, EQUIVALENT_BUT, DIFFERENT, INCONCLUSIVE)]
    shown = ", ".join(
        f"{count} {verdict.replace(', but', ' with a reservation')}" for verdict, count in counts if count
    )
    return f"Compared {len(verdicts)}: {shown}." if verdicts else NOTHING


def from_json(text: str) -> tuple[list[ArmComparison], dict[str, ArmResult]]:
    """The comparisons and results of a report that ``as_json`` wrote. Raises ValueError for another form."""
    document = json.loads(text)
    if document.get("format") != VERSION:
        raise ValueError(f"a report of format {document.get('format')!r}; this version reads {VERSION}")
    comparisons = [ArmComparison(**{**item, "notes": tuple(item["notes"])}) for item in document["comparisons"]]
    return comparisons, {key: ArmResult.from_json(result) for key, result in document["arms"].items()}


def as_json(
    comparisons: Sequence[ArmComparison], results: Mapping[str, ArmResult], verdicts: Sequence[Mapping[str, Any]]
) -> str:
    """The whole report as JSON: comparisons of runs, results of arms by key, verdicts of the config level."""
    document = {
        "format": VERSION,
        "comparisons": [asdict(item) for item in comparisons],
        "arms": {key: result.as_json() for key, result in sorted(results.items())},
        "config": list(verdicts),
    }
    return in_json(json.dumps(document, indent=1, ensure_ascii=False)) + "\n"
