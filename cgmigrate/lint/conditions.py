"""Conditions of rules: which case of a rule matches.

A condition is true, false or unknown. It is unknown if it depends on a value that the project does not show: an
interpolation, or a setting of an object that is not followed. A rule whose match is unknown reports nothing.

The logic is Kleene's: conditions together are false if one is false, and unknown if none is false and one is unknown.
So what is true or false is so for every value that the unknown settings may have.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from cgmigrate.documents.python.nodes import walk
from cgmigrate.megatron.layer_patterns import has_layer
from cgmigrate.megatron.packages import names as package_names
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import RuleError
from cgmigrate.megatron.settings import FIELDS, Missing, Settings, Undecided, names_in

# --- expressions ----------------------------------------------------------------------------------

Values: TypeAlias = Callable[[str], "float | None"]
"""Returns the number that a setting has; None if it is not known."""

_OPERATORS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def expression(text: str) -> ast.expr:
    """Return the expression of a text. Raises RuleError if it has anything but names, numbers, `+`, `-` and `*`."""
    try:
        tree = ast.parse(text, mode="eval").body
    except SyntaxError:
        raise RuleError(f"{text!r} is no expression") from None
    for node in walk(tree):
        if not isinstance(node, (ast.BinOp, ast.Name, ast.Load, ast.Constant, *_OPERATORS)):
            raise RuleError(f"{text!r} has more than names, numbers, +, - and *")
    return tree


def evaluate(node: ast.expr, values: Values) -> float | None:
    """Return the number that an expression has; None if it is not known."""
    match node:
        case ast.Name(id=name):
            return values(name)
        case ast.Constant(value=int() | float() as number):
            return number
        case ast.BinOp(left=left, op=operation, right=right):
            one, other = evaluate(left, values), evaluate(right, values)
            return None if one is None or other is None else _OPERATORS[type(operation)](one, other)
    return None


# --- conditions ------------------------------------------------------------

Truth: TypeAlias = "bool | None"
"""Whether a condition is met; None if that is not known."""


class ConditionSurroundings(Protocol):
    """The other settings of the object that a site configures."""

    def get(self, name: str, /) -> object:
        """Return the value of a setting, ``Undecided`` or ``Missing``."""

    def default(self, name: str, /) -> object:
        """Return what a setting is that is not written; ``Missing.UNKNOWN`` if something else may set it."""

    def key(self, name: str, /) -> str:
        """Return how the object's configuration spells a setting."""

    def unread(self) -> frozenset[str]:
        """Return the settings of the site that the installed release of the program that reads them ignores."""

    def ignored(self) -> tuple[str, ...]:
        """Return the settings, of the site and beside it, that the installed release of their reader ignores."""


@dataclass(frozen=True, slots=True)
class ConditionState:
    """What conditions are evaluated on: settings, who reads them, and what surrounds them."""

    settings: Settings
    reader: str
    source: Release
    target: Release
    rejected: str = ""
    """Code of the target's refusal, empty if it accepts the settings."""
    surroundings: ConditionSurroundings | None = None
    """None if nothing is known of them."""
    names: frozenset[str] = frozenset(FIELDS)
    """The settings of which a site is made: one that is not among ``settings`` is absent."""
    before: Settings = field(default_factory=dict)
    """The settings before any fix; one that is not among ``settings`` any more is absent."""
    ecosystem: str = ""
    """The file of ``rules/ecosystems`` that describes their owner, without its suffix."""
    programs: tuple[str, ...] = ()
    """The programs that get the settings, as far as the file shows them."""
    folder: str | None = field(default=None, compare=False)
    """The folder of the file, whose project pins packages; None if there is no file."""
    number: int | None = field(init=False, compare=False)
    """Is the same for states that differ in their surroundings only, as many of a project do; None if not known."""

    def value(self, name: str) -> object:
        """Return the value of a setting, ``Undecided`` if it is written and not known, or ``Missing``."""
        if name in self.settings:
            return self.settings[name]
        if name in self.names or name in self.before:
            return Missing.ABSENT
        return Missing.UNKNOWN if self.surroundings is None else self.surroundings.get(name)

    def value_or_default(self, name: str) -> object:
        """Return the value of a setting; of one that is not written its default, as far as that is known."""
        value = self.value(name)
        if value is not Missing.ABSENT:
            return value
        return Missing.UNKNOWN if self.surroundings is None else self.surroundings.default(name)

    def __post_init__(self) -> None:
        # Each rule asks for it.
        object.__setattr__(self, "number", self._number())

    def _number(self) -> int | None:
        parts = (self.settings, self.before)
        try:
            settings = [tuple((name, _frozen(value)) for name, value in one.items()) for one in parts]
            context = (self.reader, self.source, self.target, self.rejected, self.names, self.ecosystem, self.programs)
            key = (*settings, *context)
            return _NUMBERS.setdefault(key, len(_NUMBERS))
        except TypeError:
            return None


