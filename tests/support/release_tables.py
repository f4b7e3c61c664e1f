"""The generator of the tables of releases, ``scripts/release_tables.py``, as a module."""

from __future__ import annotations

import importlib.metadata

import pytest

from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.tables import release_of
from tests.support.paths import ROOT
from tests.support.scripts import module_at

SCRIPT = ROOT / "scripts/release_tables.py"


GENERATOR = module_at(SCRIPT)
CLASSES: dict[str, str] = GENERATOR.CLASSES
"""The classes of megatron-core whose fields are in the tables, each with its module."""


def installed() -> Release:
    """Return the release of megatron-core in this environment; skip the test where there is none."""
    pytest.importorskip("megatron.core")
    return release_of(".".join(importlib.metadata.version("megatron-core").split(".")[:2]))
