"""NeMo-RL reads the new names after its release 0.7: for a project that pins an older one, its YAML stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.package_pins import pinned_up_to
from tests.support.files import write
from tests.support.tables import table_of

Command = Callable[..., Result]

RECIPE = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
RL = "https://github.com/NVIDIA-NeMo/RL"
OLD = table_of(__name__, "OLD")
OPEN = table_of(__name__, "OPEN")


@pytest.mark.parametrize(("name", "text"), OLD)
def test_a_pin_of_a_release_that_does_not_read_the_names_withholds_the_fix(
    project: Path, cgmigrate: Command, name: str, text: str
) -> None:
    write(name, text)
    write("conf/a.yaml", RECIPE)
    report = cgmigrate("fix", "--unsafe-fixes", "conf").stdout
    assert Path("conf/a.yaml").read_text() == RECIPE
    why = "nemo-rl reads `cuda_graph_impl`, `cuda_graph_modules` only after its release 0.7, and this project pins an"
    assert f"blocked by: {why} older one ({name}:" in report


@pytest.mark.parametrize(("name", "text"), OPEN)
def test_another_pin_leaves_the_fix_as_it_is(project: Path, cgmigrate: Command, name: str, text: str) -> None:
    write(name, text)
    write("conf/a.yaml", RECIPE)
    cgmigrate("fix", "conf")
    assert "cuda_graph_modules: attn" in Path("conf/a.yaml").read_text()


def test_dead_settings_are_deleted_under_any_pin(project: Path, cgmigrate: Command) -> None:
    write("requirements.txt", "nemo-rl==0.6.0\n")
    write("a.yaml", "policy:\n  megatron_cfg:\n    enable_cuda_graph: false\n    train_iters: 1\n")
    cgmigrate("fix", "a.yaml")
    assert Path("a.yaml").read_text() == "policy:\n  megatron_cfg:\n    train_iters: 1\n"


def test_settings_of_other_owners_do_not_depend_on_the_pin(project: Path, cgmigrate: Command) -> None:
    write("requirements.txt", "nemo-rl==0.6.0\n")
    write("a.yaml", "model:\n  megatron:\n    external_cuda_graph: true\n")
    cgmigrate("fix", "a.yaml")
    assert "cuda_graph_impl: transformer_engine" in Path("a.yaml").read_text()


def test_the_nearest_folder_with_a_pin_decides(project: Path) -> None:
    write("requirements.txt", "nemo-rl==0.6.0\n")
    write("new/requirements.txt", "nemo-rl==0.9.0\n")
    write("new/conf/a.yaml", "")
    assert pinned_up_to(project / "new/conf", "nemo-rl", Release(0, 7)) == ""
    assert pinned_up_to(project / "conf", "nemo-rl", Release(0, 7)) == "requirements.txt:1: nemo-rl==0.6.0"
