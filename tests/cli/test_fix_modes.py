"""``cgmigrate undo`` and ``fix --interactive``: what is restored, and which changes are offered."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cgmigrate.cli.commands import main
from cgmigrate.project.write import FileReplacement
from tests.support.files import write
from tests.support.reports import places_in
from tests.support.tables import from_table

LEGACY = "model:\n  external_cuda_graph: true\n  hidden_size: 8\n"
FIXED = "model:\n  cuda_graph_impl: transformer_engine\n  hidden_size: 8\n"
TWO = "a:\n  external_cuda_graph: true\nb:\n  external_cuda_graph: true\n"


# --- undo -----------------------------------------------------------------------------------------------


def test_undo_restores_every_byte_and_the_mode(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = b"\xef\xbb\xbfmodel:\r\n  external_cuda_graph: true   # \xe2\x82\xac\r\n\r\n  hidden_size: 8"
    one, two = write(project / "a.yaml", odd), write(project / "sub/b.yaml", LEGACY)
    one.chmod(0o640)
    cgmigrate("fix", ".")
    assert (one.read_bytes(), two.read_text()) != (odd, LEGACY)
    # From anywhere in the project.
    monkeypatch.chdir(project / "sub")
    result = cgmigrate("undo")
    assert (result.exit_code, one.read_bytes(), two.read_text()) == (0, odd, LEGACY)
    assert one.stat().st_mode & 0o777 == 0o640
    assert "restored b.yaml\n" in result.stderr and "2 files restored.\n" in result.stderr
    assert [path.name for path in project.rglob("*") if "cgmigrate" in path.name] == []


def test_a_file_that_changed_since_is_left_and_the_others_are_restored(project: Path, cgmigrate) -> None:
    changed, other = write(project / "a.yaml", LEGACY), write(project / "b.yaml", LEGACY)
    gone = write(project / "c.yaml", LEGACY)
    cgmigrate("fix", ".")
    changed.write_text(FIXED + "  new: 1\n")
    gone.unlink()
    result = cgmigrate("fix", "--undo")
    assert (result.exit_code, changed.read_text(), other.read_text()) == (1, FIXED + "  new: 1\n", LEGACY)
    assert "error: a.yaml has changed since and was left alone\n" in result.stderr
    assert "error: c.yaml: No such file or directory\n" in result.stderr
    # It is not forgotten: put back as it was, it can still be restored.
    changed.write_text(FIXED)
    gone.write_text(FIXED)
    assert (cgmigrate("fix", "--undo").exit_code, changed.read_text(), gone.read_text()) == (0, LEGACY, LEGACY)


def test_runs_are_taken_back_one_after_the_other(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    cgmigrate("fix", ".")
    path.write_text(LEGACY.replace("hidden", "visible"))
    cgmigrate("fix", ".")
    cgmigrate("fix", ".")  # writes nothing, so there is nothing of it to take back
    cgmigrate("fix", "--undo")
    assert path.read_text() == LEGACY.replace("hidden", "visible")
    path.write_text(FIXED)
    cgmigrate("fix", "--undo")
    assert path.read_text() == LEGACY
    assert "Nothing to undo" in cgmigrate("fix", "--undo").stderr


def test_another_project_has_its_own_journal(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(project / "a.yaml", LEGACY)
    cgmigrate("fix", ".")
    (project / "other/.git").mkdir(parents=True)
    monkeypatch.chdir(project / "other")
    result = cgmigrate("fix", "--undo")
    assert (result.exit_code, path.read_text()) == (0, FIXED)
    assert "Nothing to undo: no run has written files in this project." in result.stderr


def test_a_run_that_is_cut_off_can_be_taken_back(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [write(project / f"{name}.yaml", LEGACY) for name in "abc"]
    real = FileReplacement.apply

    def cut_off(new: FileReplacement, copy: str) -> None:
        if new.path == "b.yaml":
            raise KeyboardInterrupt
        real(new, copy)

    monkeypatch.setattr(FileReplacement, "apply", cut_off)
    CliRunner().invoke(main, ["fix", "."])
    assert [path.read_text() for path in files] == [FIXED, LEGACY, LEGACY]
    monkeypatch.setattr(FileReplacement, "apply", real)
    result = cgmigrate("fix", "--undo")
    assert (result.exit_code, [path.read_text() for path in files]) == (0, [LEGACY] * 3)
    assert "1 file restored" in result.stderr


def test_a_file_that_was_not_written_is_not_undone(project: Path, cgmigrate) -> None:
    locked, other = write(project / "a.yaml", LEGACY), write(project / "b.yaml", LEGACY)
    locked.chmod(0o444)
    assert cgmigrate("fix", ".").exit_code == 2
    locked.chmod(0o644)
    locked.write_text("mine: 1\n")
    assert cgmigrate("fix", "--undo").exit_code == 0
    assert (locked.read_text(), other.read_text()) == ("mine: 1\n", LEGACY)


def test_a_run_that_cannot_be_noted_still_fixes_and_says_so(
    project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(project / "a.yaml", LEGACY)
    write(project / "file", "")
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(project / "file"))
    result = cgmigrate("fix", ".")
    assert (result.exit_code, path.read_text()) == (0, FIXED)
    assert "warning: this run cannot be undone: Not a directory" in result.stderr


def test_only_the_last_runs_are_kept_and_only_for_the_user(project: Path, cgmigrate) -> None:
    path = project / "a.yaml"
    for _ in range(13):
        write(path, LEGACY)
        cgmigrate("fix", ".")
    (home,) = (Path(os.environ["CGMIGRATE_CACHE_DIR"]) / "undo").iterdir()
    assert len(list(home.iterdir())) == 10
    assert {folder.stat().st_mode & 0o077 for folder in home.iterdir()} == {0}


def test_a_diff_leaves_no_journal(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    cgmigrate("fix", "--diff", ".")
    assert "Nothing to undo" in cgmigrate("fix", "--undo").stderr


def test_undo_usage(project: Path, cgmigrate) -> None:
    assert cgmigrate("fix", "--undo", ".").exit_code == 2
    assert cgmigrate("fix", "--undo", "--diff").exit_code == 2
    assert cgmigrate("fix", "--interactive", "--diff", ".").exit_code == 2


def the_journal() -> Path:
    """The folder of the only run that is recorded."""
    (run,) = (Path(os.environ["CGMIGRATE_CACHE_DIR"]) / "undo").glob("*/*")
    return run


def entries(run: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (run / "entries.jsonl").read_text().splitlines()]


def test_a_file_that_changed_or_is_gone_does_not_block_older_runs(project: Path, cgmigrate) -> None:
    older, changed = write(project / "older.yaml", LEGACY), write(project / "changed.yaml", "x: 1\n")
    gone = write(project / "gone.yaml", "x: 1\n")
    cgmigrate("fix", ".")
    changed.write_text(LEGACY)
    gone.write_text(LEGACY)
    cgmigrate("fix", ".")
    changed.write_text("mine: 1\n")
    gone.unlink()

    first = cgmigrate("undo")
    assert first.exit_code == 1 and older.read_text() == FIXED
    assert "changed.yaml has changed since" in first.stderr and "gone.yaml: No such file" in first.stderr
    assert "Undid" not in first.stderr
    second = cgmigrate("undo")
    assert (second.exit_code, older.read_text(), changed.read_text()) == (0, LEGACY, "mine: 1\n")
    assert second.stderr.startswith("restored older.yaml\nUndid the run of ")
    # Nothing is left but what cannot be restored.
    third = cgmigrate("undo")
    assert third.exit_code == 1 and third.stderr.count("error:") == 2
    changed.write_text(FIXED)
    assert (cgmigrate("undo").exit_code, changed.read_text()) == (1, LEGACY), "gone.yaml is still missing"
    gone.write_text(FIXED)
    assert (cgmigrate("undo").exit_code, gone.read_text()) == (0, LEGACY)


@pytest.mark.parametrize("damage", ["missing", "cut", "folder"])
def test_a_file_without_its_copy_is_named_and_the_others_are_restored(project: Path, cgmigrate, damage: str) -> None:
    files = [write(project / f"{name}.yaml", LEGACY) for name in "abc"]
    cgmigrate("fix", ".")
    run = the_journal()
    copy = run / entries(run)[1]["copy"]
    content = copy.read_bytes()
    copy.unlink()
    if damage == "cut":
        copy.write_bytes(content[:5])
    elif damage == "folder":
        copy.mkdir()
    result = cgmigrate("undo")
    assert (result.exit_code, [path.read_text() for path in files]) == (1, [LEGACY, FIXED, LEGACY])
    assert "error: b.yaml cannot be restored: its copy in the journal " in result.stderr
    assert "2 files restored.\n" in result.stderr
    # It can never be restored, so it is reported once.
    assert cgmigrate("undo").stderr == "Nothing to undo: no run has written files in this project.\n"


@pytest.mark.parametrize(
    "line",
    [b"\xff\xfe\n", b"{\n", b"[]\n", b"null\n", b'{"path": 1}\n', b'{"path": "a"}\n', b"[" * 100_000 + b"\n",
     b'{"path": "a\\u0000", "copy": "0", "before": "0", "after": "0"}\n'],
)  # fmt: skip
def test_a_damaged_journal_is_one_line_and_the_rest_of_it_is_restored(project: Path, cgmigrate, line: bytes) -> None:
    path = write(project / "a.yaml", LEGACY)
    cgmigrate("fix", ".")
    entry = the_journal() / "entries.jsonl"
    entry.write_bytes(line + entry.read_bytes())
    result = cgmigrate("undo")
    assert (result.exit_code, path.read_text()) == (1, LEGACY)
    (said,) = [message for message in result.stderr.splitlines() if message.startswith("error:")]
    assert "is damaged (" in said and said.endswith("1 entry cannot be read")

    cgmigrate("fix", ".")
    (the_journal() / "entries.jsonl").write_bytes(line)
    assert cgmigrate("fix", ".").exit_code == 0  # it stops no run either
    result = cgmigrate("undo")
    assert (result.exit_code, path.read_text()) == (1, FIXED)
    assert len(result.stderr.splitlines()) == 1
    assert "Nothing to undo" in cgmigrate("undo").stderr


def test_what_is_no_journal_is_passed_over(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    cgmigrate("fix", ".")
    others = the_journal().parent
    for name in ("a-b", "99999999999999999999-x"):
        write(others / name / "entries.jsonl", "{}\n")
    (others / f"{10**20 - 1}-1").mkdir()
    write(others / f"{10**20 - 1}-2" / "entries.jsonl", '{"cut off')
    write(others / f"{10**20 - 1}-2" / "complete", "")
    assert (cgmigrate("undo").exit_code, path.read_text()) == (0, LEGACY)


def test_a_run_that_could_not_record_all_files_says_so_when_it_is_undone(
    project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [write(project / f"{name}.yaml", LEGACY) for name in "abc"]
    real = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == "1.before":
            raise OSError(28, "No space left on device", str(path))
        return real(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    result = cgmigrate("fix", ".")
    assert [path.read_text() for path in files] == [FIXED] * 3
    assert "warning: this run cannot be undone as a whole: No space left on device" in result.stderr
    monkeypatch.setattr(Path, "write_bytes", real)
    result = cgmigrate("undo")
    assert (result.exit_code, [path.read_text() for path in files]) == (1, [LEGACY, FIXED, FIXED])
    assert "is not complete: " in result.stderr and "1 file restored." in result.stderr


def test_undo_does_not_open_what_is_no_regular_file(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    cgmigrate("fix", ".")
    path.unlink()
    os.mkfifo(path)
    result = cgmigrate("undo")
    assert result.exit_code == 1 and "a.yaml is not a regular file and was left alone" in result.stderr


# --- interactive ----------------------------------------------------------------------------------------


def ask(answers: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["fix", "--interactive", *words, "."], input=answers)


def test_each_site_is_shown_with_a_question(project: Path) -> None:
    path = write(project / "a.yaml", TWO)
    result = ask("n\ny\n")
    assert path.read_text() == "a:\n  external_cuda_graph: true\nb:\n  cuda_graph_impl: transformer_engine\n"
    assert result.exit_code == 1, "one is left"
    assert result.stdout.count("(1/2) Write this change [y,n,q,a,d,?]? ") == 1
    assert result.stdout.count("(2/2) Write this change [y,n,q,a,d,?]? ") == 1
    assert "a.yaml:2:3: CG102" in places_in(result.stdout) and " (safe)\n" in result.stdout
    assert "-  external_cuda_graph: true\n+  cuda_graph_impl: transformer_engine\n" in result.stdout
    assert "Fixed 1 diagnostic in 1 file of 1 file; 1 skipped." in result.stderr


@from_table
def test_all_and_quit(project: Path, answers: str, written: list[int], code: int) -> None:
    files = [write(project / f"{name}.yaml", TWO) for name in "ab"]
    result = ask(answers)
    lines = [line for path in files for line in path.read_text().splitlines() if ":" in line and line[0] == " "]
    assert [at for at, line in enumerate(lines) if "impl" in line] == written
    assert result.exit_code == code
    assert ("y - write this change\nn - skip this change\n" in result.stdout) is answers.startswith("?")
    fixed, skipped = len(written), 4 - len(written)
    counts = f"Fixed {fixed} diagnostic{'' if fixed == 1 else 's'} in "
    assert counts in result.stderr and ("remain" in result.stderr) is False
    assert (f"; {skipped} skipped." in result.stderr) is (skipped > 0)


def test_what_is_not_offered_is_reported_and_left_to_decide(project: Path) -> None:
    unsafe = "megatron_cfg:\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
    write(project / "a.yaml", LEGACY)
    write(project / "b.yaml", unsafe)
    result = ask("n\n", "--from", "0.16")
    places = places_in(result.stdout)
    assert any(place.startswith("b.yaml:3:3: CG") for place in places) and places.count("a.yaml:2:3: CG102") == 1
    assert re.search(r"; 1 skipped; \d+ diagnostics? remains?\.", result.stderr)


def test_the_line_of_progress_does_not_clear_a_question(project: Path) -> None:
    """On a real terminal: what is on the screen when the user has thought about it."""
    write(project / "a.yaml", TWO)
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "cgmigrate", "fix", "--interactive", "--color", "never", "."]
    with subprocess.Popen(command, cwd=project, stdin=theirs, stdout=theirs, stderr=theirs):
        os.close(theirs)
        screen = until(ours, "(1/2) Write this change [y,n,q,a,d,?]? ")
        time.sleep(1.0)
        os.write(ours, b"y\n")
        screen += until(ours, "(2/2) Write this change [y,n,q,a,d,?]? ")
        time.sleep(1.0)
        os.write(ours, b"n\n")
        screen += until(ours, "1 skipped.")
    # A terminal shows a line from its last carriage return and clearing on.
    visible = [re.split(r"\r(?:\x1b\[K)?", line.rstrip("\r"))[-1] for line in screen.split("\n")]
    for number, answer in ((1, "y"), (2, "n")):
        assert f"({number}/2) Write this change [y,n,q,a,d,?]? {answer}" in visible, screen
    assert "-  external_cuda_graph: true" in visible


def until(terminal: int, text: str) -> str:
    shown = ""
    while text not in shown:
        ready, _, _ = select.select([terminal], [], [], 30)
        assert ready, f"waited for {text!r}, and there is {shown!r}"
        shown += os.read(terminal, 4096).decode()
    return shown


def test_what_shares_settings_is_one_question(project: Path) -> None:
    text = "a: &a\n  external_cuda_graph: true\nb:\n  <<: *a\n  cuda_graph_scope: attn\n"
    path = write(project / "a.yaml", text)
    result = ask("y\n")
    assert result.stdout.count("(1/1) Write this change") == 1
    assert path.read_text() == text.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine").replace(
        "scope", "modules"
    )
    assert result.exit_code == 0


def test_code_is_offered_too_and_imports_follow(project: Path) -> None:
    head = (
        "from megatron.core.transformer import TransformerConfig\n"
        "from megatron.core.transformer.enums import CudaGraphScope\n"
    )
    call = 'TransformerConfig(cuda_graph_impl="local", cuda_graph_scope=[CudaGraphScope.attn])\n'
    path = write(project / "a.py", head + call * 2)
    ask("n\nn\n")
    assert path.read_text() == head + call * 2
    ask("y\ny\n")
    assert "CudaGraphScope" not in path.read_text()


def test_unsafe_fixes_are_offered_with_unsafe_fixes(project: Path) -> None:
    text = "megatron_cfg:\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
    path = write(project / "a.yaml", text)
    assert "Write this change" not in ask("y\n", "--from", "0.16").stdout
    result = ask("y\n", "--from", "0.16", "--unsafe-fixes")
    assert "because: megatron-core 0.16 captures" in result.stdout
    assert path.read_text() == "megatron_cfg:\n  cuda_graph_impl: full_iteration\n"


def test_what_was_agreed_to_can_be_undone(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", TWO)
    ask("y\nn\n")
    cgmigrate("fix", "--undo")
    assert path.read_text() == TWO


# --- without a report -----------------------------------------------------------------------------------


def test_fix_only_rewrites_and_reports_nothing(project: Path, cgmigrate) -> None:
    (project / "cgmigrate.toml").write_text('output-format = "json"\n')
    path = write(project / "a.yaml", LEGACY)
    write(project / "b.yaml", "model:\n  hidden_size: 8\n  cuda_graph_impl: ${A}\n  cuda_graph_scope: attn\n")
    result = cgmigrate("fix", "--fix-only", ".")
    assert (result.exit_code, result.stdout, path.read_text()) == (0, "", FIXED)
    assert re.search(
        r"Fixed 1 diagnostic in 1 file of 2 files; \d+ diagnostics? remains? .*see `cgmigrate check`",
        result.stderr,
    )
    path.write_text(LEGACY)
    path.chmod(0o444)
    assert cgmigrate("fix", "--fix-only", ".").exit_code == 2
    assert cgmigrate("fix", "--fix-only", "--diff", ".").exit_code == 1
    for words in (["--format", "json"], ["--output-file", "x"], ["--interactive"]):
        assert cgmigrate("fix", "--fix-only", *words, ".").exit_code == 2
