"""Environment files of conda."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import NAME, Requirement

_CONDA = rf"(?:[\w./-]+::)?({NAME})\s*=\s*([0-9][^=\s*]*?)(?:\.?\*)?(?:=\S*)?"


def read_conda_environment(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core, those of conda and those of its ``pip:`` section."""
    for number, line in enumerate(text.split("\n"), 1):
        item = re.match(r"\s*-\s+(.*)", line)
        if item is None:
            continue
        written = re.sub(r"^[\"']|[\"']$", "", re.split(r"\s#", item[1], maxsplit=1)[0].rstrip())
        # conda's = admits every version with this prefix.
        exact = re.fullmatch(_CONDA, written, re.IGNORECASE)
        yield from read_requirement(number, f"{exact[1]}=={exact[2]}.*" if exact else written)
