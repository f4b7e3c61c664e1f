"""URLs and git references: the release in a wheel's name or a tag."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.requirement import NAME, Requirement, exact

# Megatron-LM's own tags (v2.5, v3.0) are not releases of megatron-core: a major version above 0 needs `core_`.
_REFERENCE = r"(?:[@/]core_[rv]([0-9]+)\.([0-9]+)|@v?(0)\.([0-9]+))(?![0-9])"
_WHEEL = rf"{NAME}-([0-9]+)\.([0-9]+)"


def names_release(url: str) -> bool:
    """Return whether the git reference of a URL names a release."""
    return re.search(_REFERENCE, url) is not None


def read_url(line: int, text: str, url: str, *, is_core: bool) -> Iterator[Requirement]:
    """Yield the requirement of a URL, if it is that of megatron-core or Megatron-LM.

    ``is_core`` says that the URL belongs to a requirement on megatron-core.
    """
    match = re.search(_WHEEL, url, re.IGNORECASE)
    megatron = is_core or "/megatron-lm" in url.lower()
    if match is None and megatron:
        match = re.search(_REFERENCE, url)
    if match is not None:
        major, minor = (int(part) for part in match.groups() if part is not None)
        yield exact(line, text, Release(major, minor))
    elif megatron and url.startswith("file://"):
        yield Requirement(line, text, None, origin="a local path")
    elif megatron:
        git = url.startswith(("git+", "git:", "git@", "@")) or re.search(r"\.git(?:$|[@#])", url)
        yield Requirement(line, text, None, origin=_git_origin(url) if git else "a URL")


def _git_origin(url: str) -> str:
    """Return what kind of git reference a URL has, for messages."""
    reference = re.search(r"@([^@/#:]+(?:/[^@#:]+)?)(?:#|$)", url)
    if reference is None or reference[1].startswith("git@"):
        return "a git repository"
    return "a git revision" if re.fullmatch(r"[0-9a-f]{7,40}", reference[1]) else "a git branch or tag"
