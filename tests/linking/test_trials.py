"""Which change makes code differ: trials with each change in another form, or skipped."""

from __future__ import annotations

import pytest

from cgmigrate.proof.flow.modules import Modules
from cgmigrate.linking.python.pieces import Unit, unit_of
from cgmigrate.linking.python.trials import Forms, Trials

BASE, RECIPE, READER = (("base.py", 0), ("recipe.py", 0), ("reader.py", 0))
FORMS = {BASE: 2, RECIPE: 2, READER: 1}
COUNTS = {BASE: 40, RECIPE: 1, READER: 60}
MADE = {BASE: 0, RECIPE: 0, READER: 0}


@pytest.fixture
def unit() -> Unit:
    module = Modules({"/recipe.py": "def recipe():\n    return 1\n"}, lambda path, text: None, lambda: ()).read(
        "/recipe.py"
    )
    assert module is not None
    named = unit_of(module, "recipe#1")
    assert named is not None
    return named


def mended(unit: Unit, *right: Forms) -> Forms | None:
    trials = Trials(lambda _, forms: forms not in right, FORMS, COUNTS, ())
    return trials.mended(unit, MADE, MADE)


def test_a_change_is_written_in_another_form_before_one_is_skipped(unit: Unit) -> None:
    other_form = {**MADE, BASE: 1}

    assert mended(unit, {BASE: 0, READER: 0}, other_form) == other_form


def test_the_change_is_skipped_on_which_the_fewest_objects_depend(unit: Unit) -> None:
    assert mended(unit, {RECIPE: 0, READER: 0}, {BASE: 0, READER: 0}) == {BASE: 0, READER: 0}


def test_two_changes_are_skipped_where_one_does_not_help(unit: Unit) -> None:
    assert mended(unit, {BASE: 0}) == {BASE: 0}


def test_it_is_not_clear_where_nothing_helps(unit: Unit) -> None:
    assert mended(unit) is None


def test_changes_that_are_tried_again_fail_before_others(unit: Unit) -> None:
    right = ({RECIPE: 1, BASE: 0, READER: 0}, {BASE: 1, RECIPE: 0, READER: 0})
    trials = Trials(lambda _, forms: forms not in right, FORMS, COUNTS, {BASE})

    assert trials.mended(unit, MADE, MADE) == right[1]
