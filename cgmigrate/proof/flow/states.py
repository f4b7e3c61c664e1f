"""The settings that objects of a project have, before and after the edits, and whether both capture the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import NEWEST, SPLIT_IN
from cgmigrate.megatron.settings import (
    DEPRECATED,
    ENABLE,
    EXTERNAL,
    IMPL,
    INFERENCE,
    LAYER_MODULES,
    MODULES,
    SCOPE,
    names_in,
)
from cgmigrate.megatron.types import Capture, Rejected
from cgmigrate.proof.flow.run import Frozen, Name, frozen, thawed
from cgmigrate.proof.flow.values import Member
from cgmigrate.proof.flow.world import SETTINGS, TRACKERS, World

Pair = tuple[Frozen, Frozen]
"""The settings of an object before and after the edits."""
_CLASSES = {MODULES: "CudaGraphModule", SCOPE: "CudaGraphScope", INFERENCE: "InferenceCudaGraphScope"}


@dataclass(slots=True)
class Pool:
    """The states that the code of a project leaves, each with the changes that lead to it; the first is the default."""

    pairs: list[Pair] = field(default_factory=lambda: [((), ())])
    sources: list[set[Name]] = field(default_factory=lambda: [set()])
    _numbers: dict[Pair, int] = field(default_factory=lambda: {((), ()): 0})

    def add(self, pair: Pair, sources: Iterable[Name]) -> None:
        """Add a state with the changes that lead to it."""
        number = self._numbers.setdefault(pair, len(self.pairs))
        if number == len(self.pairs):
            self.pairs.append(pair)
            self.sources.append(set())
        if number:
            self.sources[number].update(sources)


def short(state: Frozen, world: World) -> Frozen:
    """Return the settings of a state without those that all objects have from the start."""
    defaults = {name: frozen(value) for name, value in world.defaults.items()}
    return tuple(
        (name, value) for name, value in state if name in SETTINGS and (name not in defaults or value != defaults[name])
    )


def flags(state: Frozen) -> tuple[object, ...]:
    """Return the flags of random numbers of a state."""
    own = dict(state)
    return tuple(own.get(name, False) for name in TRACKERS)


@lru_cache(maxsize=65536)
def agree(pair: Pair, source: World, target: World) -> bool:
    """Return whether the settings of an object capture the same before and after; true if they were refused before.

    Where one release reads both texts, it has to refuse both for one reason.
    No edit sets an old name: a value that it has only after the edits is one that another line replaced before.
    """
    old, new = ({name: thawed(value) for name, value in one} for one in pair)
    if _uncovers(old, new):
        return False
    before, after = captured(pair[0], source), captured(pair[1], target)
    if isinstance(before, Rejected) and source == target:
        return isinstance(after, Rejected) and after.code == before.code
    return before is None or isinstance(before, Rejected) or before == after


def loses_off(pair: Pair) -> bool:
    """Return whether the edits remove a false that turns off what other code may have turned on."""
    old, new = dict(pair[0]), dict(pair[1])
    is_alone = IMPL not in old and not (old.get(ENABLE) or old.get(EXTERNAL))
    return is_alone and any(old.get(one) is False and one not in new for one in (ENABLE, EXTERNAL))


def is_refused(state: Frozen, world: World) -> bool:
    """Return whether a release refuses the settings of an object: no program has it."""
    return isinstance(captured(state, world), Rejected)


def has_old_name(state: Frozen) -> bool:
    """Return whether an object has a deprecated setting, which is reported."""
    return any(name in DEPRECATED and value for name, value in state)


def _uncovers(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Return whether settings act after the edits that the old text replaced, or that no release accepts together."""
    is_on = new.get(IMPL, "none") != "none" or bool(new.get(ENABLE) or new.get(EXTERNAL))
    if is_on and any(_is_set(new.get(name)) and new.get(name) != old.get(name) for name in DEPRECATED):
        return True
    if MODULES in old or MODULES not in new:
        return False
    modules = new[MODULES]
    if not _named(modules) <= set(LAYER_MODULES):
        # megatron-core accepts the full iteration among the modules, with a warning.
        return True
    return bool(modules) and new.get(SCOPE) == old.get(SCOPE) is not None


def captured(state: Frozen, world: World) -> Capture | Rejected | None:
    """Return what the settings of an object capture; None if they have members of other classes."""
    own = {name: thawed(value) for name, value in state if name in SETTINGS}
    if any(_is_other_class(name, part) for name, part in own.items()):
        return Rejected("", "a member of another class", ())
    settings = {name: plain_setting(part) for name, part in own.items()}
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    release = NEWEST if new and world.release < SPLIT_IN else world.release
    return capture_of(settings, release, world.reader)


def plain_setting(value: object) -> object:
    """Return a value of a setting as YAML would have it: members of enumerations are their names."""
    if isinstance(value, Member):
        return value.name
    if isinstance(value, (list, tuple, set)):
        return [plain_setting(one) for one in value]
    return value


def _is_other_class(name: str, value: object) -> bool:
    members = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(one, Member) and one.of != _CLASSES.get(name) for one in members)


def _named(value: object) -> frozenset[str]:
    return frozenset(map(str, names_in(plain_setting(value))))


def _is_set(value: object) -> bool:
    return bool(value) and plain_setting(value) not in ("full", ["full"])
