"""The packages whose versions decide what a release of megatron-core accepts: ``rules/packages``."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache

from cgmigrate.megatron.rule_data import load_yaml, rules_folder, rules_path


@dataclass(frozen=True, slots=True)
class Package:
    """A package: the names under which it is installed, that of its repository, and the images that contain it."""

    name: str
    names: tuple[str, ...]
    repository: str = ""
    images: str = ""
    """A regular expression; empty if no image is known to have it."""


@cache
def names() -> frozenset[str]:
    """Return the packages that rules may test."""
    files = os.listdir(os.path.join(rules_path(), "packages"))
    return frozenset(file.removesuffix(".yaml") for file in files if file.endswith(".yaml"))


@cache
def package(name: str) -> Package:
    """Return a package; one that ``rules/packages`` does not describe has this one name, and a repository of it."""
    if name not in names():
        return Package(name, (name,), name.removeprefix("nemo-"))
    path = rules_folder() / "packages" / f"{name}.yaml"
    data = load_yaml(path.read_text(encoding="utf-8"), str(path))
    return Package(name, tuple(data["names"]), data.get("repository", ""), data.get("images", ""))
