"""The release in which code is evaluated: its classes, and the settings of an object that nothing has set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.megatron.releases import IMPL_SINCE, SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import (
    ENABLE,
    EXTERNAL,
    FIELDS,
    IMPL,
    INFERENCE,
    INFERENCE_SCOPES,
    LAYER_MODULES,
    MODULES,
    SCOPE,
)
from cgmigrate.megatron.types import Reader

_CLASSES = {"CudaGraphScope": SCOPE_LIST_SINCE, "CudaGraphModule": SPLIT_IN, "InferenceCudaGraphScope": SPLIT_IN}
"""The enumerations of megatron-core whose members are values of settings, with their first releases."""
ENUMERATIONS = frozenset(_CLASSES)
_MEMBERS: Mapping[str, Sequence[str]] = {
    "CudaGraphScope": ("full_iteration", *LAYER_MODULES, "full_iteration_inference"),
    "CudaGraphModule": LAYER_MODULES,
    "InferenceCudaGraphScope": INFERENCE_SCOPES,
}
"""Their members, in the order of their values: these are numbers from 1, the same in all releases."""


@dataclass(frozen=True, slots=True)
class World:
    """A release of megatron-core, and the reader of the settings."""

    release: Release
    reader: Reader

    def has_class(self, name: str) -> bool:
        """Return whether the release has a class of values of settings; true for any other name."""
        since = _CLASSES.get(name.rpartition(".")[2])
        return since is None or self.release >= since

    @property
    def defaults(self) -> Mapping[str, object]:
        """The settings of a configuration that nothing has set, by name, as far as the release has them."""
        split = self.release >= SPLIT_IN
        settings: dict[str, object] = {ENABLE: False, EXTERNAL: False, SCOPE: None if split else "full"}
        if self.release >= IMPL_SINCE:
            settings[IMPL] = "none"
        if split:
            settings |= {MODULES: "full", INFERENCE: None}
        return settings


def value_of_member(of: str, name: str) -> int | None:
    """Return the value of a member of an enumeration, None if it has no such member."""
    members = _MEMBERS.get(of, ())
    return members.index(name) + 1 if name in members else None


def is_enumeration(name: str) -> bool:
    """Return whether a full name is that of an enumeration of values of settings."""
    return name.rpartition(".")[2] in _CLASSES and name.startswith("megatron.")


_LISTS = (("list",), ("list", "attn"))
SAMPLES: Mapping[str, tuple[object, ...]] = {
    ENABLE: (False, True),
    EXTERNAL: (False, True),
    IMPL: ("none", "local", "transformer_engine"),
    SCOPE: (*_LISTS, None, ("list", "full_iteration")),
    MODULES: _LISTS,
    INFERENCE: (None, "layer"),
}
"""Values of the settings that stand for one that is not known, in their frozen form."""
SETTINGS = frozenset(FIELDS)
"""The settings whose values are followed."""
TRACKERS = ("use_te_rng_tracker", "te_rng_tracker", "inference_rng_tracker")
"""What code that uses settings asks: they say whether random numbers can be captured."""
PROGRAMS = ("args", "argv", "options", "opts", "namespace")
"""What objects with the flags of a program are called: these have the names that the program gives them."""
