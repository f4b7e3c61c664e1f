"""A file that installs an older release itself: a fix of it would run on that release, so it is withheld."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write

RUN = "torchrun pretrain_gpt.py --cuda-graph-impl local --cuda-graph-scope attn"
INSTALL = "pip install megatron-core==0.17.0"


FILES = {
    "a script": ("run.sh", f"{INSTALL}\n{RUN}\n"),
    "continued lines": ("run.sh", f"pip3 install -U \\\n  'megatron-core[mlm]==0.17.1' \\\n  numpy\n{RUN}\n"),
    "a range": ("run.sh", f'uv add "megatron_core>=0.15,<0.18"\n{RUN}\n'),
    "a variable": ("run.sh", f"VERSION=0.17.0\npip install megatron-core==$VERSION\n{RUN}\n"),
    "a branch": ("run.sh", f"git -C Megatron-LM checkout core_r0.17.0\n{RUN}\n"),
    "a clone": ("run.sh", f"git clone -b core_v0.16.1 https://github.com/NVIDIA/Megatron-LM\n{RUN}\n"),
    "a step": ("ci.yaml", f"run: |\n  {INSTALL}\n  {RUN}\n"),
    "a list of words": (
        "run.py",
        'import subprocess\n\nsubprocess.run(["pip", "install", "megatron-core==0.17.0"])\n'
        f"subprocess.run({RUN.split()})\n",
    ),
    "a here-document": ("run.sh", f"sbatch <<'EOF'\n#!/bin/bash\n{INSTALL}\n{RUN}\nEOF\n"),
    "a page": ("run.md", f"```bash\n{INSTALL}\n{RUN}\n```\n"),
    "options before the command": ("run.sh", f"pip3.12 -q --no-cache-dir install megatron-core==0.17.0\n{RUN}\n"),
    "a tag in a URL": ("run.sh", f"pip install git+https://github.com/NVIDIA/Megatron-LM.git@core_v0.17.0\n{RUN}\n"),
    "a package for one run": ("run.sh", f"uv run --with megatron-core===0.17.0 {RUN}\n"),
}


@pytest.mark.parametrize(("name", "text"), FILES.values(), ids=FILES)
def test_the_fix_is_withheld_unless_the_release_is_given(project: Path, cgmigrate: Any, name: str, text: str) -> None:
    write(name, text)
    shown = cgmigrate("fix", "--docs", name).stdout
    assert (project / name).read_text(encoding="utf-8") == text
    assert " installs megatron-core 0.1" in shown and "or give `--to 0.19`" in shown
    cgmigrate("fix", "--docs", "--to", "0.19", "--unsafe-fixes", name)
    after = (project / name).read_text(encoding="utf-8")
    assert "cuda-graph-modules" in after and "cuda-graph-scope" not in after


OTHERS = {
    "a newer release": f"pip install megatron-core==0.19.0\n{RUN}\n",
    "an open range": f"pip install 'megatron-core>=0.15'\n{RUN}\n",
    "another package": f"pip install megatron-bridge==0.1.0\n{RUN}\n",
    "a comment": f"# {INSTALL}\n{RUN}\n",
    "a printed requirement": f'echo "megatron-core==0.17.0 is too old"\n{RUN}\n',
    "a comment behind a command": f"pip install numpy  # as megatron-core==0.17.0 did\n{RUN}\n",
    "a package with a longer name": f"pip install my-megatron-core==0.17.0\n{RUN}\n",
    "a command that removes": f"pip uninstall megatron-core==0.17.0\n{RUN}\n",
    "a branch of another release": f"git checkout core_r0.18.0\n{RUN}\n",
}


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_commands_withhold_nothing(project: Path, cgmigrate: Any, text: str) -> None:
    write("run.sh", text)
    cgmigrate("fix", "run.sh")
    assert "--cuda-graph-modules attn" in (project / "run.sh").read_text(encoding="utf-8")


def test_what_the_older_release_reads_as_well_is_fixed(project: Path, cgmigrate: Any) -> None:
    write("run.sh", f"{INSTALL}\ntorchrun pretrain_gpt.py --external-cuda-graph\n")
    cgmigrate("fix", "run.sh")
    assert "--cuda-graph-impl transformer_engine" in (project / "run.sh").read_text(encoding="utf-8")
