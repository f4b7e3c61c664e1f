"""How the options people use treat a fix of one file, and one of two files: the table of docs/soundness.md."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cgmigrate.cli.commands import main
from cgmigrate.project import transaction
from cgmigrate.project.write import FileReplacement, WriteError
from tests.support.files import write
from tests.support.paths import ROOT

Command = Callable[..., Result]

BASE = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
CHILD = "defaults: base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: [attn, mlp]\n"
NEW_BASE = "policy:\n  megatron_cfg:\n    cuda_graph_impl: transformer_engine\n    cuda_graph_modules: attn\n"
NEW_CHILD = CHILD.replace("cuda_graph_scope", "cuda_graph_modules")


@dataclass(frozen=True)
class Case:
    """The files of one edit set, before and after."""

    before: dict[str, str]
    after: dict[str, str]

    @property
    def is_one_file(self) -> bool:
        return len(self.before) == 1

    def text(self) -> dict[str, str]:
        return {name: Path(name).read_text() for name in self.before}

    def write(self, **other: str) -> None:
        for name, text in {**self.before, **other}.items():
            write(Path(name), text)


ONE = Case({"base.yaml": BASE}, {"base.yaml": NEW_BASE})
TWO = Case({"base.yaml": BASE, "child.yaml": CHILD}, {"base.yaml": NEW_BASE, "child.yaml": NEW_CHILD})


@pytest.fixture(params=[ONE, TWO], ids=["one file", "two files"])
def case(request: pytest.FixtureRequest, project: Path) -> Case:
    """An edit set in a git checkout."""
    (project / ".git/HEAD").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    request.param.write()
    subprocess.run(["git", "add", "."], check=True)
    return request.param


def findings(cgmigrate: Command, *words: str) -> list[dict[str, Any]]:
    report = json.loads(cgmigrate("check", "--output-format", "json", *words).stdout)
    return report.get("diagnostics", report.get("findings"))


def test_fix_writes_the_whole_set_and_undo_reverts_it(case: Case, cgmigrate: Command) -> None:
    assert cgmigrate("fix", ".").exit_code == 0
    assert case.text() == case.after
    assert cgmigrate("undo").exit_code == 0
    assert case.text() == case.before


def test_diff_prints_the_whole_set(case: Case, cgmigrate: Command) -> None:
    result = cgmigrate("fix", "--diff", ".")
    assert case.text() == case.before
    assert re.findall(r"^\+\+\+ b/(\S+)", result.stdout, re.MULTILINE) == list(case.before)
    subprocess.run(["git", "apply"], input=result.stdout, text=True, check=True)
    assert case.text() == case.after


@pytest.mark.parametrize("words", [("--select", "CG106"), ("--ignore", "CG102")])
def test_a_set_with_a_rule_that_is_not_enabled_is_withheld(
    case: Case, cgmigrate: Command, words: tuple[str, ...]
) -> None:
    result = cgmigrate("fix", *words, ".")
    assert case.text() == case.before and result.exit_code == 1
    reported = findings(cgmigrate, *words, ".")
    assert {one["rule"] for one in reported} == {"CG106"} and len(reported) == 1
    for one in reported:
        where = "on line 3" if one["path"] == "base.yaml" else "in base.yaml:3"
        assert one["blocked_by"] == f"CG102 {where}, which is not enabled and has to change with it"
        assert one["help"] == "enable CG102 as well (`--select`, `--ignore`), to fix them together"
        assert {one["path"], *(other["path"] for other in one["related"])} == set(case.before)
    cgmigrate("fix", "--select", "CG102", "--select", "CG106", ".")
    assert case.text() == case.after


def test_a_suppression_withholds_the_set(case: Case, cgmigrate: Command) -> None:
    suppressed = BASE.replace("graph: true", "graph: true  # cgmigrate: ignore[CG102] kept")
    write(Path("base.yaml"), suppressed)
    result = cgmigrate("fix", ".")
    assert case.text() == {**case.before, "base.yaml": suppressed}
    assert result.stdout.count("blocked by: CG102 on line 3, which a comment suppresses") == 1
    places = ["base.yaml:3 (CG102)", *([] if case.is_one_file else ["child.yaml:4 (CG106)"])]
    assert f"\nalso: {', '.join(places)}\n" in result.stdout


def test_a_baseline_hides_diagnostics_and_splits_no_set(case: Case, cgmigrate: Command) -> None:
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", "base.yaml")
    assert {one["path"] for one in findings(cgmigrate, "--baseline", "known.json", ".")} == set(case.before) - {
        "base.yaml"
    }
    assert cgmigrate("fix", "--baseline", "known.json", ".").exit_code == 0
    assert case.text() == case.after


@pytest.mark.parametrize("answer", ["y", "n"])
def test_interactive_asks_once_and_shows_all_files(case: Case, answer: str) -> None:
    result = CliRunner().invoke(main, ["fix", "--interactive", "."], input=answer + "\n" * 5)
    assert result.stdout.count("Write this change") == 1 and "(1/1)" in result.stdout
    assert all(f"+++ b/{name}" in result.stdout for name in case.before)
    assert case.text() == (case.after if answer == "y" else case.before)


def test_sets_are_in_the_order_of_files_and_lines(project: Path) -> None:
    write("base.yaml", BASE)
    write("child.yaml", "defaults: base.yaml\n" + BASE.replace("policy", "teacher"))
    shown = CliRunner().invoke(main, ["fix", "--interactive", "."], input="n\n" * 5).stdout
    assert "(2/2)" in shown
    assert shown.index("+++ b/base.yaml") < shown.index("+++ b/child.yaml")


def test_group_writes_one_set(case: Case, cgmigrate: Command) -> None:
    case.write(**{"other.yaml": BASE})
    (name,) = {one["fix"]["id"] for one in findings(cgmigrate, ".") if one["path"] in case.before}
    assert cgmigrate("fix", "--group", "0" * 10, ".").exit_code == 2
    assert case.text() == case.before
    assert cgmigrate("fix", "--group", name, ".").exit_code == 1
    assert case.text() == case.after and Path("other.yaml").read_text() == BASE


def test_the_id_of_a_set_is_the_same_in_every_release(project: Path, cgmigrate: Command) -> None:
    """People note it for `fix --group`, and reviews refer to it."""
    anchor = "x: {megatron_cfg: &m {external_cuda_graph: true}}\n"
    write("a.yaml", anchor)
    write("b.yaml", anchor + "y: {megatron_cfg: {<<: *m, cuda_graph_scope: attn}}\n")
    ids = {one["path"]: one["fix"]["id"] for one in findings(cgmigrate, ".")}
    assert ids == {"a.yaml": "571c7e72bd", "b.yaml": "3facca5bb0"}


def test_the_id_of_a_set_stays_when_lines_move(case: Case, cgmigrate: Command) -> None:
    before = {one["fix"]["id"] for one in findings(cgmigrate, ".")}
    for name, text in case.before.items():
        write(Path(name), "# a comment\n\n" + text)
    assert {one["fix"]["id"] for one in findings(cgmigrate, ".")} == before


def test_json_and_sarif_offer_edits_for_one_file_only(case: Case, cgmigrate: Command) -> None:
    for one in findings(cgmigrate, "."):
        assert one["fix"]["files"] == list(case.before)
        assert bool(one["fix"]["edits"]) is case.is_one_file
    sarif = json.loads(cgmigrate("check", "--output-format", "sarif", ".").stdout)
    assert all(("fixes" in one) is case.is_one_file for one in sarif["runs"][0]["results"])


def test_the_text_names_the_other_files(case: Case, cgmigrate: Command) -> None:
    shown = cgmigrate("check", ".").stdout
    assert ("changed together with child.yaml: " in shown) is not case.is_one_file


def test_stdin_replaces_its_file_and_shows_sets_of_several(case: Case) -> None:
    buffer = BASE + "    # new\n"
    result = CliRunner().invoke(main, ["fix", "--stdin-filename", "base.yaml", "-"], input=buffer)
    assert case.text() == case.before
    if case.is_one_file:
        assert result.stdout == NEW_BASE + "    # new\n"
        return
    assert result.stdout == buffer
    assert "blocked by: child.yaml, which has to change with this file" in result.stderr


def test_a_hook_reports_a_set_at_its_staged_member(case: Case, cgmigrate: Command) -> None:
    result = cgmigrate("fix", "base.yaml")
    if case.is_one_file:
        assert case.text() == case.after
        return
    assert case.text() == case.before and result.exit_code == 1
    assert {one["path"] for one in findings(cgmigrate, "base.yaml")} == {"base.yaml"}
    assert {one["help"] for one in findings(cgmigrate, "base.yaml")} == {"run `cgmigrate fix base.yaml child.yaml`"}
    assert cgmigrate("fix", "base.yaml", "child.yaml").exit_code == 0
    assert case.text() == case.after


def test_an_excluded_file_withholds_its_set(case: Case, cgmigrate: Command) -> None:
    last = list(case.before)[-1]
    cgmigrate("fix", "--exclude", last, ".")
    assert case.text() == case.before


def test_a_link_out_of_the_paths_withholds_its_set(
    case: Case, cgmigrate: Command, tmp_path_factory: pytest.TempPathFactory
) -> None:
    base = Path("base.yaml")
    target = tmp_path_factory.mktemp("outside") / "base.yaml"
    base.rename(target)
    base.symlink_to(target)
    result = cgmigrate("fix", ".")
    assert case.text() == case.before and result.exit_code == 1


def test_a_file_that_cannot_be_written_reverts_its_set(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    last = list(case.before)[-1]

    def refuse(path: str, *_: object) -> None:
        if path.endswith(last):
            raise WriteError(f"{path}: refused")

    monkeypatch.setattr(
        transaction, "FileReplacement", lambda path, *more: refuse(path) or FileReplacement(path, *more)
    )
    result = CliRunner().invoke(main, ["fix", "."])
    assert case.text() == case.before and result.exit_code == 2
    assert "refused" in result.stderr and (case.is_one_file or "and none was written" in result.stderr)


def test_the_table_has_a_row_for_each_option() -> None:
    table = (ROOT / "docs/soundness.md").read_text()
    for option in ("--select", "--ignore", "--diff", "--interactive", "--group", "--baseline", "-", "undo"):
        assert re.search(rf"^\| [^|]*`[^`|]*{re.escape(option)}", table, re.MULTILINE), option


SHAPE = "{hidden_size: 1, num_layers: 2, num_attention_heads: 2, enable_cuda_graph: true}"
TWINS = {
    "a.yaml": f"a: {SHAPE}\n---\na: {SHAPE}\nb:\n  - {SHAPE}\n  - {SHAPE}\n",
    "b.py": "from megatron.core.transformer import TransformerConfig\n\n\ndef f():\n"
    "    return TransformerConfig(enable_cuda_graph=True), TransformerConfig(enable_cuda_graph=True)\n\n\n"
    'def g(cfg):\n    cfg.model.cuda_graph_scope = ["attn"]\n    TransformerConfig(enable_cuda_graph=True)\n\n\n'
    'def h(cfg):\n    cfg.model.cuda_graph_scope = ["attn"]\n    TransformerConfig(enable_cuda_graph=True)\n',
}


def test_a_set_keeps_its_id_while_others_of_the_same_text_are_written(project: Path, cgmigrate: Command) -> None:
    def texts() -> dict[str, str]:
        return {name: (project / name).read_text() for name in TWINS}

    def ids() -> list[str]:
        report = json.loads(cgmigrate("check", "--output-format", "json", ".").stdout)
        return list(dict.fromkeys(one["fix"]["id"] for one in report["findings"] if one["fix"]))

    for name, text in TWINS.items():
        (project / name).write_text(text)
    cgmigrate("fix", "--unsafe-fixes", ".")
    at_once = texts()
    for name, text in TWINS.items():
        (project / name).write_text(text)
    left = ids()
    assert len(left) == 10
    for one in ids():
        cgmigrate("fix", "--unsafe-fixes", "--group", one, ".")
        left.remove(one)
        assert ids() == left
    assert texts() == at_once
