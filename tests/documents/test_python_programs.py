"""Flags in Python beside the name of the program that gets them: whose `--enable-cuda-graph` is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.tables import from_table

Run = Callable[..., Result]

FLAG = '"--enable-cuda-graph"'


@pytest.mark.parametrize(
    "program",
    ['"torchrun", "pretrain_gpt.py"', '"python", "-u", "/opt/lm/pretrain_mamba.py"', '"python", "-m", "megatron.rl.x"'],
)
def test_a_list_that_names_a_program_of_megatron_is_rewritten(project: Path, cgmigrate: Run, program: str) -> None:
    path = project / "a.py"
    path.write_text(f"import subprocess\n\nsubprocess.run([{program}, {FLAG}])\n")
    cgmigrate("fix", ".")
    assert f'[{program}, "--cuda-graph-impl", "local"]' in path.read_text()


@from_table
def test_a_flag_in_a_file_with_such_a_program_is_reported(project: Path, cgmigrate: Run, text: str, rules: str) -> None:
    (project / "a.py").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1 and rules in result.output, result.output


@from_table
def test_a_flag_alone_is_reported(project: Path, cgmigrate: Run, text: str) -> None:
    (project / "a.py").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1 and "CG604" in result.output, result.output


@from_table
def test_the_flag_of_another_program_stays(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.py"
    path.write_text(text)
    assert cgmigrate("check", ".").exit_code == 0
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == text
