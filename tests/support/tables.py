"""Tables of cases: ``tests/tables/<folder>/<module>.yaml`` has the rows of a test, or of a constant, by its name.

A row of a test names its arguments; ``id`` is its name in reports. A list is a tuple where the annotation says so.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import yaml

from cgmigrate.megatron.releases import NEWEST, OLDEST, UPSTREAM
from tests.support.paths import ROOT

TABLES = ROOT / "tests/tables"
RELEASES = {"{NEWEST}": NEWEST, "{OLDEST}": OLDEST, "{UPSTREAM}": UPSTREAM}
"""What a table has in place of a release that changes with what is known of megatron-core."""

Test = TypeVar("Test", bound=Callable[..., Any])


@functools.cache
def _read(path: Path) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    for name, release in RELEASES.items():
        text = text.replace(name, str(release))
    tables: dict[str, Any] = yaml.load(text, yaml.CSafeLoader)
    return tables


def table_of(module: str, name: str) -> Any:
    """Return a table of a module by its name."""
    if module == "__main__":
        # Of `python -m`, which writes what a test expects.
        module = sys.modules[module].__spec__.name
    folder, module = module.split(".")[-2:]
    return _read(TABLES / folder / f"{module.removeprefix('test_')}.yaml")[name]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def from_table(test: Test) -> Test:
    """Run a test with each row of its table."""
    rows = table_of(test.__module__, test.__qualname__)
    names = [name for name in rows[0] if name != "id"]
    tuples = {name for name, kind in test.__annotations__.items() if kind.startswith("tuple")}
    values = [
        pytest.param(*(_tuples(row[name]) if name in tuples else row[name] for name in names), id=row.get("id"))
        for row in rows
    ]
    decorated: Test = pytest.mark.parametrize(names, values)(test)
    return decorated
