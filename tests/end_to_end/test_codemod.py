"""The codemod, run by libcst's own command."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("libcst", reason="the extra libcst is not installed")

SAFE = (
    "from megatron.core.transformer import TransformerConfig\n\nc = TransformerConfig(enable_cuda_graph=True)  # on\n"
)
UNSAFE = """from megatron.bridge.training.config import ConfigContainer

def f(cfg: ConfigContainer):
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["attn"]
"""
NOTHING = "x = {'a': 1}\n"


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    codemod = ["codemod", "-x", "cgmigrate.codemod.MigrateCudaGraphs", "--no-format", "--jobs", "1"]
    command = [sys.executable, "-m", "libcst.tool", *codemod, *words, "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_libcst_writes_what_fix_writes(project: Path, cgmigrate) -> None:
    texts = {"safe.py": SAFE, "crlf.py": SAFE.replace("\n", "\r\n"), "unsafe.py": UNSAFE, "nothing.py": NOTHING}
    copy = project / "copy"
    copy.mkdir()
    for name, text in texts.items():
        (copy / name).write_bytes(text.encode())
    done = run(copy)
    assert "Failed to codemod 0 files" in done.stdout + done.stderr
    by_libcst = {name: (copy / name).read_bytes() for name in texts}
    by_fix = {}
    for name, text in texts.items():
        # libcst gets one file and sees no other: each is a project of its own.
        path = project / "alone" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(text.encode())
        shutil.rmtree(copy, ignore_errors=True)
        cgmigrate("fix", "alone")
        by_fix[name] = path.read_bytes()
        path.unlink()
    assert by_libcst == by_fix
    assert b'cuda_graph_impl="local")  # on\r\n' in by_libcst["crlf.py"]
    assert by_libcst["unsafe.py"] == UNSAFE.encode()


def test_what_remains_is_a_warning_and_unsafe_fixes_are_an_option(project: Path) -> None:
    (project / "unsafe.py").write_text(UNSAFE)
    done = run(project)
    assert "unsafe.py:5: CG106" in done.stdout + done.stderr
    run(project, "--unsafe-fixes")
    assert "cuda_graph_modules" in (project / "unsafe.py").read_text()
