"""Whatever has no fix says what to write, and no word stands for two things."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.rule_tests import _context, _document
from cgmigrate.lint.rules import load
from cgmigrate.lint.run import Run
from cgmigrate.project.options import RunOptions
from tests.support.plans import examine
from tests.support.tables import from_table

IMPORTS = "from megatron.core.transformer.enums import CudaGraphScope\n"


def without_help(diagnostics: object) -> list[LintDiagnostic]:
    return [diagnostic for diagnostic in diagnostics if not diagnostic.fix and not diagnostic.help]


def check(path: Path, text: str) -> list[LintDiagnostic]:
    path.write_text(text)
    (checked,) = Run([str(path)], RunOptions())
    assert isinstance(checked, FileResult)
    return list(checked.diagnostics)


@pytest.mark.parametrize(("impl", "offered"), [("transformer_engine", True), ("local", False)])
def test_an_unsafe_fix_is_named_only_where_there_is_one(tmp_path: Path, impl: str, offered: bool) -> None:
    """Megatron-Bridge refuses `local` with modules, so that no option rewrites the scope there."""
    text = f"defaults: base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_impl: {impl}\n    cuda_graph_scope: [attn]\n"
    diagnostics = check(tmp_path / "a.yaml", text)
    (merged,) = (diagnostic for diagnostic in diagnostics if diagnostic.rule == "CG004")
    assert ("--unsafe-fixes" in merged.help, any(diagnostic.fix for diagnostic in diagnostics)) == (offered, offered)


@pytest.mark.parametrize("code", list(load()))
def test_what_a_rule_reports_without_a_fix_has_help(code: str) -> None:
    rules = load()
    for example in rules[code].examples:
        diagnostics = examine(_document(example, example["before"]), _context(example, rules)).diagnostics
        assert without_help(diagnostics) == []


@from_table
def test_settings_of_unknown_owners_have_advice_of_their_own(
    tmp_path: Path, name: str, text: str, help_text: str
) -> None:
    diagnostics = [diagnostic for diagnostic in check(tmp_path / name, text) if diagnostic.rule == "CG006"]
    assert [diagnostic.help for diagnostic in diagnostics] == [
        f"if megatron-core gets it, {help_text}; else, or where a test is about the old name, leave it"
    ]


@from_table
def test_an_old_name_in_a_command_line_has_its_new_form(tmp_path: Path, text: str, help_text: str) -> None:
    (diagnostic,) = check(tmp_path / "a.yaml", f"note: python train.py {text} --x 1\n")
    assert (diagnostic.rule, diagnostic.help) == ("CG011", help_text)


def test_an_old_scope_in_a_command_line_has_its_three_new_forms(tmp_path: Path) -> None:
    (diagnostic,) = check(tmp_path / "a.yaml", "notes: [model.cuda_graph_scope=attn]\n")
    for form in ("cuda_graph_impl=full_iteration", "inference_cuda_graph_scope=block", "cuda_graph_modules=[attn]"):
        assert f"`model.{form}`" in diagnostic.help


@pytest.mark.parametrize(
    ("member", "help_text"),
    [
        ("attn", "write `CudaGraphModule.attn`"),
        ("full_iteration", 'write "full_iteration" as the value of `cuda_graph_impl`'),
    ],
)
def test_a_member_of_the_old_enum_has_its_new_form(tmp_path: Path, member: str, help_text: str) -> None:
    diagnostics = check(tmp_path / "a.py", f"{IMPORTS}print(CudaGraphScope.{member})\n")
    assert [(diagnostic.rule, diagnostic.help.split(", or leave")[0]) for diagnostic in diagnostics] == [
        ("CG606", help_text)
    ]


def test_a_fix_that_waits_for_another_diagnostic_says_which(tmp_path: Path) -> None:
    text = "defaults: base\nmodel:\n  cuda_graph_modules: []\n  enable_cuda_graph: true\n"
    merged, diagnostic = check(tmp_path / "a.yaml", text)
    assert (merged.rule, diagnostic.rule) == ("CG004", "CG101")
    assert diagnostic.because == f"{merged.message} (CG004 on line 4)"
    refused = check(
        tmp_path / "a.py",
        "from megatron.bridge.training.config import GPTModelProvider\n"
        'x = GPTModelProvider(cuda_graph_impl="local", cuda_graph_scope=["attn"])\n',
    )
    assert [(one.rule, one.blocked_by) for one in refused] == [("CG501", ""), ("CG106", "CG501 on line 2")]
    assert refused[0].help == refused[1].help
    assert '`cuda_graph_impl="transformer_engine"`' in refused[0].help


def test_what_the_reader_would_refuse_is_not_advised(tmp_path: Path) -> None:
    (diagnostic,) = check(tmp_path / "a.yaml", "policy:\n  megatron_cfg:\n    enable_cuda_graph: true\n")
    assert "would reject the result" in diagnostic.blocked_by
    assert diagnostic.help.startswith("write `cuda_graph_impl: transformer_engine` for per-layer graphs in training")
