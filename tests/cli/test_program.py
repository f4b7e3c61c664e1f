"""The program as a process: how it is started, and how a person or the system ends it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cgmigrate.lint.baseline import save
from cgmigrate.project import output_files, temporary_files

LEGACY = "model:\n  external_cuda_graph: true\n  hidden_size: 8\n"


def started(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cgmigrate", *words]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, timeout=60)


def test_the_package_runs_as_a_module(project: Path) -> None:
    (project / "a.yaml").write_text(LEGACY)
    result = started("check", "--format", "concise", ".", cwd=project)
    assert (result.returncode, result.stdout.split()[:2]) == (1, ["a.yaml:2:3:", "CG102"])
    assert started("--version", cwd=project).stdout.startswith("cgmigrate ")
    assert started("check", cwd=project).stderr.startswith("Usage: python -m cgmigrate check ")


def test_nothing_passes_without_the_shipped_rules(project: Path) -> None:
    shutil.copytree(Path(temporary_files.__file__).parents[1], project / "cgmigrate")
    (project / "a.yaml").write_text(LEGACY)

    result = started("check", "a.yaml", cwd=project)

    assert (result.returncode, result.stdout) == (2, "")
    assert "the shipped rules are missing" in result.stderr


# --- Ctrl-C -------------------------------------------------------------------------------------------

SLOW = """
import sys, time
from cgmigrate.project import discovery
def slowly(*given):
    print("started", flush=True)
    # In parts: a signal between the check for signals and a sleep does not end that sleep.
    for _ in range(600):
        time.sleep(0.1)
discovery.Discovery._search = slowly
from cgmigrate.__main__ import run
run()
"""


@pytest.mark.parametrize("words", [["check"], ["check", "--add-ignore"], ["fix"], ["fix", "--diff"], ["verify"]])
def test_ctrl_c_is_one_line_and_status_130(project: Path, words: list[str]) -> None:
    (project / "a.yaml").write_text(LEGACY)
    command = [sys.executable, "-c", SLOW, *words, "."]
    with subprocess.Popen(command, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, "error: interrupted\n")


def test_ctrl_c_at_a_question_is_status_130(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    path = project / "a.yaml"
    path.write_text(LEGACY)
    monkeypatch.setattr("cgmigrate.cli.interactive.Chooser._answer", interrupted)
    result = cgmigrate("fix", "--interactive", ".")
    assert (result.exit_code, path.read_text()) == (130, LEGACY)


# --- temporary files ----------------------------------------------------------------------------------

KILLED = """
import os, signal
def killed(*given):
    os.kill(os.getpid(), signal.SIGKILL)
os.replace = killed
from cgmigrate.__main__ import run
run()
"""


def leftovers(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.name.startswith(".cgmigrate-"))


def kill_while_writing(project: Path, *words: str) -> None:
    subprocess.run([sys.executable, "-c", KILLED, *words], cwd=project, capture_output=True, check=False)


@pytest.mark.parametrize("words", [["fix", "--unsafe-fixes"], ["check", "--add-ignore"]])
def test_the_next_run_removes_what_a_killed_one_left(project: Path, cgmigrate, words: list[str]) -> None:
    for name in ("a.yaml", "sub/b.yaml"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(LEGACY)
        kill_while_writing(project, *words, name)
    assert len(leftovers(project)) == 2
    # Something that has the user's own name, or is no file, is not one of them.
    (project / ".cgmigrate-notes.tmp").write_text("mine")
    (project / ".cgmigrate-abcdefgh.tmp").mkdir()
    cgmigrate("check", ".")
    cgmigrate("fix", "--diff", ".")
    assert len(leftovers(project)) == 4, "reading removes nothing"
    cgmigrate(*words, ".")
    assert [path.name for path in leftovers(project)] == [".cgmigrate-abcdefgh.tmp", ".cgmigrate-notes.tmp"]


def test_undo_removes_what_a_killed_undo_left(project: Path, cgmigrate) -> None:
    path = project / "a.yaml"
    path.write_text("model:\n  external_cuda_graph: false\n  hidden_size: 8\n")
    cgmigrate("fix", ".")
    kill_while_writing(project, "undo")
    assert len(leftovers(project)) == 1
    assert cgmigrate("undo").exit_code == 0
    assert leftovers(project) == [] and "external" in path.read_text()


def test_a_file_that_another_process_is_writing_is_not_removed(tmp_path: Path) -> None:
    code = f"""
import sys
from cgmigrate.project.temporary_files import create
created = create({str(tmp_path)!r})
print(created[1], flush=True)
sys.stdin.read()
"""
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        temporary_files.remove_leftovers(str(tmp_path))
        assert path.exists()
        process.kill()
        process.wait()
    temporary_files.remove_leftovers(str(tmp_path))
    assert not path.exists()


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = temporary_files._locked
    removed: list[str] = []

    def late(descriptor: int, wait: bool = True) -> bool:
        if not removed:
            removed.append(str(leftovers(tmp_path)[0]))
            os.unlink(removed[0])
        return real(descriptor, wait)

    monkeypatch.setattr(temporary_files, "_locked", late)
    descriptor, path = temporary_files.create(str(tmp_path))
    os.close(descriptor)
    assert removed and path != removed[0] and os.path.exists(path)


def test_many_writers_at_once_disturb_each_other_in_nothing(tmp_path: Path) -> None:
    code = """
