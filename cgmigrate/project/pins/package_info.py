"""``package_info.py`` of a source tree of megatron-core: its version number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import line_at
from cgmigrate.project.pins.requirement import Requirement, exact

FILE_NAME = "package_info.py"


def read_package_info(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the version of a source tree. Raises ValueError."""
    number = r"^(MAJOR|MINOR|PATCH)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*([0-9]+)\b"
    parts = {match[1]: match for match in re.finditer(number, text, re.MULTILINE)}
    if not {"MAJOR", "MINOR"} <= parts.keys():
        raise ValueError("it assigns no number to MAJOR and MINOR")
    version = ".".join(str(int(parts[name][2])) for name in ("MAJOR", "MINOR", "PATCH") if name in parts)
    line = line_at(text, parts["MINOR"].start())
    yield exact(line, f"{package.name}=={version}", version)
