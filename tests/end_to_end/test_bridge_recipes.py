"""Judged by execution: the recipes of a project run before and after a plain ``fix``, as bench/bridge_recipes.py does.

The tree of traps is small and always runs. A released Megatron-Bridge takes a minute (CGMIGRATE_NIGHTLY=1).
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

# Importing it takes four seconds, and all later tests more; the recipes import it in a process of their own.
if find_spec("megatron") is None:
    pytest.skip("the judge is the installed megatron-core", allow_module_level=True)

from cgmigrate.megatron.releases import NEWEST
from tests.support.paths import FETCHED, ROOT

sys.path.insert(0, str(ROOT / "bench"))

from bridge_recipes import compare, results_of

from tests.support.nightly import nightly_only
from tests.support.tables import table_of

RELEASED = FETCHED / "megatron-bridge-0.6.2"
RULES = RELEASED / "megatron/bridge/utils/cuda_graph.py"
IMPORTS = """\
from dataclasses import dataclass

from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.recipes.helpers import base, plain_base, reset
from megatron.bridge.utils.cuda_graph import cuda_graph_module_names


"""
HELPERS = """\
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer


def _new():
    return ConfigContainer(model=GPTModelProvider())


def base():
    cfg = _new()
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["mlp"]
    return cfg


def plain_base():
    return _new()


def reset(cfg):
    if cfg.model.cuda_graph_impl == "none":
        cfg.model.cuda_graph_scope = []
"""
TRAPS = table_of(__name__, "TRAPS")


@pytest.fixture
def traps(tmp_path: Path) -> Path:
    if not RULES.exists():
        pytest.skip("megatron-bridge 0.6.2 is not in .corpus (.ci/run fetches it)")
    bridge = tmp_path / "before/megatron/bridge"
    for package in ("recipes", "utils"):
        (bridge / package).mkdir(parents=True)
        (bridge / package / "__init__.py").touch()
    shutil.copy(RULES, bridge / "utils/cuda_graph.py")
    (bridge / "recipes/helpers.py").write_text(HELPERS)
    for name, text in TRAPS.items():
        (bridge / f"recipes/{name}.py").write_text(IMPORTS + text)
    return tmp_path / "before"


def _copy(tree: Path, name: str) -> Path:
    return Path(shutil.copytree(tree, tree.parent / name))


def test_a_plain_fix_breaks_no_recipe(traps: Path, cgmigrate: Callable[..., Any]) -> None:
    after = _copy(traps, "after")
    # What each file alone looks like migrated, between others that are not: what this test is to catch.
    alone = _copy(traps, "alone")
    # The released code has branches for older releases, which keep old names unless releases are named.
    releases = ("--from", "0.17", "--to", str(NEWEST))
    cgmigrate("fix", *releases, str(after))
    recipes = (str(path) for path in alone.rglob("recipes/*.py") if path.stem != "helpers")
    cgmigrate("fix", "--unsafe-fixes", *releases, *recipes)

    before, plain, partly = results_of(traps, after, alone)
    comparison, broken = compare(before, plain), compare(before, partly)

    assert comparison.executed >= len(TRAPS) - 1
    assert not comparison.raises and not comparison.differs, str(comparison)
    changed = {
        path.stem for path in after.rglob("*.py") if path.read_text() != (traps / path.relative_to(after)).read_text()
    }
    assert not changed
    assert len({name.split(".")[3] for name in (*broken.raises, *broken.differs)}) >= 4, str(broken)


@nightly_only
def test_the_recipes_of_a_release_run_as_before(tmp_path: Path, cgmigrate: Callable[..., Any]) -> None:
    if not RELEASED.is_dir():
        pytest.skip(f"{RELEASED} is not there (.ci/run fetches it)")
    after = Path(shutil.copytree(RELEASED, tmp_path / "after"))
    cgmigrate("fix", str(after))
    comparison = compare(*results_of(RELEASED, after))
    assert comparison.executed > 300 and comparison.capturing > 50
    assert not comparison.raises and not comparison.differs, str(comparison)
