"""Which changes lead to a state: each way by itself, also where a way is noted after the states that it leads to."""

from __future__ import annotations

from cgmigrate.linking.python.ways import OBJECT, RECORD, Ways

BASE, RECIPE, OTHER, HELPER = (("base.py", 0), ("recipe.py", 0), ("other.py", 0), ("helper.py", 0))


def way(*names: tuple[str, int]) -> frozenset[tuple[str, int]]:
    return frozenset(names)


def test_the_first_state_needs_no_change() -> None:
    ways = Ways()
    ways.close()

    assert ways.through(way(), [(OBJECT, 0)]) == [way()]
    assert not ways.within([(OBJECT, 0)], way(BASE))


def test_two_recipes_that_leave_one_state_are_two_ways() -> None:
    ways = Ways()
    ways.lead(way(RECIPE), [(OBJECT, 0)], (OBJECT, 1))
    ways.lead(way(OTHER), [(OBJECT, 0)], (OBJECT, 1))
    ways.close()

    assert ways.through(way(HELPER), [(OBJECT, 1)]) == [way(HELPER, OTHER), way(HELPER, RECIPE)]


def test_a_way_that_is_noted_later_leads_on() -> None:
    ways = Ways()
    ways.lead(way(HELPER), [(OBJECT, 1)], (OBJECT, 2))
    ways.lead(way(HELPER), [(OBJECT, 1)], (RECORD, 1))
    ways.lead(way(BASE), [(OBJECT, 0)], (OBJECT, 1))
    ways.close()

    assert ways.through(way(), [(OBJECT, 2)]) == [way(BASE, HELPER)]
    assert ways.through(way(), [(RECORD, 1)]) == [way(BASE, HELPER)]


def test_a_way_with_all_changes_of_another_is_none() -> None:
    ways = Ways()
    ways.lead(way(BASE), [(OBJECT, 0)], (OBJECT, 1))
    ways.lead(way(BASE, RECIPE), [(OBJECT, 0)], (OBJECT, 1))
    ways.close()

    assert ways.through(way(), [(OBJECT, 1)]) == [way(BASE)]


def test_a_state_is_within_the_changes_of_one_way_to_it() -> None:
    ways = Ways()
    ways.lead(way(BASE, RECIPE), [(OBJECT, 0)], (OBJECT, 1))
    ways.close()

    assert ways.within([(OBJECT, 1)], way(BASE, RECIPE, OTHER))
    assert not ways.within([(OBJECT, 1)], way(BASE, OTHER))
    assert not ways.within([(OBJECT, 1), (OBJECT, 2)], way(BASE))


def test_ways_that_lead_in_a_circle_end() -> None:
    ways = Ways()
    ways.lead(way(BASE), [(OBJECT, 0)], (OBJECT, 1))
    ways.lead(way(HELPER), [(OBJECT, 1)], (OBJECT, 2))
    ways.lead(way(OTHER), [(OBJECT, 2)], (OBJECT, 1))
    ways.close()

    assert ways.through(way(), [(OBJECT, 1)]) == [way(BASE)]
    assert ways.counts()[BASE] == 2