_NUMBERS: dict[Hashable, int] = {}
"""The numbers of states, by what they consist of."""


def _frozen(value: object) -> Hashable:
    """Return a value of a setting as a key. True is not 1. Raises TypeError for one that cannot be a key."""
    if isinstance(value, list):
        return (list, *map(_frozen, value))
    hash(value)
    return type(value), value


Condition: TypeAlias = Callable[[ConditionState], Truth]


ANY_OF = "any-of"
"""The entry of ``when`` that is a list of alternatives."""


PACKAGE = "package"
"""The entry of ``when`` that tests the versions of packages that the project pins."""


DEFAULT = "default"
"""The entry beside the tests of a setting with which one that is not written has its default."""


def condition_of(when: Mapping[str, Any], unless: Mapping[str, Any] | None = None) -> Condition:
    """Return the condition that all parts of ``when`` are met, and not all of ``unless``.

    Raises RuleError for a test that does not exist.
    """
    # What surrounds a site takes time to read: the settings of the site itself are tested first.
    names = sorted(when, key=lambda name: _is_around(name, when[name]))
    conditions = [_part(name, when[name]) for name in names if name != PACKAGE]
    if unless is not None:
        conditions.append(_negation(condition_of(unless)))
    condition = conditions[0] if len(conditions) == 1 else _conjunction(conditions)
    return _where_pinned(condition, when[PACKAGE]) if PACKAGE in when else condition


def _where_pinned(condition: Condition, packages: Mapping[str, Mapping[str, str]]) -> Condition:
    """Return a condition with tests of packages, for which pins are read only where the rest of it holds."""
    tests = [_of_package(name, *test) for name, expected in packages.items() for test in expected.items()]
    pinned = _conjunction(tests)
    return lambda state: pinned(state) if (truth := condition(state)) is True else truth


def _of_package(name: str, test: str, version: str) -> Condition:
    """Return the condition that a project installs a package in a version below another one, or not below it."""
    if name not in package_names():
        raise RuleError(
            f"{name!r} is not a package whose pins are read; there are {', '.join(sorted(package_names()))}"
        )

    def condition(state: ConditionState) -> Truth:
        if state.folder is None:
            return None
        # Few runs test a version, and reading pins takes imports.
        from pathlib import Path

        from cgmigrate.project.pins.package_pins import side_of

        below = side_of(Path(state.folder), name, version)
        return below if test == "below" else _not(below)

    return condition


def condition_of_site(when: Mapping[str, Any]) -> Condition:
    """Return the part of a condition that needs no surroundings: if it does not hold, the condition does not.

    Raises RuleError for a test that does not exist.
    """
    of_site = (part for part in when.items() if part[0] != ANY_OF and not _is_around(*part))
    conditions = [_part(name, expected) for name, expected in of_site]
    if ANY_OF in when:
        alternatives = [condition_of_site(one) for one in when[ANY_OF]]
        conditions.append(lambda state: _any(alternative(state) for alternative in alternatives))
    return _conjunction(conditions)


def absent_keys(when: Mapping[str, Any], state: ConditionState) -> Iterator[str]:
    """Yield the settings around a site that a condition takes for what they are by default, and that may be elsewhere.

    The condition holds because they are not written, and the configuration does not show all of its settings.
    """
    for name, expected in when.items():
        if name == ANY_OF:
            yield from next((absent_keys(one, state) for one in expected if condition_of(one)(state)), ())
        elif _is_around(name, expected) and not _with_default(expected) and _may_be_elsewhere(name, state):
            yield name


