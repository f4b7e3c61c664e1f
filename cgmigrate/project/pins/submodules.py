"""``.gitmodules``: submodules of Megatron-LM and Megatron-Bridge."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.lines import lines_at
from cgmigrate.project.pins.requirement import Requirement, exact


def read_gitmodules(text: str) -> Iterator[Requirement]:
    """Yield a requirement for each submodule that contains megatron-core."""
    megatron = re.compile(
        r"^[ \t]*url[ \t]*=.*[/:]megatron-(?:lm|bridge)(?:\.git)?/?[ \t\r]*$", re.MULTILINE | re.IGNORECASE
    )
    sections = list(re.finditer(r"^\[submodule\b.*?(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL))
    for section, line in zip(sections, lines_at(text, (each.start() for each in sections)), strict=True):
        path = re.search(r"^[ \t]*path[ \t]*=[ \t]*(\S+)[ \t\r]*$", section[0], re.MULTILINE)
        if path and megatron.search(section[0]):
            yield _submodule(line, path[1], _BRANCH.search(section[0]))


_BRANCH = re.compile(r"^[ \t]*branch[ \t]*=[ \t]*core_[rv](\d+)[.](\d+)[\d.]*[ \t\r]*$", re.MULTILINE)


def _submodule(line: int, path: str, branch: re.Match[str] | None) -> Requirement:
    """Return the requirement of a submodule: the release of its branch."""
    if branch is None:
        return Requirement(line, path, None, origin="a git submodule that is not checked out", folder=path)
    release = Release(int(branch[1]), int(branch[2]))
    return exact(line, f"{path} ({branch[0].strip()})", release)._replace(folder=path)
