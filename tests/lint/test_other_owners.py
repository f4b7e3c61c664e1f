"""Names of other systems with settings of the same names: no errors, and no system that the project has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.tables import from_table

AUTOMODEL = """\
model:
  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_config
  backend:
    _target_: nemo_automodel.components.models.common.BackendConfig
    attn: te
    cuda_graph:
      cuda_graph_modules: [te_dpa, attn]
"""
RECIPE = """\
recipe: TrainFinetuneRecipe
distributed:
  strategy: fsdp2
model:
  cuda_graph:
    cuda_graph_modules: [te_dpa]
"""
CODE = """\
from nemo_automodel.components.models.common import BackendConfig

backend = BackendConfig(attn="te", cuda_graph={"cuda_graph_modules": ["te_dpa", "attn"]})
"""
BESIDE = (
    AUTOMODEL + "policy:\n  megatron_cfg:\n    cuda_graph_impl: transformer_engine\n    cuda_graph_modules: [te_dpa]\n"
)


@pytest.mark.parametrize(("name", "text"), [("a.yaml", AUTOMODEL), ("b.yaml", RECIPE), ("c.py", CODE)])
def test_the_modules_of_nemo_automodel_are_its_own(project: Path, cgmigrate, name: str, text: str) -> None:
    write(name, text)
    result = cgmigrate("check", "--preview", name)
    assert result.exit_code == 0, result.stdout
    assert "CG206" not in result.stdout


def test_a_configuration_of_megatron_in_the_same_file_is_still_megatrons(project: Path, cgmigrate) -> None:
    write("a.yaml", BESIDE)
    result = cgmigrate("check", "--output-format", "concise", "a.yaml")
    assert next(line for line in result.stdout.splitlines() if "CG206" in line).startswith("a.yaml:11:")


@from_table
def test_a_value_of_a_fork_needs_a_flag_of_a_fork(project: Path, cgmigrate, flags: str, is_refused: bool) -> None:
    write("run.sh", f"torchrun pretrain_gpt.py --num-layers 2 --hidden-size 8 {flags}\n")
    result = cgmigrate("check", "run.sh")
    assert ("CG206" in result.stdout) is is_refused, result.stdout
    assert "LoongForge" not in result.stdout + result.stderr


@from_table
def test_invalid_python_without_megatron_is_silent(
    project: Path, cgmigrate, name: str, text: str, is_reported: bool
) -> None:
    write(name, text)
    assert ("CG009" in cgmigrate("check", name).stdout) is is_reported


GUARDED = """\
from megatron.core.transformer import TransformerConfig


def modules_of(cfg: TransformerConfig):
    {}
"""


@from_table
def test_code_that_asks_for_the_new_name_too_is_not_reported(
    project: Path, cgmigrate, body: str, is_reported: bool
) -> None:
    write("a.py", GUARDED.format(body))
    result = cgmigrate("check", "a.py")
    assert ("CG60" in result.stdout) is is_reported, result.stdout


def test_a_guarded_write_of_the_old_name_is_not_reported(project: Path, cgmigrate) -> None:
    body = (
        'if hasattr(cfg, "enable_cuda_graph"):\n        cfg.enable_cuda_graph = False\n    cfg.cuda_graph_impl = "none"'
    )
    write("a.py", GUARDED.format(body))
    assert "CG" not in cgmigrate("check", "--preview", "a.py").stdout