def _may_be_elsewhere(name: str, state: ConditionState) -> bool:
    """Return whether a setting is not written, and another configuration may have it."""
    if state.value(name) is not Missing.ABSENT:
        return False
    return state.surroundings is None or state.surroundings.default(name) is Missing.UNKNOWN


def _is_around(name: str, expected: Any) -> bool:
    """Return whether an entry of ``when`` depends on more than the settings of a site."""
    if _with_default(expected):
        return True
    return name in _TESTS_AROUND or (name not in TESTS_OF_STATE and name not in FIELDS and name != ANY_OF)


def _with_default(expected: Any) -> bool:
    return isinstance(expected, Mapping) and bool(expected.get(DEFAULT))


def _conjunction(conditions: Sequence[Condition]) -> Condition:
    """Return whether all of several conditions hold. Each site asks each rule, so this is a plain loop."""

    def holds(state: ConditionState) -> Truth:
        result: Truth = True
        for condition in conditions:
            truth = condition(state)
            if truth is False:
                return False
            if truth is None:
                result = None
        return result

    return holds


# --- logic ----------------------------------------------------------------------------------------


def _all(truths: Iterable[Truth]) -> Truth:
    result: Truth = True
    for truth in truths:
        if truth is False:
            return False
        if truth is None:
            result = None
    return result


def _any(truths: Iterable[Truth]) -> Truth:
    result: Truth = False
    for truth in truths:
        if truth:
            return True
        if truth is None:
            result = None
    return result


def _not(truth: Truth) -> Truth:
    return None if truth is None else not truth


def _negation(condition: Condition) -> Condition:
    return lambda state: _not(condition(state))


# --- parts of a condition -------------------------------------------------------------------------


def _part(name: str, expected: Any) -> Condition:
    """Return the condition of one entry of ``when``."""
    if name == ANY_OF:
        alternatives = [condition_of(when) for when in expected]
        return lambda state: _any(alternative(state) for alternative in alternatives)
    if name in TESTS_OF_STATE:
        return TESTS_OF_STATE[name](expected)
    if isinstance(expected, Mapping) and isinstance(limit := expected.get("below"), str):
        return _conjunction([_is_below(name, limit), _part(name, {"written": True})])
    if _with_default(expected):
        with_default = _tests(name, {test: value for test, value in expected.items() if test != DEFAULT})
        return lambda state: _all_tests(with_default, state.value_or_default(name))
    tests = _tests(name, expected)
    if len(tests) == 1:
        test = tests[0]
        return lambda state: test(state.value(name))
    return lambda state: _all_tests(tests, state.value(name))


def _is_below(name: str, limit: str) -> Condition:
    """Return whether a setting is smaller than what others give. One that is not written counts as 0."""
    tree = expression(limit)

    def test(state: ConditionState) -> Truth:
        numbers = (_number_or_zero(state.value(name)), evaluate(tree, lambda one: _number_or_zero(state.value(one))))
        return None if numbers[0] is None or numbers[1] is None else numbers[0] < numbers[1]

    return test


def _number_or_zero(value: object) -> float | None:
    return 0 if value is Missing.ABSENT else _number(value)


def _all_tests(tests: Iterable[Test], value: object) -> Truth:
    return _all(test(value) for test in tests)


def _release_test(compare: Callable[[ConditionState, Release], bool]) -> Callable[[Any], Condition]:
    def condition(text: str) -> Condition:
        release = release_of(text)
        return lambda state: compare(state, release)

    return condition


def _is_one_of(actual: Callable[[ConditionState], str]) -> Callable[[Any], Condition]:
    def condition(expected: Any) -> Condition:
        values = frozenset(_as_list(expected))
        return lambda state: actual(state) in values

    return condition


def _program(expected: Any) -> Condition:
    names = frozenset(_as_list(expected))
    return lambda state: not names.isdisjoint(state.programs)


def _ignores(expected: bool) -> Condition:
    return lambda state: bool(state.surroundings is not None and state.surroundings.ignored()) is expected


TESTS_OF_STATE: Mapping[str, Callable[[Any], Condition]] = {
    "reader": _is_one_of(lambda state: state.reader),
    "ecosystem": _is_one_of(lambda state: state.ecosystem),
    "program": _program,
    "rejected": _is_one_of(lambda state: state.rejected),
    "ignores": _ignores,
    "source-since": _release_test(lambda state, release: state.source >= release),
    "source-before": _release_test(lambda state, release: state.source < release),
    "target-since": _release_test(lambda state, release: state.target >= release),
    "target-before": _release_test(lambda state, release: state.target < release),
}

