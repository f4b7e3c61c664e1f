"""The files of an earlier state of the project, a revision of git or a folder, each with the file that it became."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO

from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.git import run_git
from cgmigrate.project.paths import is_below


class RevisionError(Exception):
    """There is no such earlier state; the message says why."""


@contextmanager
def earlier_files(before: str, paths: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield the files that changed since ``before``, below ``paths``: the earlier one → the one of today.

    The whole earlier state is there while they are compared, since files are read together. Raises RevisionError.
    """
    cwd = os.path.realpath(os.getcwd())
    if os.path.isdir(before):
        root = os.path.realpath(before)
        yield _changed(root, cwd, list(_names_below(root)), paths)
        return
    top = checkout_of(cwd)
    known = run_git(top, "rev-parse", "--verify", "--quiet", f"{before}^{{commit}}") if top else None
    if top is None or known is None:
        raise RevisionError(f"--before {before}: no folder, and no revision of a checkout of git around {cwd}")
    with tempfile.TemporaryDirectory(prefix="cgmigrate-before-") as root:
        packed = run_git(top, "archive", before)
        if packed is None:
            raise RevisionError(f"--before {before}: git could not read this revision")
        with tarfile.open(fileobj=BytesIO(packed[0])) as archive:
            archive.extractall(root, filter="data")
        yield _changed(os.path.realpath(root), top, list(_names_below(root)), paths)


def _names_below(root: str) -> Iterator[str]:
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in files)


def _changed(root: str, now: str, names: Sequence[str], paths: Sequence[str]) -> dict[str, str]:
    """Return the files that both states have below some paths, and that differ."""
    named = [os.path.realpath(path) for path in paths]
    pairs = ((os.path.join(root, name), os.path.join(now, name)) for name in sorted(names))
    return {
        old: os.path.relpath(new)
        for old, new in pairs
        if any(is_below(new, path) or new == path for path in named) and _differ(old, new)
    }


def _differ(old: str, new: str) -> bool:
    try:
        with open(old, "rb") as first, open(new, "rb") as second:
            return first.read() != second.read()
    except OSError:
        return False
