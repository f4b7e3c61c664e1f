"""The page of what is covered: every entry of coverage.yaml with the rules whose cases show it, or why none does."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.rule_data import load_yaml

DATA = Path(__file__).with_name("coverage.yaml")
NOT_CHECKABLE = "not statically checkable"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to cover; ``proof`` are cases, as in ``CG404/dense``, and ``why`` says why there is none.

    ``explained`` is how a line begins that `explain` shows instead.
    """

    ids: tuple[str, ...]
    what: str
    releases: str = ""
    proof: tuple[str, ...] = ()
    why: str = ""
    explained: str = ""

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules whose cases show it."""
        return tuple(dict.fromkeys(case.partition("/")[0] for case in self.proof))


def entries(part: str) -> list[Entry]:
    """The entries of a part of the data: ``entries``, ``stumbles``, ``pitfalls`` or ``proxies``."""
    return [_entry(one) for one in load_yaml(DATA.read_text(encoding="utf-8"), str(DATA))[part]]


def _entry(data: Mapping[str, Any]) -> Entry:
    why = "not yet" if data.get("later") else data.get("why", "")
    ids, proof = tuple(map(str, data["ids"])), tuple(data.get("proof", ()))
    return Entry(ids, data["what"], data.get("releases", ""), proof, why, data.get("explained", ""))


def coverage_page(rules: Mapping[str, Rule]) -> str:
    """The page."""
    all_entries, stumbles, pitfalls, proxies = map(entries, ("entries", "stumbles", "pitfalls", "proxies"))
    checkable = [one for one in stumbles if not one.why.startswith(NOT_CHECKABLE)]
    parts = [
        "# What is covered",
        "What Megatron's sources assert, warn of or ignore about CUDA graphs, and what people stumble over, each with "
        "the rules that report it. A rule counts only where a case of the tests shows that it reports this very thing.",
        "## Assertions, warnings and silent changes",
        f"{_counts(all_entries)} C: configuration, E: environment, R: run time, W: warnings, B: Megatron-Bridge, "
        "H: its performance harness, X: exceptions without a check, S: silent changes. The 58 of Transformer "
        "Engine are about arguments that Megatron fills, and have no rows.",
        _table(all_entries, rules, releases=True),
        "## Where people stumble",
        f"Of {len(checkable)} that a file shows, {_covered(checkable)} have a rule.",
        _table(stumbles, rules),
        "## Pitfalls of Megatron-Bridge",
        f"{_counts(pitfalls)}",
        _table(pitfalls, rules),
        "## Code that passes settings on",
        f"{_counts(proxies)}",
        _table(proxies, rules),
        "## What judges the rules that no validation of a release judges",
        "The tests execute these statements and functions, and compare what they say with the rules. Where none can be "
        "executed on a CPU, the table says why; such a rule stays in preview.",
        _judges(rules),
        "<!-- Generated from docs/coverage.yaml by `docs/build.py`. -->",
    ]
    return "\n\n".join(parts) + "\n"


def _covered(some: Iterable[Entry]) -> int:
    return sum(len(one.ids) for one in some if one.proof)


def _counts(some: Sequence[Entry]) -> str:
    count, later = sum(len(one.ids) for one in some), sum(len(one.ids) for one in some if one.why == "not yet")
    explained = sum(len(one.ids) for one in some if one.explained)
    rest = count - _covered(some) - later - explained
    parts = [f"{_covered(some)} have a rule"]
    parts += [f"{explained} a line that `cgmigrate explain FILE:LINE` shows"] if explained else []
    parts += [f"{later} neither yet"] if later else []
    parts += [f"{rest} cannot be seen in a file or are no release's"] if rest else []
    return f"Of {count}, {', '.join(parts)}."


def _table(some: Iterable[Entry], rules: Mapping[str, Rule], *, releases: bool = False) -> str:
    heads = ["entry", "what", *(["releases"] if releases else []), "rule"]
    rows = [heads, ["---"] * len(heads)]
    for one in some:
        linked = ", ".join(_link(rules[code]) for code in one.rules)
        instead = f"`explain`: {one.explained} …" if one.explained else one.why
        rows.append([", ".join(one.ids), one.what, *([one.releases] if releases else []), linked or instead])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _judges(rules: Mapping[str, Rule]) -> str:
    rows = ["| rule | about | judge |", "| --- | --- | --- |"]
    for one in load_yaml(DATA.read_text(encoding="utf-8"), str(DATA))["judges"]:
        linked = ", ".join(_link(rules[code]) for code in one["rules"])
        rows.append(f"| {linked} | {one['what']} | {one.get('judge') or one['why']} |")
    return "\n".join(rows)


def _link(rule: Rule) -> str:
    return f"[{rule.id}](rules/{rule.id}.md)" + (" (preview)" if rule.preview else "")