_TESTS_AROUND = frozenset(["ignores"])
"""Those that depend on more than the settings of a site."""


# --- tests of one setting -------------------------------------------------------------------------

Test: TypeAlias = Callable[[object], Truth]
"""A test of the value of a setting, which may be ``Undecided`` or ``Missing``."""


def _tests(name: str, expected: Any) -> list[Test]:
    """Return the tests of a setting that a rule names. Raises RuleError for one that does not exist."""
    if not isinstance(expected, Mapping):
        return [_equals(expected)]
    for test in expected:
        if test not in _TESTS_OF_SETTING:
            raise RuleError(f"unknown test {test!r} on {name}")
    return [_TESTS_OF_SETTING[test](argument) for test, argument in expected.items()]


def _equals(expected: object) -> Test:
    if expected == Missing.ABSENT.value:
        return _is_absent
    # True is not 1.
    return _of_value(False, lambda value: type(value) is type(expected) and value == expected)


def _is_absent(value: object) -> Truth:
    return None if value is Missing.UNKNOWN else value is Missing.ABSENT


def _in(values: Collection[object]) -> Test:
    tests = [_equals(value) for value in values]
    return lambda value: _any(test(value) for test in tests)


def _written(expected: bool) -> Test:
    return lambda value: None if value is Missing.UNKNOWN else (value is not Missing.ABSENT) is expected


def _of_value(absent: bool, test: Callable[[object], bool]) -> Test:
    """Return a test of a known value, which gives ``absent`` if the setting is not written."""

    def with_missing(value: object) -> Truth:
        match value:
            case Missing.ABSENT:
                return absent
            case Missing.UNKNOWN | Undecided():
                return None
        return test(value)

    return with_missing


def _separated_by(separator: str) -> Callable[[object], bool]:
    def test(value: object) -> bool:
        text = value.strip() if isinstance(value, str) else ""
        match separator:
            case "comma":
                return "," in text
            case "comma-space":
                return ", " in text
            case _:
                return " " in text and "," not in text

    return test


def _number(value: object) -> float | None:
    """Return a value as a number; None if it is none. Command lines have text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _at_least(least: float) -> Callable[[object], bool]:
    return lambda value: (number := _number(value)) is not None and number >= least


def _below(limit: float) -> Callable[[object], bool]:
    return lambda value: (number := _number(value)) is not None and number < limit


def _no_layer(number: int) -> Callable[[object], bool]:
    # TransformerConfig evaluates no text: only the command line does, and its texts are evaluated where they are read.
    return lambda value: not isinstance(value, str) and not has_layer(value, number)


def _lacks(names: Any) -> Callable[[object], bool]:
    excluded = frozenset(_as_list(names))
    return lambda value: excluded.isdisjoint(names_in(value))


_TESTS_OF_SETTING: Mapping[str, Callable[[Any], Test]] = {
    "in": _in,
    "written": _written,
    "shown": lambda expected: lambda value: isinstance(value, Missing) is not expected,
    "has": lambda name: _of_value(False, lambda value: name in names_in(value)),
    "has-any": lambda names: _of_value(False, lambda value: not set(names).isdisjoint(names_in(value))),
    "lacks": lambda names: _of_value(True, _lacks(names)),
    "only": lambda name: _of_value(False, lambda value: names_in(value) == [name]),
    "empty": lambda expected: _of_value(not expected, lambda value: (not names_in(value)) is expected),
    "separated-by": lambda separator: _of_value(False, _separated_by(separator)),
    "no-layer": lambda number: _of_value(False, _no_layer(number)),
    "at-least": lambda least: _of_value(False, _at_least(least)),
    "below": lambda limit: _of_value(False, _below(limit)),
}


def _as_list(value: Any) -> Collection[Any]:
    return value if isinstance(value, list) else [value]


def release_of(text: str) -> Release:
    """Return the release that a rule names, such as ``0.18``."""
    major, _, minor = str(text).partition(".")
    return Release(int(major), int(minor))
