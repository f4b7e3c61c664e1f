"""Defaults of code that copies keys: what a target gets for the keys that a mapping lacks.

They belong to what is captured: a fix has to capture the same with them, and so have all old mappings of users.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from cgmigrate.documents.python.key_copy_edits import new_default
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, SCOPE, Settings, Undecided
from cgmigrate.megatron.types import Reader, Rejected

_ABSENT = object()
_OLD: Mapping[str, tuple[object, ...]] = {
    ENABLE: (_ABSENT, True, False),
    EXTERNAL: (_ABSENT, True, False),
    IMPL: (_ABSENT, "none", "local", "transformer_engine"),
    SCOPE: (_ABSENT, None, "full", "attn", ["attn", "mlp"], "full_iteration", "full_iteration_inference"),
}
"""Values that old files may have."""


@dataclass(frozen=True, slots=True)
class Defaults:
    """The defaults of code by name; ``is_changed`` says whether the fix makes it copy further names."""

    before: Mapping[str, object]
    catalogue: Catalogue
    is_changed: bool

    @property
    def after(self) -> dict[str, object]:
        """The defaults once the fix is written."""
        if not self.is_changed:
            return dict(self.before)
        return {name: new_default(name, value, self.catalogue) for name, value in self.before.items()}

    def keep(self, before: Settings, after: Settings, reader: Reader, releases: tuple[Release, Release]) -> bool:
        """Return whether a mapping captures the same before and after, with the defaults of the code."""
        was, will = {**self.before, **before}, {**self.after, **after}
        if any(isinstance(value, Undecided) for value in (*was.values(), *will.values())):
            return False
        for first, second in ((was, will), (_without_none(was), _without_none(will))):
            captured = capture_of(first, releases[0], reader)
            if not isinstance(captured, Rejected) and captured != capture_of(second, releases[1], reader):
                return False
        return True

    def keep_old(self, names: Collection[str], reader: Reader, target: Release) -> bool:
        """Return whether the changed code reads old mappings as the code before does in the same release."""
        after = self.after
        every = (({**self.before, **old}, {**after, **old}) for old in _old_mappings(names))
        return all(capture_of(was, target, reader) == capture_of(will, target, reader) for was, will in every)


def _without_none(settings: Settings) -> Settings:
    """Return the settings that code copies if it copies none that is None."""
    return {name: value for name, value in settings.items() if value is not None}


def _old_mappings(names: Collection[str]) -> Iterator[dict[str, object]]:
    """Yield mappings with some of the names."""
    known = [name for name in _OLD if name in names]
    for values in product(*(_OLD[name] for name in known)):
        yield {name: value for name, value in zip(known, values, strict=True) if value is not _ABSENT}
