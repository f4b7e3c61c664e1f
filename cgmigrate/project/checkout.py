"""Projects and git checkouts: their root, and git's index."""

from __future__ import annotations

import os

from cgmigrate.project.git import run_git
from cgmigrate.project.paths import is_below

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
WORK_MARK = ".cgmigrate-work"
"""A file in the folder into which ``verify --work`` writes copies of settings and of its own program."""
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


def index_of(folder: str, *paths: str) -> list[tuple[str, str]]:
    """Return what git's index has below a folder: the path of each file, and of each submodule with its commit."""
    listed = run_git(folder, "--literal-pathspecs", "ls-files", "-s", "-z", "--", *paths)
    entries = [os.fsdecode(one).partition("\t") for one in listed[0].split(b"\0") if one] if listed else []
    return [
        (os.path.join(folder, path), fields.split()[1] if fields.startswith("160000") else "")
        for fields, _, path in entries
    ]
