"""Classes that another file of the project derives from Megatron's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.python_tools import run
from tests.support.tables import from_table

CONFIGS = """\
from dataclasses import dataclass
from megatron.core.transformer import TransformerConfig


@dataclass
class SmallConfig(TransformerConfig):
    hidden_size: int = 64


class Engine:
    pass
"""
CALL = "{}(enable_cuda_graph=True, hidden_size=8)\n"
MIGRATED = '{}(cuda_graph_impl="local", hidden_size=8)\n'


def package(project: Path, **files: str) -> None:
    for name, text in files.items():
        path = project / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@from_table
def test_a_class_of_the_package_is_followed_to_megatron(project: Path, cgmigrate, imports: str, callee: str) -> None:
    package(
        project,
        team__models__configs=CONFIGS,
        team__api="from team.models.configs import SmallConfig\n",
        team__tiny="from team.api import SmallConfig\n\n\nclass TinyConfig(SmallConfig):\n    pass\n",
        team__train=f"{imports}\n" + CALL.format(callee),
    )
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert (project / "team/train.py").read_text() == f"{imports}\n" + MIGRATED.format(callee)


@from_table
def test_what_does_not_lead_to_megatron_is_left(project: Path, cgmigrate, configs: str, callee: str) -> None:
    text = f"from team.configs import {callee}\n" + CALL.format(callee)
    package(project, team__configs=configs, team__train=text)
    cgmigrate("fix", "--unsafe-fixes", "team/train.py")
    assert (project / "team/train.py").read_text() == text


def test_imports_that_go_round_end(project: Path, cgmigrate) -> None:
    text = "from team.a import LoopConfig\n" + CALL.format("LoopConfig")
    package(
        project, team__a="from team.b import LoopConfig\n", team__b="from team.a import LoopConfig\n", team__train=text
    )
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert (project / "team/train.py").read_text() == text


CALL_OF_A_CONFIG = "C(enable_cuda_graph=True, hidden_size=8)\n"


@from_table
def test_imports_are_read_wherever_they_are_and_relative_to_the_package(imports: str) -> None:
    """A module of one's own in a checkout of megatron, as Megatron-LM's forks have."""
    result = run(f"{imports}\n{CALL_OF_A_CONFIG}", path="megatron/core/transformer/own.py", source="0.14")
    assert result.after == f"{imports}\n" + CALL_OF_A_CONFIG.replace(
        "enable_cuda_graph=True", 'cuda_graph_impl="local"'
    )


@pytest.mark.parametrize(
    "imports", ["from .....transformer import TransformerConfig as C", "from ..engine import Config as C"]
)
def test_a_relative_import_that_leads_out_of_megatron_is_left(imports: str) -> None:
    text = f"{imports}\n{CALL_OF_A_CONFIG}"
    assert run(text, path="megatron/core/transformer/own.py", source="0.14").after == text
