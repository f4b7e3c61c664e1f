"""Proofs that edits of several files leave what every entry point captures as it is.

An *entry point* is a function that reaches a statement which is to change, and sets, reads or passes on settings. It
is evaluated with the old texts and with the edited ones. The edits are proved for it if both have the same paths, and
each path the same captures, other values, and calls of code that is not followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.linking.python.calls import enter, value_of_call
from cgmigrate.linking.python.definitions import TOUCHING, Definition, Graph
from cgmigrate.linking.python.evaluation import Handlers, Path, Run, paths_of
from cgmigrate.linking.python.modules import Modules
from cgmigrate.linking.python.objects import uses_settings
from cgmigrate.linking.python.outcomes import is_rejected, state_of
from cgmigrate.linking.python.relevance import Relevance, holders_in
from cgmigrate.linking.python.statements import execute, store
from cgmigrate.linking.python.values import CannotFollowError, Function
from cgmigrate.linking.python.world import SETTINGS, World
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import DEPRECATED, IMPL, MODULES, SCOPE
from cgmigrate.megatron.types import Reader

_HANDLERS = Handlers(enter, value_of_call, execute, store)
_MOST_ROUNDS = 8
"""How often changes fail, and the rest is proved again."""
_MOST_ENTRIES = 200
Place = tuple[str, int]
"""A file and a line."""


@dataclass(frozen=True, slots=True)
class Change:
    """A set of edits of one file; ``places`` are the lines of the statements that it changes."""

    name: tuple[str, int]
    path: str
    places: frozenset[Place]
    reader: Reader


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases that read the old texts and the edited ones."""

    source: Release
    target: Release


