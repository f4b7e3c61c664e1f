"""Two paths through one function, before and after edits: what both leave, to be compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cgmigrate.linking.python.evaluation import LOGGED, Path
from cgmigrate.linking.python.objects import each_part, frozen_settings, settings_of
from cgmigrate.linking.python.outcomes import state_of
from cgmigrate.linking.python.values import FrozenSettings, thawed
from cgmigrate.proof.flow.world import World
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, INFERENCE, MODULES, SCOPE


def shortened(pair: tuple[FrozenSettings, FrozenSettings]) -> tuple[FrozenSettings, FrozenSettings]:
    """Return a state without the flags that are off before and after, which is their default in every release."""
    both = [dict(one) for one in pair]
    off = {name for name in (ENABLE, EXTERNAL) if not any(one.get(name, False) for one in both)}
    return tuple(tuple(item for item in one if item[0] not in off) for one in pair)  # type: ignore[return-value]


def is_new(settings: FrozenSettings) -> bool:
    """Return whether settings have names that a release before the split does not have."""
    return any(name in (MODULES, INFERENCE) for name, _ in settings)


def plain(settings: FrozenSettings) -> dict[str, object]:
    """Return settings by name, as code has them."""
    return {name: thawed(value) for name, value in settings}


def outcome(path: Path, world: World, *, with_logs: bool = True) -> str:
    """Return a text for all that a path does, and for what it leaves; without ``with_logs`` not for what logs show."""
    events = (
        path.events if with_logs else [one.partition("(")[0] if one.startswith(LOGGED) else one for one in path.events]
    )
    parts = [*events, state_of(path.value, world)]
    return "\n".join([*parts, *(state_of(argument, world) for argument in path.arguments)])


def left_by(
    before: Path, after: Path, pairs: Sequence[tuple[FrozenSettings, FrozenSettings]]
) -> Iterator[tuple[FrozenSettings, FrozenSettings]]:
    """Yield the states of the objects that a path uses or gives to other code.

    Where only one text uses an object, it has the settings in the other with which it came.
    """
    old, new = _by_key(before), _by_key(after)
    came = {one.key: pairs[number] for path in (before, after) for one, number in path.opened}
    for key in dict.fromkeys((*old, *new)):
        first, second = came.get(key, ((), ()))
        olds, news = old.get(key, []), new.get(key, [])
        for at in range(max(len(olds), len(news))):
            yield (olds[at] if at < len(olds) else first, news[at] if at < len(news) else second)


def meets_change(before: Path, after: Path) -> bool:
    """Return whether two paths use an object that has other settings after the edits than before."""
    old, new = ({one.key: frozen_settings(one) for one in path.used.values()} for path in (before, after))
    return any(old[key] != new[key] for key in old.keys() & new.keys())


def made_in_both(before: Path, after: Path) -> Iterator[tuple[Mapping[str, object], Mapping[str, object]]]:
    """Yield the settings of the objects that two paths make themselves, before and after, where these differ."""
    old, new = _made(before), _made(after)
    yield from ((plain(old[key]), plain(new[key])) for key in old if key in new and old[key] != new[key])


def opened_in_both(
    before: Path, after: Path, pairs: Sequence[tuple[FrozenSettings, FrozenSettings]]
) -> Iterator[tuple[tuple[FrozenSettings, FrozenSettings], tuple[FrozenSettings, FrozenSettings]]]:
    """Yield the settings of the objects that two paths get from other code, as they came, and as they are left."""
    new = {one.key: frozen_settings(one) for one, _ in after.opened}
    for one, number in before.opened:
        if one.key in new and pairs[number] != (left := (frozen_settings(one), new[one.key])):
            yield pairs[number], left


def _made(path: Path) -> dict[str, FrozenSettings]:
    return {one.key: frozen_settings(one) for one in each_part(_values(path)) if one.by_megatron and not one.is_open}


def reads_in_vain(before: Path, after: Path, *, of_test: bool) -> Iterator[tuple[str, int]]:
    """Yield where code reads a deprecated setting of an object that the edits give other settings.

    Code that reads a scope to find the full iteration finds none any more, which is right. A test has to say so, and
    what it calls: it would test nothing.
    """
    old = {one.key: frozen_settings(one) for one in before.used.values()}
    for one, name, place in after.old_reads:
        was, now = old.get(one.key), frozen_settings(one)
        if was is None or was == now or name in dict(now) or (one.is_open and name not in dict(was)):
            # An object that other code makes may be of another kind.
            continue
        if name != SCOPE or (of_test and one.key not in after.modules_read):
            yield place


def records_of(before: Path, after: Path) -> Iterator[tuple[FrozenSettings, FrozenSettings]]:
    """Yield the states of the records that a path makes."""
    old, new = ({one.key: one for one in path.records} for path in (before, after))
    yield from ((frozen_settings(old[key]), frozen_settings(new[key])) for key in old if key in new)


def _values(path: Path) -> list[object]:
    """Return all that a path leaves: many of these values lead to the same objects."""
    return [path.value, *path.arguments, *path.bound.values(), *path.written.values()]


def _by_key(path: Path) -> dict[str, list[FrozenSettings]]:
    result: dict[str, list[FrozenSettings]] = {}
    opened = [(one.key, frozen_settings(one)) for one, _ in path.opened]
    known = {key for key, _ in opened}
    made = [one for one in settings_of(_values(path)) if one[0] not in known]
    for key, settings in (*opened, *dict.fromkeys(made)):
        result.setdefault(key, []).append(settings)
    for key, settings in path.passed:
        result.setdefault(f"{key} as it is passed on", []).append(settings)
    return result
