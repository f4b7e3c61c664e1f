"""Names of other systems with settings of the same names: no errors, and no system that the project has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import write

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


@pytest.mark.parametrize(
    ("flags", "is_refused"),
    [
        ("--cuda-graph-scope per_microbatch --cuda-graph-pad-length 512", False),
        ("--cuda-graph-impl paged --cuda-graph-page-size 64 --bf16", False),
        # A flag that no release has, and a value that every release has.
        ("--cuda-graph-impl local --cuda-graph-scope Attn --my-data-path x", True),
        ("--cuda-graph-impl local --cuda-graph-scope Attn --cuda-graph-warmup-steps 3", True),
    ],
)
def test_a_value_of_a_fork_needs_a_flag_of_a_fork(project: Path, cgmigrate, flags: str, is_refused: bool) -> None:
    write("run.sh", f"torchrun pretrain_gpt.py --num-layers 2 --hidden-size 8 {flags}\n")
    result = cgmigrate("check", "run.sh")
    assert ("CG206" in result.stdout) is is_refused, result.stdout
    assert "LoongForge" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("name", "text", "is_reported"),
    [
        ("a.pyi", "def f(enable_cuda_graph: bool = ...) -> None\n", False),
        ("b.pyi", "cuda_graph_scope: list[\n", False),
        ("c.pyi", "from megatron.core import enums\ncuda_graph_scope: list[\n", True),
        ("d.py", "enable_cuda_graph = (\n", False),
        ("e.py", "cuda_graph_scope = (\n", True),
        ("f.py", 'ARGS = ["--cuda-graph-scope",\n', True),
    ],
)
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


@pytest.mark.parametrize(
    ("body", "is_reported"),
    [
        ('return getattr(cfg, "cuda_graph_modules", None) or getattr(cfg, "cuda_graph_scope", None)', False),
        ('return getattr(cfg, "cuda_graph_modules", getattr(cfg, "cuda_graph_scope", "full"))', False),
        ('return cfg.cuda_graph_modules if hasattr(cfg, "cuda_graph_modules") else cfg.cuda_graph_scope', False),
        ('return cfg.cuda_graph_impl != "none" or getattr(cfg, "enable_cuda_graph", False)', False),
        # The new name is not read, or another object has it.
        ('return getattr(cfg, "cuda_graph_scope", None)', True),
        ('return getattr(other, "cuda_graph_modules", None) or getattr(cfg, "cuda_graph_scope", None)', True),
        # None is no container.
        ('return cfg.cuda_graph_modules and "attn" in getattr(cfg, "cuda_graph_scope", [])', True),
    ],
)
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
