"""Projects and git checkouts: their root, and the files that contain certain words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatch

from cgmigrate.project.git import run_git
from cgmigrate.project.paths import is_below, shown_path
from cgmigrate.text.files import bytes_if_readable

SKIPPED = (
    *(".git", ".hg", ".jj", ".svn", ".eggs", ".hypothesis", ".ipynb_checkpoints", ".mypy_cache", ".nox"),
    *(".pytest_cache", ".ruff_cache", ".tox", ".venv", "__pycache__", "node_modules", "site-packages", "venv"),
)
"""Folders of tools and of other projects: entered if git tracks files in them or the user names them."""
RESULTS = frozenset(
    (
        *("results", "result", "outputs", "logs", "multirun"),
        *("wandb", "mlruns", "lightning_logs", "nemo_experiments", "tensorboard"),
    )
)
"""Names of folders into which programs write."""
_NOT_SEARCHED = frozenset((*SKIPPED, *RESULTS, "build", "dist"))
"""Folders of files that no program of the project reads, outside of git or where git ignores them."""
WORK_MARK = ".cgmigrate-work"
"""A file in the folder into which ``verify --work`` writes copies of settings and of its own program."""
_OTHERS = frozenset((".git", "pyvenv.cfg", WORK_MARK))
"""What a folder has that is no part of the project around it."""
_MARKS = ("cgmigrate.toml", "pyproject.toml", "setup.cfg", "setup.py")
"""Files at the root of a project."""


def checkout_of(folder: str) -> str | None:
    """Return the nearest folder, at or above a folder (an absolute path), that is the root of a git checkout."""
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def project_of(folder: str) -> str:
    """Return the root of the project around a folder (an absolute path): its checkout, if it is in one.

    Elsewhere the nearest folder with a file that marks a project, the working directory around it, or the folder.
    """
    if top := checkout_of(folder):
        return top
    outside = (os.path.expanduser("~"), os.sep)
    above, cwd = folder, os.path.realpath(os.getcwd())
    while above not in outside:
        if any(os.path.isfile(os.path.join(above, name)) for name in _MARKS):
            return above
        above = os.path.dirname(above)
    return cwd if is_below(folder, cwd) and cwd not in outside else folder


def tracked_yaml(folders: Iterable[str], words: Iterable[str]) -> list[str]:
    """Return the YAML files, of the projects around these folders, that contain one of the words."""
    tops, words = sorted({project_of(os.path.realpath(folder)) for folder in folders}), list(words)
    return [path for top in tops for path in tracked_files(top, words, "*.yaml", "*.yml")]


def tracked_files(top: str, words: Iterable[str], *paths: str) -> list[str]:
    """Return the files of a project that contain one of the words, with paths as those of `Discovery`.

    ``paths`` are patterns of the files to search; with them, those that git does not track, or ignores, are searched
    as well: a program that is not committed can read a file that is. Words, not patterns: git takes ten times as long.
    """
    words = list(words)
    if checkout_of(top) is None:
        names = _searched(top, [""], words, paths)
    else:
        names = _grep(top, words, paths, untracked=bool(paths))
        names += _searched(top, _ignored(top), words, paths) if paths else []
    return [shown_path(os.path.join(top, name)) for name in names]


def files_git_searches(top: str, words: Iterable[str]) -> list[str]:
    """Return the files of a checkout that contain one of the words in any case, those that are not committed too."""
    if checkout_of(top) is None:
        return []
    return [os.path.join(top, name) for name in _grep(top, words, ("*",), untracked=True, any_case=True)]


def files_git_ignores(top: str) -> list[str]:
    """Return the files of a project that git does not search, and a program may read; all files outside of git."""
    names = [""] if checkout_of(top) is None else _ignored(top)
    return [os.path.join(top, name) for name in _files_below(top, names, ())]


def _grep(
    top: str, words: Iterable[str], paths: Sequence[str], *, untracked: bool, any_case: bool = False
) -> list[str]:
    """Return the names of the files that git finds with one of the words; if git fails, the list is empty."""
    patterns = [part for word in _needed(words) for part in ("-e", word)]
    # What Python compiled has no text, and what is installed is no program of the project.
    paths = (*paths, ":(exclude,glob)**/__pycache__/**", ":(exclude,glob)**/site-packages/**")
    options = [*(["--untracked"] if untracked else []), *(["-i"] if any_case else [])]
    listed = run_git(top, "grep", *options, "-lzF", *patterns, "--", *paths)
    return [os.fsdecode(name) for name in listed[0].split(b"\0") if name] if listed else []


def _searched(top: str, names: Sequence[str], words: Iterable[str], patterns: Sequence[str]) -> list[str]:
    """Return the files, of some files and folders of a project, that contain one of the words."""
    word = re.compile("|".join(map(re.escape, _needed(words))).encode())
    contents = ((name, bytes_if_readable(os.path.join(top, name))) for name in _files_below(top, names, patterns))
    return [name for name, content in contents if word.search(content or b"")]


def _files_below(top: str, names: Sequence[str], patterns: Sequence[str]) -> Iterator[str]:
    """Yield files, and those of folders, whose names match a pattern; not those of tools, builds and results."""
    for name in names:
        if not name.endswith("/") and name:
            yield from [name] if _matches(name, patterns) else []
            continue
        for folder, folders, files in os.walk(os.path.join(top, name)):
            is_other = folder.rstrip(os.sep) != top and not _OTHERS.isdisjoint((*folders, *files))
            folders[:] = [] if is_other else [one for one in folders if one not in _NOT_SEARCHED]
            below = (os.path.relpath(os.path.join(folder, one), top) for one in files if not is_other)
            yield from (one for one in below if _matches(one, patterns))


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch(name, pattern) for pattern in patterns)


def _ignored(top: str) -> list[str]:
    """Return the files and folders that git ignores, but those of tools, builds and results.

    A hidden folder that git ignores is one of a tool. If git fails, all files may be such.
    """
    listed = run_git(top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    if listed is None:
        return [""]
    result: list[str] = []
    for name in sorted(os.fsdecode(one) for one in listed[0].split(b"\0") if one):
        # Git lists a folder that ignores itself, and what is in it as well.
        is_below_last = bool(result) and result[-1].endswith("/") and name.startswith(result[-1])
        folders = name.split("/")[:-1]
        is_of_tool = any(one.startswith(".") or one in _NOT_SEARCHED for one in folders)
        if not is_below_last and not is_of_tool:
            result.append(name)
    return result


def files_named(top: str, name: str) -> list[str]:
    """Return the files of a project that have a name, those that git does not track yet included."""
    if checkout_of(top) is None:
        ending = os.sep + name
        return [os.path.join(top, one) for one in _files_below(top, [""], ()) if f"{os.sep}{one}".endswith(ending)]
    listed = run_git(
        top, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", f":(top,literal){name}", f"*/{name}"
    )
    return [os.path.join(top, os.fsdecode(one)) for one in listed[0].split(b"\0") if one] if listed else []


def index_of(folder: str, *paths: str) -> list[tuple[str, str]]:
    """Return what git's index has below a folder: the path of each file, and of each submodule with its commit."""
    listed = run_git(folder, "--literal-pathspecs", "ls-files", "-s", "-z", "--", *paths)
    entries = [os.fsdecode(one).partition("\t") for one in listed[0].split(b"\0") if one] if listed else []
    return [
        (os.path.join(folder, path), fields.split()[1] if fields.startswith("160000") else "")
        for fields, _, path in entries
    ]


