"""A copy of the user's tree, made again for each run: a command may write into it as it likes."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cgmigrate.project.checkout import SKIPPED
from cgmigrate.project.file_search import FileSearch
from cgmigrate.project.paths import is_below

_MOST_IGNORED = 16 << 20
"""Bytes of a file that git ignores and a command may need, such as a compiled module; larger ones are results."""


@dataclass(slots=True)
class Tree:
    """The tree with root ``root``, copied to ``copy``: the same path for each run, so that messages are the same."""

    root: str
    copy: str
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(int(time.time())))

    def make(self, texts: Mapping[str, bytes]) -> None:
        """Copy the tree, with other contents of some files, by their paths in it."""
        shutil.rmtree(self.copy, ignore_errors=True)
        for name in files_of(self.root):
            source, target = os.path.join(self.root, name), os.path.join(self.copy, name.rstrip("/"))
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with contextlib.suppress(OSError, shutil.Error):
                if os.path.isdir(source) and not os.path.islink(source):
                    # A submodule: the settings of its repository would let a command change that one.
                    shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns(*SKIPPED))
                else:
                    shutil.copy2(source, target, follow_symlinks=False)
        for name, content in texts.items():
            target = os.path.join(self.copy, name)
            with open(target, "wb") as file:
                file.write(content)
            # What Python compiled of another text of the same size must not be taken for this one.
            os.utime(target, (stamp := next(self._numbers), stamp))

    def variable(self, name: str) -> dict[str, str]:
        """Return a variable of the environment whose paths in the tree are those of its copy."""
        parts = [os.path.realpath(one) for one in os.environ.get(name, "").split(os.pathsep) if one]
        moved = [self.copy + one[len(self.root) :] if is_below(one, self.root) else one for one in parts]
        return {name: os.pathsep.join(moved)} if moved else {}


def files_of(root: str) -> Iterator[str]:
    """Yield the files that git tracks or would track, and small ones that it ignores; all of them without git."""
    search = FileSearch(root)
    yield from search.listed()
    for path in search.ignored():
        name = os.path.relpath(path, root)
        with contextlib.suppress(OSError):
            if os.stat(path).st_size <= _MOST_IGNORED:
                yield name
