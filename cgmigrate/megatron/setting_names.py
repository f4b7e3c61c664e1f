"""The names of the settings, from the names of files: discovery needs no more, and reads no YAML for them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from cgmigrate.megatron.rule_data import is_of_upgrade

SETTINGS, SURROUNDINGS = "settings", "settings/surroundings"
"""The folders of settings in a folder of rules."""


CLASSES = ("CudaGraphScope", "CudaGraphModule")
"""megatron-core's classes whose members are values of settings. A file may name them and no setting."""
CORE_OF_CLASSES = "CudaGraph"
CODE = ("from megatron.", "import megatron.", ": megatron.", "- megatron.", '"megatron.', "'megatron.", "policy:")
"""What code that uses Megatron-LM has, YAML that names its classes, and configurations of NeMo-RL.

`cgmigrate upgrade` reads them."""


_SHORTEST_CORE = 9
"""Characters of a part of a name that is rare enough to search for."""


def subjects(folders: Iterable[str]) -> tuple[str, ...]:
    """Return the settings that select files, from the ``settings`` folders in folders of rules.

    Of a setting in a section, it is the name there.
    """
    names: list[str] = []
    for folder in folders:
        try:
            files = os.listdir(os.path.join(folder, SETTINGS))
        except OSError:
            # A team's folder need not have settings of its own.
            continue
        if is_of_upgrade(folder):
            from cgmigrate.megatron.code import load
            from cgmigrate.megatron.gone import gone_names

            names += (one.setting.name for one in gone_names())
            names += ("--num-layers", *load().weights)
        stems = (stem for file in files if (stem := file.removesuffix(".yaml")) != file)
        names += sorted(key for stem in stems if (key := stem.rpartition(".")[2]).isidentifier())
    return tuple(dict.fromkeys(names))


def with_hyphens(names: Iterable[str]) -> Iterator[str]:
    """Yield names as they are and as words of flags."""
    for name in names:
        yield name
        if "_" in name:
            yield name.replace("_", "-")


def without_contained(words: Iterable[str]) -> tuple[str, ...]:
    """Return words without those that contain another one, which is found wherever they are."""
    every = tuple(dict.fromkeys(words))
    return tuple(word for word in every if not any(other != word and other in word for other in every))


def cores(names: Sequence[str]) -> tuple[str, ...]:
    """Return few texts of which each name contains one: the part that it shares with the most others.

    A search for the cores is cheaper than one for all names: six settings share ``cuda_graph``.
    """
    parts = {name: _parts(name.rpartition(".")[2]) for name in names}
    shared = Counter(part for some in parts.values() for part in some)
    return tuple(dict.fromkeys(max(some, key=lambda part: (shared[part], len(part))) for some in parts.values()))


def _parts(name: str) -> list[str]:
    """Return the whole name, and those of its parts between underscores that are long enough."""
    words = name.split("_")
    pairs = ((first, last) for first in range(len(words)) for last in range(first + 1, len(words) + 1))
    runs = ("_".join(words[first:last]) for first, last in pairs)
    return [run for run in runs if run == name or len(run) >= _SHORTEST_CORE]
