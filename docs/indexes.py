"""The lists of rules and of settings: by what they are about, by release, and all in one table with filters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rule_pages import PROGRAMS, applicability, programs, releases

from cgmigrate.lint.rules import Rule, RuleKind
from cgmigrate.megatron.catalogue import Setting
from cgmigrate.megatron.releases import KNOWN, OLDEST, Release
from cgmigrate.report.settings import releases_of

FAMILIES = {
    RuleKind.FILE: "Files and values that cannot be read",
    RuleKind.DEPRECATED: "Deprecated names and values",
    RuleKind.REJECTED: "Combinations that megatron-core rejects",
    RuleKind.NO_EFFECT: "Settings that do nothing, or not what they seem",
    RuleKind.COMPANION: "Settings that need or exclude others",
    RuleKind.ECOSYSTEM: "One ecosystem's own constraints",
    RuleKind.READER: "Code that reads the old names",
}
_FILTERS = (
    '<div id="filters" data-columns="severity fix programs releases" '
    f'data-releases="{" ".join(map(str, KNOWN))}" data-programs="{", ".join(dict.fromkeys(PROGRAMS.values()))}"></div>'
)
"""Where filters.js puts a choice for each of these columns; without scripts the table is whole."""


def index(rules: Mapping[str, Rule]) -> str:
    """The table of contents, by family."""
    parts = [
        "# Rules",
        "By what they are about. There is also an [index by release](by-release.md), and "
        "[one table](all.md) that the site filters by release, program, severity and fix.",
    ]
    for kind, title in FAMILIES.items():
        if of_kind := [rule for rule in rules.values() if rule.kind is kind]:
            parts += [f"## {title}", _table(of_kind)]
    return "\n\n".join(parts) + "\n"


def by_release(rules: Mapping[str, Rule]) -> str:
    """The rules by the release of megatron-core from which they hold."""
    parts = [
        "# Rules by release",
        "The first release of megatron-core that a rule concerns. A rule is silent where the target (`--to`, or the "
        "project's pin) is older, and its fix waits until the target has the replacement.",
    ]
    for release in KNOWN:
        begins = [rule for rule in rules.values() if rule.since == release > OLDEST]
        if begins:
            parts += [f"## Since {release}", _table(begins, since=True)]
    parts += ["## In every release", _table(rule for rule in rules.values() if rule.since == OLDEST)]
    return "\n\n".join(parts) + "\n"


def everything(rules: Mapping[str, Rule]) -> str:
    """All rules in one table, with the columns that the site filters by."""
    parts = [
        "# All rules",
        "`releases` are the targets that a rule concerns, `programs` those whose settings it is about. A rule in "
        "preview is off without `--preview`.",
        _FILTERS,
    ]
    head = ["| code | what it reports | severity | fix | programs | releases |", "|---|---|---|---|---|---|"]
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.summary}{' (preview)' if rule.preview else ''} | {rule.severity} "
        f"| {applicability(rule)} | {programs(rule)} | {releases(rule)} |"
        for rule in rules.values()
    ]
    return "\n\n".join([*parts, "\n".join([*head, *rows])]) + "\n"


def _table(rules: Iterable[Rule], since: bool = False) -> str:
    head = ["| code | name | what it reports |", "|---|---|---|"]
    if since:
        head = [head[0] + " replacement since |", head[1] + "---|"]
    rows = [
        f"| [{rule.id}]({rule.id}.md) | {rule.name} | {rule.summary} |"
        + (f" {_since(rule.available_in)} |" if since else "")
        for rule in rules
    ]
    return "\n".join([*head, *rows])


def _since(release: Release) -> str:
    return str(release) if release > OLDEST else ""


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
