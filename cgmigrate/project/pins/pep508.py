"""Requirements as pip and pyproject.toml write them (PEP 508), URLs and local paths."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.requirement import LOCAL_PATH, Requirement, exact, version_of

if TYPE_CHECKING:
    from packaging.markers import Marker


def names_release(url: str, package: Package) -> bool:
    """Return whether the git reference of a URL names a release."""
    return re.search(package.references, url) is not None


def read_url(line: int, text: str, url: str, package: Package, *, is_named: bool) -> Iterator[Requirement]:
    """Yield the requirement of a URL, if it is that of a package or its repository.

    ``is_named`` says that the URL belongs to a requirement on the package.
    """
    match = re.search(rf"(?:^|/){package.pattern}-([0-9]+)\.([0-9]+)", url, re.IGNORECASE)
    repository = rf"[/:]{re.escape(package.repository)}(?:\.git)?(?=[@#?]|/?$|/(?:archive|releases|tree)/)"
    is_of = is_named or (package.repository and re.search(repository, url, re.IGNORECASE))
    if match is None and is_of:
        match = re.search(package.references, url)
    commit = re.search(r"[@#]([0-9a-f]{7,40})(?:#|$)", url)
    if match is not None:
        yield exact(line, text, version_of(match))
    elif commit is not None and (release := package.release_of(commit[1])):
        yield exact(line, text, release)
    elif is_of and url.startswith("file://"):
        yield Requirement(line, text, origin=LOCAL_PATH)
    elif is_of:
        git = url.startswith(("git+", "git:", "git@", "@")) or re.search(r"\.git(?:$|[@#])", url)
        yield Requirement(line, text, origin=_git_origin(url) if git else "a URL")


def _git_origin(url: str) -> str:
    """Return what kind of git reference a URL has, for messages."""
    reference = re.search(r"@([^@/#:]+(?:/[^@#:]+)?)(?:#|$)", url)
    if reference is None or reference[1].startswith("git@"):
        return "a git repository"
    return "a git revision" if re.fullmatch(r"[0-9a-f]{7,40}", reference[1]) else "a git branch or tag"


def read_requirement(line: int, text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirement in one item of a list; nothing if it has no version or is on another package."""
    if not package.may_be_in(text):
        return
    from packaging import requirements
    from packaging.utils import canonicalize_name

    try:
        requirement = requirements.Requirement(text)
    except requirements.InvalidRequirement:
        yield from _read_other(line, text, package)
        return
    is_named = canonicalize_name(requirement.name) in package.names
    pins: Iterator[Requirement] = iter(())
    if requirement.url:
        pins = read_url(line, text, requirement.url, package, is_named=is_named)
    elif is_named and (requirement.specifier or requirement.marker):
        pins = iter([Requirement(line, text, (requirement.specifier,) if requirement.specifier else None)])
    holds = _holds(requirement.marker) if requirement.marker else {True}
    for one in pins:
        yield one._replace(is_always=holds == {True}, is_never="'never'" in text)


def _holds(marker: Marker) -> set[bool]:
    """Return whether a marker holds on Linux, with any Python on any machine."""
    linux = {"sys_platform": "linux", "platform_system": "Linux", "os_name": "posix", "extra": ""}
    machines = product(("3.10", "3.14"), ("x86_64", "aarch64"))
    return {
        marker.evaluate({**linux, "python_version": version, "platform_machine": machine})
        for version, machine in machines
    }


def _read_other(line: int, text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirement in an item that PEP 508 does not allow but pip or a build script does."""
    folder = rf"(?:^|/)(?:{re.escape(package.repository)}|{package.pattern})/?(?:\[[^][]*\])?$"
    if "://" in text:
        egg = re.search(f"egg={package.pattern}", text, re.IGNORECASE)
        yield from read_url(line, text, text, package, is_named=egg is not None)
    elif re.search(folder, text, re.IGNORECASE):
        yield Requirement(line, text, origin=LOCAL_PATH, folder=text.split("[")[0])
    elif package.is_named(text):
        yield Requirement(line, text, origin="a variable" if "$" in text else "")
