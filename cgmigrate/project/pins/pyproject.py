"""``pyproject.toml``: its lists of requirements, and the tables of uv and Poetry."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import quoted_lines
from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import Requirement
from cgmigrate.project.pins.table_entries import read_tables


def load_toml(text: str) -> dict[str, Any]:
    """Return the data of a TOML text. Raises ValueError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def table(parent: object, key: str) -> dict[str, Any]:
    """Return the table at a key; empty if there is none."""
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """Return the strings in a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def read_pyproject(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirements on a package, those that take precedence first. Raises ValueError."""
    document = load_toml(text)
    lines = quoted_lines(text)
    for requirement in _requirement_lists(document, package):
        line = lines.get(requirement) or lines.get(requirement.replace('"', '\\"'), 1)
        yield from read_requirement(line, requirement.strip(), package)
    yield from read_tables(text, _dependency_tables(document, package), package)


def _requirement_lists(document: dict[str, Any], package: Package) -> Iterator[str]:
    project, uv = table(document, "project"), table(table(document, "tool"), "uv")
    # An override takes precedence over the requirements that it contradicts.
    yield from strings(uv.get("override-dependencies"))
    dependencies = strings(project.get("dependencies"))
    yield from dependencies
    if not any(map(package.is_named, dependencies)):
        for group in (
            *table(project, "optional-dependencies").values(),
            *table(document, "dependency-groups").values(),
            uv.get("dev-dependencies"),
        ):
            yield from strings(group)
    yield from strings(uv.get("constraint-dependencies"))


def _dependency_tables(document: dict[str, Any], package: Package) -> Iterator[dict[str, Any]]:
    uv, poetry = (table(table(document, "tool"), name) for name in ("uv", "poetry"))
    yield table(uv, "sources")
    dependencies = table(poetry, "dependencies")
    yield dependencies
    if not any(map(package.is_named, dependencies)):
        yield table(poetry, "dev-dependencies")
        for group in table(poetry, "group").values():
            yield table(group, "dependencies")
