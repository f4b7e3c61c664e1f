"""What a path leaves behind, in a form that can be compared: captures of settings instead of their names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache, partial

from cgmigrate.linking.python.values import Member, Object, is_plain, key_of
from cgmigrate.proof.flow.world import SETTINGS, World
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import NEWEST, SPLIT_IN, Release
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
from cgmigrate.megatron.types import Reader, Rejected


def state_of(value: object, world: World) -> str:
    """Return a text for a value and what it leads to; objects that capture the same have equal texts."""
    return _state(value, world, {})


def rest_of(value: object, world: World) -> str:
    """Return a text for a value and what it leads to, apart from settings."""
    return _state(value, world, {}, has_settings=False)


def _state(value: object, world: World, seen: dict[int, int], *, has_settings: bool = True) -> str:
    inner = partial(_state, world=world, seen=seen, has_settings=has_settings)
    if isinstance(value, Object):
        if id(value) in seen:
            return f"<again {seen[id(value)]}>"
        seen[id(value)] = len(seen)
        parts = [f"{name}={inner(part)}" for name, part in sorted(value.attributes.items()) if name not in SETTINGS]
        # The fields of a record are compared where code uses them.
        own = {} if value.is_record else {name: part for name, part in value.attributes.items() if name in SETTINGS}
        if has_settings and own and not value.is_open and not value.is_bare:
            captured = _captured(value, own, world)
            # Settings that are deleted, or set to what is the default, are the same.
            parts += [captured] if captured != _default(world.release, world.reader) else []
        # What was only read is no part of what an object is, unless something below was set.
        parts += [
            f"{name}~{text}"
            for name, part in sorted(value.first.items())
            if isinstance(part, Object) and "=" in (text := inner(part))
        ]
        return f"<{value.key}>" + (f"({', '.join(parts)})" if parts else "")
    if isinstance(value, (list, tuple, set, frozenset)):
        return f"{type(value).__name__}[{', '.join(map(inner, _ordered(value)))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key_of(name)}: {inner(part)}" for name, part in value.items()) + "}"
    return key_of(value)


def _ordered(values: list[object] | tuple[object, ...] | set[object] | frozenset[object]) -> list[object]:
    return sorted(values, key=key_of) if isinstance(values, (set, frozenset)) else list(values)


def _captured(value: Object, own: Mapping[str, object], world: World) -> str:
    """Return what the settings of an object capture, or the settings themselves where that is not known."""
    settings = {name: plain_setting(part) for name, part in own.items() if is_plain(part)}
    if not (value.by_megatron or value.is_open) or len(settings) != len(own):
        return "settings=" + key_of(dict(sorted(own.items())))
    if any(_is_other_class(name, part) for name, part in own.items()):
        return "settings=" + key_of(dict(sorted(own.items())))
    captured = capture_of(settings, _release(settings, world), world.reader)
    return f"captures={'rejected' if isinstance(captured, Rejected) else _text(captured)}"


@lru_cache(maxsize=64)
def _default(release: Release, reader: Reader) -> str:
    """Return what an object captures of which nothing is set."""
    return _captured(Object("", by_megatron=True), {}, World(release, reader))


def _text(value: object) -> str:
    """Return a text of a capture: equal captures have equal texts, in whatever order their sets were made."""
    if is_dataclass(value) and not isinstance(value, type):
        return f"({', '.join(f'{one.name}={_text(getattr(value, one.name))}' for one in fields(value))})"
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(_text, value)))}}}"
    return repr(value)


def agree(old: Mapping[str, object], new: Mapping[str, object], source: World, target: World) -> bool:
    """Return whether the settings of an object capture the same before and after; true if they were refused before.

    No edit sets an old name: a value that it has only after the edits is one that another line replaced before.
    """
    if old == new:
        return True
    is_on = new.get(IMPL, "none") != "none" or bool(new.get(ENABLE) or new.get(EXTERNAL))
    if is_on and any(_is_set(new.get(name)) and new.get(name) != old.get(name) for name in DEPRECATED):
        return False
    if MODULES in new.keys() - old.keys() and not _named(new[MODULES]) <= set(LAYER_MODULES):
        # megatron-core accepts the full iteration among the modules, with a warning.
        return False
    if MODULES in new.keys() - old.keys() and new[MODULES] and new.get(SCOPE) == old.get(SCOPE) is not None:
        # megatron-core refuses an object with both, which a line under the old name and one under the new name make.
        return False
    made = Object("", by_megatron=True)
    before = _captured(made, old, source)
    return is_rejected(before) or before == _captured(made, new, target)


def is_half_renamed(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Return whether edits rename a part of the settings of an object, or leave modules that the old text had cleared.

    An object that has old names only, as before, may have no modules beside them.
    """
    if keeps_old(new):
        named = any(_key(old, name) != _key(new, name) for name in (*DEPRECATED, IMPL))
        return named or bool(new.get(MODULES) and not old.get(MODULES))
    return not _named(new.get(MODULES)) <= _named(old.get(MODULES)) | _named(old.get(SCOPE))


def keeps_replaced(old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Return whether an object has another value of a deprecated setting after the edits: they delete what set it."""
    return any(_is_set(new.get(name)) and _key(old, name) != _key(new, name) for name in DEPRECATED)


def keeps_old(settings: Mapping[str, object]) -> bool:
    """Return whether an object has a deprecated setting other than those that all objects have from the start."""
    return any(_is_set(settings.get(name)) for name in DEPRECATED)


def _key(settings: Mapping[str, object], name: str) -> str:
    """Return what compares a setting: what captures nothing is as good as none."""
    value = settings.get(name)
    return key_of(value) if _is_set(value) and value != "none" else ""


def _named(value: object) -> frozenset[str]:
    return frozenset(map(str, names_in(plain_setting(value))))


def _is_set(value: object) -> bool:
    """Return whether the value of a deprecated setting is none that all objects have from the start."""
    return bool(value) and plain_setting(value) not in ("full", ["full"])


def is_rejected(state: str) -> bool:
    """Return whether an object of a state is refused by its reader."""
    return "captures=rejected" in state


def plain_setting(value: object) -> object:
    """Return a value of a setting as YAML would have it: members of enumerations are their names."""
    if isinstance(value, Member):
        return value.name
    if isinstance(value, (list, tuple)):
        return [plain_setting(one) for one in value]
    return value


def _is_other_class(name: str, value: object) -> bool:
    """Return whether a value is a member of another class than that of its setting, which megatron-core refuses."""
    classes = {MODULES: "CudaGraphModule", SCOPE: "CudaGraphScope", INFERENCE: "InferenceCudaGraphScope"}
    members = value if isinstance(value, (list, tuple)) else [value]
    return any(isinstance(one, Member) and one.of != classes.get(name) for one in members)


def _release(settings: Mapping[str, object], world: World) -> Release:
    """Return the release that reads settings: one that has settings of these names."""
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    return NEWEST if new and world.release < SPLIT_IN else world.release
