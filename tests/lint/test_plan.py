"""What a plan has: rules that are not selected, suppressions without codes, owners that are prose or several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.files import write
from tests.support.tables import from_table

READS = """\
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.enums import CudaGraphScope


def graphs(config: TransformerConfig) -> bool:
    return CudaGraphScope.attn in config.cuda_graph_scope
"""


def rules_of(result) -> list[str]:
    """The rule of every diagnostic reported."""
    assert result.exit_code in (0, 1), result.stderr
    return [diagnostic["rule"] for diagnostic in json.loads(result.stdout)["findings"]]


@pytest.mark.parametrize(
    ("options", "rules"),
    [
        ((), {"CG602"}),
        (("--select", "CG101"), set()),
        (("--select", "CG6"), {"CG602"}),
        (("--ignore", "CG602"), set()),
        (("--to", "0.17"), set()),
    ],
)
def test_a_problem_whose_rule_is_not_selected_is_not_reported(
    project: Path, cgmigrate, options: tuple[str, ...], rules: set[str]
) -> None:
    write(project / "a.py", READS)
    assert set(rules_of(cgmigrate("check", "--format", "json", *options, "a.py"))) == rules


@from_table
def test_a_suppression_that_cannot_be_read_hides_nothing(project: Path, cgmigrate, text: str) -> None:
    write(project / "a.yaml", text)
    result = cgmigrate("check", "--format", "json", "a.yaml")
    assert sorted(rules_of(result)) == ["CG012", "CG102"]
    assert result.exit_code == 1


@from_table
def test_a_description_is_no_setting(project: Path, cgmigrate, value: str) -> None:
    """Model cards and schemas describe the settings under their names."""
    text = f"model:\n  num_layers: 2\n  cuda_graph_scope: {value}\n"
    path = write(project / "a.yaml", text)
    result = cgmigrate("check", "--format", "json", "a.yaml")
    assert (rules_of(result), result.exit_code) == ([], 0)
    cgmigrate("fix", "--unsafe-fixes", "a.yaml")
    assert path.read_text() == text


@pytest.mark.parametrize(
    "value", ["full", "attn mlp moe_router mamba", "attn,mlp,moe_router,oops", "attn mlp oops wrong", "no such thing"]
)
def test_names_and_mistyped_names_are_settings(project: Path, cgmigrate, value: str) -> None:
    write(project / "a.yaml", f"model:\n  num_layers: 2\n  cuda_graph_impl: local\n  cuda_graph_scope: {value}\n")
    assert rules_of(cgmigrate("check", "--format", "json", "a.yaml"))


def test_documents_of_one_file_may_have_the_same_path_and_other_readers(project: Path, cgmigrate) -> None:
    bridge = "model:\n  _target_: megatron.bridge.models.GPTModelProvider\n  enable_cuda_graph: true\n"
    core = "model:\n  hidden_size: 1\n  num_attention_heads: 1\n  enable_cuda_graph: true\n"
    path = write(project / "a.yaml", f"{bridge}---\n{core}")
    assert rules_of(cgmigrate("check", "--format", "json", "a.yaml")) == ["CG101", "CG101"]
    cgmigrate("fix", "a.yaml")
    # Megatron-Bridge refuses whole layers under `local`; TransformerConfig has them.
    assert path.read_text() == f"{bridge}---\n{core.replace('enable_cuda_graph: true', 'cuda_graph_impl: local')}"
