"""The paths through units before the edits, which are the same in each attempt to prove some of them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field

from cgmigrate.linking.python.evaluation import NotFollowedError, Path, Touched, Unknowns
from cgmigrate.linking.python.objects import is_possible
from cgmigrate.linking.python.pieces import Unit
from cgmigrate.linking.python.values import CannotFollowError

_Key = tuple[object, ...]
_MOST_KEPT = 16
"""How many paths are kept of a unit with one state: those of some have a megabyte."""


@dataclass(frozen=True, slots=True)
class _Paths:
    """All paths of a unit, what they depend on, and why it is not followed beyond them."""

    paths: tuple[Path, ...]
    touched: Touched
    error: CannotFollowError | NotFollowedError | None


@dataclass(slots=True)
class KnownPaths:
    """The paths of units, by the states that they may get."""

    _known: dict[_Key, _Paths] = field(default_factory=dict)

    def of(
        self, unit: Unit, unknowns: Unknowns, touched: Touched, evaluate: Callable[[Touched], Iterator[Path]]
    ) -> Iterator[Path]:
        """Yield the paths of a unit that ``evaluate`` yields, and note what they depend on.

        Raises CannotFollowError and NotFollowedError.
        """
        key = (unit, *_key_of(unknowns), frozenset(touched.not_followed))
        if (known := self._known.get(key)) is None:
            known = yield from self._evaluated(key, touched, evaluate)
        else:
            touched.add(known.touched)
            yield from known.paths
        if known.error is not None:
            raise known.error.with_traceback(None)

    def _evaluated(
        self, key: _Key, touched: Touched, evaluate: Callable[[Touched], Iterator[Path]]
    ) -> Generator[Path, None, _Paths]:
        own = Touched(not_followed=touched.not_followed)
        paths = list[Path]()
        error: CannotFollowError | NotFollowedError | None = None
        try:
            for path in evaluate(own):
                paths.append(path)
                touched.add(own)
                yield path
        except (CannotFollowError, NotFollowedError) as failure:
            error = failure.with_traceback(None)
        touched.add(own)
        known = _Paths(tuple(paths), own, error)
        if len(paths) <= _MOST_KEPT and any(one.uses or one.opened for one in paths):
            # No edit changes what others do.
            self._known[key] = known
        return known


def _key_of(unknowns: Unknowns) -> _Key:
    """Return what paths depend on of the states that they may get: of one state, whether its record is made from it."""
    states, records = tuple(unknowns.states), tuple(unknowns.records)
    if len(states) == len(records) == 1:
        is_pair = is_possible(unknowns.first, unknowns.first_record, unknowns)
        return states, records, is_pair, unknowns.has_fakes
    numbers = unknowns.first, unknowns.first_record
    return states, records, numbers, tuple(map(frozenset, unknowns.sources)), unknowns.has_fakes
