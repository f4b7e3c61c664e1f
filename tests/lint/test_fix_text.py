"""The text of a fix quotes what the fix writes and deletes, in the syntax of the file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.project.options import RunOptions
from tests.golden import GOLDEN, WHOLE
from tests.support.quotes import assert_quoted
from tests.support.tables import from_table

IMPORTS = (
    "from megatron.core.transformer import TransformerConfig\n"
    "from megatron.core.transformer.enums import CudaGraphScope\n"
)


def fixes(path: Path, text: str) -> list[str]:
    path.write_text(text)
    (checked,) = Run([str(path)], RunOptions(unsafe=True))
    assert isinstance(checked, FileResult)
    return [diagnostic.fix_text for diagnostic in checked.diagnostics]


@from_table
def test_a_fix_of_yaml_is_quoted_letter_by_letter(tmp_path: Path, text: str, shown: list[str]) -> None:
    assert fixes(tmp_path / "a.yaml", f"model:\n  {text}") == shown


@from_table
def test_a_fix_of_python_is_quoted_letter_by_letter(tmp_path: Path, text: str, shown: list[str]) -> None:
    assert fixes(tmp_path / "a.py", f"{IMPORTS}x = {text}\n") == shown


def test_a_fix_of_statements_is_quoted_letter_by_letter(tmp_path: Path) -> None:
    text = (
        "def f(cfg: TransformerConfig):\n"
        '    setattr(cfg, "external_cuda_graph", True)\n'
        '    setattr(cfg, "cuda_graph_scope", ["attn"])\n'
        "def g(cfg: TransformerConfig):\n"
        "    cfg.cuda_graph_impl = 'transformer_engine'\n"
        "    cfg.cuda_graph_scope = ['attn']\n"
    )
    assert fixes(tmp_path / "a.py", IMPORTS + text) == [
        'write `setattr(cfg, "cuda_graph_impl", "transformer_engine")`',
        'write `setattr(cfg, "cuda_graph_modules", ["attn"])`',
        "write `cfg.cuda_graph_modules = ['attn']`",
    ]


def test_an_operand_that_goes_is_quoted(tmp_path: Path) -> None:
    text = "def f(cfg):\n"
    text += '    return cfg.cuda_graph_impl == "local" and CudaGraphScope.full_iteration {} cfg.cuda_graph_scope\n'
    deleted = "delete `CudaGraphScope.full_iteration not in cfg.cuda_graph_scope`"
    assert fixes(tmp_path / "a.py", IMPORTS + text.format("not in")) == [
        f"{deleted}: since 0.18 `local` has no full-iteration graphs"
    ]
    assert fixes(tmp_path / "a.py", IMPORTS + text.format("in")) == ['write `cfg.cuda_graph_impl == "full_iteration"`']


def test_a_message_names_a_setting_in_the_syntax_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(IMPORTS + 'x = ["--cuda-graph-impl", "local", "--cuda-graph-scope", "full_iteration"]\n')
    (checked,) = Run([str(path)], RunOptions())
    assert isinstance(checked, FileResult)
    assert '`"--cuda-graph-impl", "full_iteration"`' in checked.diagnostics[0].message


@pytest.mark.parametrize("name", ["examples", "corpus-yaml", "corpus-pairs"])
def test_every_quote_is_in_the_text_before_or_after(name: str) -> None:
    """As in all cases of rules (``test_fixtures.py``)."""
    folder, _ = WHOLE[name]
    if not folder.is_dir():
        pytest.skip("the corpus is not beside the checkout")
    findings = json.loads((GOLDEN / f"{name}.check.json").read_text().rpartition("exit status")[0])["findings"]
    assert assert_quoted(findings, folder) > 5
    assert all(one["help"] for one in findings if not one["fix"])


@pytest.mark.parametrize("format", ["full", "json", "sarif", "github", "gitlab"])
def test_every_format_shows_the_same_text(project: Path, cgmigrate, format: str) -> None:
    (project / "a.yaml").write_text("megatron_cfg:\n  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: null\n")
    shown = cgmigrate("check", "--format", format, "a.yaml").stdout
    if format in ("json", "sarif", "gitlab"):
        shown = json.dumps(json.loads(shown))
    assert "write `cuda_graph_modules: null`" in shown
