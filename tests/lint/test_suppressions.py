"""Comments that suppress diagnostics: where they count, how those without effect are reported, and writing them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.syntax import Syntax
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.lint.suppressions import add_suppressions
from cgmigrate.project.inputs import InputFile
from cgmigrate.project.options import RunOptions
from tests.support.files import write
from tests.support.nightly import examples
from tests.support.reports import places_in
from tests.support.tables import from_table

HEAD = "from megatron.core.transformer import TransformerConfig\n"


def reported(result) -> list[tuple[int, str]]:
    """Return (line, rule) of every diagnostic printed."""
    return [(int(place.split(":")[1]), place.split(": ")[1]) for place in places_in(result.stdout)]


# --- where a comment counts ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "m:\n  external_cuda_graph: true  # cgmigrate: ignore[CG102]\n",
        "m:\n  external_cuda_graph: true  # cgmigrate: ignore[cg102] our fork knows it\n",
        "m:\n  external_cuda_graph: true  # keep  # cgmigrate:ignore [CG1]\n",
        "m: {external_cuda_graph: true, cuda_graph_scope: attn}  # cgmigrate: ignore[CG102 CG106,]  \n",
        "m:\n  # cgmigrate: ignore[CG102]\n  external_cuda_graph: true\n",
        "m:\n  # cgmigrate: ignore[CG102]\n  # and more is to be said\n  external_cuda_graph: true\n",
        "m:\n  # cgmigrate: ignore[CG102]\n  # why\n  # since when\n  external_cuda_graph: true\n",
        "m: {external_cuda_graph: true}  # cgmigrate: ignore[CG102]\n",
        "m:\n  external_cuda_graph:  # cgmigrate: ignore[CG102]\n    true\n",
        "m:\n  external_cuda_graph:\n    true  # cgmigrate: ignore[CG102]\n",
        "m:\n  cuda_graph_impl: local\n  cuda_graph_scope:\n    # cgmigrate: ignore[CG106]\n    - attn\n    - mlp\n",
        "m:\n  cuda_graph_impl: local\n  cuda_graph_scope: [\n    attn,\n  ]  # cgmigrate: ignore[CG106]\n",
        "m:\r\n  external_cuda_graph: true  # cgmigrate: ignore[CG102]\r\n",
        "\ufeffm:\n  external_cuda_graph: true  # cgmigrate: ignore[CG102]\n",
        "note: |  # cgmigrate: ignore[CG011]\n  # words\n  train --cuda-graph-scope full\n",
        "# cgmigrate: ignore[CG011]\nnote: |\n  train \\\n  --cuda-graph-scope full\n",
        "# cgmigrate: ignore-file\nm:\n  external_cuda_graph: true\n",
        "m:\n  external_cuda_graph: true\n# cgmigrate: ignore-file[CG1] one day\n",
        "# cgmigrate: ignore-file\n{% if x %}\nexternal_cuda_graph: true\n{% endif %}\n",
        "# cgmigrate: ignore-file[CG001]\na: [1\nexternal_cuda_graph: true\n",
        b"# cgmigrate: ignore-file\n# M\xfcller\nenable_cuda_graph: true\n",
    ],
)
def test_in_yaml(project: Path, cgmigrate, text: str | bytes) -> None:
    path = write(project / "a.yaml", text)
    before = path.read_bytes()
    result = cgmigrate("check", "a.yaml")
    assert (result.exit_code, result.stdout) == (0, "")
    assert re.match(r"Checked 1 file: nothing found \([12] suppressed by comments\)\.\n", result.stderr)
    assert (cgmigrate("fix", "--unsafe-fixes", "a.yaml").exit_code, path.read_bytes()) == (0, before)
    # Without the comment there is something.
    write(path, before.replace(b"cgmigrate:", b"nobody:"))
    assert cgmigrate("check", "a.yaml").exit_code == 1


@from_table
def test_in_python(project: Path, cgmigrate, text: str) -> None:
    path = write(project / "a.py", HEAD + text)
    result = cgmigrate("check", "a.py")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (cgmigrate("fix", "--unsafe-fixes", "a.py").exit_code, path.read_text()) == (0, HEAD + text)
    write(path, (HEAD + text).replace("cgmigrate:", "nobody:"))
    assert cgmigrate("check", "a.py").exit_code == 1


@from_table
def test_what_is_no_comment_or_on_another_line_does_not_count(project: Path, cgmigrate, text: str, line: int) -> None:
    write(project / "a.yaml", text)
    assert (line, "CG102") in reported(cgmigrate("check", "a.yaml"))


def test_a_string_in_python_is_no_comment(project: Path, cgmigrate) -> None:
    call = 'TransformerConfig(external_cuda_graph=True, s="# cgmigrate: ignore[CG1]")\n'
    text = 'x = """\n# cgmigrate: ignore-file\n"""\n' + call
    write(project / "a.py", HEAD + text)
    assert reported(cgmigrate("check", "a.py")) == [(5, "CG102")]


