"""The HTML report: one page that needs nothing else, neither network nor script.

Text reaches the page only through ``markup``, which escapes it. Metrics come from ``cgmigrate.verify.metrics``,
charts from ``charts``; this module arranges them, and the other modules of the package make the parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from typing import TYPE_CHECKING

from cgmigrate.text.plurals import counted
from cgmigrate.verify.arms import DYNAMIC, EAGER_SOURCE, LEGACY_SOURCE, ROLES, STATIC, Result
from cgmigrate.verify.page.arms import arms_table
from cgmigrate.verify.page.census import census
from cgmigrate.verify.page.components import ArmView, facts, items, table
from cgmigrate.verify.page.markup import Markup, element
from cgmigrate.verify.page.outputs import outputs
from cgmigrate.verify.page.run import commands, environment

if TYPE_CHECKING:
    from cgmigrate.verify.compare import Comparison

_VERDICTS = {
    # Verdict → (class of the style sheet, sign): colour and sign never replace the word.
    "equivalent": ("good", "✓"),
    "equivalent, but": ("fair", "≈"),
    "different": ("bad", "≠"),
    "inconclusive": ("open", "?"),
}
_WORKLOADS = {STATIC: "generation, static batching", DYNAMIC: "generation, dynamic batching"}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def page(comparisons: Sequence[Comparison], results: Mapping[str, Result], meta: Mapping[str, str]) -> str:
    """The whole report as HTML, to be written as UTF-8.

    ``results`` holds each arm's result by ``Arm.key``; an arm that it does not hold is shown as not run. ``meta`` is
    shown at the top, names and values. Never raises for what a log, a file's name or a setting holds.
    """
    counts = Counter(comparison.verdict for comparison in comparisons)
    tally = "; ".join(f"{counts[verdict]} {verdict}" for verdict in _in_order(counts)) or "nothing compared"
    body = element(
        "main",
        element("h1", "Verification of CUDA-graph settings"),
        element("p", f"{counted(len(comparisons), 'comparison')}: {tally}.", class_="lead"),
        facts(meta),
        _summary(comparisons),
        *(_section(comparison, results, f"c{number}") for number, comparison in enumerate(comparisons, 1)),
    )
    return f"<!DOCTYPE html>\n{element('html', _head(tally), element('body', body), lang='en')}\n"


def _in_order(verdicts: Iterable[str]) -> list[str]:
    known = list(_VERDICTS)
    return sorted(verdicts, key=lambda verdict: known.index(verdict) if verdict in known else len(known))


def _head(tally: str) -> Markup:
    style = files(__name__).joinpath("style.css").read_text(encoding="utf-8")
    return element(
        "head",
        element("meta", charset="utf-8"),
        # The browser itself now keeps the page from loading or running anything, whatever a log line holds.
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("title", f"cgmigrate verify: {tally}"),
        element("style", Markup(style)),
    )


def _summary(comparisons: Sequence[Comparison]) -> Markup:
    rows = [
        element(
            "tr",
            element("th", element("a", comparison.name, href=f"#c{number}"), scope="row"),
            element("td", _workload(comparison)),
            element("td", _verdict(comparison.verdict)),
            element("td", comparison.reason, class_="prose"),
        )
        for number, comparison in enumerate(comparisons, 1)
    ]
    return table("Summary", ("configuration", "workload", "verdict", "reason"), rows, "summary") if rows else Markup("")


def _verdict(verdict: str) -> Markup:
    look, sign = _VERDICTS.get(verdict, ("open", "?"))
    return element("span", element("span", f"{sign} ", aria_hidden="true"), verdict, class_=f"verdict {look}")


def _workload(comparison: Comparison) -> str:
    return _WORKLOADS.get(comparison.workload, comparison.workload)


# --- one comparison ------------------------------------------------------------------------------------------


def _section(comparison: Comparison, results: Mapping[str, Result], ident: str) -> Markup:
    arms = _arms(comparison, results)
    done = [arm for arm in arms if arm.is_done]
    parts = [
        element("h2", f"{comparison.name} ", element("small", _workload(comparison)), id=ident),
        element("p", _verdict(comparison.verdict), f" {comparison.reason}", class_="lead"),
        items(comparison.notes, "notes"),
        element("h3", f"Configuration, {_way(comparison)}"),
        _diff(comparison.diff),
    ]
    if not arms:
        return element("section", *parts, element("p", "No arm was run."), aria_labelledby=ident)
    parts += [element("h3", "Arms"), arms_table(arms, comparison.name)]
    parts += [outputs(done, ident)] if done else []
    parts += [element("h3", "Census of CUDA graphs"), census(done)]
    parts += [element("h3", "Environment and remarks"), environment(arms), commands(arms)]
    return element("section", *parts, aria_labelledby=ident)


def _arms(comparison: Comparison, results: Mapping[str, Result]) -> list[ArmView]:
    views: list[ArmView] = []
    first: dict[str, str] = {}
    for role in [role for role in ROLES if role in comparison.roles]:
        key = comparison.roles[role]
        result = results.get(key)
        planned = comparison.source if role in (EAGER_SOURCE, LEGACY_SOURCE) else comparison.target
        arm = ArmView(role, result.arm.release if result else planned, result, first.get(key, ""))
        first.setdefault(key, arm.name)
        views.append(arm)
    return views


def _way(comparison: Comparison) -> str:
    if comparison.source == comparison.target:
        return f"megatron-core {comparison.target}"
    return f"megatron-core {comparison.source} → {comparison.target}"


def _diff(diff: str) -> Markup:
    if not diff.strip():
        return element("p", "The configuration is the same before and after.")
    # Only line feeds end a line of a diff; splitlines would also break at characters inside a value.
    lines = [element("span", f"{line}\n", class_=_look(line)) for line in diff.removesuffix("\n").split("\n")]
    code = element("code", *lines)
    return element("pre", code, class_="diff scroll", tabindex=0, role="region", aria_label="Configuration diff")


def _look(line: str) -> str | None:
    if line.startswith(("+++ ", "--- ")):
        return "file"
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1])
