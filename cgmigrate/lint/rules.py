"""Rules are data: loading and checking ``rules/*.yaml``.

A rule has conditions on settings, the settings to have instead, and messages. It never says how a syntax is written.
The rules that ship are checked by the tests; a team's own are checked against ``rules/schema.json`` when they are
loaded, with file, line and what is expected.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from cgmigrate.lint.conditions import Condition, ConditionState, condition_of, condition_of_site, release_of
from cgmigrate.lint.fixes import RuleFix
from cgmigrate.lint.severity import Severity
from cgmigrate.megatron.releases import OLDEST, Release
from cgmigrate.megatron.rule_data import RuleError, is_of_upgrade, load_yaml, proof_of, rules_folder, text_of
from cgmigrate.megatron.settings import Settings
from cgmigrate.text.words import WordEnum

_EXPANDED = ("migrate:", "keep-default:", "\ngone:")
"""What a rule file has that the catalogue or the tables write out."""
_ABOUT_BEGINS = "\nexplanation:"
"""What a rule that ships has behind all that the check of a file reads."""


class RuleKind(WordEnum):
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


@dataclass(frozen=True, slots=True)
class RuleCase:
    """One way in which a rule matches: ``condition`` is that of its ``when`` and ``unless``.

    Without a fix, ``decide`` lists what there is to choose. ``help`` says what to write by hand where a rule
    only remarks on a site.
    """

    when: Mapping[str, Any]
    condition: Condition
    message: str
    severity: Severity
    stage: str = ""
    """When the target stops the job: ``config`` or ``capture``, as in ``Rejected``; empty if it does not."""
    certain: bool = False
    """Whether the next case decides where it is not known if this one applies."""
    fix: RuleFix | None = None
    decide: str = ""
    help: str = ""
    is_hybrid: bool = False
    """Whether it is about a GPT model, whose hybrid form the fix writes."""
    _of_site: Condition = field(init=False, repr=False, compare=False)
    _known: dict[int, bool] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_of_site", condition_of_site(self.when))

    def may_match(self, state: ConditionState, number: int | None) -> bool:
        """Return whether the settings of a site, without their surroundings, leave it open that the case matches.

        ``number`` is that of the state.
        """
        if number is None:
            return True
        known = self._known.get(number)
        if known is None:
            known = self._known[number] = self._of_site(state) is not False
        return known

    def choice(self, settings: Settings) -> str:
        """Return what there is to choose before these settings can be rewritten, empty if there is a fix."""
        return self.decide if self.fix is None else self.fix.unmapped(settings)

    @property
    def about_refusal(self) -> bool:
        """Whether the case is about settings that a reader refuses."""
        return "rejected" in self.when


@dataclass(frozen=True, slots=True)
class About:
    """What a rule file has for people: no check of a file reads it."""

    explanation: str
    sources: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...]

    @classmethod
    def of(cls, data: Mapping[str, Any]) -> About:
        """Return it from the content of a rule file."""
        return cls(data["explanation"], tuple(data["sources"]), tuple(data.get("examples", ())))


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule file. ``fields`` are where diagnostics point, best first; ``help`` is the general help.

    ``reports`` is the kind of problem or check that it explains, empty for a rule with conditions (see ``kinds``).
    ``about`` is None for a rule that ships; its file is read again if that is requested.
    """

    id: str
    name: str
    kind: RuleKind
    summary: str
    severity: Severity
    fields: tuple[str, ...]
    cases: tuple[RuleCase, ...]
    about: About | None
    since: Release
    """The oldest target that the rule concerns."""
    until: Release | None
    """The newest target that it concerns, None if there is no such release."""
    available_in: Release
    """The oldest target that has what its fix writes."""
    path: str
    help: str = ""
    reports: str = ""
    preview: bool = False
    """Whether the rule is off unless preview rules are enabled."""
    of_each: bool = False
    """Whether each case is about a setting of its own, so that several may match at one site."""

    migrates: bool = field(init=False)
    """Whether the rule takes part in rewriting a site; if not, it only remarks on it."""

    def __post_init__(self) -> None:
        # Each site asks each rule for it.
        object.__setattr__(self, "migrates", any(case.fix or case.decide for case in self.cases))

    def with_fixes(self, *, defaults: bool, hybrid: bool) -> Rule:
        """Return the rule without fixes that were not requested: it only reports then.

        ``defaults`` are those that write the default of before, ``hybrid`` those that write hybrid models.
        """
        is_default = any(case.fix and case.fix.keeps_default for case in self.cases)
        is_requested = (defaults or not is_default) and (hybrid or not any(case.is_hybrid for case in self.cases))
        return self if is_requested else replace(self, cases=tuple(replace(case, fix=None) for case in self.cases))

    @property
    def explanation(self) -> str:
        """Why the rule is, in several sentences."""
        return self._about.explanation

    @property
    def sources(self) -> tuple[str, ...]:
        """Where upstream shows what the rule says."""
        return self._about.sources

    @property
    def examples(self) -> tuple[Mapping[str, Any], ...]:
        """Texts that the rule reports, or does not report."""
        return self._about.examples

    @property
    def _about(self) -> About:
        return self.about or _about_shipped(self.path)

    def concerns(self, target: Release) -> bool:
        """Return whether the rule says something about projects for a release."""
        return self.since <= target and (self.until is None or target <= self.until)

    def may_match(self, state: ConditionState) -> bool:
        """Return whether the settings of a site, without their surroundings, leave it open that a case matches."""
        return self.concerns(state.target) and any(case.may_match(state, state.number) for case in self.cases)

    @property
    def names(self) -> frozenset[str]:
        """The settings that its diagnostics point at, and those that its fixes write, change or delete."""
        return frozenset(self.fields).union(*(case.fix.names for case in self.cases if case.fix))


