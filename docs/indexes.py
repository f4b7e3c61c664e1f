"""The table of all rules, with filters, and the list of settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape

from rule_pages import applicability

from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.catalogue import Setting
from cgmigrate.megatron.releases import KNOWN, OLDEST
from cgmigrate.report.settings import releases_of

FAMILIES = {
    "CG0": "Files and values that cannot be read",
    "CG1": "Deprecated names and values",
    "CG2": "Combinations that megatron-core rejects",
    "CG3": "Settings that do nothing, or not what they seem",
    "CG4": "Settings that need or exclude others",
    "CG5": "One ecosystem's own constraints",
    "CG6": "Code that reads the old names",
}
"""What rules are about, by the beginning of their codes."""


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
    """The settings of the catalogue that ships."""
    parts = [
        "# Settings",
        "The settings that rules and documents know, from `rules/settings`. A team can add its own "
        "([how](writing-rules.md#a-setting-of-another-name)).",
    ]
    rows = [
        f"| `{one.name}` | {one.kind} | {one.owner} | {releases_of(one)} | {one.summary} |"
        for one in sorted(settings, key=lambda one: not one.subject)
    ]
    head = ["| name | kind | field of | releases | what it reports |", "|---|---|---|---|---|"]
    parts += [
        "\n".join([*head, *rows]),
        "<!-- Generated from `rules/settings` by `docs/build.py`; change them there. -->",
    ]
    return "\n\n".join(parts) + "\n"
