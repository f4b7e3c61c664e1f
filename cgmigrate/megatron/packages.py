"""The packages whose pins are read, ``rules/packages``: megatron-core, and those whose versions it checks."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

from cgmigrate.megatron.rule_data import load_yaml, rules_folder

_REFERENCES = r"@(?:release_v|v|r)?([0-9]+)\.([0-9]+)(?:\.[0-9]+)*(?:rc[0-9]+)?(?![\w.-])"


@dataclass(frozen=True)
class Package:
    """A package: the names under which it is installed, that of its repository, and the images that contain it."""

    name: str
    names: tuple[str, ...]
    repository: str = ""
    images: str = ""
    """A regular expression; empty if no image is known to have it."""
    inside: tuple[str, ...] = ()
    """Repositories that have it as a submodule."""
    references: str = _REFERENCES
    """A regular expression for git references that have a release, with groups for its two numbers."""
    tags: str = ""
    """A regular expression for the beginning of its tags and branches; empty if other repositories have such, too."""

    pre_releases: tuple[str, ...] = ()
    """Pre-releases with the names of their own release; others have those of the release before."""

    commits: dict[str, tuple[str, ...]] = field(default_factory=dict, hash=False)
    """The first digits of the commits that have the settings of each release."""

    def release_of(self, commit: str) -> str:
        """Return the release whose settings a commit has, empty if it is not known."""
        known = ((one, release) for release, commits in self.commits.items() for one in commits)
        return next((release for one, release in known if len(commit) > 6 and one.startswith(commit[: len(one)])), "")

    def has_own_names(self, version: str) -> bool:
        """Return whether a pre-release has the names of its own release."""
        return version in self.pre_releases

    @cached_property
    def pattern(self) -> str:
        """A regular expression for its names, in any spelling that pip accepts."""
        return f"(?:{'|'.join(r'[-_.]+'.join(map(re.escape, name.split('-'))) for name in self.names)})"

    @cached_property
    def _words(self) -> tuple[str, ...]:
        words = (*(name.split("-")[0] for name in self.names), self.repository.lower())
        return tuple(sorted({*filter(None, words)}))

    def is_named(self, requirement: str) -> bool:
        """Return whether a requirement, or the name of a package, is that of this one."""
        return re.match(rf"\s*{self.pattern}(?![\w.-])", requirement, re.IGNORECASE) is not None

    def may_be_in(self, text: str) -> bool:
        """Return whether a text may name it, or an image with it: a fast search."""
        lower = text.lower()
        if any(word in lower for word in self._words):
            return True
        return bool(self.images and re.search(rf"^(?:from|arg|env)\b.*{self.images}", lower, re.MULTILINE))

    def is_in_image(self, name: str) -> bool:
        """Return whether a name is that of an image that contains the package."""
        is_image = ":" in name or "/" in name
        return is_image and bool(self.images) and re.search(self.images, name, re.IGNORECASE) is not None


@cache
def names() -> frozenset[str]:
    """Return the packages that rules may test."""
    return frozenset(path.stem for path in (rules_folder() / "packages").glob("*.yaml"))


@cache
def package(name: str) -> Package:
    """Return a package; one that ``rules/packages`` does not describe has this one name, and a repository of it."""
    if name not in names():
        return Package(name, (name,), name.removeprefix("nemo-"))
    path = rules_folder() / "packages" / f"{name}.yaml"
    data = load_yaml(path.read_text(encoding="utf-8"), str(path))
    fields: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in data.items()}
    del fields["sources"]
    return Package(name, **fields)


def core() -> Package:
    """Return megatron-core."""
    return package("megatron-core")
