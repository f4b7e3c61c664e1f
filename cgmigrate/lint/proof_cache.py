"""What was proved of a checkout before: the same proof again takes minutes, and proves the same.

`fix --diff` and `fix` after it, or two jobs of a pipeline, prove the same edits of the same code. The results are in
the user's cache folder, by all that they depend on: this tool, the releases, the edits, and each file of code.
A result decides that edits are safe, so it is used only where nobody but this user can have written it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import cgmigrate
from cgmigrate.linking.python.rounds import Name
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.project import private_files
from cgmigrate.project.cache_folder import cache_folder

_KEPT = 64
"""How many results are kept: the last ones."""
_FOLDER = "proofs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The changes that are proved, in groups that are made together, the form of each, and why others are not."""

    groups: tuple[frozenset[Name], ...]
    forms: Mapping[Name, int]
    failed: Mapping[Name, str]


def key_of(parts: Iterable[str], files: Iterable[str]) -> str:
    """Return the key of a proof: ``parts`` describe what is proved, and ``files`` are all files of code, and links."""
    hashed = hashlib.sha256(_tool().encode())
    for part in (*parts, *(f"{path}\0{_digest(path)}" for path in sorted(files))):
        hashed.update(part.encode("utf-8", "surrogatepass"))
        hashed.update(b"\0")
    return hashed.hexdigest()


def load(key: str) -> Outcome | None:
    """Return the result of a proof, None if it is not known.

    It is not known either if others may have written it, or a file has changed that it read and is no part of its key.
    """
    try:
        data = json.loads(private_files.read(str(_path(key))))
        # A file that was renamed is the result of something else.
        if data["key"] != key or any(_digest(path) != digest for path, digest in data["others"].items()):
            return None
        groups = tuple(frozenset((path, number) for path, number in group) for group in data["groups"])
        forms = {(path, number): form for path, number, form in data["forms"]}
        return Outcome(groups, forms, {(path, number): reason for path, number, reason in data["failed"]})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        # A cache that cannot be read is none.
        return None


def store(key: str, outcome: Outcome, others: Iterable[str]) -> None:
    """Keep the result of a proof. ``others`` are files that it read beside those of its key, also those that are none.

    Never raises: without a cache the next run takes longer.
    """
    data = {
        "key": key,
        "others": {path: _digest(path) for path in sorted(others)},
        "groups": [sorted(group) for group in outcome.groups],
        "forms": [[*name, form] for name, form in sorted(outcome.forms.items())],
        "failed": [[*name, reason] for name, reason in sorted(outcome.failed.items())],
    }
    with suppress(OSError):
        path = _path(key)
        private_files.write(str(path), json.dumps(data).encode())
        for old in sorted(path.parent.glob("*.json"), key=_time, reverse=True)[_KEPT:]:
            old.unlink(missing_ok=True)


def _path(key: str) -> Path:
    return Path(cache_folder(), _FOLDER, f"{key}.json")


def _time(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0


def _digest(path: str) -> str:
    """Return the digest of a file, the target of a link to a folder, empty for what cannot be read."""
    try:
        if os.path.isdir(path):
            return os.readlink(path) if os.path.islink(path) else "a folder"
        return hashlib.sha256(Path(path).read_bytes()).hexdigest()
    except OSError:
        return ""


@cache
def _tool() -> str:
    """Return what identifies this tool: its code and its rules, and the Python that parses."""
    hashed = hashlib.sha256(sys.version.encode())
    for folder, ending in ((os.path.dirname(cgmigrate.__file__), ".py"), (str(rules_folder()), (".yaml", ".json"))):
        for path in sorted(Path(folder).rglob("*")):
            if path.name.endswith(ending):
                hashed.update(path.read_bytes())
    return hashed.hexdigest()
