"""Verdicts of earlier runs, kept in the user's cache folder for the next command, by all that they depend on."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path

from cgmigrate.project.cache_folder import cache_folder
from cgmigrate.project.private_files import is_private_folder, opened
from cgmigrate.proof.run.copies import files_of
from cgmigrate.proof.run.judge import RunVerdict


def digest_of(root: str, words: Iterable[str]) -> str:
    """Return a digest of a tree, with some words."""
    digest = hashlib.sha256("\0".join(words).encode("utf-8", "surrogateescape"))
    for name in files_of(root):
        path = os.path.join(root, name)
        with contextlib.suppress(OSError):
            # A FIFO would wait for ever.
            content = Path(path).read_bytes() if os.path.isfile(path) else str(os.stat(path).st_mtime_ns).encode()
            digest.update(os.fsencode(name) + b"\0" + hashlib.sha256(content).digest())
    return digest.hexdigest()


def kept(
    key: str, prove: Callable[[], dict[str, RunVerdict]], releases: Callable[[], Iterable[tuple[str, int]]]
) -> dict[str, RunVerdict]:
    """Return the verdicts of a key: those of an earlier command, or new ones, which are kept."""
    folder = os.path.join(cache_folder(), "proofs")
    path = os.path.join(folder, f"{key}.json")
    with contextlib.suppress(OSError, ValueError, TypeError), opened(path) as descriptor:
        if is_private_folder(folder):
            text = os.read(descriptor, 1 << 24)
            record = json.loads(text)
            if all(os.stat(file).st_mtime_ns == time for file, time in record["releases"]):
                return {name: RunVerdict(*row) for name, row in record["verdicts"].items()}
    verdicts = prove()
    rows = {name: [one.is_proved, one.text] for name, one in verdicts.items()}
    with contextlib.suppress(OSError):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:
            json.dump({"releases": sorted(releases()), "verdicts": rows}, file)
    return verdicts
