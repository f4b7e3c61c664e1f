"""Processes beside a run: the report is the same with any number of them, also where one of them ends."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there does a run start processes")

PROGRAM = """
import os, signal, sys
from cgmigrate.lint import file_check, processes
processes.LEAST_FILES, own = 1, os.getpid()
processes.available = lambda: {count}
check, checked = file_check.FileChecker.check, set()
def counted(self, source):
    assert source.path not in checked
    checked.add(source.path)
    if os.getpid() != own and source.path.endswith({dies!r}):
        os._exit(9)
    return check(self, source)
file_check.FileChecker.check = counted
serve, result_of = processes._serve, processes._checked
def serving(checker, sources, writing):
    global pipe
    pipe = writing
    serve(checker, sources, writing)
def cut_off(checker, source):
    data = result_of(checker, source)
    if source.path.endswith({killed!r}):
        result = len(data).to_bytes(8, "big") + data
        os.write(pipe, result[:{length}])
        os.kill(os.getpid(), signal.SIGKILL)
    return data
processes._serve, processes._checked = serving, cut_off
from cgmigrate.cli.commands import main
try:
    main()
finally:
    print(len(checked), "files checked by the run itself", file=sys.stderr)
"""
COMMANDS = (
    ("check", "."),
    ("check", "-v", "--output-format", "json", "."),
    ("check", "--output-format", "concise", "."),
    ("fix", "--diff", "--unsafe-fixes", "--docs", "."),
)


def make(folder: Path) -> None:
    for number in range(6):
        project = folder / f"project-{number % 2}"
        project.mkdir(exist_ok=True)
        (project / "requirements.txt").write_text(f"megatron-core>=0.{16 + number % 2},<0.20\n")
        scope = ("full", "attn", "full_iteration")[number % 3]
        flags = f"--enable-cuda-graph --cuda-graph-scope {scope}"
        (project / f"run-{number}.sh").write_text(f"#!/bin/bash\ntorchrun pretrain_gpt.py {flags} --bf16\n")
        (project / f"conf-{number}.yaml").write_text(f"megatron_cfg:\n  cuda_graph_scope: {scope}\n")
        (project / f"page-{number}.md").write_text(f"# Ü\n\n```bash\npython pretrain_gpt.py {flags}\n```\n")
    (folder / "latin.sh").write_bytes("# ü\npython pretrain_gpt.py --enable-cuda-graph\n".encode("latin-1"))
    (folder / "latin.md").write_bytes("ü `--enable-cuda-graph`\n".encode("latin-1"))
    comment = "# cgmigrate: ignore[CG101] later\n"
    (folder / "quiet.sh").write_text(f"{comment}torchrun pretrain_gpt.py --enable-cuda-graph\n")
    (folder / "Dockerfile").write_text("FROM x\nRUN python pretrain_gpt.py --external-cuda-graph\n")


def run(
    folder: Path, words: tuple[str, ...], count: int, dies: str = "never", killed: str = "never", length: int = 0
) -> tuple[int, str, str, int]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CGMIGRATE_CACHE_DIR": str(folder.parent / "cache")}
    program = PROGRAM.format(count=count, dies=dies, killed=killed, length=length)
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    *messages, last = done.stderr.splitlines()
    return done.returncode, done.stdout, "\n".join(messages), int(last.split()[0])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_the_report_is_that_of_one_process(tmp_path: Path, words: tuple[str, ...]) -> None:
    folder = tmp_path / "tree"
    folder.mkdir()
    make(folder)
    *alone, all_files = run(folder, words, 1)
    assert "cuda" in alone[1], alone[2]
    *together, own_files = run(folder, words, 3)
    assert together == alone
    # Those that are linked with others, and the two with notes.
    assert own_files < all_files - 10
    *left, _ = run(folder, words, 3, dies="page-2.md")
    assert left == alone


def test_a_process_that_is_killed_amid_a_result_changes_nothing(tmp_path: Path) -> None:
    """The run checks the file of the result, and those behind it, itself: nothing is lost and nothing is green."""
    folder = tmp_path / "tree"
    folder.mkdir()
    make(folder)
    *alone, _ = run(folder, COMMANDS[1], 1)
    usual = run(folder, COMMANDS[1], 3)[-1]
    for length in (1, 8, 9, 300):  # of the bytes that come before it is killed
        *left, own_files = run(folder, COMMANDS[1], 3, killed="page-2.md", length=length)
        assert (length, left, left[0]) == (length, alone, 1)
        assert own_files > usual, length


def test_files_are_written_by_one_process(tmp_path: Path) -> None:
    checked = []
    for name in ("one", "several"):
        folder = tmp_path / name
        folder.mkdir()
        make(folder)
        checked.append(run(folder, ("fix", "."), 3 if name == "several" else 1))
    assert checked[0] == checked[1]


def test_a_progress_bar_prevents_no_processes(tmp_path: Path) -> None:
    """At a terminal, a thread draws the bar; it has no lock while the processes are started."""
    folder = tmp_path / "tree"
    folder.mkdir()
    make(folder)
    everything = run(folder, COMMANDS[0], 1)[3]
    reading, terminal = os.openpty()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            PROGRAM.format(count=3, dies="never", killed="never", length=0),
            "check",
            ".",
        ],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=terminal,
        timeout=120,
    )
    os.close(terminal)
    shown = os.read(reading, 100_000).decode()
    os.close(reading)
    assert done.returncode == 1, shown
    own = re.search(r"(\d+) files checked by the run itself", shown)
    assert own and int(own[1]) < everything - 10, shown
