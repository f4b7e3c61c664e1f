"""Command lines in strings of Python files: deprecated flags in them are reported, and the strings stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fixed_files import Run, check_passes

TRAIN = "torchrun pretrain_gpt.py"
OLD = f"{TRAIN} --cuda-graph-impl local --cuda-graph-scope attn mlp"
IMPORTS = "import os\nimport shlex\nimport subprocess\n\n"

STRINGS = {
    "a shell": f'subprocess.run("{OLD}", shell=True, check=True)\n',
    "a flag without a value": f'os.system("{TRAIN} --enable-cuda-graph")\n',
    "a flag without a value before the next one": f'os.system("{TRAIN} --enable-cuda-graph --bf16")\n',
    "a flag without a value before the next command": f'os.system("{TRAIN} --enable-cuda-graph && ls")\n',
    "a flag without a value on a line of its own": f'os.system(r"""{TRAIN} \\\n  --enable-cuda-graph \\\n  x""")\n',
    "several literals": f'os.system(\n    "{TRAIN} "\n    "--cuda-graph-scope full "\n    "--bf16"\n)\n',
    "a script of bash -c": f'subprocess.check_call(["bash", "-c", "cd /x && {OLD}"], cwd="/")\n',
    "words that are divided": f'subprocess.run("{OLD}".split())\n',
    "a variable": f'def main():\n    cmd = "{OLD}"\n    return subprocess.Popen(cmd, shell=True)\n',
    "a text that nothing runs": f'x = "{OLD}"\nos.system("ls")\n',
    "an f-string": f'os.system(f"{OLD} {{1}}")\n',
    "a sum": f'os.system("{OLD} " + x)\n',
    "an override": 'os.system("python -m megatron.bridge.x model.cuda_graph_scope=attn")\n',
    "rare escapes": f'os.system("{TRAIN} \\x2d-lr 1 --cuda-graph-scope attn")\n',
}
"""Code in which a string has a deprecated flag or key."""
SILENT = {
    "newer flags": f'os.system("{TRAIN} --cuda-graph-impl local --cuda-graph-modules attn mlp")\n',
    "a message": 'print("use --cuda-graph-impl instead of --enable-cuda-graph")\n',
}


@pytest.mark.parametrize("text", STRINGS.values(), ids=STRINGS)
def test_a_flag_in_a_string_is_reported_and_stays(project: Path, cgmigrate: Run, text: str) -> None:
    path = project / "a.py"
    path.write_text(f"{IMPORTS}import megatron.core\n\n{text}")
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert "CG604" in result.output, result.output
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == f"{IMPORTS}import megatron.core\n\n{text}"


@pytest.mark.parametrize("text", SILENT.values(), ids=SILENT)
def test_what_is_no_deprecated_flag_passes(project: Path, cgmigrate: Run, text: str) -> None:
    check_passes(project / "a.py", IMPORTS + text, cgmigrate)
