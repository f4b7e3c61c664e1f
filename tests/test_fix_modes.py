"""``fix --undo`` and ``fix --interactive``: what is taken back, and what is asked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cgmigrate import edits
from cgmigrate.cli import main

LEGACY = "model:\n  external_cuda_graph: true\n  hidden_size: 8\n"
FIXED = "model:\n  cuda_graph_impl: transformer_engine\n  hidden_size: 8\n"
TWO = "a:\n  external_cuda_graph: true\nb:\n  external_cuda_graph: true\n"


def write(path: Path, text: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


# --- undo -----------------------------------------------------------------------------------------------


def test_undo_restores_every_byte_and_the_mode(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    odd = b"\xef\xbb\xbfmodel:\r\n  external_cuda_graph: true   # \xe2\x82\xac\r\n\r\n  hidden_size: 8"
    one, two = write(project / "a.yaml", odd), write(project / "sub/b.yaml", LEGACY)
    one.chmod(0o640)
    cgmigrate("fix", ".")
    assert (one.read_bytes(), two.read_text()) != (odd, LEGACY)
    # From anywhere in the project.
    monkeypatch.chdir(project / "sub")
    result = cgmigrate("fix", "--undo")
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
    assert (result.exit_code, changed.read_text(), other.read_text()) == (2, FIXED + "  new: 1\n", LEGACY)
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
    real = edits.write

    def cut_off(path: str, before: bytes, after: bytes) -> None:
        if path == "b.yaml":
            raise KeyboardInterrupt
        real(path, before, after)

    monkeypatch.setattr(edits, "write", cut_off)
    CliRunner().invoke(main, ["fix", "."])
    assert [path.read_text() for path in files] == [FIXED, LEGACY, LEGACY]
    monkeypatch.setattr(edits, "write", real)
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


# --- interactive ----------------------------------------------------------------------------------------


def ask(answers: str, *words: str) -> Result:
    return CliRunner().invoke(main, ["fix", "--interactive", *words, "."], input=answers)


def test_each_site_is_shown_and_asked_about(project: Path) -> None:
    path = write(project / "a.yaml", TWO)
    result = ask("n\ny\n")
    assert path.read_text() == "a:\n  external_cuda_graph: true\nb:\n  cuda_graph_impl: transformer_engine\n"
    assert result.exit_code == 1, "one is left"
    assert result.stdout.count("Write this? [y,n,a,q,?] ") == 2
    assert "a.yaml:2:3: CG102 [*]" in result.stdout
    assert "-  external_cuda_graph: true\n+  cuda_graph_impl: transformer_engine\n" in result.stdout
    assert "Fixed 1 finding in 1 file of 1 file; 1 finding left for you to decide." in result.stderr


@pytest.mark.parametrize(
    ("answers", "written", "code"),
    [
        ("a\n", [0, 1, 2, 3], 0),
        ("n\na\n", [1, 2, 3], 1),
        ("y\nq\n", [0], 1),
        ("q\n", [], 1),
        ("", [], 1),
        ("?\nhuh\ny\n\ny\nn\nn\n", [0, 1], 1),
    ],
)
def test_all_and_quit(project: Path, answers: str, written: list[int], code: int) -> None:
    files = [write(project / f"{name}.yaml", TWO) for name in "ab"]
    result = ask(answers)
    lines = [line for path in files for line in path.read_text().splitlines() if ":" in line and line[0] == " "]
    assert [at for at, line in enumerate(lines) if "impl" in line] == written
    assert result.exit_code == code
    assert ("y: write this  n: leave it" in result.stdout) is answers.startswith("?")


def test_what_shares_settings_is_one_question(project: Path) -> None:
    text = "a: &a\n  external_cuda_graph: true\nb:\n  <<: *a\n  cuda_graph_scope: attn\n"
    path = write(project / "a.yaml", text)
    result = ask("y\n")
    assert result.stdout.count("Write this?") == 1
    assert path.read_text() == text.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine").replace(
        "scope", "modules"
    )
    assert result.exit_code == 0


def test_code_is_asked_about_too_and_imports_follow(project: Path) -> None:
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


def test_unsafe_fixes_are_asked_about_where_they_are_wanted(project: Path) -> None:
    text = "megatron_cfg:\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
    path = write(project / "a.yaml", text)
    assert "Write this?" not in ask("y\n", "--from", "0.16").stdout
    result = ask("y\n", "--from", "0.16", "--unsafe-fixes")
    assert "because: megatron-core 0.16 captures" in result.stdout
    assert path.read_text() == "megatron_cfg:\n  cuda_graph_impl: full_iteration\n"


def test_what_was_agreed_to_can_be_undone(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", TWO)
    ask("y\nn\n")
    cgmigrate("fix", "--undo")
    assert path.read_text() == TWO
