"""Files with lists of requirements: those of pip, conda and setuptools."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import chain

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import logical_lines
from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import Requirement


def read_requirement_file(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirements in a requirement or constraint file of pip."""
    for number, line in logical_lines(text):
        # ` --` begins options of pip: hashes and build options.
        requirement = re.split(r"\s--", re.sub(r"(^|\s)#.*", "", line).strip())[0].strip()
        requirement = re.sub(r"^(?:-e\s*|--editable[\s=]\s*)", "", requirement)
        if not requirement.startswith("-"):
            yield from read_requirement(number, requirement, package)


def read_conda_environment(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirements in an environment file of conda, and those of its ``pip:`` section."""
    conda = rf"(?:[\w./-]+::)?({package.pattern})\s*=\s*([0-9][^=\s*]*?)(?:\.?\*)?(?:=\S*)?"
    for number, line in enumerate(text.split("\n"), 1):
        item = re.match(r"\s*-\s+(.*)", line)
        if item is None:
            continue
        written = re.sub(r"^[\"']|[\"']$", "", re.split(r"\s#", item[1], maxsplit=1)[0].rstrip())
        # conda's = admits every version with this prefix.
        exact = re.fullmatch(conda, written, re.IGNORECASE)
        yield from read_requirement(number, f"{exact[1]}=={exact[2]}.*" if exact else written, package)


def read_setup_py(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirements that are strings of ``setup.py``, which is not run. Raises ValueError."""
    with_releases = re.compile(rf"\s*{package.pattern}\s*(?:\[[^\]]*\]\s*)?(?:[<>=!~(]|@)", re.IGNORECASE)
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise ValueError(error.msg) from error
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and with_releases.match(node.value):
            yield from read_requirement(node.lineno, node.value.strip(), package)


def read_setup_cfg(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirements of setuptools in ``setup.cfg``. Raises ValueError."""
    from configparser import Error, RawConfigParser

    parser = RawConfigParser()
    try:
        parser.read_string(text)
    except Error as error:
        raise ValueError(error.message) from error
    requirements = _items(parser.get("options", "install_requires", fallback=""))
    if not any(map(package.is_named, requirements)) and parser.has_section("options.extras_require"):
        requirements += [item for value in parser["options.extras_require"].values() for item in _items(value)]
    lines = text.split("\n")
    at = 0
    for requirement in requirements:
        # They are in the order of the text, except that the extras may precede: then the search wraps around.
        at = next((at for at in chain(range(at, len(lines)), range(at)) if _line_has(lines[at], requirement)), 0)
        yield from read_requirement(at + 1, requirement, package)


def _line_has(line: str, requirement: str) -> bool:
    return requirement in line and not line.lstrip().startswith("#")


def _items(value: str) -> list[str]:
    # setuptools splits a list on one line at semicolons, even if a marker follows.
    items = value.splitlines() if "\n" in value else value.split(";")
    return [item for each in items if (item := re.sub(r"(^|\s)#.*", "", each).strip())]
