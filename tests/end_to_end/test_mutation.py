"""The sample of the mutation test stays what people have judged, while the code around it changes."""

from __future__ import annotations

from tests.mutation import SEED, equivalents, first_by_hash
from tests.support.mutants import mutants_of

SOURCE = """
def sign(number):
    if number < 0:
        return -1
    return 1


def clipped(number, limit):
    if number > limit:
        return limit
    if number > limit and limit > 1:
        number += 1
        number += 1
    return number
"""


def sample_of(source: str, seed: int = SEED, number: int = 5) -> set[str]:
    mutants = mutants_of("module.py", source)
    return {mutant.identity for mutant in first_by_hash(mutants, seed, number)}


def test_lines_above_do_not_change_a_sample() -> None:
    assert sample_of("import os\n\n\n" + SOURCE) == sample_of(SOURCE)


def test_new_code_replaces_only_what_comes_last() -> None:
    everything = mutants_of("module.py", SOURCE + "\n\ndef twice(number):\n    return number * 2\n")
    kept = [mutant for mutant in first_by_hash(everything, SEED, len(everything)) if mutant.function != "twice"]
    assert {mutant.identity for mutant in kept[:5]} == sample_of(SOURCE)


def test_another_seed_draws_another_sample() -> None:
    assert len({frozenset(sample_of(SOURCE, seed)) for seed in range(5)}) > 1


def test_each_mutant_has_its_own_identity() -> None:
    mutants = mutants_of("module.py", SOURCE)
    assert len({mutant.identity for mutant in mutants}) == len(mutants)
    assert [mutant.line for mutant in mutants if "number += 1" in mutant.operator] == [12, 13]


def test_each_listed_equivalent_has_a_reason() -> None:
    assert all(equivalents().values())
