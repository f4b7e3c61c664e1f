"""``Pipfile`` and ``pixi.toml``: their tables of packages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cgmigrate.project.pins.requirement import Requirement
from cgmigrate.project.pins.table_entries import read_tables
from cgmigrate.project.pins.toml_tables import load_toml, table


def read_pipfile(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core. Raises ValueError."""
    document = load_toml(text)
    yield from read_tables(text, (table(document, name) for name in ("packages", "dev-packages")))


def read_pixi(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core, those of the default environment first. Raises ValueError."""
    document = load_toml(text)
    environments: list[dict[str, Any]] = [document, *filter(_is_table, table(document, "feature").values())]
    for one in environments:
        yield from read_tables(text, (table(one, name) for name in ("pypi-dependencies", "dependencies")))


def _is_table(value: object) -> bool:
    return isinstance(value, dict)
