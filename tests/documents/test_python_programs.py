"""Flags in Python beside the name of the program that gets them: whose `--enable-cuda-graph` is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

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


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        (f'cmd = ["torchrun", "pretrain_gpt.py"]\ncmd += [{FLAG}]\n', "CG101"),
        (f'SCRIPT = f"{{ROOT}}/pretrain_gpt.py"\nargs = [{FLAG}, "--bf16"]\n', "CG101"),
        ('cmd = f"torchrun pretrain_gpt.py --enable-cuda-graph --lr {lr}"\n', "CG604"),
        ('cmd = "torchrun pretrain_gpt.py "\ncmd += "--enable-cuda-graph "\n', "CG604"),
        ('job(entrypoint="python pretrain_gpt.py --enable-cuda-graph")\n', "CG604"),
    ],
)
def test_a_flag_in_a_file_with_such_a_program_is_reported(project: Path, cgmigrate: Run, text: str, rules: str) -> None:
    (project / "a.py").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1 and rules in result.output, result.output


@pytest.mark.parametrize(
    "text",
    [
        'cmd.append("--cuda-graph-scope")\n',
        'cmd.insert(2, "--external-cuda-graph")\n',
        'cmd = ["train.py", "--external-cuda-graph" if graphs else "--bf16"]\n',
        'flag = "--cuda-graph-scope"\n',
        'flags = {"graphs": "--external-cuda-graph"}\n',
        'def flag():\n    return "--external-cuda-graph"\n',
        f'run("pretrain_gpt.py", {FLAG})\n',
    ],
)
def test_a_flag_alone_is_reported(project: Path, cgmigrate: Run, text: str) -> None:
    (project / "a.py").write_text(text)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1 and "CG604" in result.output, result.output


@pytest.mark.parametrize(
    "text",
    [
        'parser.add_argument("--cuda-graph-scope")\n',
        'print("--cuda-graph-scope")\n',
        'raise ValueError("--external-cuda-graph")\n',
        f"cmd.append({FLAG})\n",
        'import vllm\n\ncmd.append("--cuda-graph-scope")\n',
        f'SCRIPT = "pretrain_gpt.py"\nrun(["deepspeed", "serve.py", {FLAG}])\n',
        f'"""Not like pretrain_gpt.py."""\nrun(["serve", {FLAG}])\n',
        'import vllm\n\nSCRIPT = "pretrain_gpt.py"\ncmd = f"serve --enable-cuda-graph {x}"\n',
        'args = f"--enable-cuda-graph {x}"\n# pretrain_gpt.py\n',
    ],
)
def test_the_flag_of_another_program_stays(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.py"
    path.write_text(text)
    assert cgmigrate("check", ".").exit_code == 0
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == text
