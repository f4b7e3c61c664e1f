"""The HTML report: one page that needs nothing else, neither network nor script.

This package computes plain values, frozen, from the results; the templates only lay them out, and Jinja2 escapes every
text that they show. Metrics come from ``cgmigrate.verify.metrics``. Both levels have the same page: the answer on top,
a matrix of badges with the reasons, a section for each comparison, and the words explained.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from cgmigrate.verify.arms import ArmResult
from cgmigrate.verify.metrics import REPEATS
from cgmigrate.verify.page.answer import Judged, answer
from cgmigrate.verify.page.badges import ALL, Badge, badges_of
from cgmigrate.verify.page.matrix import matrix
from cgmigrate.verify.page.readings import ReadingSection, judged_reading, reading_section
from cgmigrate.verify.page.render import rendered
from cgmigrate.verify.page.runs import RunSection, judged_run, run_section

if TYPE_CHECKING:
    from cgmigrate.verify.compare import ArmComparison
    from cgmigrate.verify.config_level import ConfigVerdict

__all__ = ["config_page", "page"]

_OF_RUNS = "Do the migrated settings capture the same graphs and compute the same numbers?"
_OF_READINGS = "Do the migrated settings capture the same graphs?"
_NOTHING_RAN = "As megatron-core itself reads them. Nothing was run, so nothing is said of numbers."


def page(comparisons: Sequence[ArmComparison], results: Mapping[str, ArmResult], meta: Mapping[str, str]) -> str:
    """The report of runs as HTML, to be written as UTF-8.

    ``results`` holds each arm's result by ``Arm.key``; an arm that it does not hold is shown as not run. ``meta`` is
    shown at the top, names and values. Never raises for what a log, a file's name or a setting holds.
    """
    judged = [judged_run(comparison, results, f"c{number}") for number, comparison in enumerate(comparisons, 1)]
    sections = [run_section(item, results, top) for item, top in zip(comparisons, judged, strict=True)]
    return rendered(
        "runs.html.j2",
        answer=answer(_OF_RUNS, judged),
        scope="",
        matrix=matrix(judged),
        sections=sections,
        facts=_facts(meta, sections),
        badges=_badges(judged),
        repeats=REPEATS,
    )


def config_page(verdicts: Sequence[ConfigVerdict], meta: Mapping[str, str]) -> str:
    """The report of the level ``config``, as ``page`` is for runs."""
    judged = [judged_reading(verdict, f"c{number}") for number, verdict in enumerate(verdicts, 1)]
    sections = [reading_section(verdict, top) for verdict, top in zip(verdicts, judged, strict=True)]
    return rendered(
        "readings.html.j2",
        answer=answer(_OF_READINGS, judged),
        scope=_NOTHING_RAN,
        matrix=matrix(judged),
        sections=sections,
        facts=_facts(meta, sections),
        badges=_badges(judged),
    )


def _facts(meta: Mapping[str, str], sections: Iterable[RunSection | ReadingSection]) -> tuple[tuple[str, str], ...]:
    """What is shown at the top: ``meta``, and the releases of all sections."""
    releases = dict.fromkeys(section.releases for section in sections if section.releases)
    return (*meta.items(), *([("releases", "; ".join(releases))] if releases else []))


def _badges(judged: Iterable[Judged]) -> list[Badge]:
    """The badges that the page shows, to be explained, in their order."""
    shown = set(chain.from_iterable(badges_of(item.verdict, item.changes) for item in judged))
    return [badge for badge in ALL if badge in shown]
