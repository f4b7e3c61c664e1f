"""URLs and git references: the release in a wheel's name or a tag."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.requirement import LOCAL_PATH, Requirement, exact, version_of


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
