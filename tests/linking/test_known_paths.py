"""The paths of a unit before the edits are evaluated once for each state that it may get."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from cgmigrate.linking.python.evaluation import Path, Touched, Unknowns
from cgmigrate.linking.python.known_paths import KnownPaths
from cgmigrate.proof.flow.modules import Module
from cgmigrate.linking.python.pieces import Unit
from cgmigrate.linking.python.values import CannotFollowError

UNIT = Unit("recipe#1", Module("recipe.py", "", ast.Module([], [])), None)
LOCAL, NONE = (("cuda_graph_impl", "local"),), (("cuda_graph_impl", "none"),)


class Evaluation:
    """An evaluation that counts how often it is begun."""

    def __init__(self, *paths: Path, error: str = "") -> None:
        self.paths, self.error, self.count = paths, error, 0

    def __call__(self, touched: Touched) -> Iterator[Path]:
        self.count += 1
        touched.before.use_file("recipe.py")
        touched.is_open = True
        yield from self.paths
        if self.error:
            raise CannotFollowError(self.error)


def test_a_unit_is_evaluated_once_for_each_state() -> None:
    known, evaluation = KnownPaths(), Evaluation(Path(uses={("recipe.py", 3)}))
    for state in (LOCAL, NONE, LOCAL):
        touched = Touched()
        assert list(known.of(UNIT, Unknowns([state]), touched, evaluation)) == list(evaluation.paths)
        assert touched.is_open
        assert touched.before.files.keys() == {"recipe.py"}
    assert evaluation.count == 2


def test_why_a_unit_is_not_followed_is_known_too() -> None:
    known, evaluation = KnownPaths(), Evaluation(Path(uses={("recipe.py", 3)}), error="a loop")
    for _ in range(2):
        paths = known.of(UNIT, Unknowns([LOCAL]), Touched(), evaluation)
        assert next(paths) is evaluation.paths[0]
        with pytest.raises(CannotFollowError, match="a loop"):
            next(paths)
    assert evaluation.count == 1


def test_paths_that_are_not_all_taken_are_evaluated_again() -> None:
    known, evaluation = KnownPaths(), Evaluation(Path(uses={("recipe.py", 3)}), Path())
    paths = known.of(UNIT, Unknowns([LOCAL]), touched := Touched(), evaluation)
    assert next(paths) is evaluation.paths[0]
    assert touched.before.files.keys() == {"recipe.py"}
    paths.close()  # type: ignore[attr-defined]
    assert list(known.of(UNIT, Unknowns([LOCAL]), Touched(), evaluation)) == list(evaluation.paths)
    assert evaluation.count == 2


def test_a_record_that_is_made_from_its_object_is_another_state() -> None:
    known, evaluation = KnownPaths(), Evaluation(Path(uses={("recipe.py", 3)}))
    record = (("scope", "full"),)
    for sources in ([frozenset({4})], [frozenset({5})]):
        list(known.of(UNIT, Unknowns([LOCAL], 4, [record], 2, sources), Touched(), evaluation))
    assert evaluation.count == 2
    # Which number a state has does not matter.
    list(known.of(UNIT, Unknowns([LOCAL], 7, [record], 3, [frozenset({7})]), Touched(), evaluation))
    assert evaluation.count == 2


def test_units_without_settings_are_not_kept() -> None:
    known, evaluation = KnownPaths(), Evaluation(Path())
    for _ in range(2):
        assert list(known.of(UNIT, Unknowns([LOCAL]), Touched(), evaluation)) == [Path()]
    assert evaluation.count == 2
