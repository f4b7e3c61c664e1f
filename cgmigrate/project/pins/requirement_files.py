"""Requirement and constraint files of pip."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.project.pins.lines import logical_lines
from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import Requirement


def read_requirement_file(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core."""
    for number, line in logical_lines(text):
        # ` --` begins options of pip: hashes and build options.
        requirement = re.split(r"\s--", re.sub(r"(^|\s)#.*", "", line).strip())[0].strip()
        requirement = re.sub(r"^(?:-e\s*|--editable[\s=]\s*)", "", requirement)
        if not requirement.startswith("-"):
            yield from read_requirement(number, requirement)
