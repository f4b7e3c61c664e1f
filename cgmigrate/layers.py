"""Which files of a run are merged into others: the ``defaults:`` of OmegaConf and Hydra.

Files that are merged have to be rewritten together; until the program does that, it has to know
which ones they are. Names are resolved on disk where that is possible, else by the end of a path,
so that a file is rather taken for merged than not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from cgmigrate.edits import decode

MAX_DEPTH = 20
"""Files followed from one child; a chain of defaults is never longer in practice."""


def merged_into(children: Mapping[str, str], paths: Iterable[str]) -> dict[str, str]:
    """Return path → the file merged over it, for those of ``paths`` that some child builds on.

    ``children`` maps the path of each file that has settings to its ``defaults:`` (as a document's
    ``builds_on`` gives them).
    """
    known = {os.path.realpath(path): path for path in paths}
    found: dict[str, str] = {}
    for child, builds_on in children.items():
        seen = {os.path.realpath(child)}
        waiting = [(child, builds_on)]
        while waiting and len(seen) < MAX_DEPTH:
            at, names = waiting.pop()
            for name in _entries(names):
                for parent in _resolve(at, name, known):
                    if parent in seen:
                        continue
                    seen.add(parent)
                    if parent in known:
                        found.setdefault(known[parent], child)
                    waiting.append((parent, _defaults_in(parent)))
    return found


def children_around(paths: Iterable[str]) -> dict[str, str]:
    """Return ``defaults:`` by path for the files with settings that are tracked in the checkouts of these.

    A hook names staged files only, and a file must not be rewritten because its children were not staged.
    """
    from cgmigrate.discovery import has_trigger, tracked_yaml

    found = tracked_yaml({os.path.dirname(path) for path in paths}, "defaults", "cuda")
    return {path: builds_on(data) for path in found if has_trigger(data := _read(path))}


def _entries(builds_on: str) -> list[str]:
    """``../base.yaml, model: gpt, override /optim: adam`` → paths without suffix."""
    result = []
    for entry in filter(None, builds_on.split(", ")):
        bare = re.sub(r"^(override|optional)\s+", "", entry.strip().strip("{}").strip("'\""))
        bare = re.sub(r"\s*:\s*", "/", bare).replace("'", "").replace('"', "").split("@")[0]
        result.append(re.sub(r"\.ya?ml$", "", bare.strip("/")))
    return result


def _resolve(at: str, name: str, known: Mapping[str, str]) -> list[str]:
    beside = os.path.join(os.path.dirname(at), name)
    on_disk = [beside + suffix for suffix in (".yaml", ".yml") if os.path.isfile(beside + suffix)]
    if on_disk:
        return [os.path.realpath(path) for path in on_disk]
    tail = "/" + "/".join(part for part in name.split("/") if part not in ("", ".", ".."))
    return [path for path in known if path.rpartition(".")[0].endswith(tail)]


def builds_on(data: bytes) -> str:
    """Return the ``defaults:`` of a file as its document gives them, empty when it has none or is no text."""
    if b"defaults" not in data:
        return ""
    from cgmigrate.documents.yaml import YamlDocument

    try:
        return YamlDocument(decode(data)[0]).builds_on
    except UnicodeDecodeError:
        return ""


def _defaults_in(path: str) -> str:
    return builds_on(_read(path))


def _read(path: str) -> bytes:
    """The bytes of a file, none where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
