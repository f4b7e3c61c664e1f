"""The text of a fix quotes what the fix writes and deletes, in the syntax of the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.project.options import RunOptions
from cgmigrate.text.edits import apply
from tests.support.paths import ROOT

IMPORTS = (
    "from megatron.core.transformer import TransformerConfig\n"
    "from megatron.core.transformer.enums import CudaGraphScope\n"
)


def fixes(path: Path, text: str) -> list[str]:
    path.write_text(text)
    (checked,) = Run([str(path)], RunOptions(unsafe=True))
    assert isinstance(checked, FileResult)
    return [diagnostic.fix_text for diagnostic in checked.diagnostics]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cuda_graph_impl: transformer_engine\n  cuda_graph_scope: null\n", ["write `cuda_graph_modules: null`"]),
        (
            '--cuda-graph-impl: transformer_engine\n  --cuda-graph-scope: "[attn moe_router]"\n',
            ['write `--cuda-graph-modules: "[attn moe_router]"`'],
        ),
        (
            "cuda_graph_impl: 'transformer_engine'\n  'cuda_graph_scope': ['attn']\n",
            ["write `'cuda_graph_modules': ['attn']`"],
        ),
        (
            # A list over several lines is shown in one.
            "cuda_graph_impl: transformer_engine\n  cuda_graph_scope:\n  - attn\n  - mlp\n",
            ["write `cuda_graph_modules: [attn, mlp]`"],
        ),
        (
            "cuda_graph_impl: transformer_engine\n  cuda_graph_scope:  # the note\n  - attn # one\n  - moe_router\n",
            ["write `cuda_graph_modules: [attn, moe_router]`"],
        ),
        (
            "cuda_graph_impl: local\n  cuda_graph_scope:\n  - attn\n  - full_iteration_inference\n",
            ["write `cuda_graph_modules: [attn]`, add `inference_cuda_graph_scope: block`"] * 2,
        ),
        (
            "cuda_graph_impl: local\n  cuda_graph_scope:  # the note\n  - full_iteration\n",
            ["write `cuda_graph_impl: full_iteration`, delete `cuda_graph_scope: …`"],
        ),
    ],
)
def test_a_fix_of_yaml_is_quoted_letter_by_letter(tmp_path: Path, text: str, shown: list[str]) -> None:
    assert fixes(tmp_path / "a.yaml", f"model:\n  {text}") == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (
            "TransformerConfig(enable_cuda_graph=True, cuda_graph_scope=None)",
            ['write `cuda_graph_impl="local"`', "write `cuda_graph_modules=[]`"],
        ),
        (
            "TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=[CudaGraphScope.attn])",
            ["write `cuda_graph_modules=[CudaGraphModule.attn]`"],
        ),
        (
            'TransformerConfig(**{"external_cuda_graph": True, "cuda_graph_scope": ["attn"]})',
            ['write `"cuda_graph_impl": "transformer_engine"`', 'write `"cuda_graph_modules": ["attn"]`'],
        ),
        (
            "TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=[\n  CudaGraphScope.attn,  # one\n  ])",
            ["write `cuda_graph_modules=[`, write `CudaGraphModule.attn, # one`, delete `CudaGraphScope.attn, # one`"],
        ),
        (
            '["--enable-cuda-graph", "--cuda-graph-scope", "attn", "moe_router"]',
            ['write `"--cuda-graph-impl", "local"`', 'write `"--cuda-graph-modules", "attn", "moe_router"`'],
        ),
        (
            '["--cuda-graph-impl", "local", "--cuda-graph-scope", "full_iteration"]',
            [
                'write `"--cuda-graph-impl", "full_iteration"`, delete `"--cuda-graph-scope", "full_iteration"`',
            ],
        ),
        (
            '["model.enable_cuda_graph=true", "model.cuda_graph_scope=[attn]"]',
            ['write `"model.cuda_graph_impl=local"`', 'write `"model.cuda_graph_modules=[attn]"`'],
        ),
    ],
)
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
    assert fixes(tmp_path / "a.py", IMPORTS + text.format("not in")) == [
        "delete `CudaGraphScope.full_iteration not in cfg.cuda_graph_scope`"
    ]
    assert fixes(tmp_path / "a.py", IMPORTS + text.format("in")) == ['write `cfg.cuda_graph_impl == "full_iteration"`']


def test_a_message_names_a_setting_in_the_syntax_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text(IMPORTS + 'x = ["--cuda-graph-impl", "local", "--cuda-graph-scope", "full_iteration"]\n')
    (checked,) = Run([str(path)], RunOptions())
    assert isinstance(checked, FileResult)
    assert '`"--cuda-graph-impl", "full_iteration"`' in checked.diagnostics[0].message


def collapsed(text: str) -> str:
    return " ".join(text.split())


def below_each_other(quote: str) -> str:
    """A list of YAML in one line, as its text in block style reads with single spaces."""
    name, _, items = quote.rstrip("]").partition(": [")
    return " - ".join([f"{name}:", *items.split(", ")])


def quotes(fix: str, verbs: str) -> Iterable[str]:
    return re.findall(rf"(?:{verbs}) `([^`]*)`", fix)


def test_every_quote_is_in_the_text_before_or_after(corpus: Path) -> None:
    seen = 0
    paths = [str(ROOT / "examples"), str(ROOT / "tests/fixtures"), str(corpus)]
    for checked in Run(paths, RunOptions(unsafe=True, edits=True)):
        if not isinstance(checked, FileResult):
            continue
        for diagnostic in checked.diagnostics:
            edits = diagnostic.fix.edits_in(checked.path) if diagnostic.fix else ()
            if not edits:
                continue
            after = collapsed(apply(checked.text, edits))
            for quote in quotes(diagnostic.fix_text, "write|add"):
                seen += 1
                assert quote.rstrip("…") in after or below_each_other(quote) in after, (checked.path, diagnostic)
            for quote in quotes(diagnostic.fix_text, "delete"):
                seen += 1
                assert quote.rstrip("… ") in collapsed(checked.text), (checked.path, diagnostic)
    assert seen > 50


@pytest.mark.parametrize("format", ["full", "json", "sarif", "github", "gitlab"])
def test_every_format_shows_the_same_text(project: Path, cgmigrate, format: str) -> None:
    (project / "a.yaml").write_text("megatron_cfg:\n  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: null\n")
    shown = cgmigrate("check", "--format", format, "a.yaml").stdout
    if format in ("json", "sarif", "gitlab"):
        shown = json.dumps(json.loads(shown))
    assert "write `cuda_graph_modules: null`" in shown
