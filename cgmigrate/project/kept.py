"""Results of earlier commands, kept in the user's cache folder for the next one by a digest of all they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from cgmigrate import __version__
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.project.cache_folder import cache_folder
from cgmigrate.project.private_files import is_private_folder, opened
from cgmigrate.project.temporary_files import create, removed_if_interrupted

_MOST_KEPT = 16
"""Results of a kind; the oldest ones are deleted."""
_MOST_READ = 4 << 20
"""Bytes of a file whose content counts; of a larger one, size and time do."""


def digest_of(root: str, names: Iterable[str], words: Iterable[str]) -> str:
    """Return a digest of the program, of some files below a folder, and of some words."""
    digest = hashlib.sha256("\0".join((_program(), *words)).encode("utf-8", "surrogateescape"))
    for name in names:
        path = os.path.join(root, name)
        with contextlib.suppress(OSError):
            status = os.stat(path)
            # A FIFO would wait for ever, and data take long.
            is_read = stat.S_ISREG(status.st_mode) and status.st_size <= _MOST_READ
            content = Path(path).read_bytes() if is_read else f"{status.st_size} {status.st_mtime_ns}".encode()
            digest.update(os.fsencode(name) + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


@lru_cache(maxsize=1)
def _program() -> str:
    """Return the version of the program, with the times of its files: in a checkout, these change and it does not."""
    paths = (path for folder in (Path(__file__).parents[1], rules_folder()) for path in folder.rglob("*.*"))
    files = ((path, path.stat()) for path in sorted(paths) if path.suffix in (".py", ".yaml", ".json"))
    return "\n".join([__version__, *(f"{path} {status.st_size} {status.st_mtime_ns}" for path, status in files)])


def exists(kind: str, key: str) -> bool:
    """Return whether a result of a kind is kept."""
    return os.path.isfile(_path(kind, key))


def load(kind: str, key: str) -> object:
    """Return a kept result. Raises OSError and ValueError if there is none, or none that only this user can write."""
    path = _path(kind, key)
    with opened(path) as descriptor, open(descriptor, encoding="utf-8", closefd=False) as file:
        if not is_private_folder(os.path.dirname(path)):
            raise PermissionError(f"{path}: the folder is not private")
        return json.load(file)


def store(kind: str, key: str, result: object) -> None:
    """Keep a result, if that is possible: for the next command only speed depends on it."""
    path = _path(kind, key)
    folder = os.path.dirname(path)
    with contextlib.suppress(OSError), removed_if_interrupted():
        os.makedirs(folder, mode=0o700, exist_ok=True)
        others = sorted(os.scandir(folder), key=lambda one: one.stat().st_mtime_ns)
        for one in others[: max(0, len(others) - _MOST_KEPT + 1)]:
            os.unlink(one)
        descriptor, temporary = create(folder)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump(result, file)
        # A command that runs beside this one reads all of it or nothing.
        os.replace(temporary, path)


def _path(kind: str, key: str) -> str:
    return os.path.join(cache_folder(), kind, f"{key}.json")