# --- fixes ----------------------------------------------------------------------------------------------


def test_what_is_rewritten_together_stays_together(project: Path, cgmigrate) -> None:
    text = (
        "one:\n  external_cuda_graph: true  # cgmigrate: ignore[CG102]\n  cuda_graph_scope: attn\n"
        "two:\n  external_cuda_graph: true\n"
    )
    path = write(project / "a.yaml", text)
    result = cgmigrate("fix", "a.yaml")
    assert path.read_text() == text.replace(
        "two:\n  external_cuda_graph: true", "two:\n  cuda_graph_impl: transformer_engine"
    )
    assert reported(result) == [(3, "CG106")]
    assert "blocked by: CG102 on line 2, which a comment suppresses and which has to change with it" in result.stdout


def test_sites_that_share_an_anchor_stay_together(project: Path, cgmigrate) -> None:
    text = "a: &a\n  external_cuda_graph: true  # cgmigrate: ignore[CG102]\nb:\n  <<: *a\n  cuda_graph_scope: attn\n"
    path = write(project / "a.yaml", text)
    assert (cgmigrate("fix", "a.yaml").exit_code, path.read_text()) == (1, text)


def test_an_override_stays_with_the_settings_that_it_overrides(project: Path, cgmigrate) -> None:
    text = (
        "trainer: {}\nexp_manager: {}\nmodel:\n  external_cuda_graph: true  # cgmigrate: ignore[CG102]\n"
        "  overwritten_attributes:\n    external_cuda_graph: false\n"
    )
    path = write(project / "a.yaml", text)
    assert (cgmigrate("fix", "--unsafe-fixes", "a.yaml").exit_code, path.read_text()) == (1, text)


def test_a_suppressed_value_with_a_condition_is_not_rewritten(project: Path, cgmigrate) -> None:
    call = "TransformerConfig(enable_cuda_graph=True if x else False){}\n"
    text = HEAD + call.format("  # cgmigrate: ignore[CG101]") + call.format("")
    path = write(project / "a.py", text)
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == text[: -len(call.format(""))] + (
        'TransformerConfig(cuda_graph_impl="local" if x else "none")\n'
    )


def test_a_remark_that_is_ignored_does_not_hold_a_fix_back(project: Path, cgmigrate) -> None:
    text = "m:\n  cuda_graph_impl: none\n  cuda_graph_scope: [attn]  # cgmigrate: ignore[CG303]\n"
    path = write(project / "a.yaml", text)
    assert {rule for _, rule in reported(cgmigrate("check", "a.yaml"))} == {"CG106"}
    cgmigrate("fix", "a.yaml")
    assert path.read_text() == text.replace("cuda_graph_scope", "cuda_graph_modules")


def test_code_that_reads_an_old_name_is_left_too(project: Path, cgmigrate) -> None:
    head = HEAD + "from megatron.core.transformer.enums import CudaGraphScope\n"
    condition = 'cfg.cuda_graph_impl == "local" and CudaGraphScope.full_iteration in cfg.cuda_graph_scope'
    text = head + f"if {condition}:{{}}\n    pass\n"
    path = write(project / "a.py", text.format(""))
    assert cgmigrate("fix", "--unsafe-fixes", "--diff", "a.py").stdout
    write(path, text.format("  # cgmigrate: ignore[CG601]"))
    assert (cgmigrate("fix", "--unsafe-fixes", "a.py").exit_code, path.read_text()) == (
        0,
        text.format("  # cgmigrate: ignore[CG601]"),
    )


# --- without effect -------------------------------------------------------------------------------------


@from_table
def test_a_comment_without_effect_is_reported(project: Path, cgmigrate, comment: str, message: str) -> None:
    write(project / "a.yaml", f"m:\n  external_cuda_graph: true  # cgmigrate: {comment}\n")
    result = cgmigrate("check", "a.yaml")
    assert (2, "CG012") in reported(result)
    assert message in result.stdout


def test_a_clean_file_is_reported_too_and_the_report_can_be_suppressed(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "m:\n  cuda_graph_impl: local  # cgmigrate: ignore[CG101]\n")
    write(project / "b.yaml", "# cgmigrate: ignore-file\nm:\n  hidden_size: 8\n")
    assert reported(cgmigrate("check", ".")) == [(2, "CG012"), (1, "CG012")]
    assert cgmigrate("check", "--ignore", "CG012", ".").exit_code == 0
    write(project / "a.yaml", "m:\n  cuda_graph_impl: local  # cgmigrate: ignore[CG101, CG012]\n")
    assert reported(cgmigrate("check", "a.yaml")) == []


