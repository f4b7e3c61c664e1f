"""``megatron_core.egg-info/PKG-INFO`` beside a source tree that was built: the version of the package."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import line_at
from cgmigrate.project.pins.requirement import Requirement, exact

FILE_NAMES = ("PKG-INFO", "METADATA")


def metadata_folder(package: Package) -> re.Pattern[str]:
    """Return a pattern for the name of a folder with metadata of a package."""
    return re.compile(rf"{package.pattern}(-[\w.+!]+)?\.(egg|dist)-info", re.IGNORECASE)


def read_metadata(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the version of the package that metadata describe. Raises ValueError."""
    head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    version = re.search(r"^Version:[ \t]*([0-9]+)\.([0-9]+)([\w.+!-]*)", head, re.MULTILINE)
    if version is None or not re.search(
        rf"^Name:[ \t]*{package.pattern}[ \t]*\r?$", head, re.MULTILINE | re.IGNORECASE
    ):
        raise ValueError(f"it has no version of {package.name}")
    number = f"{version[1]}.{version[2]}{version[3]}"
    yield exact(line_at(text, version.start()), f"{package.name}=={number}", number)
