"""Tables of cases: ``tests/tables/<folder>/<module>.yaml`` has the rows of a test by its name.

A row names the arguments of the test; ``id`` is its name in reports. A list is a list, also where Python has a tuple.
"""

from __future__ import annotations

import functools
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
def _read(path: Path) -> dict[str, list[dict[str, Any]]]:
    text = path.read_text(encoding="utf-8")
    for name, release in RELEASES.items():
        text = text.replace(name, str(release))
    tables: dict[str, list[dict[str, Any]]] = yaml.load(text, yaml.CSafeLoader)
    return tables


def from_table(test: Test) -> Test:
    """Run a test with each row of its table."""
    folder, module = test.__module__.split(".")[-2:]
    rows = _read(TABLES / folder / f"{module.removeprefix('test_')}.yaml")[test.__qualname__]
    names = [name for name in rows[0] if name != "id"]
    values = [pytest.param(*(row[name] for name in names), id=row.get("id")) for row in rows]
    decorated: Test = pytest.mark.parametrize(names, values)(test)
    return decorated