import sys
from cgmigrate.project.write import write
from cgmigrate.project.temporary_files import remove_leftovers
path = sys.argv[1]
open(path, "wb").write(b"0")
for number in range(150):
    remove_leftovers(".")
    write(path, b"%d" % number, b"%d" % (number + 1))
"""
    started = [
        subprocess.Popen([sys.executable, "-c", code, f"{name}.yaml"], cwd=tmp_path, stderr=subprocess.PIPE)
        for name in "abcd"
    ]
    for process in started:
        _, said = process.communicate(timeout=120)
        assert (process.returncode, said) == (0, b"")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {f"{n}.yaml": b"150" for n in "abcd"}


# --- reports ------------------------------------------------------------------------------------------


def test_a_report_is_written_whole_or_not_at_all(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a.yaml").write_text(LEGACY)
    report = project / "report.json"
    report.write_text("before")

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    result = cgmigrate("check", "--format", "json", "--output-file", "report.json", ".")
    assert result.exit_code == 2 and "report.json cannot be written: No space left on device" in result.stderr
    assert report.read_text() == "before" and leftovers(project) == []


def test_a_report_killed_while_it_is_written_leaves_the_old_one(project: Path, cgmigrate) -> None:
    (project / "a.yaml").write_text(LEGACY)
    words = ["check", "--format", "json", "--output-file", "out/report.json", "."]
    (project / "out").mkdir()
    (project / "out/report.json").write_text("before")
    kill_while_writing(project, *words)
    assert (project / "out/report.json").read_text() == "before" and len(leftovers(project)) == 1
    cgmigrate(*words)
    assert (project / "out/report.json").read_text().startswith("{") and leftovers(project) == []


def test_a_report_keeps_mode_and_link_and_a_new_one_follows_the_umask(project: Path) -> None:
    report, link = project / "report", project / "link"
    report.write_text("before")
    report.chmod(0o640)
    link.symlink_to("report")
    output_files.write_file(str(link), b"after")
    assert link.is_symlink() and report.read_bytes() == b"after"
    assert report.stat().st_mode & 0o777 == 0o640
    umask = os.umask(0o027)
    try:
        output_files.write_file("new", b"after")
    finally:
        os.umask(umask)
    assert (project / "new").stat().st_mode & 0o777 == 0o640


def test_a_report_goes_to_pipes_devices_and_folders_without_room_for_more(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "a.yaml").write_text(LEGACY)
    words = ["check", "--format", "concise", "--output-file"]
    assert started(*words, "/dev/stdout", ".", cwd=project).stdout.startswith("a.yaml:2:3: CG102")
    assert started(*words, "/dev/null", ".", cwd=project).returncode == 1
    os.mkfifo(project / "pipe")
    with subprocess.Popen(["cat", "pipe"], cwd=project, stdout=subprocess.PIPE, text=True) as reader:
        started(*words, "pipe", ".", cwd=project)
        assert reader.communicate(timeout=30)[0].startswith("a.yaml:2:3: CG102")

    def refused(*_: object) -> None:
        raise OSError(30, "Read-only file system")

    (project / "report").write_text("before")
    monkeypatch.setattr(output_files, "create", refused)
    output_files.write_file("report", b"after")
    assert (project / "report").read_bytes() == b"after"
    with pytest.raises(OSError, match="Read-only"):
        output_files.write_file("new", b"after")


def test_a_baseline_is_written_like_a_report(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "known.json").write_text("before")
    monkeypatch.setattr(os, "replace", lambda *_: os.kill(os.getpid(), signal.SIGINT) or time.sleep(5))
    with pytest.raises(KeyboardInterrupt):
        save("known.json", {})
    assert (project / "known.json").read_text() == "before" and leftovers(project) == []


# --- files that cannot be written -----------------------------------------------------------------------


@pytest.mark.parametrize("words", [["fix"], ["check", "--add-ignore"]])
def test_a_failed_write_is_not_success(
    project: Path, cgmigrate, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a.yaml", "b.yaml"):
        (project / name).write_text(LEGACY)
        (project / name).chmod(0o444)
    result = cgmigrate(*words, "--format", "concise", ".")
    assert result.exit_code == 2
    assert result.stderr.count("is read-only") == 2
    assert "nothing to do" not in result.stderr and "Wrote comments" not in result.stderr
    # What is still there is reported.
    assert re.findall(r"^(\S+): (CG\d+)", result.stdout, re.M) == [("a.yaml:2:3", "CG102"), ("b.yaml:2:3", "CG102")]
    (project / "b.yaml").chmod(0o644)
    result = cgmigrate(*words, "--format", "concise", ".")
    assert result.exit_code == 2 and result.stdout.startswith("a.yaml:2:3: CG102") and "b.yaml" not in result.stdout
    counts = (
        "Fixed 1 diagnostic in 1 file of 2 files; 1 fix not written."
        if words == ["fix"]
        else "comments for 1 diagnostic."
    )
    assert counts in result.stderr
