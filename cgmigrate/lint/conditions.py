"""Conditions of rules: when a case of a rule holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cgmigrate.lint.rules import ABSENT, Case, Rule, _release
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import RuleError
from cgmigrate.megatron.settings import names_in


@dataclass(frozen=True, slots=True)
class State:
    """What conditions are asked about: settings and who reads them."""

    settings: Mapping[str, object]
    reader: str
    source: Release
    target: Release
    rejected: str = ""
    """Code of the target's refusal, empty when it accepts."""


def matching_case(rule: Rule, state: State) -> Case | None:
    """Return the first case of the rule that holds."""
    if state.target < rule.deprecated_in:
        return None
    return next((case for case in rule.cases if holds(case.when, state)), None)


def holds(when: Mapping[str, Any], state: State) -> bool:
    """Whether every condition of ``when`` is met."""
    return all(_met(name, condition, state) for name, condition in when.items())


def _met(name: str, condition: Any, state: State) -> bool:
    match name:
        case "any-of":
            return any(holds(part, state) for part in condition)
        case "reader":
            return state.reader in (condition if isinstance(condition, list) else [condition])
        case "rejected":
            return state.rejected in (condition if isinstance(condition, list) else [condition])
        case "source-before":
            return state.source < _release(condition)
        case "source-since":
            return state.source >= _release(condition)
        case "target-since":
            return state.target >= _release(condition)
    value = state.settings.get(name, ABSENT)
    if not isinstance(condition, Mapping):
        return _equal(value, condition)
    names = names_in(value) if name in state.settings else []
    for test, wanted in condition.items():
        match test:
            case "in":
                met = any(_equal(value, item) for item in wanted)
            case "has":
                met = wanted in names
            case "lacks":
                met = not set(names) & set(wanted if isinstance(wanted, list) else [wanted])
            case "has-any":
                met = bool(set(names) & set(wanted))
            case "only":
                met = names == [wanted]
            case "written":
                met = (name in state.settings) is wanted
            case "empty":
                met = (name in state.settings and not names) is wanted
            case "separated-by":
                text = value.strip() if isinstance(value, str) else ""
                met = (
                    ("," in text)
                    if wanted == "comma"
                    else (", " in text)
                    if wanted == "comma-space"
                    else (" " in text and "," not in text)
                )
            case _:
                raise RuleError(f"unknown test {test!r} on {name}")
        if not met:
            return False
    return True


def _equal(value: object, wanted: object) -> bool:
    return type(value) is type(wanted) and value == wanted