def matching_case(rule: Rule, state: ConditionState) -> RuleCase | None:
    """Return the first case of the rule that matches; None if none does, or if its fix would depend on the unknown."""
    if not rule.concerns(state.target):
        return None
    number = state.number
    possible: list[RuleFix | None] = []
    for case in rule.cases:
        if not case.may_match(state, number):
            continue
        truth = case.condition(state)
        if truth:
            # Whichever of the cases it is, the fix counts if it is the same.
            return case if all(fix is not None and fix == case.fix for fix in possible) else None
        if truth is None and rule.migrates and not case.certain:
            possible.append(case.fix)
    return None


def matching_cases(rule: Rule, state: ConditionState, settings: Settings) -> Iterator[tuple[tuple[str, ...], RuleCase]]:
    """Yield the settings that a rule points at, best first, with the case that matches.

    There is one at most, unless each case is about a setting of its own.
    """
    if not rule.of_each:
        if (match := matching_case(rule, state)) is not None:
            yield rule.fields, match
        return
    names = rule.names if rule.concerns(state.target) else frozenset[str]()
    for name in (one for one in settings if one in names):
        cases = (case for case in rule.cases if name in case.when)
        yield from (((name,), case) for case in cases if case.condition(state))


def load(extra: Sequence[Path] = ()) -> dict[str, Rule]:
    """Return the rules by id, in order of id; ``extra`` are folders of a team's own rules.

    Raises RuleError for a rule that does not fit the schema, or repeats an id or what another one reports.
    """
    folder = rules_folder()
    rules = _by_id({}, _of_folder(folder, extra, checked=False)) if extra else dict(_shipped(folder))
    for own in extra:
        _by_id(rules, _of_folder(own, extra, checked=not is_of_upgrade(own)))
        _by_id(rules, of_entries(own, extra))
    return dict(sorted(rules.items()))


@lru_cache(maxsize=4)
def _shipped(folder: Path) -> dict[str, Rule]:
    """Return the rules that ship. To read them takes longer than to check a file, so a process does it once."""
    return _by_id({}, _of_folder(folder, (), checked=False))


def _of_folder(folder: Path, folders: Sequence[Path], *, checked: bool) -> Iterator[Rule]:
    """Yield the rules in a folder; ``checked`` is for a team's own. Raises RuleError."""
    if checked and not folder.is_dir():
        raise RuleError(f"{folder}: not a folder of rules")
    for path in sorted(folder.glob("*.y*ml")):
        if path.suffix == ".yml":
            raise RuleError(f"{path}: the name of a file of a rule ends in .yaml")
        rule = read(path, checked=checked, folders=folders)
        if checked and rule.id in _retired():
            raise RuleError(f"{path}: {rule.id} is the code of a rule of an earlier release; choose another")
        yield rule


def of_entries(folder: Path, folders: Sequence[Path]) -> Iterator[Rule]:
    """Yield the rules that the entries of a folder's settings bring along. Raises RuleError."""
    from cgmigrate.lint.entry_rules import entry_rules
    from cgmigrate.megatron import catalogue

    names = tuple(map(str, folders))
    for path, data in entry_rules(folder, catalogue.load(names)):
        yield _rule(_expanded(data, path, names), path, About.of(data))


def _by_id(rules: dict[str, Rule], more: Iterable[Rule]) -> dict[str, Rule]:
    """Add rules to others, and return them. Raises RuleError for one that repeats an id or what another one reports."""
    reporting = {rule.reports: rule for rule in rules.values() if rule.reports}
    for rule in more:
        if rule.id in rules:
            raise RuleError(f"{rule.path}: {rule.id} is already defined in {rules[rule.id].path}")
        if rule.reports and (other := reporting.setdefault(rule.reports, rule)) is not rule:
            raise RuleError(f"{rule.path}: {other.id} already reports {rule.reports} ({other.path})")
        rules[rule.id] = rule
    return rules


def _retired() -> Mapping[str, str]:
    """Return the codes of rules that earlier releases had, each with the reason why it is gone."""
    import json

    codes: Mapping[str, str] = json.loads((rules_folder() / "retired.json").read_text(encoding="utf-8"))
    return codes