def test_codes_that_are_not_selected_are_not_reported(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "m:\n  cuda_graph_impl: local  # cgmigrate: ignore[CG101, CG3]\n")
    assert len(reported(cgmigrate("check", "--select", "CG1", "--select", "CG012", "."))) == 1
    assert reported(cgmigrate("check", "--ignore", "CG101", "--ignore", "CG303", ".")) == []


# --- writing them ---------------------------------------------------------------------------------------


@from_table
def test_add_ignore_in_yaml(project: Path, cgmigrate, before: str, after: str) -> None:
    path = write(project / "a.yaml", before)
    result = cgmigrate("check", "--add-ignore", ".")
    assert path.read_bytes().decode() == after
    assert (result.exit_code, cgmigrate("check", ".").exit_code) == (0, 0)
    assert (cgmigrate("check", "--add-ignore", ".").exit_code, path.read_bytes().decode()) == (0, after)


def test_add_ignore_in_python_with_a_reason_and_undo(project: Path, cgmigrate) -> None:
    before = HEAD + (
        "config = TransformerConfig(external_cuda_graph=True)\n"
        "config.external_cuda_graph = \\\n    False\n"
        'x = getattr(config, "cuda_graph_scope") + """\ntext\n"""\n'
    )
    path = write(project / "a.py", before)
    result = cgmigrate("check", "--add-ignore", "--reason", "until Q3", ".")
    assert path.read_text() == HEAD + (
        "config = TransformerConfig(external_cuda_graph=True)  # cgmigrate: ignore[CG102] until Q3\n"
        "config.external_cuda_graph = \\\n    False  # cgmigrate: ignore[CG102] until Q3\n"
        'x = getattr(config, "cuda_graph_scope") + """\ntext\n"""  # cgmigrate: ignore[CG604] until Q3\n'
    )
    assert "Wrote comments for 3 diagnostics." in result.stderr
    assert cgmigrate("check", ".").exit_code == 0
    cgmigrate("fix", "--undo")
    assert path.read_text() == before


