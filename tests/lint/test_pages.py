"""Documentation in a run: its diagnostics are notes, and only `fix --docs` rewrites it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cgmigrate.documents.pages import MarkdownDocument
from cgmigrate.lint.pages import documents_the_past
from tests.support.checkouts import staged
from tests.support.files import write
from tests.support.tables import from_table

PAGE = "# Megatron\n\n```yaml\nmodel:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n```\n"
AFTER = PAGE.replace("cuda_graph_scope", "cuda_graph_modules")
CODE = "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n"


def findings(result) -> list[dict]:
    return json.loads(result.stdout)["findings"]


def test_a_gate_does_not_fail_on_documentation(project: Path, cgmigrate) -> None:
    write(project / "a.md", PAGE)
    result = cgmigrate("check", ".")
    assert result.exit_code == 0 and "note[CG106]" in result.stdout
    assert cgmigrate("check", "--fail-on", "note", ".").exit_code == 1
    assert cgmigrate("fix", ".").exit_code == 0
    assert cgmigrate("fix", "--diff", ".").exit_code == 0
    assert (project / "a.md").read_text() == PAGE


def test_a_diagnostic_names_the_command_that_rewrites_documentation(project: Path, cgmigrate) -> None:
    write(project / "a.md", PAGE)
    (one,) = findings(cgmigrate("check", "--format", "json", "--from", "0.17", "."))
    assert one["severity"] == "note" and one["fix"] is None
    assert one["help"] == "run `cgmigrate fix --docs --from 0.17 a.md`"
    write(project / "a.md", block("python", "cfg.model.cuda_graph_scope = ['attn']\n"))
    (one,) = findings(cgmigrate("check", "--format", "json", "."))
    assert one["help"] == "run `cgmigrate fix --docs --unsafe-fixes a.md`"


@pytest.mark.parametrize("words", [("--docs",), ()])
def test_docs_is_an_option_and_a_key_of_the_configuration(project: Path, cgmigrate, words: tuple[str, ...]) -> None:
    write(project / "a.md", PAGE)
    if not words:
        write(project / "cgmigrate.toml", "docs = true\n")
    result = cgmigrate("fix", *words, "--diff", ".")
    assert result.exit_code == 1 and "+  cuda_graph_modules: attn" in result.stdout
    assert cgmigrate("fix", *words, ".").exit_code == 0
    assert (project / "a.md").read_text() == AFTER
    assert cgmigrate("fix", *words, ".").exit_code == 0
    assert (project / "a.md").read_text() == AFTER


def test_a_page_is_fixed_apart_from_code(project: Path, cgmigrate) -> None:
    write(project / "a.md", PAGE)
    write(project / "a.yaml", CODE)
    result = cgmigrate("fix", "--docs", "--format", "json", ".")
    assert result.exit_code == 0
    assert (project / "a.md").read_text() == AFTER
    assert (project / "a.yaml").read_text() == CODE.replace("scope", "modules")
    diff = cgmigrate("undo")
    assert diff.exit_code == 0 and (project / "a.md").read_text() == PAGE
    assert cgmigrate("fix", "a.yaml").exit_code == 0 and (project / "a.md").read_text() == PAGE


def test_a_page_is_not_verified(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    # What a release reads is no matter, and to import one takes long.
    monkeypatch.setattr("cgmigrate.verify.mcore.installed", lambda: None)
    write(project / "a.md", PAGE)
    named = cgmigrate("verify", "a.md")
    assert named.exit_code == 2 and "a.md: documentation, which configures nothing" in named.stderr
    write(project / "a.yaml", CODE)
    alone, together = (cgmigrate("verify", path, "--output-format", "json") for path in ("a.yaml", "."))
    assert (together.exit_code, together.stdout) == (alone.exit_code, alone.stdout)
    assert "a.yaml:2" in together.stdout and "a.md" not in together.output


def test_a_page_is_no_reader_of_keys(project: Path, cgmigrate) -> None:
    write(project / "conf.yaml", CODE)
    before = cgmigrate("check", "--format", "json", "conf.yaml").stdout
    for name in ("a.md", "b.mdx", "c.rst"):
        write(
            project / name,
            '`["cuda_graph_scope"]`\n\n    keys = ["cuda_graph_scope"]\n    if "cuda_graph_scope" in keys:\n',
        )
    subprocess.run(["git", "add", "."], cwd=project, check=False)
    assert cgmigrate("check", "--format", "json", "conf.yaml").stdout == before


def test_a_page_waits_for_the_code_that_reads_its_keys(project: Path, cgmigrate) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=project, check=True)
    write(
        project / "a.md",
        PAGE.replace("model:", "policy:\n  megatron_cfg:")
        .replace("  cuda", "    cuda")
        .replace("local", "transformer_engine"),
    )
    write(
        project / "setup.py",
        "from megatron.core.transformer import TransformerConfig\n\n\ndef configure(config, megatron_cfg):\n"
        '    if megatron_cfg["cuda_graph_scope"]:\n        config.fp8 = True\n',
    )
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    result = cgmigrate("fix", "--docs", "a.md")
    assert "setup.py:5 also uses `cuda_graph_scope`" in result.stdout
    assert "cuda_graph_scope" in (project / "a.md").read_text()


def test_comments_suppress_and_none_is_written(project: Path, cgmigrate) -> None:
    text = (
        PAGE.replace("attn\n", "attn  # cgmigrate: ignore[CG106]\n")
        + "\n<!-- cgmigrate: ignore[CG608] -->\n`cuda_graph_scope`\n"
    )
    write(project / "a.md", PAGE)
    assert cgmigrate("check", "--add-ignore", "a.md").exit_code == 0
    assert (project / "a.md").read_text() == PAGE
    write(project / "b.md", text)
    assert cgmigrate("check", "b.md").stdout == ""


def test_names_that_stay_are_counted(project: Path, cgmigrate) -> None:
    write(project / "CHANGELOG.md", "- `cuda_graph_scope`\n" * 3)
    write(project / "docs/0.4.2/a.md", PAGE)
    result = cgmigrate("check", ".")
    assert result.exit_code == 0 and result.stdout == ""
    assert "note: 4 deprecated names left unchanged in documentation of old names" in result.stderr
    assert "CHANGELOG.md:2" in cgmigrate("check", "-v", ".").stderr
    assert cgmigrate("fix", "--docs", "--unsafe-fixes", ".").exit_code == 0
    assert (project / "docs/0.4.2/a.md").read_text() == PAGE


@from_table
def test_names_show_pages_about_the_past(project: Path, path: str, past: bool) -> None:
    assert documents_the_past(path) is past


def test_a_page_that_cannot_be_decoded_is_no_diagnostic(project: Path, cgmigrate) -> None:
    (project / "a.md").write_bytes(b"\xff cuda_graph_scope\n")
    result = cgmigrate("check", ".")
    assert result.exit_code == 0 and "note: a.md: the file is not UTF-8" in result.stderr


def test_enable_cuda_graph_in_text_may_belong_to_another_system(project: Path, cgmigrate) -> None:
    write(project / "a.md", "Serve with `--enable-cuda-graph`.\n")
    result = cgmigrate("check", ".")
    assert result.stdout == "" and "its owner is not known" in result.stderr
    write(project / "a.md", "Run Megatron-LM with `--enable-cuda-graph`.\n")
    assert "CG608" in cgmigrate("check", ".").stdout


def block(language: str, code: str) -> str:
    return f"Megatron.\n\n```{language}\n{code}```\n"


@from_table
def test_an_example_that_is_not_clear_stays(project: Path, cgmigrate, page: str) -> None:
    write(project / "a.md", page)
    cgmigrate("fix", "--docs", "--unsafe-fixes", "a.md")
    assert (project / "a.md").read_text() == page


@from_table
def test_the_help_has_the_value_of_the_text(text: str, expected: str) -> None:
    (problem,) = MarkdownDocument(f"Megatron: {text}\n").problems
    assert (
        problem.advice.removesuffix(", or leave it where the text is about an older release or another name")
        == expected
    )


def test_names_in_the_output_of_a_command_are_reported(project: Path, cgmigrate) -> None:
    command = "$ python pretrain_gpt.py --cuda-graph-impl local --cuda-graph-scope attn\n"
    write(project / "a.md", block("console", f"{command}cuda_graph_scope ... ['attn']\n"))
    output = cgmigrate("check", "a.md").stdout
    assert (
        "`cuda_graph_scope` is deprecated since megatron-core 0.18; the code block is not read: it is output" in output
    )
    assert "the output below the command shows deprecated names" in output
    write(project / "a.md", block("console", f"{command}iteration 1\n"))
    cgmigrate("fix", "--docs", "a.md")
    assert "--cuda-graph-modules attn\niteration 1\n" in (project / "a.md").read_text()


def test_no_setting_of_one_block_is_that_of_another(project: Path, cgmigrate) -> None:
    overwritten = "model:\n  overwritten_attributes:\n    cuda_graph_scope: attn\n"
    page = block("yaml", "model:\n  cuda_graph_impl: none\n  cuda_graph_scope: full\n") + block("yaml", overwritten)
    write(project / "a.md", page)
    cgmigrate("fix", "--docs", "--unsafe-fixes", "a.md")
    alone = block("yaml", overwritten)
    write(project / "b.md", alone)
    cgmigrate("fix", "--docs", "--unsafe-fixes", "b.md")
    assert (project / "a.md").read_text().endswith((project / "b.md").read_text())


def test_a_script_that_comes_first_does_not_hide_what_is_proved(project: Path, cgmigrate) -> None:
    recipe = (
        "from megatron.bridge.models import GPTModelProvider\n\n\n"
        "def _base():\n    cfg = GPTModelProvider()\n    cfg.cuda_graph_impl = 'transformer_engine'\n"
        "    cfg.cuda_graph_scope = ['attn']\n    return cfg\n\n\n"
        "def recipe():\n    return _base()\n"
    )
    write(project / "recipe.py", recipe)
    staged(project)
    alone = cgmigrate("check", "--format", "json", ".").stdout
    write(project / "a.sh", "python pretrain_gpt.py --external-cuda-graph\n")
    write(project / "a.md", PAGE)
    subprocess.run(["git", "add", "."], cwd=project, check=True)
    together = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    assert [one for one in together if one["path"] == "recipe.py"] == json.loads(alone)["findings"]
