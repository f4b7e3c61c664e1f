"""Whole outputs of commands, as a person sees them.

``python -m tests.report.test_snapshots --update`` in the root of the checkout writes the expected outputs anew.
"""

import os
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from cgmigrate.cli.commands import main
from cgmigrate.megatron.releases import NEWEST
from tests.support.tables import table_of

SNAPSHOTS = Path(__file__).parent / "snapshots"

PAIR = "model:\n  hidden_size: 8\n  cuda_graph_impl: none\n  cuda_graph_scope: full_iteration\n"
SAFE = "model:\n  hidden_size: 8\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n  other: 1\n"
UNSAFE = "model:\n  cuda_graph_scope: full_iteration\n  hidden_size: 4096\n"
BLOCKED = "model:\n  hidden_size: 8\n  enable_cuda_graph: true\n  external_cuda_graph: true\n"
FAR = "model:\n  hidden_size: 8\n  cuda_graph_impl: local\n  a: 1\n  b: 2\n  c: 3\n  cuda_graph_scope: [attn]\n"
BLOCK_LIST = "model:\n  hidden_size: 8\n  cuda_graph_impl: local\n  cuda_graph_scope:\n    - attn\n    - mlp\n"
TOGETHER = "model:\n  hidden_size: 8\n  enable_cuda_graph: true\n  cuda_graph_scope: attn\n"
PYTHON = """\
from megatron.core.transformer import TransformerConfig


def build():
    return TransformerConfig(cuda_graph_impl="local", name="日本語", cuda_graph_scope=["attn",
\t\t"mlp"])


def change(cfg):
    cfg.model.cuda_graph_impl = "local"
    cfg.model.cuda_graph_scope = ["attn"]
"""
HOSTILE = "MODEL_ARGS:\n\t# x\n".replace("\t", "  ") + (
    "  --bf16: true # \u202eerror[CG101]\n  --enable-cuda-graph: true # ::error::x ##[error]y"
)
MANY = "".join(f"m{number}:\n  external_cuda_graph: true\n" for number in range(60))
LONG = "MODEL_ARGS: {" + "x: 1, " * 60 + "--bf16: true, --enable-cuda-graph: true" + ", y: 2" * 60 + "}\n"

CASES: dict[str, tuple[dict[str, str], tuple[str, ...]]] = table_of(__name__, "CASES")


@contextmanager
def _project(files: dict[str, str]):
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            for name, text in files.items():
                Path(name).parent.mkdir(parents=True, exist_ok=True)
                Path(name).write_bytes(text.encode())
            yield
        finally:
            os.chdir(before)


def output_of(name: str) -> str:
    """Return what the command of a case writes to both streams, whatever the newest release is."""
    files, words = CASES[name]
    with _project(files):
        result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    shown = f"$ cgmigrate {' '.join(words)}\n{result.stdout}--- stderr, exit status {result.exit_code}\n{result.stderr}"
    return shown.replace("\x1b", "<ESC>").replace(str(NEWEST), "<newest>")


@pytest.mark.parametrize("name", CASES)
def test_an_output_is_the_expected_one(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(tmp_path))
    for variable in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(variable, raising=False)
    assert output_of(name) == (SNAPSHOTS / f"{name}.txt").read_bytes().decode()


def test_every_expected_output_has_a_case() -> None:
    assert {path.stem for path in SNAPSHOTS.glob("*.txt")} == set(CASES)


if __name__ == "__main__" and "--update" in sys.argv:
    with tempfile.TemporaryDirectory() as cache:
        os.environ["CGMIGRATE_CACHE_DIR"] = cache
        for case in CASES:
            (SNAPSHOTS / f"{case}.txt").write_bytes(output_of(case).encode())
