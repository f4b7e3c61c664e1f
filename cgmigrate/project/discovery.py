"""The files among the user's paths that can contain a setting of the catalogue.

Files without a seed word are dropped, so that on a clean tree nothing else is imported or parsed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.syntax import SYNTAXES, Syntax
from cgmigrate.project.inputs import MAX_BYTES, Input, InputError, InputFile, TooLarge
from cgmigrate.project.listing import ListedFile, Listing
from cgmigrate.project.paths import why_unreadable
from cgmigrate.project.seeds import SUPPRESSION_MARK, Seeds, SeedsOf, seeds_of
from cgmigrate.project.unread_files import unread_source
from cgmigrate.project.untouched import GENERATED, RESULT, below_named, is_generated, is_result
from cgmigrate.text.files import READ

_PIECE = 1024 * 1024


@dataclass(slots=True)
class Counters:
    """Counters of the latest iteration: files listed (known after the first item), files searched, and seeds."""

    files_listed: int = field(default=0, init=False)
    names_listed: list[str] = field(default_factory=list, init=False)
    files_seen: int = field(default=0, init=False)
    """Files whose bytes were searched."""
    seed_counts: dict[Syntax, int] = field(default_factory=lambda: dict.fromkeys(SYNTAXES, 0), init=False)
    """Files that are examined or too large."""
    submodules: list[str] = field(default_factory=list, init=False)
    """Git submodules that were skipped."""
    quoting_names: list[str] = field(default_factory=list, init=False)
    """Logs, patches and lock files."""
    excluded: list[str] = field(default_factory=list, init=False)
    """Paths that the user named and that are excluded."""
    untouched: list[tuple[str, str]] = field(default_factory=list, init=False)
    """Files that are never touched, each with its kind before it."""


@dataclass(slots=True)
class Discovery(Counters):
    """Iterable over the files in ``paths`` that contain a seed word, and over input errors, sorted by path.

    Files are read one at a time, as the iteration reaches them. A file with several names is read once: under its own
    name rather than that of a symbolic link, and under the first of its hard links. Links to directories are not
    followed, except those among ``paths``.

    ``exclude`` contains gitignore patterns relative to the working directory; outside it, a path is matched as
    written. They apply to named files as well, since pre-commit names every file. Iterating raises ValueError for an
    invalid pattern. ``excludes`` is a second test for every path that would be entered or listed; the path of a folder
    ends with ``/``. ``seeds`` returns the seed words for a file.
    """

    paths: Sequence[str]
    exclude: Sequence[str] = ()
    excludes: Callable[[str], bool] | None = None
    seeds: SeedsOf = lambda _path: seeds_of()

    def __iter__(self) -> Iterator[Input]:
        self.files_listed = self.files_seen = 0
        self.untouched = []
        self.seed_counts = dict.fromkeys(SYNTAXES, 0)
        entries = self._entries()
        self.names_listed = [entry.path for entry in entries if isinstance(entry, ListedFile)]
        self.files_listed = sum(isinstance(entry, ListedFile) and entry.syntax is not Syntax.TEXT for entry in entries)
        for entry in entries:
            item = entry if isinstance(entry, InputError) else self._read(entry)
            if item is not None:
                yield item

    def names(self) -> list[str | InputError]:
        """Return the paths of the files that would be read, and input errors, without opening a file."""
        entries = self._entries()
        return [
            entry if isinstance(entry, InputError) else entry.path
            for entry in entries
            if isinstance(entry, InputError) or entry.syntax is not Syntax.TEXT
        ]

    def _entries(self) -> list[ListedFile | InputError]:
        listing = Listing(self.exclude, self.excludes)
        for path in self.paths:
            listing.add_named(path)
        self.submodules = sorted(listing.submodules)
        self.quoting_names = sorted(listing.quoting)
        self.excluded = listing.excluded
        return listing.in_order()

    def _read(self, file: ListedFile) -> Input | None:
        path = file.path
        if file.syntax is Syntax.TEXT:
            return self._unread(path)
        try:
            descriptor = os.open(path, READ)
            try:
                return self._search(path, file.syntax, descriptor)
            finally:
                os.close(descriptor)
        except FileNotFoundError:
            return InputError(path, "disappeared while cgmigrate was running", missing=False)
        except OSError as error:
            return InputError(path, why_unreadable(error), missing=True)

    def _search(self, path: str, syntax: Syntax, descriptor: int) -> Input | None:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return InputError(path, "stopped being a regular file while cgmigrate was running", missing=False)
        data = os.read(descriptor, min(status.st_size, MAX_BYTES) + 1)
        # The read requests one byte more than the size: if it returns exactly the size, the file has ended.
        while len(data) != status.st_size and len(data) <= MAX_BYTES and (more := os.read(descriptor, _PIECE)):
            data += more
        self.files_seen += 1
        seeds = self.seeds(path)
        if len(data) > MAX_BYTES:
            if not _rest_has_seed_word(descriptor, data, seeds):
                return None
            self.seed_counts[syntax] += 1
            return TooLarge(path, status.st_size)
        if not is_examined(data, seeds) or self._is_untouched(path, syntax, data):
            return None
        self.seed_counts[syntax] += 1
        return InputFile(path, syntax, data)

    def _unread(self, path: str) -> InputFile | None:
        """Return a file of a kind that is not read, if it may hold settings."""
        source = unread_source(path, self.seeds(path))
        if source is None or self._is_untouched(path, source.syntax, source.data):
            return None
        self.files_listed += 1
        self.files_seen += 1
        return source

    def _is_untouched(self, path: str, syntax: Syntax, data: bytes) -> bool:
        """Return whether a file is never touched, and keep its name: it is generated, or a result of a run."""
        # A package may have any name.
        is_of_run = syntax is not Syntax.PYTHON and is_result(below_named(path, self.paths))
        kind = GENERATED if is_generated(data) else RESULT if is_of_run else ""
        self.untouched += [(kind, path)] if kind else []
        return bool(kind)


def is_examined(data: bytes, seeds: Seeds) -> bool:
    """Return whether a text is examined: it contains a seed word or a suppression."""
    return seeds.in_file(data) or SUPPRESSION_MARK in data


def _rest_has_seed_word(descriptor: int, piece: bytes, seeds: Seeds) -> bool:
    words, overlap = seeds.for_file(piece), seeds.overlap
    while not words.are_in(piece):
        more = os.read(descriptor, _PIECE)
        if not more:
            return False
        piece = piece[-overlap:] + more
    return True
