"""What a file holds or is called neither commands a terminal or a CI job nor forges a line of their logs."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.project.options import FORMATS
from cgmigrate.text.escaping import cells, in_json, in_line, in_text
from tests.support.tables import from_table

Command = Callable[..., Result]

HOSTILE = "\r\x1b[2K\x1b]0;title\x07\x9b31m\u202e\u2066\u200f\u061c\u2028\x7f"
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
COMMAND = re.compile(r"^\s*::|##\[|##vso\[", re.M)

# A comment is shown in the excerpt, and a value in messages.
# What a comment may hold: YAML ends a line at a carriage return, and refuses other control characters.
MARKS = "\u202e\u2066\u200f\u061c"
CONTENT = f"MODEL_ARGS:\n  --bf16: true # title\r  --enable-cuda-graph: true # {MARKS} ##[add-mask]x\n"
UNREADABLE = CONTENT + f"# {HOSTILE}\n"
NAME = f"::error::{HOSTILE[:-1]}\n::warning::x.yaml"


def hostile_yaml() -> str:
    value = json.dumps(f"{HOSTILE}\n::error::x\n##[error]y")
    return f"MODEL_ARGS:\n  --bf16: true\n  --cuda-graph-impl: {value}\n  --cuda-graph-scope: {value}\n"


def assert_harmless(text: str, own: str = "") -> None:
    """No control character and no command, less the commands that the format itself writes."""
    assert UNSAFE.findall(text) == []
    lines = [line for line in text.split("\n") if not (own and re.match(own, line))]
    assert [line for line in lines if COMMAND.search(line)] == []


@pytest.fixture
def hostile(project: Path) -> Path:
    (project / "a.yaml").write_text(CONTENT, newline="")
    (project / "b.yaml").write_text(hostile_yaml())
    (project / "c.py").write_text(f"import megatron.core\ncuda_graph_scope = 'a'  # {HOSTILE[1:]}\n", newline="")
    (project / "d.yaml").write_text(UNREADABLE, newline="")
    for name in (NAME, "line\nfeed.yaml", "\x1b[31m.yaml", "\u202elmay.yaml"):
        (project / name).write_text(CONTENT, newline="")
    (project / "no\x1b.yaml").write_bytes(b"cuda_graph_scope: \xff\n")
    (project / "gone\r.yaml").symlink_to("nowhere\x1b")
    return project


@pytest.mark.parametrize("form", FORMATS)
def test_no_format_shows_what_a_terminal_obeys(hostile: Path, cgmigrate: Command, form: str) -> None:
    done = cgmigrate("check", "--format", form, ".", "missing\x1b[0m\n::error::y")
    assert done.exit_code == 2
    own = r"::(notice title=cgmigrate|(warning|error) title=cgmigrate \(CG\d+\),file=[^:]*)::"
    assert_harmless(done.stdout, own if form == "github" else "")
    assert_harmless(done.stderr)
    assert "CG101" in done.stdout


def test_programs_still_read_the_true_text(hostile: Path, cgmigrate: Command) -> None:
    diagnostics = json.loads(cgmigrate("check", "--format", "json", ".").stdout)["findings"]
    assert {NAME, "line\nfeed.yaml", "\x1b[31m.yaml", "\u202elmay.yaml"} <= {
        diagnostic["path"] for diagnostic in diagnostics
    }


def test_the_mark_is_below_the_part_although_it_has_escapes(project: Path, cgmigrate: Command) -> None:
    (project / "a.yaml").write_text("MODEL_ARGS: {\x85--bf16: true, --enable-cuda-graph: true}\n")
    shown = cgmigrate("check", "a.yaml").stdout.split("\n")
    line, mark = (part.partition(" | ")[2] for part in shown[3:5])
    assert line[mark.index("^") : mark.rindex("^") + 1] == "--enable-cuda-graph: true"


@from_table
def test_messages_on_both_streams_are_escaped(hostile: Path, cgmigrate: Command, words: tuple[str, ...]) -> None:
    done = cgmigrate(*words)
    assert_harmless(done.stdout)
    assert_harmless(done.stderr)


def test_what_undo_says_is_escaped(hostile: Path, cgmigrate: Command) -> None:
    cgmigrate("fix", ".")
    done = cgmigrate("fix", "--undo")
    assert r"restored \x1b[31m.yaml" in done.stderr or "\\x3a:error::" in done.stderr
    assert_harmless(done.stderr)


def test_messages_about_a_rule_and_a_configuration_are_escaped(hostile: Path, cgmigrate: Command) -> None:
    (hostile / "team").mkdir()
    (hostile / "team/x\x1b.yaml").write_text("id: [\n")
    assert_harmless(cgmigrate("check", "--rules", "team", ".").stderr)
    (hostile / "cgmigrate.toml").write_text('"k\\u001b[0m" = "\\u202e"\n')
    done = cgmigrate("check", ".")
    assert done.exit_code == 2 and "unknown key" in done.stderr
    assert_harmless(done.stderr)


def test_a_patch_is_exact_on_a_pipe(hostile: Path) -> None:
    for name in ("no\x1b.yaml", "gone\r.yaml", "b.yaml", "c.py", "d.yaml"):
        (hostile / name).unlink()
    command = [sys.executable, "-m", "cgmigrate", "fix", "--diff", "."]
    patch = subprocess.run(command, capture_output=True, check=False).stdout
    assert MARKS.encode() in patch and b"# title\r  --" in patch
    before = {path: path.read_bytes() for path in hostile.iterdir() if path.is_file()}
    subprocess.run(["git", "init", "-q", "."], check=True)
    subprocess.run(["git", "apply", "-"], input=patch, check=True)
    after = {path: path.read_bytes() for path in before}
    assert before[hostile / NAME] != after[hostile / NAME]
    for path, data in before.items():
        path.write_bytes(data)
    subprocess.run([*command[:4], "."], capture_output=True, check=False)
    assert {path: path.read_bytes() for path in before} == after


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal is needed")
@pytest.mark.parametrize("colour", ["always", "never"])
@pytest.mark.parametrize("how", ["--diff", "--interactive"])
def test_a_patch_on_a_terminal_is_escaped(hostile: Path, how: str, colour: str) -> None:
    lead, follow = pty.openpty()
    command = [sys.executable, "-m", "cgmigrate", "fix", how, "--color", colour, "-q", "."]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=follow, stderr=subprocess.PIPE)
    os.close(follow)
    shown = b""
    try:
        while piece := os.read(lead, 65536):
            shown += piece
    except OSError:
        pass
    assert process.stderr is not None
    assert_harmless(process.stderr.read().decode())
    process.wait()
    # The terminal itself writes CR LF for a line feed; colours are the command's own.
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown.decode().replace("\r\n", "\n")) if colour == "always" else ""
    assert_harmless(text or shown.decode().replace("\r\n", "\n"))
    assert "title" in shown.decode()


def test_the_functions() -> None:
    assert in_line("a\nb\tc\rd\x1b\u202e") == r"a\nb\tc\rd\x1b\u202e"
    assert in_text("a\nb\tc\r\u2028") == "a\nb\tc\\r\\u2028"
    assert in_text("::a\n  ::b ::c\n") == "\\x3a:a\n  \\x3a:b ::c\n"
    assert in_line(" ::a::b") == " \\x3a:a::b"
    assert in_text("x ##[a] ##vso[b] ## [c]") == "x \\x23#[a] \\x23#vso[b] ## [c]"
    assert cells("a\t\x1b::") == ["a", "\t", r"\x1b", ":", ":"]
    assert json.loads(in_json(json.dumps(HOSTILE, ensure_ascii=False))) == HOSTILE
    assert in_text("plain ünï → 😀 ‍") == "plain ünï → 😀 ‍"


def test_a_script_for_slurm_runs_no_value_of_a_file() -> None:
    from cgmigrate.verify.arms import TRAINING, Arm, Proxy
    from cgmigrate.verify.mcore import Home
    from cgmigrate.verify.run import Runner
    from cgmigrate.verify.slurm import script

    folder = Path(os.environ["CGMIGRATE_CACHE_DIR"])
    arm = Arm("0.19.2", TRAINING, {"cuda_graph_impl": "local\ntouch executed"}, Proxy())
    text = script(Runner({"0.19.2": Home("0.19.2", "python")}, folder, print), [arm])
    assert "touch executed" in text and "\ntouch" not in text
