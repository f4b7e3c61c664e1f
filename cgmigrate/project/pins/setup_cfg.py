"""``setup.cfg``: the requirements of setuptools."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain

from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import Requirement, is_core


def read_setup_cfg(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core. Raises ValueError."""
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        parser.read_string(text)
    except Error as error:
        raise ValueError(error.message) from error
    requirements = _items(parser.get("options", "install_requires", fallback=""))
    if not any(map(is_core, requirements)) and parser.has_section("options.extras_require"):
        requirements += [item for value in parser["options.extras_require"].values() for item in _items(value)]
    lines = text.split("\n")
    at = 0
    for requirement in requirements:
        # They are in the order of the text, except that the extras may precede: then the search wraps around.
        at = next((at for at in chain(range(at, len(lines)), range(at)) if _line_has(lines[at], requirement)), 0)
        yield from read_requirement(at + 1, requirement)


def _line_has(line: str, requirement: str) -> bool:
    return requirement in line and not line.lstrip().startswith("#")


def _items(value: str) -> list[str]:
    # setuptools splits a list on one line at semicolons, even if a marker follows.
    items = value.splitlines() if "\n" in value else value.split(";")
    return [item for each in items if (item := re.sub(r"(^|\s)#.*", "", each).strip())]
