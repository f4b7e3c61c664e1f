"""Files of kinds that are not read: a run names those with settings, and says nothing of the others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cgmigrate.documents.syntax import syntax_of
from cgmigrate.project.unread_files import SUFFIXES
from tests.support.files import write

SCOPE = '{"model": {"cuda_graph_scope": "full"}}\n'


def notes(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if "does not read" in line or "reads only" in line]


@pytest.mark.parametrize("in_git", [True, False])
def test_a_setting_in_a_file_that_is_not_read_is_a_note(project: Path, cgmigrate, in_git: bool) -> None:
    if in_git:
        (project / ".git/HEAD").unlink()
        subprocess.run(["git", "init", "-q", "."], check=True)
    write("conf/a.json", SCOPE)
    write("conf/run.sh.j2", "python pretrain_gpt.py \\\n  --cuda-graph-scope {{ scope }}\n")
    result = cgmigrate("check", ".")
    assert result.exit_code == 0
    assert notes(result.stderr) == [
        "note: cgmigrate reads only command lines in .json files, and one names `cuda_graph_scope`: conf/a.json:1",
        "note: cgmigrate does not read .j2 files, and one names `cuda-graph-scope`: conf/run.sh.j2:2",
    ]


def test_several_of_a_kind_are_counted_and_named_with_verbose(project: Path, cgmigrate) -> None:
    for name in "abc":
        write(f"{name}.json", SCOPE)
    shown = cgmigrate("check", ".").stderr
    assert [line.rpartition(": ")[2] for line in notes(shown)] == ["a.json:1"]
    assert "  and 2 notes of this kind for other places (--verbose shows all)\n" in shown
    assert len(notes(cgmigrate("check", "-v", ".").stderr)) == 3


QUIET = {
    "a new name": ("a.json", '{"cuda_graph_modules": []}'),
    "a name that others have, too": ("ds.json", '{"enable_cuda_graph": true}'),
    "a part of a longer name": ("a.toml", "my_cuda_graph_scope_x = 1\n"),
    "a log": ("a.log", SCOPE),
    "a patch": ("a.patch", SCOPE),
    "a table": ("a.csv", SCOPE),
    "more than a mebibyte": ("a.json", SCOPE + " " * (1024 * 1024)),
}


@pytest.mark.parametrize(("name", "text"), QUIET.values(), ids=QUIET)
def test_files_that_only_quote_settings_are_not_named(project: Path, cgmigrate, name: str, text: str) -> None:
    write(name, text)
    assert notes(cgmigrate("check", ".").stderr) == []


def test_an_excluded_file_and_one_that_git_ignores_are_not_named(project: Path, cgmigrate) -> None:
    write("out/a.json", SCOPE)
    write("b.json", SCOPE)
    write(".gitignore", "out/\n")
    assert notes(cgmigrate("check", "--exclude", "b.json", ".").stderr) == []


def test_baselines_and_reports_of_cgmigrate_are_not_named(project: Path, cgmigrate) -> None:
    write("a.yaml", "m:\n  external_cuda_graph: true\n")
    cgmigrate("check", "--write-baseline", "--baseline", "known.json", ".")
    for name in ("json", "sarif", "gitlab", "rdjson"):
        cgmigrate("check", "--output-format", name, "--output-file", f"{name}.json", "a.yaml")
    assert len(list(project.glob("*.json"))) == 5
    assert notes(cgmigrate("check", ".").stderr) == []


def test_programs_get_the_note_too(project: Path, cgmigrate) -> None:
    write("a.json", SCOPE)
    assert "reads only command lines in .json files" in cgmigrate("check", "--output-format", "json", ".").stdout


def test_no_kind_is_both_read_and_not_read() -> None:
    assert not [suffix for suffix in SUFFIXES if syntax_of(f"a{suffix}") is not None]
