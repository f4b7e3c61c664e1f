"""How messages name a path, and why a path cannot be read."""

from __future__ import annotations

import os
import re

_LINE = re.compile(r"(?<=.):([0-9]+)(?::[0-9]+)?:?$")


def is_below(path: str, folder: str) -> bool:
    """Return whether a path is a folder or inside it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def file_and_line(text: str) -> tuple[str, int | None]:
    """Return the file and the line of ``FILE:LINE`` or ``FILE:LINE:COLUMN``; the line is None for ``FILE``.

    A file that has such a name itself takes precedence.
    """
    if os.path.lexists(text) or (match := _LINE.search(text)) is None:
        return text, None
    return text[: match.start()], int(match[1])


def display_path(path: str) -> str:
    """Return an absolute path relative to the working directory if it is below it, else unchanged."""
    cwd = os.getcwd()
    return os.path.relpath(path, cwd) if path and is_below(path, cwd) else path


def openable_path(path: str, cwd: str) -> str:
    """Return a path of the user relative to ``cwd`` if it is below it, else as written; it can be opened either way.

    ``..`` is resolved first.
    """
    if not path:
        return path
    absolute = path
    if ".." in path.split(os.sep):
        # Behind a symbolic link, "link/.." is not the folder that contains "link".
        head, tail = os.path.split(path)
        absolute = os.path.realpath(path) if tail in ("", ".", "..") else os.path.join(os.path.realpath(head), tail)
    absolute = os.path.abspath(absolute)
    if absolute == cwd:
        return "."
    prefix = cwd if cwd.endswith(os.sep) else cwd + os.sep
    if absolute.startswith(prefix):
        return absolute[len(prefix) :]
    return path.rstrip("/") or "/"


def shown_path(path: str) -> str:
    """Return a path relative to the working directory if it is below it, else as it is."""
    return openable_path(path, os.getcwd())


def prefix_of(folder: str) -> str:
    """Return what precedes the name of an entry in the path of that entry."""
    if folder == ".":
        return ""
    return folder if folder.endswith("/") else folder + "/"


def why_unreachable(path: str, error: OSError) -> str:
    """Return why a path, or the target of a symbolic link, cannot be reached."""
    import errno

    if error.errno == errno.ELOOP:
        return "a symbolic link that leads back to itself"
    if isinstance(error, FileNotFoundError) and os.path.islink(path):
        return "a symbolic link whose target does not exist"
    if isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return "no such file or directory"
    return why_unreadable(error)


def why_unreadable(error: OSError) -> str:
    """Return why a file cannot be read."""
    return f"cannot be read: {error.strerror or error}"


def is_test(path: str) -> bool:
    """Return whether a file is one of tests: other code gets no object from it."""
    folders, _, name = path.rpartition("/")
    return name.startswith(("test_", "conftest")) or name.endswith("_test.py") or "/tests/" in folders + "/"
