"""The options of a gate: what it exits with, what it says, where it reads from, what it looks like."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cgmigrate.cli.commands import main
from tests.support.files import write
from tests.support.paths import ROOT
from tests.support.reports import RELEASES, places_in
from tests.support.tables import from_table

Run = Callable[..., Result]

WARNINGS = "model:\n  hidden_size: 8\n  external_cuda_graph: true\n  cuda_graph_scope: attn\n"
FIXED = "model:\n  hidden_size: 8\n  cuda_graph_impl: transformer_engine\n  cuda_graph_modules: attn\n"
ERROR = "draft:\n  hidden_size: 8\n  enable_cuda_graph: true\n  external_cuda_graph: true\n"


def piped(*words: str, text: str | bytes) -> Result:
    result = CliRunner().invoke(main, list(words), input=text)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


# --- exit status ----------------------------------------------------------------------------------------


@from_table
def test_which_diagnostics_fail_a_check(
    project: Path, cgmigrate: Run, text: str, options: list[str], status: int
) -> None:
    write("a.yaml", text)
    assert cgmigrate("check", *options, "a.yaml").exit_code == status


def test_diagnostics_that_do_not_fail_are_shown_and_the_status_explained(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", WARNINGS)
    result = cgmigrate("check", "--fail-on", "error", "a.yaml")
    assert "[CG102]" in result.stdout
    assert "None of them is an error, so the exit status is 0 (--fail-on error).\n" in result.stderr
    assert "None of them" not in cgmigrate("check", "--fail-on", "error", "--select", "CG2", "a.yaml").stderr


def test_a_path_that_is_missing_is_status_2_whatever_the_options(project: Path, cgmigrate: Run) -> None:
    for command in ("check", "fix"):
        assert cgmigrate(command, "--exit-zero", "--fail-on", "error", "--quiet", "nowhere.yaml").exit_code == 2


def test_fix_with_what_is_left(project: Path, cgmigrate: Run) -> None:
    path = write("a.yaml", WARNINGS + ERROR)
    assert cgmigrate("fix", "--diff", "--exit-zero", "a.yaml").exit_code == 0
    assert cgmigrate("fix", "--diff", "--fail-on", "error", "a.yaml").exit_code == 1
    assert cgmigrate("fix", "--exit-zero", "a.yaml").exit_code == 0
    assert path.read_text() == FIXED + ERROR
    assert cgmigrate("fix", "a.yaml").exit_code == 1
    assert cgmigrate("fix", "--fail-on", "error", "--select", "CG1", "a.yaml").exit_code == 0


# --- what is said ---------------------------------------------------------------------------------------


def test_statistics_count_instead_of_showing(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", WARNINGS + ERROR)
    write("b.yaml", WARNINGS)
    result = cgmigrate("check", "--statistics", ".")
    assert result.stdout == (
        "    3  CG102  [*]  external-cuda-graph\n"
        "    2  CG106  [*]  cuda-graph-scope\n"
        "    1  CG202       both-booleans\n"
    )
    assert result.exit_code == 1
    assert cgmigrate("check", "--statistics", "--output-file", "counts", ".").stdout == ""
    assert Path("counts").read_text() == result.stdout
    write("a.yaml", "x: 1\n")
    assert cgmigrate("check", "--statistics", "a.yaml").stdout == ""


def test_the_format_of_the_configuration_yields_to_statistics(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", WARNINGS)
    counted = cgmigrate("check", "--statistics", ".")
    write("cgmigrate.toml", 'output-format = "json"\n')
    result = cgmigrate("check", "--statistics", ".")
    assert (result.exit_code, result.stdout) == (1, counted.stdout)


def test_questions_do_not_mix_with_a_machine_format(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", WARNINGS + ERROR)
    result = cgmigrate("fix", "--interactive", "--format", "json", ".")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "remove --output-format json, or add --output-file" in result.stderr
    assert cgmigrate("fix", "--interactive", "--format", "json", "--output-file", "left.json", ".").exit_code == 1
    assert json.loads(Path("left.json").read_text())["version"] == 2
    write("cgmigrate.toml", 'output-format = "json"\n')
    assert '"version"' not in cgmigrate("fix", "--interactive", ".").stdout


def test_statistics_have_no_machine_format(project: Path, cgmigrate: Run) -> None:
    result = cgmigrate("check", "--statistics", "--format", "sarif", ".")
    assert result.exit_code == 2 and "remove --output-format sarif" in result.stderr


def test_quiet_says_diagnostics_and_errors_only(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", WARNINGS)
    (project / "dead.yaml").symlink_to("gone.yaml")
    loud, quiet = cgmigrate("check", "nowhere", "."), cgmigrate("check", "-q", "nowhere", ".")
    assert quiet.stdout == loud.stdout != ""
    assert quiet.stderr == "error: nowhere: no such file or directory\n"
    for message in ("warning: dead.yaml", "Found 2 diagnostics"):
        assert message in loud.stderr
    assert cgmigrate("fix", "-q", "a.yaml").stderr == ""


def test_verbose_says_what_was_looked_at_and_why_these_releases(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", WARNINGS)
    write("b.yaml", "x: 1\n")
    write("requirements.txt", "megatron-core==0.18.1\n")
    others = "policy:\n  generation:\n    mcore_generation_config:\n      enable_cuda_graph: true\n"
    write("d.yaml", "---\n".join([others] * 9))
    stderr = cgmigrate("check", "--verbose", "--from", "0.16", ".").stderr
    assert "Searched 3 of 3 files; with CUDA-graph settings: 2 YAML.\n" in stderr
    assert "Releases: from 0.16 (--from) to 0.18 (requirements.txt:1 (megatron-core==0.18.1))\n" in stderr
    assert stderr.count("d.yaml:") == 9
    assert "and 4 more (--verbose shows all)" in cgmigrate("check", ".").stderr


def test_a_note_that_holds_for_many_projects_is_shown_once(project: Path, cgmigrate: Run) -> None:
    for number in range(4):
        folder = project / f"benchmark-{number}"
        write(folder / "Dockerfile", "FROM x\nRUN git clone https://github.com/NVIDIA/Megatron-LM.git\n")
        write(folder / "model.yaml", "enable_cuda_graph: true\nnum_layers: 2\nhidden_size: 8\n")
    shown = cgmigrate("check", ".").stderr
    assert shown.count("pinned by a git clone") == 1
    assert "and 3 notes of this kind for other places (--verbose shows all)" in shown
    assert cgmigrate("check", ".", "--verbose").stderr.count("pinned by a git clone") == 4


# --- colour ---------------------------------------------------------------------------------------------


@from_table
@pytest.mark.parametrize("command", [["check"], ["check", "--format", "concise"], ["fix", "--diff"]])
def test_when_there_are_colours(
    project: Path, cgmigrate: Run, monkeypatch, option: str, environment: dict[str, str], coloured: bool, command
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    write("a.yaml", WARNINGS)
    assert ("\x1b[" in cgmigrate(*command, "--color", option, "a.yaml").stdout) is coloured


def test_what_programs_read_has_no_colours(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", WARNINGS)
    for name in ("json", "sarif", "github"):
        assert "\x1b" not in cgmigrate("check", "--color", "always", "--format", name, "a.yaml").stdout
    cgmigrate("check", "--color", "always", "--output-file", "report.txt", "a.yaml")
    assert "\x1b" not in Path("report.txt").read_text()


# --- stdin ----------------------------------------------------------------------------------------------


def test_check_reads_stdin_under_the_name_that_is_given(project: Path) -> None:
    write("conf/requirements.txt", "megatron-core==0.17.1\n")
    result = piped("check", "-", "--stdin-filename", "conf/new.yaml", text=WARNINGS)
    assert result.exit_code == 1
    assert places_in(result.stdout) == ["conf/new.yaml:3:3: CG102"]
    # The pins beside it decide, as if it were a file: 0.17 does not know the new name of the scope.
    assert "CG106" not in result.stdout and "conf/requirements.txt:1 pins megatron-core==0.17.1" in result.stderr
    assert not Path("conf/new.yaml").exists()
    assert piped("check", "-", "--stdin-filename", "a.yaml", text="x: 1\n").stderr == "Checked 1 file: nothing found.\n"


@pytest.mark.parametrize("text", [WARNINGS, WARNINGS.replace("\n", "\r\n"), "\ufeff" + WARNINGS])
def test_fix_writes_the_text_to_stdout_and_what_is_left_to_stderr(project: Path, text: str) -> None:
    ends = "\r\n" if "\r" in text else "\n"
    result = piped("fix", "-", "--stdin-filename", "a.yaml", text=(text + ERROR.replace("\n", ends)).encode())
    fixed = text.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine")
    fixed = fixed.replace("cuda_graph_scope", "cuda_graph_modules")
    assert result.stdout_bytes == (fixed + ERROR.replace("\n", ends)).encode()
    assert "a.yaml:7:3: CG202" in places_in(result.stderr) and "Fixed 2 diagnostics" in result.stderr
    assert result.exit_code == 1


@pytest.mark.parametrize("text", [b"x: 1\n", b"", b"# enable_cuda_graph \xff\n", b"a: [\nenable_cuda_graph: 1\n"])
def test_fix_gives_back_what_it_does_not_rewrite(project: Path, text: bytes) -> None:
    assert piped("fix", "-", "--stdin-filename", "a.yaml", text=text).stdout_bytes == text
    assert piped("fix", "-", "--stdin-filename", "a.toml", text=text).stdout_bytes == text
    assert piped("fix", "-", "--stdin-filename", "a.yaml", "--exclude", "*.yaml", text=text).stdout_bytes == text


SAME = {
    "request.yaml": b"x: 1  # cgmigrate: ignore[CG101]\n",
    "request.py": b"x = 1  # cgmigrate: ignore-file\n",
    "request-latin.yaml": b"# \xe9\nx: 1  # cgmigrate: ignore[CG101]\n",
    "latin.yaml": b"# \xe9\n" + WARNINGS.encode(),
    "utf16.yaml": WARNINGS.encode("utf-16"),
    "mark.yaml": b"\xef\xbb\xbf" + WARNINGS.encode(),
    "empty.yaml": b"",
    "large.yaml": b"#" * (4 << 20) + b"\n" + WARNINGS.encode(),
    "large-request.yaml": b"#" * (4 << 20) + b"\nx: 1  # cgmigrate: ignore[CG101]\n",
    "broken.yaml": b"a: [\n" + WARNINGS.encode(),
    "template.yaml": b"{{ a }}\n" + WARNINGS.encode(),
    "old/a.yaml": WARNINGS.encode(),
    "venv/a.yaml": WARNINGS.encode(),
    "child.yaml": b"defaults: base.yaml\n" + WARNINGS.encode(),
    "run.sh": b"--enable-cuda-graph\n",
    "README.md": b"enable_cuda_graph\n",
    "a.toml": b"enable_cuda_graph = true\n",
}


@pytest.mark.parametrize("name", SAME)
@pytest.mark.parametrize(
    "words",
    [["check"], ["check", "-v", "--format", "json"], ["check", "--select", "CG012"], ["check", "--show-files"],
     ["fix", "--diff"]],
    ids=" ".join,
)  # fmt: skip
def test_stdin_and_a_file_with_the_same_text_give_the_same_result(project: Path, name: str, words: list[str]) -> None:
    (project / "cgmigrate.toml").write_text('extend-exclude = ["old/"]\n')
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(SAME[name])
    of_file = CliRunner().invoke(main, [*words, name])
    of_stdin = piped(*words, "--stdin-filename", name, "-", text=SAME[name])
    assert (of_stdin.exit_code, of_stdin.stdout, of_stdin.stderr) == (of_file.exit_code, of_file.stdout, of_file.stderr)


def test_a_diff_of_stdin_is_a_diff(project: Path) -> None:
    result = piped("fix", "--diff", "-", "--stdin-filename", "conf/a.yaml", text=WARNINGS)
    assert result.stdout.startswith("--- a/conf/a.yaml\n+++ b/conf/a.yaml\n")
    assert result.exit_code == 1


def test_excludes_hold_for_stdin(project: Path) -> None:
    words = ("--stdin-filename", str(project / "old/a.yaml"), "--exclude", "/old/")
    assert piped("check", "-", *words, text=WARNINGS).exit_code == 0
    result = piped("fix", "-", *words, text=WARNINGS)
    assert (result.exit_code, result.stdout) == (0, WARNINGS)


def test_settings_are_shown_for_the_name_of_stdin(project: Path) -> None:
    write("conf/cgmigrate.toml", 'to = "0.18"\n')
    result = piped("check", "--show-settings", "-", "--stdin-filename", "conf/new.yaml", text=WARNINGS)
    assert (result.exit_code, 'to = "0.18"' in result.stdout) == (0, True)
    assert result.stdout.startswith("# for conf/new.yaml\n")


def test_no_comment_is_written_to_a_file_for_a_diagnostic_of_stdin(project: Path) -> None:
    write("a.yaml", WARNINGS)
    result = piped("check", "--add-ignore", "-", "--stdin-filename", "a.yaml", text=WARNINGS)
    assert (result.exit_code, Path("a.yaml").read_text()) == (2, WARNINGS)
    assert "--add-ignore writes files: give paths, not -" in result.stderr


@from_table
def test_stdin_is_used_as_it_is_meant(project: Path, words: list[str], message: str) -> None:
    result = piped("check", *words, text=WARNINGS)
    assert result.exit_code == 2 and message in result.stderr


# --- completion -----------------------------------------------------------------------------------------


def completed(line: str) -> list[str]:
    """What bash would offer at the end of a line."""
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "_CGMIGRATE_COMPLETE": "bash_complete",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(line.split(" ")) - 1),
    }
    code = "from cgmigrate.cli.commands import main; main(prog_name='cgmigrate')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return [offer.split(",", 1)[1] for offer in done.stdout.splitlines()]


@from_table
def test_a_shell_completes(line: str, offered: list[str]) -> None:
    assert completed(line) == offered


def test_the_script_that_the_readme_evaluates_is_there() -> None:
    environment = os.environ | {"PYTHONPATH": str(ROOT), "_CGMIGRATE_COMPLETE": "zsh_source"}
    code = "from cgmigrate.cli.commands import main; main(prog_name='cgmigrate')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("#compdef cgmigrate")


# --- progress -------------------------------------------------------------------------------------------


def watched(*words: str, **environment: str) -> tuple[str, str]:
    """stdout and what a person sees on stderr, a terminal."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "cgmigrate", *words]
    settings = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONIOENCODING": "utf-8", **environment}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=settings, text=True) as process:
        os.close(slave)
        seen = b""
        while chunk := _read(master):
            seen += chunk
        out = process.stdout.read() if process.stdout else ""
    os.close(master)
    return out, seen.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # how Linux says that the other end is closed
        return b""


