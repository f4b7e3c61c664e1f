"""No input ends a run with a traceback: hostile files, streams and folders, each with what is said instead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cgmigrate.lint import planning
from cgmigrate.megatron.packages import core
from cgmigrate.project.options import FORMATS
from tests.support.tables import table_of

Command = Callable[..., Result]
REWRITABLE = "megatron_cfg:\n  enable_cuda_graph: true\n"
UNFINISHED = "x = (\ncuda_graph_scope = 1\n"


def program(*words: object, **streams: object) -> subprocess.CompletedProcess[str]:
    """Run the program as a process of its own, for at most a minute."""
    command = [sys.executable, "-c", "from cgmigrate.__main__ import run; run()", *map(str, words)]
    return subprocess.run(command, timeout=60, text=True, **{"capture_output": True, **streams})  # type: ignore[call-overload,no-any-return]


# --- Python that cannot be read -----------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("words", [("check",), ("fix",)])
def test_python_that_does_not_parse_is_reported_in_every_format(
    project: Path, cgmigrate: Command, format: str, words: tuple[str, ...]
) -> None:
    Path("s.py").write_text(UNFINISHED)
    result = cgmigrate(*words, "--format", format, "s.py")
    assert result.exit_code == 1
    assert "CG009" in result.stdout


@pytest.mark.parametrize("format", ["json", "sarif"])
def test_megatron_core_itself_can_be_reported_with_edits(project: Path, cgmigrate: Command, format: str) -> None:
    path = Path("megatron/core/transformer/transformer_config.py")
    path.parent.mkdir(parents=True)
    path.write_text("cuda_graph_scope = 1\n")
    assert cgmigrate("check", "--format", format, path).exit_code in (0, 1)


DEEP_PYTHON = {
    "signs": "x = " + "-" * 30_000 + "1\ncuda_graph_scope = 1\n",
    "elif": "if x: pass\n" + "elif x: pass\n" * 50_000 + "cuda_graph_scope = 1\n",
    "conditions": "from megatron.core.transformer.enums import CudaGraphScope\n"
    "from megatron.core.transformer import TransformerConfig\n"
    "TransformerConfig(cuda_graph_scope=[" + "CudaGraphScope.attn if x else " * 1_500 + "CudaGraphScope.attn])\n",
    "attributes": "x" + ".a" * 20_000 + ".cuda_graph_scope = ['attn']\n",
    "sums": "x = " + "1 + " * 20_000 + "1\ny.cuda_graph_scope = " + "[] + " * 2_000 + "['attn']\n",
    "calls": "f" + "(x)" * 3_000 + "(cuda_graph_scope=['attn'])\n",
}


@pytest.mark.parametrize(("name", "format"), [*zip(DEEP_PYTHON, cycle(["full", "json"]), strict=False)])
def test_python_that_is_too_deep_is_one_diagnostic(project: Path, name: str, format: str) -> None:
    Path("deep.py").write_text(DEEP_PYTHON[name])
    Path("ok.yaml").write_text(REWRITABLE)
    result = program("check", "--format", format, ".")
    assert (result.returncode, "Traceback" in result.stderr) == (1, False)
    assert "CG013" in result.stdout or "CG009" in result.stdout or "CG6" in result.stdout
    # The other file is reported as ever.
    assert "CG101" in result.stdout
    assert program("fix", ".").returncode in (0, 1)
    assert Path("deep.py").read_text() == DEEP_PYTHON[name]


def test_a_file_that_is_too_deep_can_be_suppressed(project: Path, cgmigrate: Command) -> None:
    Path("deep.py").write_text("# cgmigrate: ignore-file[CG013]\n" + DEEP_PYTHON["signs"])
    assert cgmigrate("check", "deep.py").exit_code == 0


# --- errors of the program itself ----------------------------------------------------------------------


@pytest.mark.parametrize("format", ["full", "json", "sarif"])
def test_an_internal_error_concerns_one_file(
    project: Path, cgmigrate: Command, monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    for name in ("a.yaml", "b.yaml"):
        Path(name).write_text(REWRITABLE)
    good = planning.document_of

    def broken(path: str, *rest: Any) -> object:
        if path == "a.yaml":
            raise ValueError("two\nlines")
        return good(path, *rest)

    monkeypatch.setattr(planning, "document_of", broken)
    result = cgmigrate("check", "--format", format, "a.yaml", "b.yaml")
    assert result.exit_code == 2
    assert "error: a.yaml: internal error (ValueError: two lines, at lint/planning.py:" in result.stderr
    assert "please report this" in result.stderr
    assert "b.yaml" in result.stdout and "CG101" in result.stdout
    if format == "json":
        assert json.loads(result.stdout)["troubles"][0]["path"] == "a.yaml"


def test_an_internal_error_in_a_report_is_one_line(
    project: Path, cgmigrate: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("a.yaml").write_text(REWRITABLE)
    monkeypatch.setattr("cgmigrate.report.json.render", lambda report: {}["x"])
    result = cgmigrate("check", "--format", "json", "a.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("error:")]
    assert line.startswith("error: internal error (KeyError: 'x', at ")


# --- defaults and mappings that only merge -------------------------------------------------------------


@pytest.mark.parametrize("words", [("check",), ("fix", "--unsafe-fixes"), ("check", "--format", "json")])
def test_a_mapping_that_only_merges_another_beside_defaults(
    project: Path, cgmigrate: Command, words: tuple[str, ...]
) -> None:
    text = """\
