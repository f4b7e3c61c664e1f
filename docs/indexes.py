"""The table of all rules, with filters, and the list of settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from rule_pages import applicability

from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.catalogue import Setting
from cgmigrate.megatron.releases import KNOWN, OLDEST
from cgmigrate.report.release_tables import releases_of

FAMILIES = {
    "CG0": "Files and values that cannot be read",
    "CG1": "Deprecated names and values",
    "CG2": "Combinations that megatron-core rejects",
    "CG3": "Settings that do nothing, or not what they seem",
    "CG4": "Settings that need or exclude others",
    "CG5": "One ecosystem's own constraints",
    "CG6": "Code that reads the old names",
    "UPG": "Other settings that a release changes (cgmigrate upgrade)",
}
"""What rules are about, by the beginning of their codes."""
MOST = "TransformerConfig"
"""The class that has most settings."""


def index(rules: Mapping[str, Rule]) -> str:
    """All rules in one table, and where filters.js puts its choices; without scripts the table is whole."""
    families = "|".join(f"{code} {title}" for code, title in FAMILIES.items())
    parts = [
        "# Rules",
        "`releases` are the targets (`--to`, or the project's pin) that a rule concerns: for any other it is silent. "
        "A fix is written only where the target has the replacement. A rule in preview is off without `--preview`. "
        "`cgmigrate explain CODE` shows what a page has, and `cgmigrate rules` lists them.",
        f'<div id="filters" data-families="{escape(families)}" data-releases="{" ".join(map(str, KNOWN))}"></div>',
        "\n".join(f"- **{code}**: {title}" for code, title in FAMILIES.items()),
    ]
    head = ["| code | name | what it reports | releases | fix |", "|---|---|---|---|---|"]
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.summary}{' (preview)' if rule.preview else ''} "
        f"| {_releases(rule)} | {applicability(rule)} |"
        for rule in rules.values()
    ]
    return "\n\n".join([*parts, "\n".join([*head, *rows])]) + "\n"


def _releases(rule: Rule) -> str:
    """The targets that a rule concerns, in words that a new release does not change."""
    if rule.until is None:
        return f"since {rule.since}" if rule.since > OLDEST else "all"
    return f"{rule.since} to {rule.until}" if rule.since > OLDEST else f"up to {rule.until}"


def settings_page(settings: Iterable[Setting]) -> str:
    """The settings of the catalogue that ships: those of CUDA graphs, then those of the class that has most."""
    groups: dict[str, list[Setting]] = {"CUDA graphs": [], MOST: [], "Other classes": []}
    for one in settings:
        groups["CUDA graphs" if one.subject else MOST if one.owner == MOST else "Other classes"].append(one)
    parts = [
        "# Settings",
        f"The settings that rules may name. One without releases is in all from {OLDEST} on, one without a class is a "
        f"field of `{MOST}`. `cgmigrate explain NAME` shows defaults and choices, and a team can "
        "[add its own](writing-rules.md#a-setting-of-another-name).",
    ]
    for title, some in groups.items():
        parts += [f"## {title}", _settings(some)]
    parts.append("<!-- Generated from `rules/settings` by `docs/build.py`; change them there. -->")
    return "\n\n".join(parts) + "\n"


def _settings(some: Iterable[Setting]) -> str:
    """A table of settings, with a column for their classes where not all are of one."""
    listed = list(some)
    owners = any(one.owner != MOST for one in listed)
    rows = ["| name | field of | kind | what it does |" if owners else "| name | kind | what it does |"]
    rows.append("|---|---|---|---|" if owners else "|---|---|---|")
    for one in listed:
        everywhere = one.since == OLDEST and not (one.until or one.deprecated_in)
        kind = str(one.kind) if everywhere else f"{one.kind}, {releases_of(one)}"
        owner = [one.owner if one.owner != MOST else ""] if owners else []
        rows.append(f"| {' | '.join([f'`{one.name}`', *owner, kind, one.summary])} |")
    return "\n".join(rows)
