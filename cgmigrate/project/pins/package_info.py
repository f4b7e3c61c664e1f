"""``package_info.py`` of a source tree of megatron-core: its version number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.lines import line_at
from cgmigrate.project.pins.requirement import Requirement, exact

FILE_NAME = "package_info.py"


def read_package_info(text: str) -> Iterator[Requirement]:
    """Yield the version of a source tree. Raises ValueError."""
    number = r"^(MAJOR|MINOR|PATCH)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*([0-9]+)\b"
    parts = {match[1]: match for match in re.finditer(number, text, re.MULTILINE)}
    if not {"MAJOR", "MINOR"} <= parts.keys():
        raise ValueError("it assigns no number to MAJOR and MINOR")
    release = Release(int(parts["MAJOR"][2]), int(parts["MINOR"][2]))
    patch = f".{parts['PATCH'][2]}" if "PATCH" in parts else ""
    yield exact(line_at(text, parts["MINOR"].start()), f"megatron-core=={release}{patch}", release)
