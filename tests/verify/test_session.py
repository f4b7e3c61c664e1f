"""Whole calls of ``cgmigrate verify --level capture`` where there is no GPU."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cgmigrate.cli.commands import main
from cgmigrate.verify import session
from tests.support.tables import from_table

TEXT = "model:\n  hidden_size: 64\n  num_layers: 2\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(session, "gpu_count", lambda: 0)
    monkeypatch.chdir(tmp_path)
    info = tmp_path / "mcore/megatron/core/package_info.py"
    info.parent.mkdir(parents=True)
    info.write_text("MAJOR = 0\nMINOR = 19\nPATCH = 2\nPRE_RELEASE = ''\n")
    (tmp_path / "a.yaml").write_text(TEXT)


def verify(*words: str) -> Result:
    common = ["--level", "capture", "--from", "0.17", "--to", "0.19", "--mcore", "0.19.2=mcore"]
    return CliRunner().invoke(main, ["verify", "a.yaml", *common, *words])


def test_what_slurm_left_is_judged_without_a_gpu(tmp_path: Path) -> None:
    refused = verify("--work", "w")
    assert (refused.exit_code, "this machine has no GPU" in refused.output) == (2, True)
    assert verify("--work", "w", "--launcher", "srun").exit_code == 0
    assert "this machine has no GPU" in verify("--work", "w").output
    message = {"outcome": "refused", "failure": "by megatron-core", "rank": None}
    for arm in (tmp_path / "w").glob("*/arm.json"):
        arm.with_name("rank-0.json").write_text(json.dumps(message))
    result = verify("--work", "w")
    assert (result.exit_code, "by megatron-core" in result.output) == (2, True)


@pytest.mark.parametrize("is_in_git", [False, True])
def test_the_work_folder_is_no_part_of_the_project(tmp_path: Path, is_in_git: bool) -> None:
    if is_in_git:
        subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    assert verify("--work", "w", "--launcher", "srun").exit_code == 0
    assert (tmp_path / "w/program/cgmigrate/verify/probe/model.py").is_file()
    result = CliRunner().invoke(main, ["check", "--from", "0.17", "--to", "0.19", "."])
    assert "w/" not in result.output
    assert "Fixes: 1 safe" in result.output


def test_a_folder_that_has_files_is_not_ignored(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/mine.txt").touch()
    assert verify("--work", "w", "--launcher", "srun").exit_code == 0
    assert not (tmp_path / "w/.gitignore").exists()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("b.yaml", b"cuda_graph_scope: \xff\n"),
        ("b.yaml", b"m: [1\n  cuda_graph_scope: full\n"),
        ("b.py", b"f(cuda_graph_scope='full'\n"),
    ],
)
def test_a_file_that_cannot_be_read_is_reported(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    result = CliRunner().invoke(main, ["verify", name])
    assert (result.exit_code, f"error: {name}: " in result.output) == (2, True)


def test_the_script_for_slurm_reports_files_that_are_not_in_it(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"cuda_graph_scope: \xff\n")
    result = verify("bad.yaml", "--work", "w", "--launcher", "srun")
    assert "srun --ntasks" in result.stdout
    assert (result.exit_code, "error: bad.yaml" in result.output) == (2, True)


def test_the_script_for_slurm_reports_sites_that_are_not_in_it(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(TEXT.replace("full_iteration", "${oc.env:SCOPE}"))
    result = verify("b.yaml", "--work", "w", "--launcher", "srun")
    assert "b.yaml" not in result.stdout
    assert (result.exit_code, "b.yaml:4 (none): inconclusive" in result.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "message"),
    [(("--report", "nowhere/page.html"), "no such folder"), (("--work", "a.yaml"), "--work a.yaml: File exists")],
)
def test_places_that_cannot_be_written_are_usage_errors(words: tuple[str, ...], message: str) -> None:
    result = verify(*words)
    assert (result.exit_code, message in result.output) == (2, True), result.output
    assert isinstance(result.exception, SystemExit)


def test_without_jinja2_the_report_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr("cgmigrate.verify.session.verify", lambda *_: pytest.fail("ran"))
    result = verify("--report", "page.html")
    assert result.exit_code == 2
    assert "--report needs Jinja2, which is not installed; install cgmigrate with its extra `verify`" in result.output


@from_table
def test_a_release_or_migrated_form_that_cannot_be_used_is_status_2_although_there_is_nothing_to_compare(
    project: Path, cgmigrate, text: str, words: list[str], message: str
) -> None:
    (project / "a.yaml").write_text(text)
    (project / "broken.yaml").write_text("a: [\ncuda_graph_impl\n")
    (project / "template.yaml").write_text("{{ x }}\ncuda_graph_impl: {{ y }}\n")
    (project / "empty").mkdir()
    result = cgmigrate("verify", "a.yaml", *words)
    assert result.exit_code == 2 and message in result.stderr, result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize("option", ["--mcore", "--after"])
def test_an_empty_release_or_migrated_form_is_a_usage_error(project: Path, cgmigrate, option: str) -> None:
    (project / "a.yaml").write_text("x: 1\n")
    result = cgmigrate("verify", "a.yaml", option, "")
    assert result.exit_code == 2 and f"Invalid value for '{option}': the value is empty" in result.stderr


def test_nothing_is_fetched_where_there_is_nothing_to_compare(project: Path, cgmigrate, monkeypatch) -> None:
    monkeypatch.setattr("cgmigrate.verify.mcore.fetched", lambda *_: pytest.fail("fetched"))
    (project / "a.yaml").write_text("x: 1\n")
    result = cgmigrate("verify", "a.yaml", "--mcore", "0.17.1")
    assert (result.exit_code, result.stderr.startswith("Nothing to compare: ")) == (0, True)
