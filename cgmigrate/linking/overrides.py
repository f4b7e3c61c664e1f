"""Overrides of settings on command lines: ``++policy.megatron_cfg.cuda_graph_scope=[]`` in scripts, lists and code.

Files are searched by text. An override belongs to the recipes that its file names; without such a name, to all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.project.paths import shown_path
from cgmigrate.text.files import read_bytes
from cgmigrate.text.remembered import remembered

_SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch", ".sub", ".py", ".yaml", ".yml", ".txt", ".mk", ".dockerfile")
PATTERNS = (*(f"*{suffix}" for suffix in _SUFFIXES), "*Dockerfile*", "*Makefile", "*makefile")
"""Names of the files that are searched. Scripts without a suffix are searched if they are files of the run."""
_MOST_BYTES = 1024 * 1024
_RECIPE = re.compile(r"(?<![\w.-])([\w.-]+)\.ya?ml\b|config[-_]name[\"']?[= ,]+[\"']?([\w./-]+)")


@dataclass(frozen=True, slots=True)
class Override:
    """A setting on a command line, and its keys.

    ``recipes`` are the names, without suffix, of the files that its file names.
    """

    place: str
    keys: tuple[str, ...]
    setting: str
    recipes: frozenset[str] = frozenset()

    def __str__(self) -> str:
        return f"`{'.'.join((*self.keys, self.setting))}` ({self.place})"

    def concerns(self, path: tuple[str, ...]) -> bool:
        """Return whether it may set a mapping at a path of a file, which may be merged under further keys."""
        return not path or self.keys[-len(path) :] == path


@dataclass
class Overrides:
    """The overrides in the files of some folders, read once."""

    catalogue: Catalogue
    paths: Iterable[str]
    """The files to search, and those of other syntaxes."""

    def concerning(self, names: Iterable[str]) -> list[Override]:
        """Return the overrides that belong to files of some names, or to all files."""
        known = frozenset(names)
        return [one for one in self.every() if not one.recipes or one.recipes & known]

    @remembered
    def every(self) -> list[Override]:
        """Return all overrides."""
        return [one for path in sorted(set(self.paths)) for one in _overrides_in(path, self.catalogue)]


def is_searched(path: str) -> bool:
    """Return whether a file of the run is searched."""
    name = os.path.basename(path)
    return "." not in name or name.endswith(_SUFFIXES) or name.startswith("Dockerfile")


def _overrides_in(path: str, catalogue: Catalogue) -> Iterator[Override]:
    try:
        data = read_bytes(path)
    except OSError:
        return
    names = "|".join(sorted(catalogue.captures))
    if len(data) > _MOST_BYTES or not any(name.encode() in data for name in catalogue.captures):
        return
    text = data.decode("utf-8", "replace")
    # In code, an assignment without blanks looks the same outside of a string.
    before = r"(?<=[\"'])" if path.endswith(".py") else r"(?<![\w.$}])"
    pattern = re.compile(
        rf"{before}(?P<sign>[+~]{{0,2}})(?P<keys>(?:[\w-]+\.)+)(?P<name>{names})"
        r"(?:=(?!=)(?P<value>\[[^\]\n]*\]|[^\s\"',;\\)]*)|(?<=\w)(?=[\s\"']))"
    )
    matches = [match for match in pattern.finditer(text) if match["value"] is not None or match["sign"] == "~"]
    recipes = _recipes_in(text) - {os.path.basename(path).rpartition(".")[0]} if matches else frozenset()
    for match in matches:
        line = text.count("\n", 0, match.start()) + 1
        keys = tuple(match["keys"].rstrip(".").split("."))
        place = f"{shown_path(path)}:{line}"
        yield Override(place, keys, match["name"], recipes)


def _recipes_in(text: str) -> frozenset[str]:
    """Return the names, without suffix, of the configurations that a text names."""
    names = (match[1] or match[2] for match in _RECIPE.finditer(text))
    return frozenset(os.path.basename(name) for name in names if name)
