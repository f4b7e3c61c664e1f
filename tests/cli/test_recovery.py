"""What a person sees of sets of files: errors, recovery by the next command, and undo."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgmigrate.cli.writer import RunWriter
from cgmigrate.lint.file_result import FileResult
from cgmigrate.project import recovery
from cgmigrate.project.cache_folder import records
from tests.support.files import write
from tests.support.killed_processes import Processes, as_job, wait_for

LEGACY = "model:\n  external_cuda_graph: true\n  hidden_size: 8\n"
FIXED = "model:\n  cuda_graph_impl: transformer_engine\n  hidden_size: 8\n"
NAMES = ("a.yaml", "b.yaml", "c.yaml")


@pytest.fixture
def files(project: Path) -> list[Path]:
    return [write(project / name, LEGACY) for name in NAMES]


@pytest.fixture
def processes(project: Path) -> Iterator[Processes]:
    processes = Processes(project)
    yield processes
    processes.close()


@pytest.fixture
def interrupted(files: list[Path], processes: Processes) -> list[Path]:
    """A set of three files of which one was written when the process was killed."""
    job = as_job([[(name, LEGACY.encode(), FIXED.encode()) for name in NAMES]])
    assert processes.run("write", job, rename=1)["killed"]
    assert [path.read_text() for path in files] == [FIXED, LEGACY, LEGACY]
    return files


def write_together(*names: str) -> tuple[RunWriter, list[str]]:
    lines: list[str] = []
    writer = RunWriter(lines.append)
    files = [FileResult(name, Path(name).read_bytes(), Path(name).read_text(), (), after=FIXED) for name in names]
    writer.write_set("G1", files, "rewrote")
    return writer, lines


def test_a_set_is_written_with_a_line_for_each_file(files: list[Path]) -> None:
    writer, lines = write_together(*NAMES)
    assert [line.split(" (")[0] for line in lines] == ["rewrote a.yaml", "rewrote b.yaml", "rewrote c.yaml"]
    assert not writer.print_problems() and [path.read_text() for path in files] == [FIXED] * 3


def test_an_error_names_the_files_of_the_set(files: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    files[1].chmod(0o444)
    writer, lines = write_together(*NAMES)
    assert lines == [] and writer.print_problems()
    assert capsys.readouterr().err == (
        "error: b.yaml is read-only; give it write permission (chmod u+w) to have it rewritten; "
        "these files are written together: a.yaml, b.yaml, c.yaml, and none was written\n"
    )
    assert [path.read_text() for path in files] == [LEGACY] * 3


@pytest.mark.parametrize("words", [["check", "."], ["check", "a.yaml"], ["fix", "--diff", "."], ["check", "-q", "."]])
def test_the_next_command_reverts_an_interrupted_set_first(interrupted: list[Path], cgmigrate, words) -> None:
    result = cgmigrate(*words)
    assert result.exit_code == 1
    assert result.stderr.startswith("Reverted an interrupted write of 3 files.\n")
    assert [path.read_text() for path in interrupted] == [LEGACY] * 3
    assert "interrupted" not in cgmigrate(*words).stderr


def test_fix_reverts_and_fixes(interrupted: list[Path], cgmigrate) -> None:
    result = cgmigrate("fix", ".")
    assert (result.exit_code, [path.read_text() for path in interrupted]) == (0, [FIXED] * 3)
    assert result.stderr.startswith("Reverted an interrupted write of 3 files.\nrewrote a.yaml")
    assert cgmigrate("undo").exit_code == 0
    assert [path.read_text() for path in interrupted] == [LEGACY] * 3
    assert cgmigrate("undo").stderr == "Nothing to undo: no run has written files in this project.\n"


def test_undo_reverts_first(interrupted: list[Path], cgmigrate) -> None:
    result = cgmigrate("undo")
    assert result.exit_code == 0 and [path.read_text() for path in interrupted] == [LEGACY] * 3
    assert result.stderr == (
        "Reverted an interrupted write of 3 files.\nNothing to undo: no run has written files in this project.\n"
    )


def test_a_set_that_was_written_is_finished(files: list[Path], processes: Processes, cgmigrate) -> None:
    job = as_job([[(name, LEGACY.encode(), FIXED.encode()) for name in NAMES]])
    assert processes.run("write", job, rename=3)["killed"]
    result = cgmigrate("check", ".")
    assert (result.exit_code, result.stderr.splitlines()[0]) == (0, "Finished an interrupted write of 3 files.")
    assert [path.read_text() for path in files] == [FIXED] * 3
    assert "3 files restored." in cgmigrate("undo").stderr


def test_a_file_that_changed_since_is_named_and_kept(interrupted: list[Path], cgmigrate) -> None:
    interrupted[0].write_text("mine: 1\n")
    result = cgmigrate("check", ".")
    assert result.exit_code == 2
    error, line = result.stderr.splitlines()[:2]
    assert error.startswith("error: a.yaml has changed since a write that was interrupted, and was left alone (its ")
    assert line == (
        "Reverted an interrupted write of 3 files, "
        "except for the file that changed since: check that it fits the others."
    )
    assert [path.read_text() for path in interrupted] == ["mine: 1\n", LEGACY, LEGACY]
    assert cgmigrate("check", ".").exit_code == 1 and records() == []


def test_a_file_that_cannot_be_reverted_stops_no_check(interrupted: list[Path], cgmigrate) -> None:
    interrupted[0].chmod(0o444)
    for _ in range(2):
        result = cgmigrate("check", "--format", "concise", ".")
        assert result.exit_code == 2 and result.stdout.startswith("b.yaml:2:3: CG102")
        assert result.stderr.startswith("error: a.yaml is read-only; give it write permission (chmod u+w)")
        assert "not restored yet" in result.stderr.splitlines()[0]
    interrupted[0].chmod(0o644)
    assert cgmigrate("check", ".").stderr.startswith("Reverted an interrupted write of 3 files.\n")


def test_another_process_that_writes_is_waited_for_and_named(
    files: list[Path], processes: Processes, cgmigrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = as_job([[(name, LEGACY.encode(), FIXED.encode()) for name in NAMES]])
    processes.start("write", job, stop_after_rename=1)
    wait_for("stopped")
    monkeypatch.setattr(recovery, "PATIENCE", 0.05)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "warning: another cgmigrate process is writing 3 files; this run may read some of them before and some after\n"
    )
    Path("go").touch()
    processes.end()
    assert [path.read_text() for path in files] == [FIXED] * 3


def test_undo_names_a_set_that_it_cannot_restore(files: list[Path], project: Path, cgmigrate) -> None:
    write(project / "d.yaml", LEGACY)
    # Two sets of one run.
    writer, _ = write_together("a.yaml", "b.yaml")
    files_of_second = [FileResult(n, LEGACY.encode(), LEGACY, (), after=FIXED) for n in ("c.yaml", "d.yaml")]
    writer.write_set("G2", files_of_second, "rewrote")
    files[1].write_text("mine: 1\n")
    result = cgmigrate("undo")
    assert result.exit_code == 1
    lines = result.stderr.splitlines()
    assert lines[:2] == ["restored c.yaml", "restored d.yaml"]
    assert lines[2] == (
        "error: b.yaml has changed since and was left alone; "
        "these files are written together: a.yaml, b.yaml, and none was restored"
    )
    assert lines[3].endswith("2 files restored.")
    assert [path.read_text() for path in files] == [FIXED, "mine: 1\n", LEGACY]
    # Put back as the run wrote it, the set can be undone.
    files[1].write_text(FIXED)
    assert cgmigrate("undo").exit_code == 0 and files[0].read_text() == LEGACY


def test_undo_lists_runs_and_sets(files: list[Path], project: Path, cgmigrate) -> None:
    assert cgmigrate("undo", "--list").stdout == ""
    write(project / "d.yaml", LEGACY)
    writer, _ = write_together("a.yaml", "b.yaml")
    writer.write_set("c.yaml", [FileResult("c.yaml", LEGACY.encode(), LEGACY, (), after=FIXED)], "rewrote")
    cgmigrate("fix", "d.yaml")
    result = cgmigrate("undo", "--list")
    lines = [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", line) for line in result.stdout.splitlines()]
    assert lines == ["DATE: 1 file", "  d.yaml", "DATE: 3 files", "  a.yaml, b.yaml (set G1)", "  c.yaml"]
    assert (result.exit_code, files[0].read_text()) == (0, FIXED), "nothing is restored"
    cgmigrate("undo")
    assert cgmigrate("undo", "--list").stdout.splitlines()[1:] == lines[3:]


# --- a parent and its child, through the whole program --------------------------------------------------

PARENT = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
CHILD = "defaults: base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: [attn, mlp]\n"
KILLED_AFTER_ONE_FILE = """
import os, signal
replace = os.replace
def killed(new, old):
    replace(new, old)
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
from cgmigrate.cli.commands import main
main()
"""


@pytest.fixture
def parent_and_child(project: Path) -> tuple[Path, Path]:
    write(project / "alone.yaml", LEGACY)
    return write(project / "base.yaml", PARENT), write(project / "child.yaml", CHILD)


@pytest.mark.parametrize("locked", [0, 1])
def test_neither_is_written_if_one_cannot_be(project: Path, cgmigrate, parent_and_child, locked: int) -> None:
    parent, child = parent_and_child
    parent_and_child[locked].chmod(0o444)
    result = cgmigrate("fix", ".")
    assert (result.exit_code, parent.read_text(), child.read_text()) == (2, PARENT, CHILD)
    error = next(line for line in result.stderr.splitlines() if line.startswith("error:"))
    assert error.startswith(f"error: {parent_and_child[locked].name} is read-only")
    assert error.endswith("; these files are written together: base.yaml, child.yaml, and none was written")
    assert (project / "alone.yaml").read_text() == FIXED, "another set is written"


def test_a_kill_between_them_is_reverted_by_the_next_command(project: Path, cgmigrate, parent_and_child) -> None:
    parent, child = parent_and_child
    words = [sys.executable, "-c", KILLED_AFTER_ONE_FILE, "fix", "base.yaml", "child.yaml"]
    assert subprocess.run(words, cwd=project, capture_output=True).returncode == -signal.SIGKILL
    assert (parent.read_text() == PARENT) != (child.read_text() == CHILD)
    result = cgmigrate("check", "alone.yaml")
    assert result.stderr.startswith("Reverted an interrupted write of 2 files.\n")
    assert (parent.read_text(), child.read_text()) == (PARENT, CHILD)
    assert cgmigrate("fix", ".").exit_code == 0
    assert "external" not in parent.read_text() and "scope" not in child.read_text()
    assert cgmigrate("undo").exit_code == 0
    assert (parent.read_text(), child.read_text()) == (PARENT, CHILD)
