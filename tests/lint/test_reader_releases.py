"""NeMo-RL reads the new names after its release 0.7: for a project that pins an older one, its YAML stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.package_pins import pinned_up_to
from tests.support.files import write

Command = Callable[..., Result]

RECIPE = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
RL = "https://github.com/NVIDIA-NeMo/RL"
LOCK = 'version = 1\n\n[[package]]\nname = "nemo-rl"\nversion = "0.6.0"\nsource = {}\n'
MODULE = '[submodule "3rdparty/RL"]\n\tpath = 3rdparty/RL\n\turl = {}.git\n\tbranch = {}\n'
OLD = [
    ("requirements.txt", "nemo-rl==0.7.0\n"),
    ("requirements.txt", "nemo_rl[vllm] ~= 0.6.0  # why\n"),
    ("requirements.txt", "nemo-rl<0.8\n"),
    ("requirements-train.txt", f"nemo-rl @ git+{RL}.git@v0.6.0\n"),
    ("pyproject.toml", f'[project]\ndependencies = [\n  "nemo-rl @ git+{RL}@r0.7.0",\n]\n'),
    ("pyproject.toml", f'[tool.uv.sources]\nnemo-rl = {{ git = "{RL}", tag = "v0.5.0" }}\n'),
    ("pyproject.toml", '[tool.poetry.dependencies]\nnemo-rl = "^0.6"\n'),
    ("setup.py", "from setuptools import setup\nsetup(install_requires=['nemo-rl==0.6.0'])\n"),
    ("Dockerfile", "RUN pip install nemo-rl==0.6.0 && echo\n"),
    ("uv.lock", LOCK.format(f'{{ git = "{RL}?tag=v0.6.0#abc" }}')),
    ("uv.lock", LOCK.format('{ registry = "https://example.org/simple" }')),
    (".gitmodules", MODULE.format(RL, "r0.7.0")),
]
OPEN = [
    ("requirements.txt", "nemo-rl==0.8.0\n"),
    ("requirements.txt", "nemo-rl>=0.5\n"),
    ("requirements.txt", "nemo-rl\n"),
    ("requirements.txt", "# nemo-rl==0.6.0\n"),
    ("requirements.txt", "my-nemo-rl==0.6.0\n"),
    ("requirements.txt", f"nemo-rl @ git+{RL}@main\n"),
    ("requirements.txt", f"nemo-rl @ git+{RL}@c1385707b17a2c38bf5af450320c93435124c257\n"),
    ("pyproject.toml", '[tool.poetry.dependencies]\nnemo-rl = ">=0.6"\n'),
    ("pyproject.toml", '[project]\nname = "nemo-rl"\nversion = "0.6.0"\n'),
    ("uv.lock", LOCK.format('{ editable = "." }')),
    ("uv.lock", LOCK.format(f'{{ git = "{RL}?rev=abc#abc" }}')),
    (".gitmodules", MODULE.format(RL, "main")),
    (".gitmodules", MODULE.format("https://github.com/other/World", "r0.7.0")),
]


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
