"""Conditions of rules: which case of a rule matches."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from cgmigrate.lint.rules import ABSENT, Case, Rule, release_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import RuleError
from cgmigrate.megatron.settings import names_in


@dataclass(frozen=True, slots=True)
class State:
    """What conditions are evaluated on: settings and who reads them."""

    settings: Mapping[str, object]
    reader: str
    source: Release
    target: Release
    rejected: str = ""
    """Code of the target's refusal, empty if it accepts the settings."""


def matching_case(rule: Rule, state: State) -> Case | None:
    """Return the first case of the rule that matches."""
    if state.target < rule.deprecated_in:
        return None
    return next((case for case in rule.cases if matches(case.when, state)), None)


def matches(when: Mapping[str, Any], state: State) -> bool:
    """Return whether every condition of ``when`` is met. Raises RuleError for an unknown test of a setting."""
    return all(_is_met(name, condition, state) for name, condition in when.items())


def _is_met(name: str, condition: Any, state: State) -> bool:
    if name in _TESTS_OF_STATE:
        return _TESTS_OF_STATE[name](condition, state)
    setting = _Setting(name in state.settings, state.settings.get(name, ABSENT))
    if not isinstance(condition, Mapping):
        return _equal(setting.value, condition)
    return all(_test_of(name, test)(setting, expected) for test, expected in condition.items())


_TESTS_OF_STATE: Mapping[str, Callable[[Any, State], bool]] = {
    "any-of": lambda parts, state: any(matches(part, state) for part in parts),
    "reader": lambda readers, state: state.reader in _as_list(readers),
    "rejected": lambda codes, state: state.rejected in _as_list(codes),
    "source-before": lambda release, state: state.source < release_of(release),
    "source-since": lambda release, state: state.source >= release_of(release),
    "target-since": lambda release, state: state.target >= release_of(release),
}


@dataclass(frozen=True, slots=True)
class _Setting:
    """One setting of a state; ``value`` is ABSENT if it is not written."""

    written: bool
    value: object

    @property
    def names(self) -> list[str]:
        """The names in the value of a scope or of modules."""
        return names_in(self.value) if self.written else []


def _separated_by(setting: _Setting, separator: str) -> bool:
    text = setting.value.strip() if isinstance(setting.value, str) else ""
    match separator:
        case "comma":
            return "," in text
        case "comma-space":
            return ", " in text
        case _:
            return " " in text and "," not in text


_TESTS_OF_SETTING: Mapping[str, Callable[[_Setting, Any], bool]] = {
    "in": lambda setting, values: any(_equal(setting.value, value) for value in values),
    "has": lambda setting, name: name in setting.names,
    "lacks": lambda setting, names: set(_as_list(names)).isdisjoint(setting.names),
    "has-any": lambda setting, names: not set(names).isdisjoint(setting.names),
    "only": lambda setting, name: setting.names == [name],
    "written": lambda setting, expected: setting.written is expected,
    "empty": lambda setting, expected: (setting.written and not setting.names) is expected,
    "separated-by": _separated_by,
}


def _test_of(name: str, test: str) -> Callable[[_Setting, Any], bool]:
    if test not in _TESTS_OF_SETTING:
        raise RuleError(f"unknown test {test!r} on {name}")
    return _TESTS_OF_SETTING[test]


def _as_list(value: Any) -> Collection[Any]:
    return value if isinstance(value, list) else [value]


def _equal(value: object, expected: object) -> bool:
    """Return whether two values are equal and of one type, so that True is not 1."""
    return type(value) is type(expected) and value == expected
