"""Names of files as users read them, and what keeps one from being read."""

from __future__ import annotations

import os


def _shown(given: str, here: str) -> str:
    """A path as users read it and as it can be opened: relative to ``here`` when below it, else as given."""
    if not given:
        return given
    whole = given
    if ".." in given.split(os.sep):
        # Behind a symbolic link, "link/.." is not the folder that "link" is in.
        head, tail = os.path.split(given)
        whole = os.path.realpath(given) if tail in ("", ".", "..") else os.path.join(os.path.realpath(head), tail)
    whole = os.path.abspath(whole)
    if whole == here:
        return "."
    below = here if here.endswith(os.sep) else here + os.sep
    if whole.startswith(below):
        return whole[len(below) :]
    return given.rstrip("/") or "/"


def _prefix(folder: str) -> str:
    if folder == ".":
        return ""
    return folder if folder.endswith("/") else folder + "/"


def _unreachable(path: str, error: OSError) -> str:
    """Why a path, or the target of a symbolic link, cannot be reached."""
    import errno

    if error.errno == errno.ELOOP:
        return "a symbolic link that leads back to itself"
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return "a symbolic link whose target does not exist"
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return "no such file or directory"
    return _unreadable(error)


def _unreadable(error: OSError) -> str:
    return f"cannot be read: {error.strerror or error}"