def test_a_reason_is_one_line_of_a_comment(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", "m:\n  external_cuda_graph: true\n")
    assert cgmigrate("check", "--reason", "x", ".").exit_code == 2
    assert cgmigrate("check", "--add-ignore", "--reason", "x\ny: 1", ".").exit_code == 2
    assert path.read_text() == "m:\n  external_cuda_graph: true\n"


def test_what_cannot_be_read_gets_no_comment_and_stays_a_diagnostic(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", "a: [1\nenable_cuda_graph: true\n")
    result = cgmigrate("check", "--add-ignore", ".")
    assert (result.exit_code, path.read_text()) == (1, "a: [1\nenable_cuda_graph: true\n")
    assert reported(result) == [(2, "CG001")]


def test_add_ignore_on_the_corpus_leaves_nothing_and_changes_comments_only(corpus: Path) -> None:
    seen = 0
    for checked in Run([str(corpus / "yaml")], RunOptions(add_ignore=True)):
        unreadable = {"CG001", "CG002", "CG007"}
        if getattr(checked, "after", None) is None:
            continue
        assert {diagnostic.rule for diagnostic in checked.remaining} <= unreadable, checked.path
        assert YamlDocument(checked.text).check(checked.after, {}) == ""
        assert _examined(checked.path, checked.after) == [], checked.path
        seen += 1
    assert seen > 10


def checked_alone(run: Run, source: InputFile) -> FileResult:
    """Return one file as a run of it alone checks it."""
    return run.checker([source]).check(source)


def _examined(path: str, text: str) -> list[str]:
    """Return the rules of the diagnostics in a text, as if it were the file at a path."""

    run = Run([], RunOptions(rewrite=False))
    checked = checked_alone(run, InputFile(path, Syntax.YAML, text.encode()))
    return [diagnostic.rule for diagnostic in checked.diagnostics]


VALUES = st.sampled_from(
    [
        "true",
        "false",
        "[attn, mlp]",
        "full",
        "full_iteration",
        "\n    - attn\n    - moe_router",
        "null",
        "'attn'",
        "|\n    attn",
    ]
)
NAMES = st.sampled_from(
    ["enable_cuda_graph", "external_cuda_graph", "cuda_graph_scope", "cuda_graph_impl", "num_layers"]
)
TAILS = st.sampled_from(["", "  ", "  # a remark", "  # cgmigrate: ignore[CG106]", " # cgmigrate: ignore"])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(NAMES, VALUES, TAILS), min_size=1, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_after_add_ignore_only_idle_comments_are_found(project: Path, pairs, newline: str, bom: bool) -> None:
    lines = [f"  {name}: {value}{'' if chr(10) in value else tail}" for name, value, tail in pairs]
    text = ("m:\n" + "\n".join(lines) + "\n").replace("\n", newline)
    document = YamlDocument(text)
    run = Run(["a.yaml"], RunOptions(rewrite=False))

    data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
    checked = checked_alone(run, InputFile("a.yaml", Syntax.YAML, data))
    added = add_suppressions(document, checked.diagnostics, YamlDocument)
    assert {diagnostic.rule for diagnostic in added.remaining} <= {"CG012", "CG001"}
    again = checked_alone(run, InputFile("a.yaml", Syntax.YAML, added.text.encode()))
    assert {diagnostic.rule for diagnostic in again.diagnostics} <= {"CG012", "CG001"}
    # Nothing but comments came in.
    assert _without_requests(added.text) == _without_requests(text)
    third = add_suppressions(YamlDocument(added.text), again.diagnostics, YamlDocument)
    assert third.text == added.text


def _without_requests(text: str) -> str:
    return re.sub(r"[ \t]*(?:# cgmigrate: ignore\[[^\]]*\])?(?=\r?\n)", "", text)


def test_modules_of_other_features_are_not_imported(project: Path) -> None:
    import subprocess
    import sys

    write(project / "a.yaml", "m:\n  external_cuda_graph: true\n")
    code = (
        "import sys\nfrom cgmigrate.cli.commands import main\n"
        "try: main(['check', '.'])\nexcept SystemExit: pass\n"
        "late = {'cgmigrate.lint.suppressions', 'cgmigrate.lint.suppressions', 'cgmigrate.lint.baseline'}\n"
        "late |= {'cgmigrate.project.journal', 'platformdirs'}\n"
        "print(sorted(late & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "[]"


STATEMENTS = st.sampled_from(
    [
        "TransformerConfig(external_cuda_graph=True)",
        "TransformerConfig(\n    cuda_graph_impl='local',\n    cuda_graph_scope=['attn'],\n)",
        "TransformerConfig(\n    cuda_graph_impl='local', cuda_graph_scope=[\n        'attn',\n    ])",
        "cfg.model.external_cuda_graph = \\\n    True",
        "if cfg.cuda_graph_impl == 'local' and \\\n        'full_iteration' in cfg.cuda_graph_scope:\n    pass",
        "x = getattr(cfg, 'cuda_graph_scope') + '''\n# no comment\n'''",
        "x = f'''\n{getattr(cfg, 'cuda_graph_scope')}\n{1 + 1}\n'''",
        "x = {'cuda_graph_scope': 'attn',\n     'tensor_model_parallel_size': 2}  # a remark",
        "def build(cuda_graph_scope=None,\n          other=1):\n    return other",
        "@decorated\nclass C:\n    cuda_graph_scope: str = 'attn'",
        "args = ['--cuda-graph-scope', 'attn',  # cgmigrate: ignore[CG301]\n        '--bf16']",
        "y = 1; config.cuda_graph_scope = ['attn']; z = 2",
    ]
)


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STATEMENTS, min_size=1, max_size=5), st.sampled_from(["\n", "\r\n"]))
def test_in_python_too_after_add_ignore_only_idle_comments_are_found(project: Path, statements, newline: str) -> None:
    head = "from megatron.bridge.recipes.common import _pretrain_common\n" + HEAD
    text = (head + "\n".join(statements) + "\n").replace("\n", newline)
    run = Run([], RunOptions(rewrite=False))
    checked = checked_alone(run, InputFile("a.py", Syntax.PYTHON, text.encode()))
    assert {diagnostic.rule for diagnostic in checked.diagnostics} - {"CG012"}
    added = add_suppressions(PythonDocument(text), checked.diagnostics, PythonDocument)
    again = checked_alone(run, InputFile("a.py", Syntax.PYTHON, added.text.encode()))
    assert {diagnostic.rule for diagnostic in again.diagnostics} <= {"CG012"}
    assert ast.dump(ast.parse(added.text)) == ast.dump(ast.parse(text))


def test_a_rule_in_preview_does_not_keep_a_bare_comment_from_being_reported(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "# cgmigrate: ignore-file\nm:\n  hidden_size: 8\n")
    write(project / "b.yaml", "# cgmigrate: ignore-file[CG411]\nm:\n  hidden_size: 8\n")
    assert reported(cgmigrate("check", ".")) == [(1, "CG012")]
    assert reported(cgmigrate("check", "--preview", ".")) == [(1, "CG012"), (1, "CG012")]
