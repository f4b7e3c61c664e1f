"""The generator of the tables of releases, ``scripts/release_tables.py``, as a module."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from types import ModuleType

import pytest

from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.tables import release_of
from tests.support.paths import ROOT

SCRIPT = ROOT / "scripts/release_tables.py"


def _generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_tables", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look up their module while they are made.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


GENERATOR = _generator()
CLASSES: dict[str, str] = GENERATOR.CLASSES
"""The classes of megatron-core whose fields are in the tables, each with its module."""


def installed() -> Release:
    """Return the release of megatron-core in this environment; skip the test where there is none."""
    pytest.importorskip("megatron.core")
    return release_of(".".join(importlib.metadata.version("megatron-core").split(".")[:2]))