@dataclass(slots=True)
class Proofs:
    """The proofs of some changes. ``edited`` returns the modules with some changes made, by their names."""

    modules: Modules
    graph: Graph
    changes: Sequence[Change]
    releases: Releases
    edited: Callable[[Collection[tuple[str, int]]], Modules]
    failed: dict[tuple[str, int], str] = field(default_factory=dict)
    """Why a change is not proved."""
    _relevance: Relevance | None = None
    _leading: dict[str, None] = field(default_factory=dict)
    """The names of the code with changes, and of what uses it."""
    _before: dict[tuple[int, Release], list[Path]] = field(default_factory=dict)
    _followed: set[int] = field(default_factory=set)
    """The entry points that only use settings of objects that they make."""
    _needs: dict[int, frozenset[tuple[str, int]]] = field(default_factory=dict)

    def components(self) -> list[frozenset[tuple[str, int]]]:
        """Return the changes that are proved, in groups of which each is proved only as a whole."""
        entries = self._entries()
        for _ in range(_MOST_ROUNDS):
            if not self._prove(entries):
                break
        else:
            return []
        if other := self._other_user():
            self._fail((one.name for one in self.changes), f"the code at {other} may use the settings of any object")
        return self._joined(self._needs.values())

    def _other_user(self) -> str:
        """Return the place of code that uses a deprecated setting of an object that it gets; empty if there is none.

        Code that finds functions by their names at run time may give it the object of any entry point.
        """
        by_others = {word for one in self._opaque() for word in one.words}
        for one in self.graph.definitions:
            old = one.words & DEPRECATED
            is_split = {IMPL} if SCOPE not in old else {MODULES}
            is_followed = id(one) in self._followed or (_is_part(one) and by_others.isdisjoint(one.names))
            if not old or is_split <= one.words or is_followed:
                continue
            return one.place
        return ""

    # --- entry points -----------------------------------------------------------------------------

    def _entries(self) -> list[Definition]:
        """Return the entry points; changes that other code reaches fail."""
        setters = self.graph.setters()
        sites = {id(one): self._changes_in(one) for one in self.graph.definitions}
        names = {name for one in self.graph.definitions if sites[id(one)] for name in one.names}
        leading = self.graph.leading_to(names)
        words = TOUCHING | setters
        self._relevance = Relevance(
            self.graph.leading_to(words),
            frozenset(name for one in self.graph.definitions for name in holders_in(one.node, SETTINGS)),
        )
        opaque = {name for one in self._opaque() for name in one.names} & leading
        followed = self._leading = dict.fromkeys(leading)
        entries = []
        for one in self.graph.definitions:
            is_site = bool(sites[id(one)])
            if one.is_import:
                continue
            is_named = not leading.isdisjoint(one.words)
            if not is_site and not (is_named and (one.gives_away or not words.isdisjoint(one.words))):
                continue
            if one.function is not None and not _is_part(one):
                entries.append(one)
            if one.function is None or not opaque.isdisjoint(one.words):
                reason = f"the code at {one.place} may set or read the settings, and is not followed"
                for reached in self.graph.reached_from(one, followed):
                    self._fail((change.name for change in self._changes_in(reached)), reason)
        if len(entries) > _MOST_ENTRIES:
            self._fail((one.name for one in self.changes), "too many functions use these settings to follow them all")
            return []
        return entries

    def _opaque(self) -> Iterator[Definition]:
        """Yield the definitions that are not followed."""
        return (one for one in self.graph.definitions if one.function is None and not one.is_import)

    def _changes_in(self, definition: Definition) -> list[Change]:
        first, last = definition.lines
        path = definition.module.path
        return [
            one for one in self.changes if one.path == path and any(first <= line <= last for _, line in one.places)
        ]

    def _fail(self, names: Iterable[tuple[str, int]], reason: str) -> bool:
        new = [name for name in names if name not in self.failed]
        self.failed.update(dict.fromkeys(new, reason))
        return bool(new)

    # --- proofs -----------------------------------------------------------------------------------

    def _prove(self, entries: Sequence[Definition]) -> bool:
        """Prove the changes that have not failed; return whether more have failed."""
        kept = {one.name for one in self.changes if one.name not in self.failed}
        if not kept:
            return False
        after = self.edited(kept)
        again = False
        for entry in entries:
            reason = self._problem(entry, after, kept)
            if not reason:
                continue
            needs = self._needs.get(id(entry))
            own = [one.name for one in self._changes_in(entry) if one.name in kept]
            if needs is None:
                again |= self._fail(self._reached(entry), reason)
            elif own and needs - set(own) and len(own) < len(needs):
                again |= self._fail(own, reason)
            else:
                again |= self._fail(needs, reason)
        return again

    def _reached(self, entry: Definition) -> Iterator[tuple[str, int]]:
        """Yield the changes that an entry point may reach, by the names in its code."""
        for one in self.graph.reached_from(entry, self._leading):
            yield from (change.name for change in self._changes_in(one))

    def _problem(self, entry: Definition, after: Modules, kept: Collection[tuple[str, int]]) -> str:
        """Return why the changes are not proved for an entry point, empty if they are or it reaches none."""
        function = entry.function
        assert function is not None
        self._needs.pop(id(entry), None)
        try:
            before = self._paths(entry, function, self.modules, self.releases.source)
            reached = self._reached_by(before, kept)
            if self._makes_objects(before):
                self._followed.add(id(entry))
            if set(self._reached(entry)) & set(kept) - reached:
                return f"`{function.name}` uses code that sets these settings in a way that is not followed"
            if not reached:
                self._needs[id(entry)] = frozenset()
                return ""
            readers = {one.reader for one in self.changes if one.name in reached}
            if len(readers) > 1:
                return f"the settings of `{function.name}` have several readers ({entry.place})"
            self._needs[id(entry)] = reached
            (reader,) = readers
            edited = after.read(entry.module.path)
            binding = edited.bindings.get(function.name) if edited else None
            if edited is None or binding is None:
                return f"`{function.name}` is not read in the edited text"
            changed = Function(binding, edited)  # type: ignore[arg-type]
            target = World(self.releases.target, reader)
            new = [_outcome(path, target) for path in self._all_paths(changed, after, target)]
            return self._compared(entry, function, new, reader)
        except CannotFollowError as error:
            return f"`{function.name}` is not followed: {error}"

    def _makes_objects(self, paths: Iterable[Path]) -> bool:
        """Return whether an entry point only uses settings of objects that it makes, and one that is to change."""
        every = list(paths)
        if any(uses_settings(argument) for path in every for argument in path.arguments):
            return False
        return bool(self._reached_by(every, {one.name for one in self.changes}))

    def _compared(self, entry: Definition, function: Function, new: list[str], reader: Reader) -> str:
        """Compare an entry point with the edited text under the target release with the old text."""
        for release in dict.fromkeys((self.releases.source, self.releases.target)):
            world = World(release, reader)
            old = [_outcome(path, world) for path in self._paths(entry, function, self.modules, release)]
            is_source = release == self.releases.source
            refused = [is_rejected(one) for one in old]
            if is_source and any(refused):
                return f"the settings of `{function.name}` are refused as they are ({entry.place})"
            if is_source or not any(refused):
                if old == new:
                    continue
                return f"`{function.name}` would give the settings another meaning ({entry.place})"
        return ""

    def _paths(self, entry: Definition, function: Function, modules: Modules, release: Release) -> list[Path]:
        key = (id(entry), release)
        if key not in self._before:
            reader = self.changes[0].reader
            self._before[key] = list(self._all_paths(function, modules, World(release, reader)))
        return self._before[key]

    def _all_paths(self, function: Function, modules: Modules, world: World) -> Iterator[Path]:
        relevance = self._relevance
        assert relevance is not None
        return paths_of(function, lambda planned: Run(modules, world, relevance, _HANDLERS, planned))

    def _reached_by(self, paths: Iterable[Path], kept: Collection[tuple[str, int]]) -> frozenset[tuple[str, int]]:
        writes = {place for path in paths for place in path.writes}
        return frozenset(one.name for one in self.changes if one.name in kept and not writes.isdisjoint(one.places))

    def _joined(self, needs: Iterable[frozenset[tuple[str, int]]]) -> list[frozenset[tuple[str, int]]]:
        """Return the changes that are needed together, each in one group; a change that nothing needs is in none."""
        groups: list[frozenset[tuple[str, int]]] = []
        for one in needs:
            if one:
                touching = [group for group in groups if group & one]
                groups = [group for group in groups if not group & one]
                groups.append(one.union(*touching))
        return [group for group in groups if self.failed.keys().isdisjoint(group)]


def _is_part(definition: Definition) -> bool:
    """Return whether a function is only used by others: it has parameters, and no public name."""
    return definition.has_parameters and all(name.startswith("_") for name in definition.names)


def _outcome(path: Path, world: World) -> str:
    parts = [repr(path.choices), *path.events, path.error, state_of(path.value, world)]
    return "\n".join([*parts, *(state_of(argument, world) for argument in path.arguments)])