defaults: base
policy:
  megatron_cfg: &B {external_cuda_graph: true}
teacher:
  megatron_cfg:
    <<: *B
"""
    Path("d.yaml").write_text(text)
    result = cgmigrate(*words, "d.yaml")
    if words[0] == "check":
        assert result.exit_code == 1
        # One diagnostic a rule, at the mapping that shows the setting.
        assert result.stdout.count("CG004") >= 1
        assert Path("d.yaml").read_text() == text
    else:
        assert result.exit_code == 0
        after = text.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine")
        assert Path("d.yaml").read_text() == after


# --- streams and folders -------------------------------------------------------------------------------


PRINTED = table_of(__name__, "PRINTED")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", PRINTED.values(), ids=PRINTED.keys())
def test_a_full_device_is_one_line_and_an_error(project: Path, words: tuple[str, ...]) -> None:
    Path("ok.yaml").write_text("model:\n  external_cuda_graph: true\n  hidden_size: 8\n")
    with open("/dev/full", "w") as full:
        result = program(*words, capture_output=False, stdout=full, stderr=-1)
    assert (result.returncode, result.stderr) == (2, "error: the output cannot be written: No space left on device\n")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")
@pytest.mark.parametrize("words", [("check", "ok.yaml"), ("check", "--no-such-option"), ("no-such-command",)])
def test_a_message_that_cannot_be_written_is_an_error(project: Path, words: tuple[str, ...]) -> None:
    Path("ok.yaml").write_text("model:\n  cuda_graph_impl: local\n")
    with open("/dev/full", "w") as full:
        assert program(*words, capture_output=False, stdout=-1, stderr=full).returncode == 2


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("check", "--help"), ("rules",)], ids=" ".join)
def test_a_reader_that_is_gone_already_is_the_signal_of_a_pipe(project: Path, words: tuple[str, ...]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = program(*words, capture_output=False, stdout=writing, stderr=-1)
    os.close(writing)
    assert (result.returncode, result.stderr) == (141, "")


@pytest.mark.skipif(os.name == "nt", reason="a shell closes the streams")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_do_not_change_the_exit_status(project: Path, closed: str) -> None:
    Path("ok.yaml").write_text(REWRITABLE)
    command = f'"{sys.executable}" -c "from cgmigrate.__main__ import run; run()" check ok.yaml {closed}'
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=60)
    assert (result.returncode, "Traceback" in result.stderr) == (1, False)


def test_a_reader_that_goes_away_ends_the_run_quietly(project: Path) -> None:
    for number in range(300):
        Path(f"{number}.yaml").write_text(REWRITABLE)
    command = [sys.executable, "-c", "from cgmigrate.__main__ import run; run()", "check", "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        said = process.stderr.read()
    assert (process.returncode, said) == (141, "")


@pytest.mark.skipif(os.name == "nt", reason="a working directory cannot be deleted there")
def test_a_deleted_working_directory_is_one_line(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    start = f"import os; os.chdir({str(gone)!r}); os.rmdir({str(gone)!r}); "
    command = [sys.executable, "-c", start + "from cgmigrate.__main__ import run; run()", "check", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, "Traceback" in result.stderr) == (2, False)
    assert "the working directory cannot be used: No such file or directory" in result.stderr


# --- files that cgmigrate opens by itself --------------------------------------------------------------

PLACES = table_of(__name__, "PLACES")
KINDS = ("fifo", "device", "folder", "dangling link", "link to itself")


def make(kind: str, path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "device":
            path.symlink_to("/dev/zero")
        case "folder":
            path.mkdir()
        case "dangling link":
            path.symlink_to("nowhere")
        case "link to itself":
            path.symlink_to(path.name)


@pytest.mark.skipif(os.name == "nt", reason="no FIFOs and devices there")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_regular_file_is_not_opened(project: Path, cgmigrate: Command, place: str, kind: str) -> None:
    name, words = PLACES[place]
    Path("ok.yaml").write_text(REWRITABLE)
    if place == "ignore file":
        # Git does not run for a folder without a checkout.
        (project / ".git/HEAD").unlink()
        (project / ".git").rmdir()
    make(kind, Path(name))
    result = cgmigrate(*words)
    named_by_the_user = place in ("rule", "rules test", "baseline", "configuration", "after")
    assert result.exit_code in ((1, 2) if named_by_the_user else (1,))
    if named_by_the_user:
        assert name in result.output
    else:
        assert "CG101" in result.stdout
    if place in ("requirements.txt", "uv.lock", "setup.cfg") and kind in ("fifo", "device"):
        assert f"{name}: cannot be read (not a regular file); its pin is not used" in result.stderr


def test_a_file_that_is_too_large_for_its_kind_is_not_read(project: Path, cgmigrate: Command) -> None:
    Path("ok.yaml").write_text(REWRITABLE)
    Path("own.toml").write_text("#" * (4 * 1024 * 1024 + 1))
    result = cgmigrate("check", "--config", "own.toml", "ok.yaml")
    assert result.exit_code == 2
    assert "own.toml: the configuration cannot be read: more than 4,194,304 bytes" in result.stderr


DEEP_RULES = table_of(__name__, "DEEP_RULES")


@pytest.mark.parametrize("name", DEEP_RULES)
def test_a_rule_that_cannot_be_read_is_one_line(project: Path, name: str) -> None:
    Path("ok.yaml").write_text(REWRITABLE)
    Path("team").mkdir()
    Path("team/x.yaml").write_text(DEEP_RULES[name])
    result = program("check", "--rules", "team", "ok.yaml")
    assert (result.returncode, len(result.stderr.splitlines())) == (2, 1), result.stderr
    assert result.stderr.startswith("Error: team/x.yaml")
    assert program("rules", "test", "team").returncode == 1


@pytest.mark.parametrize("depth", [5_000, 200_000])
@pytest.mark.parametrize("pieces", [("[", "]"), ("{x = ", "}")])
def test_a_configuration_that_is_too_deep_is_one_line(project: Path, depth: int, pieces: tuple[str, str]) -> None:
    Path("ok.yaml").write_text(REWRITABLE)
    Path("own.toml").write_text("x = " + pieces[0] * depth + "1" + pieces[1] * depth)
    result = program("check", "--config", "own.toml", "ok.yaml")
    assert (result.returncode, "Traceback" in result.stderr) == (2, False)
    assert "own.toml: nested too deeply to be read" in result.stderr


def test_a_baseline_that_is_too_deep_is_one_line(project: Path, cgmigrate: Command) -> None:
    Path("ok.yaml").write_text(REWRITABLE)
    Path("known.json").write_text("[" * 200_000)
    result = cgmigrate("check", "--baseline", "known.json", "ok.yaml")
    assert result.exit_code == 2
    assert "known.json: the baseline is nested too deeply to be read" in result.stderr


DEEP_YAML = {
    "flow": "cuda_graph_scope: " + "[" * 200_000,
    "closed flow": "cuda_graph_scope: " + "[" * 200_000 + "]" * 200_000,
    "block": "cuda_graph_scope:\n" + "".join(" " * depth + "a:\n" for depth in range(1, 2_000)),
    "dashes": "cuda_graph_scope:\n" + "- " * 100_000 + "a\n",
}


@pytest.mark.parametrize("name", DEEP_YAML)
def test_yaml_that_is_too_deep_is_a_diagnostic(project: Path, name: str) -> None:
    Path("deep.yaml").write_text(DEEP_YAML[name])
    result = program("check", "--format", "json", "deep.yaml")
    assert result.returncode in (0, 1)
    assert "Traceback" not in result.stderr and "internal error" not in result.stderr


# --- chains and pins ----------------------------------------------------------------------------------


CHAINS = {
    "one setting": "a{0}: &a{0}\n  <<: *a{1}\n  x: 1\n",
    "a setting each": "s{0}: {{megatron_cfg: &a{0} {{<<: *a{1}, external_cuda_graph: true}}}}\n",
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_merge_chain_that_is_longer_than_the_stack_is_examined(project: Path, cgmigrate: Command, name: str) -> None:
    length = sys.getrecursionlimit() + 50
    chain = "".join(CHAINS[name].format(at, at - 1) for at in range(1, length))
    Path("a.yaml").write_text(f"a0: &a0 {{external_cuda_graph: true}}\n{chain}megatron_cfg: {{<<: *a{length - 1}}}\n")
    result = cgmigrate("check", "a.yaml")
    assert "CG102" in result.stdout, result.output[-500:]


def test_a_merge_chain_has_the_owner_of_the_mapping_at_its_end(project: Path, cgmigrate: Command) -> None:
    chain = "".join(f"a{at}: &a{at} {{<<: *a{at - 1}, x: {at}}}\n" for at in range(1, 30))
    Path("a.yaml").write_text("a0: &a0 {external_cuda_graph: true}\n" + chain + "megatron_cfg: {<<: *a29}\n")
    cgmigrate("fix", "--unsafe-fixes", "a.yaml")
    assert "a0: &a0 {cuda_graph_impl: transformer_engine}" in Path("a.yaml").read_text()


# --- pins ---------------------------------------------------------------------------------------------


def read_pins(reader: Callable[..., Any], text: str) -> list[Any]:
    return list(reader(text, core()))


def test_each_block_of_a_lock_file_is_parsed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    from cgmigrate.project.pins import lock_files

    parsed: list[int] = []
    load = lock_files.load_toml
    monkeypatch.setattr(lock_files, "load_toml", lambda text: parsed.append(len(text)) or load(text))
    block = '[[package]]\nname = "megatron-core"\nversion = "0.17.0"\n\n'
    mentions = read_pins(lock_files.read_lock_file, "# a lock file\n" + block * 30)
    assert [mention.line for mention in mentions] == [4 + 4 * at for at in range(30)]
    assert sum(parsed) == len(block) * 30


def test_an_error_in_a_block_of_a_lock_file_names_the_line_of_the_file() -> None:
    from cgmigrate.project.pins.lock_files import read_lock_file

    block = '[[package]]\nname = "megatron-core"\nversion = "0.17.0"\n\n'
    with pytest.raises(ValueError, match="line 15"):
        read_pins(read_lock_file, block * 3 + '[[package]]\nname = "megatron-core"\nversion = ]\n')


@pytest.mark.parametrize("error", [MemoryError(), RecursionError("maximum recursion depth exceeded")])
def test_a_pin_file_that_is_too_deep_is_a_note(
    project: Path, cgmigrate: Command, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    from cgmigrate.project.pins import pyproject

    def refuse(text: str) -> dict[str, Any]:
        raise error

    monkeypatch.setattr(pyproject, "load_toml", refuse)
    Path("pyproject.toml").write_text("[project]\ndependencies = ['megatron-core==0.17']\n")
    Path("a.yaml").write_text(REWRITABLE)
    result = cgmigrate("check", "a.yaml")
    assert result.exit_code == 1
    assert "pyproject.toml: cannot be parsed" in result.stderr
    assert "internal error" not in result.stderr


def test_spaces_in_an_environment_end_a_requirement() -> None:
    from cgmigrate.project.pins.requirement_files import read_conda_environment

    text = "dependencies:\n  - megatron-core=0.17  # the graphs\n  - 'megatron-core==0.16'\n  - megatron" + " " * 20_000
    assert [mention.line for mention in read_pins(read_conda_environment, text + "x\n")] == [2, 3]


@pytest.mark.parametrize("use", ["d['x'] = 1", "f(d)", "d = {}", "def g(d): pass", "Other(**d)"])
def test_a_dict_that_is_used_otherwise_has_no_callee(use: str) -> None:
    from cgmigrate.documents.python import PythonDocument

    head = "from megatron.core.transformer import TransformerConfig\nd = {'cuda_graph_scope': ['attn']}\n"
    document = PythonDocument(f"{head}TransformerConfig(**d)\n{use}\n")
    assert [site.origin.callee for site in document.sites if site.origin] == [""]


def test_blank_lines_above_an_import_that_goes_are_counted() -> None:
    from cgmigrate.documents.python.enum_imports import _behind_blanks

    text = "import a  \n" + " \n" * 3 + "import b\n" + "\n" * 5 + "x = 1\n"
    first = text.index("import b")
    # Of the five below, three go with the line: as many as are above.
    assert text[_behind_blanks(text, first, first + len("import b\n")) :] == "\n\nx = 1\n"
    assert _behind_blanks("\n\nimport b\n\n\nx", 2, 11) == 13


# --- what multiplies ----------------------------------------------------------------------------------


def test_prefixes_that_multiply_through_merges_are_one_diagnostic(project: Path, cgmigrate: Command) -> None:
    line = "m{0}: &m{0} {{<<: *m{1}, x{0}.enable_cuda_graph: true}}\n"
    links = [line.format(at, at - 1) for at in range(1, 300)]
    Path("a.yaml").write_text("m0: &m0 {x: 1}\n" + "".join(links[:60]))
    assert "CG013" not in cgmigrate("check", "a.yaml").stdout
    Path("a.yaml").write_text("m0: &m0 {x: 1}\n" + "".join(links))
    result = cgmigrate("check", "a.yaml")
    assert result.exit_code == 1
    assert "[CG013] too-deeply-nested: its mappings merge settings at more than 10,000 places" in result.stdout
    assert result.stdout.count("CG0") == 1


def test_places_that_multiply_through_aliases_are_not_rewritten(project: Path, cgmigrate: Command) -> None:
    from cgmigrate.documents.yaml import YamlDocument

    inner = ", ".join(f"k{at}: {{external_cuda_graph: true}}" for at in range(400))
    text = f"m: &m {{{inner}}}\n" + "".join(f"a{at}: *m\n" for at in range(400))
    document = YamlDocument(text)
    assert sum(len(site.alias_paths) for site in document.sites) <= 100_000
    left = [site for site in document.sites if len(site.alias_paths) < 400]
    assert {site.blocked_by for site in left} == {"aliases use the texts of this file at more than 100,000 places"}
    Path("a.yaml").write_text(text)
    cgmigrate("fix", "--unsafe-fixes", "a.yaml")
    assert Path("a.yaml").read_text().count("external_cuda_graph") >= len(left)


def test_a_fifo_as_ignore_file_keeps_nobody_waiting_in_a_checkout(project: Path, cgmigrate, monkeypatch) -> None:
    # git opens it and waits for a writer; the folder is then walked as one without git.
    (project / ".git/HEAD").unlink()
    (project / ".git").rmdir()
    subprocess.run(["git", "init", "-q"], check=True, cwd=project)
    os.mkfifo(project / ".gitignore")
    (project / "a.yaml").write_text("m:\n  external_cuda_graph: true\n")
    monkeypatch.setattr("cgmigrate.project.git.PATIENCE", 0.2)
    result = cgmigrate("check", "--format", "concise", ".")
    assert (result.exit_code, result.stdout.split()[1]) == (1, "CG102")
