"""What a fix does with a scope of an object that no function of the project needs: it is deleted, or written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.megatron.releases import NEWEST
from tests.support.tables import from_table

HEAD = """\
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer
"""
MAKE = """

def recipe() -> ConfigContainer:
    cfg = ConfigContainer(model=GPTModelProvider())
    cfg.model.cuda_graph_impl = "none"
    cfg.model.cuda_graph_scope = "full"
    return cfg
"""
CHANGE = """

def captured() -> ConfigContainer:
    cfg = ConfigContainer(model=GPTModelProvider())
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["attn"]
    return cfg


def {name}() -> ConfigContainer:
    cfg = captured()
    cfg.model.cuda_graph_scope = {scope}
    return cfg
"""


@pytest.fixture
def fixed(tmp_path: Path, cgmigrate: Callable[..., Any]) -> Callable[..., str]:
    """Return a function that fixes a module of recipes, and returns its text."""

    def run(text: str, configuration: str = "") -> str:
        folder = tmp_path / "megatron/bridge/recipes"
        folder.mkdir(parents=True)
        (folder / "__init__.py").touch()
        (folder / "recipe.py").write_text(HEAD + text)
        (tmp_path / "cgmigrate.toml").write_text(configuration)
        subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
        cgmigrate("fix", "--from", "0.17", "--to", str(NEWEST), str(tmp_path))
        return (folder / "recipe.py").read_text().removeprefix(HEAD)

    return run


def test_a_scope_that_nothing_needs_is_deleted(fixed: Callable[..., str]) -> None:
    assert fixed(MAKE) == MAKE.replace('    cfg.model.cuda_graph_scope = "full"\n', "")


def test_the_configuration_may_ask_for_explicit_modules(fixed: Callable[..., str]) -> None:
    changed = MAKE.replace('cuda_graph_scope = "full"', "cuda_graph_modules = []")

    assert fixed(MAKE, 'style = "explicit"\n') == changed


def test_a_scope_that_replaces_another_is_written(fixed: Callable[..., str]) -> None:
    text = CHANGE.format(name="whole", scope="[]")

    assert fixed(text) == text.replace("scope", "modules")


def test_no_branch_is_left_empty(fixed: Callable[..., str]) -> None:
    text = """

def recipe(is_small: bool = True) -> ConfigContainer:
    cfg = ConfigContainer(model=GPTModelProvider())
    if is_small:
        cfg.model.cuda_graph_scope = "full"
    return cfg
"""

    assert fixed(text) == text.replace('cuda_graph_scope = "full"', "cuda_graph_modules = []")


SETTERS = """\
def set_modules(config, modules):
    config.cuda_graph_modules = modules
    config.cuda_graph_scope = None


def clear_modules(config):
    set_modules(config, [])


def set_modules_and_more(config, modules):
    set_modules(config, modules)
    config.num_layers = 4
"""


@from_table
def test_the_configuration_may_name_setters(
    tmp_path: Path, cgmigrate: Callable[..., Any], fixed: Callable[..., str], setters: str, calls: bool
) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team/__init__.py").touch()
    (tmp_path / "team/graphs.py").write_text(SETTERS)
    change = CHANGE.format(name="whole", scope="[]")
    text = fixed(change, f"setters = {setters}\n")

    assert ('    set_modules(cfg.model, ["attn"])\n' in text) is calls
    assert ("    clear_modules(cfg.model)\n" in text) is ("clear_modules" in setters)
    assert ('    cfg.model.cuda_graph_modules = ["attn"]\n' in text) is not calls
    assert "cuda_graph_scope" not in text
    (tmp_path / "megatron/bridge/recipes/recipe.py").write_text(HEAD + change)
    notes = cgmigrate("check", "--from", "0.17", "--to", str(NEWEST), str(tmp_path)).stderr
    assert ("`setters` in the configuration lists no function" in notes) is (not calls and setters != "[]")


def test_a_setter_has_a_full_name(tmp_path: Path, cgmigrate: Callable[..., Any]) -> None:
    (tmp_path / "cgmigrate.toml").write_text('setters = ["set_modules"]\n')
    (tmp_path / "recipe.py").write_text(HEAD + MAKE)
    result = cgmigrate("check", str(tmp_path))

    assert result.exit_code == 2
    assert "'set_modules' is no full name of a function" in result.output


def test_another_style_is_refused(tmp_path: Path, cgmigrate: Callable[..., Any]) -> None:
    (tmp_path / "cgmigrate.toml").write_text('style = "short"\n')
    (tmp_path / "recipe.py").write_text(HEAD + MAKE)
    result = cgmigrate("check", str(tmp_path))

    assert result.exit_code == 2
    assert "style: 'short' is none of delete, explicit" in result.output.replace("`", "")