def code_of(top: str) -> list[str]:
    """Return the Python files of a project, those that git does not track yet, or ignores, included, and links.

    Of folders that git ignores, only their names are listed. If git fails, the list is empty.
    """
    if checkout_of(top) is None:
        names = list(_files_below(top, [""], ()))
    else:
        seen = run_git(top, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
        ignored = run_git(top, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
        listed = (seen[0] + ignored[0]).split(b"\0") if seen and ignored else []
        names = [os.fsdecode(one) for one in listed if one]
    paths = [os.path.join(top, one) for one in names]
    return [one for one in paths if one.endswith((".py", os.sep)) or os.path.islink(one)]


def files_with(top: str, words: Iterable[str], *paths: str) -> list[str]:
    """Return the files of a project that contain one of the words, those that git does not track yet included.

    ``paths`` are patterns of their names. If git fails, the list is empty.
    """
    words = list(words)
    outside = checkout_of(top) is None
    names = _searched(top, [""], words, paths) if outside else _grep(top, words, paths, untracked=True)
    return [os.path.join(top, name) for name in names]


def _needed(words: Iterable[str]) -> list[str]:
    """Return words without those that contain another one: a search takes time for each."""
    every = sorted(dict.fromkeys(words), key=len)
    return [word for at, word in enumerate(every) if not any(shorter in word for shorter in every[:at])]
