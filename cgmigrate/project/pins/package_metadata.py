"""``megatron_core.egg-info/PKG-INFO`` beside a source tree that was built: the version of the package."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.lines import line_at
from cgmigrate.project.pins.requirement import NAME, Requirement, exact

FOLDER = re.compile(rf"{NAME}(-[\w.+!]+)?\.(egg|dist)-info", re.IGNORECASE)
"""The name of a folder with metadata of megatron-core."""
FILE_NAMES = ("PKG-INFO", "METADATA")


def read_metadata(text: str) -> Iterator[Requirement]:
    """Yield the version of the package that metadata describe. Raises ValueError."""
    head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    version = re.search(r"^Version:[ \t]*([0-9]+)\.([0-9]+)([\w.+!-]*)", head, re.MULTILINE)
    if version is None or not re.search(rf"^Name:[ \t]*{NAME}[ \t]*\r?$", head, re.MULTILINE | re.IGNORECASE):
        raise ValueError("it has no version of megatron-core")
    release = Release(int(version[1]), int(version[2]))
    yield exact(line_at(text, version.start()), f"megatron-core=={release}{version[3]}", release)