def test_a_run_shows_how_far_it_is(project: Path) -> None:
    for number in range(4):
        write(f"{number}.yaml", WARNINGS)
    out, seen = watched("check", "--format", "concise", ".")
    assert "\r\x1b[K2 of 4 files with settings checked\r\x1b[K" in seen
    # The line is gone when the run is over, and nothing of it is in the report.
    assert seen.rpartition("\r\x1b[K")[2] == (
        "Found 8 diagnostics (8 warnings) in 4 of 4 files.\n"
        f"For more information, run `cgmigrate explain CG102`.\n{RELEASES}Fixes: 8 safe ([*])\n"
        "Next: \x1b[1;32mcgmigrate fix .\x1b[0m\n"
    )
    assert len(out.splitlines()) == 8


@pytest.mark.parametrize(
    ("words", "environment"),
    [(["--quiet"], {}), ([], {"TERM": "dumb"})],
    ids=["quiet", "a terminal without control"],
)
def test_where_nothing_is_drawn(project: Path, words: list[str], environment: dict[str, str]) -> None:
    for number in range(4):
        write(f"{number}.yaml", WARNINGS)
    _, seen = watched("check", *words, ".", **environment)
    assert "\x1b[K" not in seen


def test_clean_runs_import_nothing_of_this(project: Path) -> None:
    write("a.yaml", "model:\n  num_cuda_graphs: 3\n")
    code = (
        "import sys\nfrom cgmigrate.cli.commands import main\n"
        "try: main(['check', 'a.yaml'])\nexcept SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith(('cgmigrate.report', 'json', 'xml'))])"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- a gate is not silenced by accident -------------------------------------------------------------

LEFT = "MODEL_ARGS:\n  --bf16: true\n  --enable-cuda-graph: true\n"


@pytest.mark.parametrize("value", ["", " "])
@from_table
def test_an_empty_value_is_a_usage_error(project: Path, cgmigrate: Run, words: tuple[str, ...], value: str) -> None:
    (project / "a.yaml").write_text(LEFT)
    done = cgmigrate(*(value if word == "VALUE" else word for word in words))
    assert done.exit_code == 2, done.output
    assert "Invalid value for" in done.stderr
    assert (project / "a.yaml").read_text() == LEFT


@pytest.mark.parametrize("rules", [".", "../{name}", "{whole}", "./"])
def test_the_working_directory_is_no_folder_of_rules(project: Path, cgmigrate: Run, rules: str) -> None:
    (project / "a.yaml").write_text(LEFT)
    done = cgmigrate("check", "--rules", rules.format(name=project.name, whole=project), ".")
    assert done.exit_code == 2 and "--rules: the working directory cannot be a folder of rules" in done.stderr


@pytest.mark.parametrize("how", ["option", "configuration", "below", "here"])
def test_a_folder_of_rules_with_other_yaml_is_not_passed_over(project: Path, cgmigrate: Run, how: str) -> None:
    (project / "configs").mkdir()
    (project / "configs/a.yaml").write_text(LEFT)
    words = ["--rules", "configs"] if how == "option" else []
    if how == "configuration":
        (project / "cgmigrate.toml").write_text('extend-rules = ["configs"]\n')
    if how == "here":
        (project / "configs/cgmigrate.toml").write_text('extend-rules = ["."]\n')
    if how == "below":
        (project / "sub").mkdir()
        (project / "configs").rename(project / "sub/configs")
        (project / "sub/cgmigrate.toml").write_text('extend-rules = ["configs"]\n')
    done = cgmigrate("check", *words, ".")
    assert done.exit_code == 2, done.output
    assert "configs/a.yaml:" in done.stderr


def test_a_run_that_checked_no_file_is_a_warning(project: Path, cgmigrate: Run) -> None:
    assert cgmigrate("check", ".").stderr == "warning: Checked 0 files: nothing found.\n"
    assert cgmigrate("fix", ".").stderr == "warning: Checked 0 files: nothing to do.\n"
    (project / "a.yaml").write_text("a: 1\n")
    assert cgmigrate("check", ".").stderr == "Checked 1 file: nothing found.\n"


def test_a_named_path_that_is_excluded_is_named_if_nothing_else_was_checked(project: Path, cgmigrate: Run) -> None:
    (project / "conf").mkdir()
    for name in ("conf/a.yaml", "b.yaml"):
        (project / name).write_text("enable_cuda_graph: true\n")
    (project / "cgmigrate.toml").write_text('exclude = ["conf/", "b.yaml"]\n')
    assert cgmigrate("check", "conf/a.yaml").stderr == (
        "warning: Checked 0 files (conf/a.yaml is excluded): nothing found.\n"
    )
    assert "(conf/a.yaml is excluded, and 1 more)" in cgmigrate("fix", "conf/a.yaml", "b.yaml").stderr
    assert "note: b.yaml is excluded\n" in cgmigrate("verify", "b.yaml").stderr


UNREAD = {
    "CG001": ("a.yaml", b"cuda_graph_scope: [\n"),
    "CG002": ("a.yaml", b"{% if x %}\ncuda_graph_scope: full\n{% endif %}\n"),
    "CG007": ("a.yaml", b"cuda_graph_scope: \xff\n"),
    "CG008": ("a.yaml", b"cuda_graph_scope: full\n".ljust(5_000_000, b"#")),
    "CG009": ("a.py", b"cuda_graph_scope = (\n"),
    "CG013": ("a.py", b"cuda_graph_scope = " + b"-" * 30_000 + b"1\n"),
}


@pytest.mark.parametrize("rule", UNREAD)
def test_a_file_that_cannot_be_read_fails_whatever_is_selected(project: Path, cgmigrate: Run, rule: str) -> None:
    name, data = UNREAD[rule]
    (project / name).write_bytes(data)
    for words in ((), ("--select", "CG2"), ("--fail-on", "error"), ("--select", "CG2", "--fail-on", "error")):
        for command in ("check", "fix"):
            done = cgmigrate(command, *words, "--format", "concise", ".")
            assert (done.exit_code, rule in done.stdout) == (1, True), (words, done.output)
    for words in (("--ignore", "CG0"), ("--select", "CG2", "--ignore", rule), ("--exit-zero",)):
        assert cgmigrate("check", *words, ".").exit_code == 0
    (project / "cgmigrate.toml").write_text('select = ["CG2"]\n')
    assert cgmigrate("check", ".").exit_code == 1
    (project / "cgmigrate.toml").write_text('select = ["CG2"]\nignore = ["CG0"]\n')
    assert cgmigrate("check", ".").exit_code == 0


# --- --strict: what a pull request brings along suppresses nothing -------------------------------------

BASELINE = '{"version": 2, "diagnostics": {"sub/a.yaml": {"CG101": ["MODEL_ARGS.--enable-cuda-graph"]}}}'


@from_table
@pytest.mark.parametrize("directory", [".", "sub"])
def test_strict_passes_over_what_suppresses(
    project: Path,
    cgmigrate: Run,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    words: tuple[str, ...],
    directory: str,
) -> None:
    for name, text in ({"sub/a.yaml": LEFT} | files).items():
        write(name, text)
    if directory == "sub" and words == () and "cgmigrate.toml" not in files and "sub/.git/HEAD" not in files:
        monkeypatch.chdir(directory)
    assert cgmigrate("check", *words, ".").exit_code == 0
    done = cgmigrate("check", "--strict", *words, ".")
    assert (done.exit_code, "CG101" in done.stdout) == (1, True), done.output


def test_strict_keeps_the_configuration_of_the_root(project: Path, cgmigrate: Run) -> None:
    write("sub/a.yaml", LEFT)
    write("sub/cgmigrate.toml", 'select = ["CG2"]\n')
    write("cgmigrate.toml", 'ignore = ["CG1"]\n')
    assert cgmigrate("check", "--strict", "sub").exit_code == 0
    write("cgmigrate.toml", "")
    assert cgmigrate("check", "--strict", "sub").exit_code == 1
    assert '"CG2"' not in cgmigrate("check", "--strict", "--show-settings", "sub").stdout


def test_strict_reports_an_unreadable_file_whatever_it_says(project: Path, cgmigrate: Run) -> None:
    write("a.yaml", "# cgmigrate: ignore-file\ncuda_graph_scope: [\n")
    assert cgmigrate("check", ".").exit_code == 0
    assert cgmigrate("check", "--strict", ".").exit_code == 1


def test_a_baseline_for_strict_is_from_outside(
    project: Path, cgmigrate: Run, tmp_path_factory: pytest.TempPathFactory
) -> None:
    write("sub/a.yaml", LEFT)
    write("known.json", BASELINE)
    done = cgmigrate("check", "--strict", "--baseline", "known.json", ".")
    assert done.exit_code == 2 and "--strict takes no baseline from the tree" in done.stderr
    outside = tmp_path_factory.mktemp("outside") / "known.json"
    assert cgmigrate("check", "--write-baseline", "--baseline", str(outside), ".").exit_code == 0
    assert cgmigrate("check", "--strict", "--baseline", str(outside), ".").exit_code == 0
    (project / "link.json").symlink_to(outside)
    assert cgmigrate("check", "--strict", "--baseline", "link.json", ".").exit_code == 2
    assert cgmigrate("check", "--strict", "--add-ignore", ".").exit_code == 2


# --- notes ----------------------------------------------------------------------------------------------

ADVICE = """\
id: TEAM001
name: local-graphs
kind: companion
summary: our kernels are tuned for Transformer Engine's graphs
severity: note
fields: [cuda_graph_impl]
when: {cuda_graph_impl: local}
message: "`{cuda_graph_impl}` captures with kernels that we have not tuned"
explanation: A note of our team, which nobody has to act on.
sources: [our wiki]
"""
LOCAL = "transformer_config:\n  cuda_graph_impl: local\n  num_layers: 2\n"


@pytest.fixture
def advised(project: Path) -> Sequence[str]:
    """A project with a rule of its own whose diagnostics are notes; the options that load it."""
    write("rules/advice.yaml", ADVICE)
    write("a.yaml", LOCAL)
    return ["--rules", "rules", "a.yaml"]


@pytest.mark.parametrize(("least", "status"), [("note", 1), ("warning", 0), ("error", 0)])
def test_notes_fail_a_check_only_on_request(advised, cgmigrate: Run, least: str, status: int) -> None:
    result = cgmigrate("check", "--fail-on", least, *advised)
    assert result.stdout.startswith("note[TEAM001] local-graphs: ")
    assert (result.exit_code, "Found 1 diagnostic (1 note)" in result.stderr) == (status, True)
    assert ("All of them are notes, so the exit status is 0.\n" in result.stderr) == (least == "warning")


def test_a_fix_passes_where_only_notes_are_left(advised, cgmigrate: Run) -> None:
    write("a.yaml", LOCAL.replace("cuda_graph_impl: local", "enable_cuda_graph: true"))
    assert cgmigrate("fix", "--unsafe-fixes", *advised).exit_code == 0
    assert Path("a.yaml").read_text() == LOCAL


@from_table
def test_every_format_has_notes(advised, cgmigrate: Run, name: str, level: str) -> None:
    assert level in cgmigrate("check", "--output-format", name, *advised).stdout
