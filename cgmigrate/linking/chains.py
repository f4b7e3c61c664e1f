"""Files that are merged into others: the ``defaults:`` of OmegaConf and Hydra, ``extends: base.yaml``.

Files that are merged have to be rewritten together; until the program does that, it has to know
which ones they are. Names are resolved on disk where that is possible, else by the end of a path,
so that a file is rather taken for merged than not.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from cgmigrate.project.seeds import SeedsOf
from cgmigrate.text.files import read_bytes

if TYPE_CHECKING:
    from cgmigrate.documents.yaml import YamlDocument

BuildsOn = Callable[[str, bytes], str]
"""Returns the files that a file builds on, by its path and content."""

MAY_BUILD = re.compile(
    rb"defaults|\.ya?ml\b|^[\"'_]*(?:extends?|inherits?|includes?|imports?|parents?|bases?)\w*[\"']?[ \t]*:",
    re.MULTILINE,
)
"""Matches every file that builds on others, so that most files need not be parsed."""
_BARE = re.compile(r"[\w./-]{1,200}")
MAX_DEPTH = 20
"""Files followed from one child; a chain of defaults is never longer in practice."""


def merged_into(children: Mapping[str, str], paths: Iterable[str], builds_on: BuildsOn) -> dict[str, str]:
    """Return path → the file merged over it, for those of ``paths`` that some child builds on.

    ``children`` maps the path of each file that has settings to what it builds on (as ``builds_on`` gives it).
    """
    known = {os.path.realpath(path): path for path in paths}
    over: dict[str, str] = {}
    for child, named in children.items():
        seen = {os.path.realpath(child)}
        waiting = [(child, named)]
        while waiting and len(seen) < MAX_DEPTH:
            at, names = waiting.pop()
            for name in entries(names):
                for parent in _resolve(at, name, known):
                    if parent in seen:
                        continue
                    seen.add(parent)
                    if parent in known:
                        over.setdefault(known[parent], child)
                    waiting.append((parent, builds_on(parent, _read(parent))))
    return over


def children_around(paths: Collection[str], seeds: SeedsOf, builds_on: BuildsOn) -> dict[str, str]:
    """Return what they build on by path for the files with settings that are tracked in the checkouts of these.

    A hook names staged files only, and a file must not be rewritten because its children were not staged.
    """
    from cgmigrate.project.checkout import tracked_yaml

    known = dict.fromkeys(map(seeds, paths))
    words = dict.fromkeys(core for words in known for core in words.cores)
    contents = ((path, _read(path)) for path in tracked_yaml({os.path.dirname(path) for path in paths}, words))
    return {path: builds_on(path, data) for path, data in contents if any(words.in_file(data) for words in known)}


def entries(builds_on: str) -> list[str]:
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


def builds_on_of(path: str, document: YamlDocument) -> str:
    """Return the files that a file builds on, as ``defaults:`` writes them, empty when there are none."""
    return document.builds_on or ", ".join(word for _, word in files_named(path, document.top_level_words))


def files_named(path: str, values: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the top-level values of a YAML file that name another one, as (``extends``, ``base.yaml``).

    ``values`` are top-level keys, each with a word of its value. A word names a file by its suffix, or where a YAML
    file of that name exists.
    """
    return [(key, word) for key, word in values if _names_file(path, word)]


def _names_file(path: str, word: str) -> bool:
    if word.endswith((".yaml", ".yml")):
        return True
    if not _BARE.fullmatch(word):
        return False
    beside = os.path.join(os.path.dirname(path), word)
    others = (beside + suffix for suffix in (".yaml", ".yml"))
    return any(os.path.isfile(other) and os.path.realpath(other) != os.path.realpath(path) for other in others)


def _read(path: str) -> bytes:
    """Return the bytes of a file, none if it cannot be read."""
    try:
        return read_bytes(path)
    except OSError:
        return b""
