"""Rules are data: loading and checking ``rules/*.yaml``.

A rule has conditions on settings, the settings to have instead, and messages. It never says how a syntax is written.
The rules that ship are checked by the tests; a team's own are checked against ``rules/schema.json`` when they are
loaded, with file, line and what is expected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

from cgmigrate.lint.conditions import Condition, State, condition_of, release_of
from cgmigrate.megatron.releases import OLDEST, Release
from cgmigrate.megatron.rule_data import RuleError, load_yaml, rules_folder, text_of
from cgmigrate.megatron.settings import without_name


class RuleKind(str, Enum):
    """What a rule is about; it decides which of several rules about one setting is reported."""

    DEPRECATED = "deprecated"
    """A name or value that a release deprecates."""
    REJECTED = "rejected"
    """Settings that a reader refuses."""
    NO_EFFECT = "no-effect"
    """Settings that do nothing, or something else than they seem to."""
    COMPANION = "companion"
    """A setting that another one needs or excludes."""
    ECOSYSTEM = "ecosystem"
    """A constraint of one program only."""
    READER = "reader"
    """Code that reads or defines a setting."""
    FILE = "file"
    """A file or value that cannot be read or examined. Its diagnostics are needed by other rules."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Fix:
    """The settings to have instead. ``unsafe`` says what may change, empty if nothing does."""

    set: Mapping[str, object] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    drop: Mapping[str, str] = field(default_factory=dict)
    unsafe: str = ""

    def apply(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Return the settings after this fix. A name dropped from its list takes an empty list along."""
        after = dict(settings)
        for name, value in self.drop.items():
            if name in after:
                left = without_name(after.pop(name), value)
                if left is not None:
                    after[name] = left
        for old, new in self.rename.items():
            if old in after:
                after[new] = after.pop(old)
        for name in self.remove:
            after.pop(name, None)
        return after | dict(self.set)


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which a rule matches: ``condition`` is that of its ``when`` and ``unless``.

    Without a fix, ``decide`` says what a person has to choose. ``help`` says what to write by hand where a rule
    only remarks on a site.
    """

    when: Mapping[str, Any]
    condition: Condition
    message: str
    fix: Fix | None = None
    decide: str = ""
    help: str = ""

    @property
    def about_refusal(self) -> bool:
        """Whether the case is about settings that a reader refuses."""
        return "rejected" in self.when


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule file. ``fields`` are where diagnostics point, best first; ``help`` is the general help.

    ``reports`` is the kind of problem or check that it explains, empty for a rule with conditions (see ``kinds``).
    """

    id: str
    name: str
    kind: RuleKind
    summary: str
    severity: str
    fields: tuple[str, ...]
    cases: tuple[Case, ...]
    explanation: str
    sources: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...]
    since: Release
    """The oldest target that the rule concerns."""
    until: Release | None
    """The newest target that it concerns, None if there is no such release."""
    available_in: Release
    """The oldest target that has what its fix writes."""
    path: str
    help: str = ""
    reports: str = ""

    def concerns(self, target: Release) -> bool:
        """Return whether the rule says something about projects for a release."""
        return self.since <= target and (self.until is None or target <= self.until)

    @property
    def migrates(self) -> bool:
        """Whether the rule takes part in rewriting a site; if not, it only remarks on it."""
        return any(case.fix or case.decide for case in self.cases)


def matching_case(rule: Rule, state: State) -> Case | None:
    """Return the first case of the rule that matches; None if none does, or if it is not known which."""
    if not rule.concerns(state.target):
        return None
    for case in rule.cases:
        truth = case.condition(state)
        if truth is not False:
            # A later case counts only if this one does not match.
            return case if truth else None
    return None


def load(extra: Sequence[Path] = ()) -> dict[str, Rule]:
    """Return the rules by id, in order of id; ``extra`` are folders of a team's own rules.

    Raises RuleError for a rule that does not fit the schema, or repeats an id or what another one reports.
    """
    rules: dict[str, Rule] = {}
    reporting: dict[str, Rule] = {}
    for folder in (rules_folder(), *extra):
        own = folder in extra
        if own and not folder.is_dir():
            raise RuleError(f"{folder}: not a folder of rules")
        for path in sorted(folder.glob("*.yaml")):
            rule = read(path, checked=own)
            if rule.id in rules:
                raise RuleError(f"{path}: {rule.id} is already defined in {rules[rule.id].path}")
            if rule.reports and (other := reporting.setdefault(rule.reports, rule)) is not rule:
                raise RuleError(f"{path}: {other.id} already reports {rule.reports} ({other.path})")
            rules[rule.id] = rule
    return dict(sorted(rules.items()))


def read(path: Path, checked: bool = True) -> Rule:
    """Read one rule file; ``checked`` is for a team's own, and compares it with the schema. Raises RuleError."""
    try:
        return _read(path, checked)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        if isinstance(error, RuleError):
            raise
        raise RuleError(f"{path}: cannot be read as a rule: {type(error).__name__}: {error}") from error


def _read(path: Path, checked: bool) -> Rule:
    from cgmigrate.lint.rule_schema import check_messages
    from cgmigrate.megatron.data_schema import RULE, check_form, check_size

    text = text_of(path)
    if checked:
        check_size(text, str(path))
    data = load_yaml(text, str(path))
    if checked:
        check_form(data, RULE, text, str(path))
        check_messages(data, text, str(path))
    cases = data.get("cases")
    if cases is None:
        cases = [data] if "when" in data else []
    fields = tuple(data["fields"])
    return Rule(
        id=data["id"],
        name=data["name"],
        kind=RuleKind(data.get("kind", RuleKind.COMPANION)),
        summary=data["summary"],
        severity=data.get("severity", "warning"),
        fields=fields,
        cases=tuple(_case(case, data) for case in cases),
        explanation=data["explanation"],
        sources=tuple(data["sources"]),
        examples=tuple(data.get("examples", ())),
        since=_release(data, "since", "deprecated-in") or OLDEST,
        until=_release(data, "until"),
        available_in=_release(data, "replacement-available-in") or OLDEST,
        path=str(path),
        help=data.get("help", "").strip(),
        reports=data.get("reports", ""),
    )


def _release(data: Mapping[str, Any], *keys: str) -> Release | None:
    """Return the release that the first of some keys names; None if there is none of them."""
    return next((release_of(data[key]) for key in keys if key in data), None)


def _case(case: Mapping[str, Any], rule: Mapping[str, Any]) -> Case:
    fix = case.get("fix")
    return Case(
        when=case["when"],
        condition=condition_of(case["when"], case.get("unless")),
        message=case.get("message", rule["summary"]).strip(),
        fix=None
        if fix is None
        else Fix(
            set=fix.get("set", {}),
            remove=tuple(fix.get("remove", ())),
            rename=fix.get("rename", {}),
            drop=fix.get("drop", {}),
            unsafe=fix.get("unsafe", "").strip(),
        ),
        decide=case.get("decide", "").strip(),
        help=case.get("help", rule.get("help", "")).strip(),
    )
