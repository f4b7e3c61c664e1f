"""A text from stdin or an editor, which is examined instead of a file."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from cgmigrate.documents.syntax import Syntax
from cgmigrate.project.discovery import Counters, is_examined
from cgmigrate.project.ignore_files import Patterns
from cgmigrate.project.inputs import MAX_BYTES, Input, InputError, InputFile, TooLarge
from cgmigrate.project.listing import syntax_of_named
from cgmigrate.project.paths import openable_path
from cgmigrate.project.seeds import SeedsOf, seeds_of


@dataclass(slots=True)
class Buffer(Counters):
    """Iterable over at most one input, like `Discovery`; ``path`` is the name of the text."""

    path: str
    data: bytes
    exclude: Sequence[str] = ()
    excludes: Callable[[str], bool] | None = None
    seeds: SeedsOf = lambda _path: seeds_of()

    def names(self) -> list[str | InputError]:
        """Return the name of the text if it is read, or why it is not; nothing if the name is excluded."""
        named = self._named()
        if isinstance(named, InputError):
            return [named]
        return [path for path, syntax in named if syntax is not Syntax.TEXT]

    def _named(self) -> list[tuple[str, Syntax]] | InputError:
        path = openable_path(self.path, os.getcwd())
        if Patterns(self.exclude).covers(path) or (self.excludes is not None and self.excludes(path)):
            self.excluded = [path]
            return []
        syntax = syntax_of_named(path, self.data)
        return syntax if isinstance(syntax, InputError) else [(path, syntax)]

    def __iter__(self) -> Iterator[Input]:
        self.names_listed = []
        named = self._named()
        if isinstance(named, InputError):
            yield named
            return
        for path, syntax in named:
            self.names_listed = [path]
            self.files_listed = self.files_seen = 1
            if (item := self._search(path, syntax)) is not None:
                yield item

    def _search(self, path: str, syntax: Syntax) -> Input | None:
        large = len(self.data) > MAX_BYTES
        seeds = self.seeds(path)
        if not (seeds.in_file(self.data) if large else is_examined(self.data, seeds)):
            return None
        if syntax is not Syntax.TEXT:
            self.seed_counts[syntax] += 1
        return TooLarge(path, len(self.data)) if large else InputFile(path, syntax, self.data)
