"""Conditions of rules: true, false or unknown, compared with every value that an unknown setting may have."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgmigrate.lint.conditions import ConditionState, Truth, condition_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import RuleError
from cgmigrate.megatron.settings import IMPL, INFERENCE, MODULES, SCOPE, Missing, Undecided, names_in
from cgmigrate.project.pins import package_pins
from tests.support.files import write
from tests.support.nightly import examples
from tests.support.tables import from_table, table_of

OLD, NEW = Release(0, 17), Release(0, 18)
COMPUTED = Undecided("${oc.env:X}", "an interpolation")
VALUES: tuple[object, ...] = table_of(__name__, "VALUES")
"""Values that make every test true and every test false."""
DEFAULT = "a"
"""What a setting is that is not written."""
NEIGHBOURS = ("check_for_nan_in_loss", "moe_expert_capacity_factor", "recompute_granularity", "te_rng_tracker")
NAMES = (IMPL, SCOPE, MODULES, INFERENCE, *NEIGHBOURS)


@dataclass(frozen=True)
class Around:
    """Surroundings with known values; all others are absent."""

    values: Mapping[str, object]

    def get(self, name: str) -> object:
        return self.values.get(name, Missing.ABSENT)

    def default(self, name: str) -> object:
        return DEFAULT

    def ignored(self) -> tuple[str, ...]:
        return ()


def state(values: Mapping[str, object], **others: Any) -> ConditionState:
    """A state in which capture settings are written at the site, and all others around it."""
    own = {name: value for name, value in values.items() if name not in NEIGHBOURS and value is not Missing.ABSENT}
    around = Around({name: value for name, value in values.items() if name in NEIGHBOURS})
    return ConditionState(own, **({"reader": "config", "source": OLD, "target": NEW, "surroundings": around} | others))


# --- the reference --------------------------------------------------------------------------------


def is_met(when: Mapping[str, Any], values: Mapping[str, object]) -> bool:
    """Conditions on values that are all known, as docs/writing-rules.md describes them."""
    for name, expected in when.items():
        if name == "any-of":
            if not any(is_met(part, values) for part in expected):
                return False
            continue
        tests = expected if isinstance(expected, dict) else {"in": [expected]}
        value = values.get(name, Missing.ABSENT)
        if "default" in tests:
            tests = {test: argument for test, argument in tests.items() if test != "default"}
            value = DEFAULT if value is Missing.ABSENT else value
        if not all(passes(test, argument, value) for test, argument in tests.items()):
            return False
    return True


def passes(test: str, argument: Any, value: object) -> bool:
    absent = value is Missing.ABSENT
    names = [] if absent else names_in(value)
    match test:
        case "in":
            return any(absent if one == "absent" else type(one) is type(value) and one == value for one in argument)
        case "written":
            return absent is not argument
        case "has":
            return argument in names
        case "has-any":
            return any(name in names for name in argument)
        case "lacks":
            return not any(name in names for name in ([argument] if isinstance(argument, str) else argument))
        case "only":
            return names == [argument]
        case "empty":
            return (not absent and not names) is argument
        case "at-least":
            return is_number(value) and float(value) >= argument  # type: ignore[arg-type]
        case "below":
            return is_number(value) and float(value) < argument  # type: ignore[arg-type]
    raise AssertionError(test)


def is_number(value: object) -> bool:
    return value == "8" or (isinstance(value, int) and not isinstance(value, bool))


def completions(values: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """Every way in which the unknown settings may be written."""
    possible = []
    for value in values.values():
        match value:
            case Missing.UNKNOWN:
                possible.append((Missing.ABSENT, *VALUES))
            case Undecided():
                possible.append(VALUES)
            case _:
                possible.append((value,))
    for chosen in itertools.product(*possible):
        yield dict(zip(values, chosen, strict=True))


# --- random conditions and states -----------------------------------------------------------------

expectations = st.one_of(
    st.sampled_from([True, False, "a", "absent", None, 3]),
    st.sampled_from(
        [
            {"in": ["absent", None, []]},
            {"in": ["a", "b"]},
            {"has": "a"},
            {"has-any": ["a", "c"]},
            {"lacks": "a"},
            {"lacks": ["a", "b"]},
            {"only": "a"},
            {"written": True},
            {"written": False},
            {"empty": True},
            {"empty": False},
            {"in": ["a", 3], "default": True},
            {"lacks": "b", "default": True},
            {"at-least": 3},
            {"below": 8},
        ]
    ),
)
known = st.sampled_from([Missing.ABSENT, *VALUES])


@st.composite
def conditions(draw: st.DrawFn, names: tuple[str, ...] = NAMES) -> dict[str, Any]:
    """A condition in which each setting is tested at most once."""
    chosen = draw(st.lists(st.sampled_from(names), unique=True, max_size=4))
    inside = draw(st.integers(0, len(chosen)))
    alternatives = [{name: draw(expectations)} for name in chosen[:inside]]
    when = {name: draw(expectations) for name in chosen[inside:]}
    return when | ({"any-of": alternatives} if alternatives else {})


@st.composite
def states(draw: st.DrawFn) -> dict[str, object]:
    """Values of all settings, at most two of which are unknown."""
    values = {name: draw(known) for name in NAMES}
    for name in draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=2)):
        of_site = name not in NEIGHBOURS
        values[name] = COMPUTED if of_site else draw(st.sampled_from([COMPUTED, Missing.UNKNOWN]))
    return values


@settings(max_examples=examples(400))
@given(when=conditions(), unless=st.none() | conditions(), values=states())
def test_what_is_true_or_false_is_so_for_every_value_of_what_is_unknown(
    when: dict[str, Any], unless: dict[str, Any] | None, values: dict[str, object]
) -> None:
    outcomes = {
        is_met(when, complete) and not (unless is not None and is_met(unless, complete))
        for complete in completions(values)
    }
    truth = condition_of(when, unless)(state(values))
    if truth is not None:
        assert outcomes == {truth}


@settings(max_examples=examples(400))
@given(when=conditions(NAMES[:4]), unless=st.none() | conditions(NAMES[4:]), values=states())
def test_what_is_unknown_depends_on_it_if_each_setting_is_tested_once(
    when: dict[str, Any], unless: dict[str, Any] | None, values: dict[str, object]
) -> None:
    if condition_of(when, unless)(state(values)) is None:
        outcomes = [
            is_met(when, complete) and not (unless is not None and is_met(unless, complete))
            for complete in completions(values)
        ]
        assert {True, False} == set(outcomes)


@pytest.mark.parametrize(
    ("when", "unless", "value", "expected"),
    [
        ({"te_rng_tracker": True}, None, Missing.UNKNOWN, None),
        ({"te_rng_tracker": "absent"}, None, Missing.UNKNOWN, None),
        ({"te_rng_tracker": "absent"}, None, COMPUTED, False),
        ({"te_rng_tracker": {"written": True}}, None, COMPUTED, True),
        ({"te_rng_tracker": {"in": ["absent", True]}}, None, COMPUTED, None),
        ({"cuda_graph_impl": "local"}, {"te_rng_tracker": True}, Missing.UNKNOWN, None),
        ({"cuda_graph_impl": "local"}, {"te_rng_tracker": True}, Missing.ABSENT, True),
        ({"cuda_graph_impl": "local"}, {"te_rng_tracker": True}, True, False),
        ({"cuda_graph_impl": "none"}, {"te_rng_tracker": True}, Missing.UNKNOWN, False),
        ({"any-of": [{"cuda_graph_impl": "local"}, {"te_rng_tracker": True}]}, None, Missing.UNKNOWN, True),
        ({"any-of": [{"cuda_graph_impl": "none"}, {"te_rng_tracker": True}]}, None, Missing.UNKNOWN, None),
        # True is no number, and text that is one is one.
        ({"te_rng_tracker": {"at-least": 1}}, None, True, False),
        ({"te_rng_tracker": {"at-least": 1.5}}, None, "1.5", True),
        ({"te_rng_tracker": {"at-least": 1.5}}, None, "1.4", False),
        ({"te_rng_tracker": {"below": 1.5}}, None, "1.5", False),
        ({"te_rng_tracker": {"below": 2}}, None, "two", False),
        ({"te_rng_tracker": {"empty": True}}, None, [], True),
        ({"te_rng_tracker": {"empty": True}}, None, "attn", False),
        # The text "absent" is a value.
        ({"te_rng_tracker": "absent"}, None, "absent", False),
    ],
)
def test_an_unknown_setting(
    when: dict[str, Any], unless: dict[str, Any] | None, value: object, expected: Truth
) -> None:
    assert condition_of(when, unless)(state({IMPL: "local", "te_rng_tracker": value})) is expected


def test_a_setting_around_a_site_is_unknown_if_nothing_shows_what_is_around_it() -> None:
    assert condition_of({"te_rng_tracker": {"written": False}})(state({}, surroundings=None)) is None
    assert condition_of({"cuda_graph_impl": "absent"})(state({}, surroundings=None)) is True


@from_table
def test_a_range_of_releases_begins_with_the_first_and_ends_before_the_last(condition: str, expected: bool) -> None:
    name, release = condition.split(": ")
    assert condition_of({name: release})(state({})) is expected


def test_a_test_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(RuleError, match="unknown test 'contains' on cuda_graph_impl"):
        condition_of({"cuda_graph_impl": {"contains": "a"}})


@pytest.mark.parametrize(("ecosystem", "met"), [("nemo-rl", True), (["megatron-lm", "nemo-rl"], True), ("nemo", False)])
def test_a_condition_asks_for_the_owner_of_the_settings(ecosystem: object, met: bool) -> None:
    assert condition_of({"ecosystem": ecosystem})(state({}, ecosystem="nemo-rl")) is met


@pytest.mark.parametrize(
    ("tokens", "requests", "guessed", "expected"),
    [
        (64, 128, 0, True),
        (128, 128, 0, False),
        ("128", "64", "1", False),
        (128, 64, 2, True),
        (Missing.ABSENT, 64, 0, False),
        (64, Missing.ABSENT, 3, False),
        (64, Missing.UNKNOWN, 0, None),
        (64, 128, Missing.UNKNOWN, None),
        (Undecided("$TOKENS", "computed"), 128, 0, None),
    ],
)
def test_a_setting_is_compared_with_what_others_give(
    tokens: object, requests: object, guessed: object, expected: bool | None
) -> None:
    condition = condition_of({"tokens": {"below": "requests * (guessed + 1)"}})
    values = {"tokens": tokens, "requests": requests, "guessed": guessed}

    class Around:
        def get(self, name: str, /) -> object:
            return values[name]

        def key(self, name: str, /) -> str:
            return name

    state = ConditionState({}, "command-line", NEW, NEW, surroundings=Around(), names=frozenset())
    assert condition(state) is expected


@pytest.mark.parametrize("text", ["requests *", "requests / 2", "len(requests)", "requests.count"])
def test_an_expression_has_names_and_numbers_only(text: str) -> None:
    with pytest.raises(RuleError):
        condition_of({"tokens": {"below": text}})


@pytest.mark.parametrize(
    ("pattern", "met"),
    [
        (1, True),
        (2, False),
        ([1, 1], True),
        ([0, 1], False),
        ([], True),
        # TransformerConfig evaluates no text.
        ("([1]*4)", False),
        (Missing.ABSENT, False),
        (Undecided("([1]*$N)", "computed"), None),
    ],
)
def test_a_pattern_of_layers_has_a_number_or_not(pattern: object, met: bool | None) -> None:
    condition = condition_of({"moe_layer_freq": {"no-layer": 0}})
    assert condition(ConditionState({}, "config", NEW, NEW, surroundings=Around({"moe_layer_freq": pattern}))) is met


PINNED = {"package": {"transformer-engine": {"below": "2.12"}}}


@pytest.mark.parametrize(
    ("text", "below", "at_least"),
    [("==2.11.0", True, False), ("==2.12.0", False, True), (">=2.11", None, None), ("", None, None)],
)
def test_a_condition_asks_for_the_version_that_the_project_pins(
    project: Path, text: str, below: bool | None, at_least: bool | None
) -> None:
    write("requirements.txt", f"transformer-engine{text}\n")
    pinned = state({}, folder=str(project))
    assert condition_of(PINNED)(pinned) is below
    assert condition_of({"package": {"transformer-engine": {"at-least": "2.12"}}})(pinned) is at_least
    assert condition_of({"package": {"transformer-engine": {"below": "2.12", "at-least": "2.5"}}})(pinned) is below
    assert condition_of(PINNED)(state({})) is None, "a text without a file"


@pytest.mark.parametrize("impl", ["none", COMPUTED])
def test_pins_are_read_only_where_the_rest_of_a_condition_holds(
    impl: object, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    monkeypatch.setattr(package_pins, "side_of", lambda _folder, name, _limit: read.append(name))
    condition = condition_of({**PINNED, "cuda_graph_impl": "local"})
    assert condition(state({IMPL: impl}, folder=str(project))) is (False if impl == "none" else None)
    assert not read
    condition(state({IMPL: "local"}, folder=str(project)))
    assert read == ["transformer-engine"]


def test_a_package_whose_pins_are_not_read_is_an_error() -> None:
    with pytest.raises(
        RuleError, match="'flash-attn' is not a package whose pins are read; there are megatron-core, t"
    ):
        condition_of({"package": {"flash-attn": {"below": "3.0"}}})