def read(path: Path, checked: bool = True, folders: Sequence[Path] = ()) -> Rule:
    """Read one rule file; ``checked`` is for a team's own, and compares it with the schema. Raises RuleError.

    ``folders`` are folders of a team's own rules, which may have settings of their own.
    """
    try:
        data = _data(path, checked, tuple(map(str, folders)))
        return _rule(data, path, About.of(data) if checked else None)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        if isinstance(error, RuleError):
            raise
        raise RuleError(f"{path}: cannot be read as a rule: {type(error).__name__}: {error}") from error


def _data(path: Path, checked: bool, folders: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the content of a rule file, checked if ``checked`` says so, with what the catalogue adds to it."""
    text = text_of(path)
    if not checked:
        # Most of the text is for people. To parse it took longer than all other rules and settings together.
        text = text[: text.find(_ABOUT_BEGINS) + 1]
        data: Mapping[str, Any] = load_yaml(text, str(path))
        return _expanded(data, path, folders) if any(one in text for one in _EXPANDED) else data
    from cgmigrate.lint.rule_schema import RuleText
    from cgmigrate.megatron import catalogue
    from cgmigrate.megatron.data_schema import RULE, check_form, check_size

    check_size(text, str(path))
    data = load_yaml(text, str(path))
    check_form(data, RULE, text, str(path))
    RuleText(data, text, str(path), catalogue.load(folders)).check()
    return _expanded(data, path, folders)


@cache
def _about_shipped(path: str) -> About:
    return About.of(load_yaml(text_of(Path(path)), path))


def _expanded(data: Mapping[str, Any], path: Path, folders: tuple[str, ...]) -> Mapping[str, Any]:
    from cgmigrate.lint.migrations import expanded
    from cgmigrate.megatron import catalogue

    return expanded(data, catalogue.load(folders), str(path))


def _rule(data: Mapping[str, Any], path: Path, about: About | None) -> Rule:
    cases = data.get("cases")
    if cases is None:
        cases = [data] if "when" in data else []
    proof = {"proved-by": proof_of(path, data["id"], *data["fields"][:1])}
    return Rule(
        id=data["id"],
        name=data["name"],
        kind=RuleKind(data.get("kind", RuleKind.COMPANION)),
        summary=data["summary"],
        severity=Severity(data.get("severity", Severity.WARNING)),
        fields=tuple(data["fields"]),
        cases=tuple(_case(one, data, proof) for case in cases for one in _by_target(case, data)),
        about=about,
        since=_release(data, "since", "deprecated-in") or OLDEST,
        until=_release(data, "until"),
        available_in=_release(data, "replacement-available-in") or OLDEST,
        path=str(path),
        help="" if isinstance(data.get("help"), Mapping) else data.get("help", "").strip(),
        reports=data.get("reports", ""),
        preview=data.get("preview", False),
        of_each=data.get("gone", False),
    )


def _release(data: Mapping[str, Any], *keys: str) -> Release | None:
    """Return the release that the first of some keys names; None if there is none of them."""
    return next((release_of(data[key]) for key in keys if key in data), None)


_TEXTS = ("message", "decide", "help")
"""The keys of a case that may have a text for each target."""


def _by_target(case: Mapping[str, Any], rule: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a case for each target that has texts of its own, the newest first; a case without such texts as it is."""
    case = {**({"help": rule["help"]} if "help" in rule else {}), **case}
    texts = {key: case[key] for key in _TEXTS if isinstance(case.get(key), Mapping)}
    since = {release for text in texts.values() for release in text}
    for first in sorted(since, key=release_of, reverse=True):
        least = max(first, case["when"].get("target-since", first), key=release_of)
        of_target = {key: _text_for(text, first) for key, text in texts.items()}
        yield {**case, **of_target, "when": {**case["when"], "target-since": least}}
    if not since:
        yield case


def _text_for(texts: Mapping[str, str], target: str) -> str:
    """Return the text for a target: that of the newest release that is not newer; empty if there is none."""
    older = [one for one in texts if release_of(one) <= release_of(target)]
    return texts[max(older, key=release_of)] if older else ""


def _case(case: Mapping[str, Any], rule: Mapping[str, Any], proof: Mapping[str, str]) -> RuleCase:
    return RuleCase(
        when=case["when"],
        condition=condition_of(case["when"], case.get("unless")),
        message=case.get("message", rule["summary"]).strip(),
        severity=Severity(case.get("severity", rule.get("severity", Severity.WARNING))),
        stage=case.get("stage", rule.get("stage", "")),
        certain=case.get("certain", False),
        fix=RuleFix.of({**proof, **case["fix"]}) if "fix" in case else None,
        decide=case.get("decide", "").strip(),
        help=case.get("help", "").strip(),
        is_hybrid=case.get("hybrid-form", False),
    )
