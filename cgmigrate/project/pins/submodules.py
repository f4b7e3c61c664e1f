"""``.gitmodules``: submodules of Megatron-LM and Megatron-Bridge."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.project.pins.lines import lines_at
from cgmigrate.project.pins.requirement import Requirement


def read_gitmodules(text: str) -> Iterator[Requirement]:
    """Yield a requirement for each submodule that contains megatron-core."""
    megatron = re.compile(
        r"^[ \t]*url[ \t]*=.*[/:]megatron-(?:lm|bridge)(?:\.git)?/?[ \t\r]*$", re.MULTILINE | re.IGNORECASE
    )
    sections = list(re.finditer(r"^\[submodule\b.*?(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL))
    for section, line in zip(sections, lines_at(text, (each.start() for each in sections)), strict=True):
        path = re.search(r"^[ \t]*path[ \t]*=[ \t]*(\S+)[ \t\r]*$", section[0], re.MULTILINE)
        if path and megatron.search(section[0]):
            origin = "a git submodule that is not checked out"
            yield Requirement(line, path[1], None, origin=origin, folder=path[1])
