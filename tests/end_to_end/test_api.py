"""The Python API: it says and writes what the command line does."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from click.testing import CliRunner, Result

import cgmigrate as api
from cgmigrate.cli.commands import main
from tests.support.paths import ROOT
from tests.support.tables import from_table

CONFIGS = sorted((ROOT / "examples/configs").glob("*/*.yaml"))
YAML = "model:\n  hidden_size: 8\n  external_cuda_graph: true  # on\n  cuda_graph_scope: attn\n"
ONE_SIDED = "model:\n  cuda_graph_scope: full_iteration\n"


NAMES = (
    *("path", "line", "column", "end_line", "end_column", "rule", "name", "severity", "message"),
    *("because", "blocked_by", "help", "fingerprint"),
)


def of_api(one: api.Diagnostic) -> dict[str, object]:
    """A diagnostic of the API, as far as the report in JSON has it."""
    return {name: getattr(one, name) for name in NAMES} | {"fix": (one.fix, one.applicability)}


def of_json(one: Mapping[str, Any]) -> dict[str, object]:
    fix = one["fix"] or {"description": "", "safety": ""}
    return {name: one[name] for name in NAMES} | {"fix": (fix["description"], fix["safety"])}


def fixed(text: str, name: str, *options: str) -> str:
    words = ["fix", "--fix-only", "--stdin-filename", name, *options, "-"]
    result = CliRunner().invoke(main, words, input=text.encode())
    assert result.exit_code == 0, result.stderr
    return result.stdout_bytes.decode()


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_text_is_checked_and_migrated_as_by_the_commands(path: Path, project: Path) -> None:
    (project / "requirements.txt").write_text((path.parents[1] / "requirements.txt").read_text())
    text = path.read_text()
    words = ["check", "--output-format", "json", "--stdin-filename", path.name, "-"]
    reported = json.loads(CliRunner().invoke(main, words, input=text).stdout)["findings"]
    shown = api.check_text(text, path.name)
    assert [of_api(one) for one in shown] == [of_json(one) for one in reported]
    result = api.migrate_text(text, path.name)
    assert result.text == fixed(text, path.name)
    assert {*result.fixed, *result.diagnostics} == set(shown)
    assert api.migrate_text(result.text, path.name).text == result.text


def test_paths_are_checked_as_by_the_command(cgmigrate: Callable[..., Result], project: Path) -> None:
    shutil.copytree(ROOT / "examples/configs", "configs")
    report = api.check_paths(["configs"])
    shown = json.loads(cgmigrate("check", "--output-format", "json", "configs").stdout)
    assert [of_api(one) for one in report.diagnostics] == [of_json(one) for one in shown["findings"]]
    assert report.files == shown["summary"]["files"] and not report.clean


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
@pytest.mark.parametrize("unsafe", [False, True], ids=["safe", "unsafe"])
def test_a_file_is_checked_and_migrated_as_by_the_commands(
    path: Path, unsafe: bool, project: Path, cgmigrate: Callable[..., Result]
) -> None:
    shutil.copytree(ROOT / "examples/configs", "configs")
    copy = project / path.relative_to(ROOT / "examples")
    report = api.check_paths([copy])
    shown = json.loads(cgmigrate("check", "--output-format", "json", str(copy)).stdout)
    assert [of_api(one) for one in report.diagnostics] == [of_json(one) for one in shown["findings"]]
    assert all(one["fix"] is None or len(one["fix"]["files"]) == 1 for one in shown["findings"])
    result = api.migrate_text(copy.read_text(), copy, api.Options(unsafe_fixes=unsafe))
    cgmigrate("fix", *(["--unsafe-fixes"] if unsafe else []), str(copy))
    assert result.text == copy.read_text()


@from_table
@pytest.mark.usefixtures("project")
def test_a_migrated_text(text: str, name: str, after: str) -> None:
    result = api.migrate_text(text, name)
    expected = after.replace("cuda_graph_scope", "cuda_graph_modules")
    assert result.text == (expected.replace("\n", "\r\n") if "\r" in text else expected)
    assert not result.diagnostics


@pytest.mark.usefixtures("project")
def test_options_are_those_of_the_command() -> None:
    (one,) = api.check_text(ONE_SIDED, "a.yaml")
    assert one.applicability == "unsafe"
    assert api.migrate_text(ONE_SIDED, "a.yaml").text == ONE_SIDED
    unsafe = api.Options(unsafe_fixes=True)
    assert api.migrate_text(ONE_SIDED, "a.yaml", unsafe).text == fixed(ONE_SIDED, "a.yaml", "--unsafe-fixes")
    assert api.check_text(YAML, "a.yaml", api.Options(ignore=("cg1",))) == ()
    assert [one.rule for one in api.check_text(YAML, "a.yaml", api.Options(select=("CG106",)))] == ["CG106"]
    old = api.Options(source="0.16", target="0.17")
    assert "cuda_graph_modules" not in api.migrate_text(YAML, "a.yaml", old).text


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (api.Options(source="soon"), "soon"),
        (api.Options(source=""), "not a megatron-core release"),
        (api.Options(source="0.19", target="0.17"), "^source 0.19 is newer than target 0.17$"),
        (api.Options(select=("CG9",)), "no rule's code begins with CG9"),
        (api.Options(select=[""]), "each item of select has to be a text that is not empty"),
        (api.Options(rules=("nowhere",)), "nowhere"),
        (api.Options(exclude=["a\0b"]), "without null characters"),
    ],
)
@pytest.mark.usefixtures("project")
def test_options_that_cannot_be_used(options: api.Options, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        api.check_text(YAML, "a.yaml", options)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"target": "0.19"}, r"options has to be cgmigrate.Options\(...\), not dict"),
        (api.Options(target=0.19), 'target has to be a release as text, such as "0.17", not 0.19'),  # type: ignore[arg-type]
        (api.Options(source=True), "source has to be a release as text"),  # type: ignore[arg-type]
        (api.Options(select="CG1"), r"select has to be a list, not one item of it: write \['CG1'\]"),
        (api.Options(select=[1]), "expected str, bytes or os.PathLike object, not int"),  # type: ignore[list-item]
        (api.Options(rules=Path("rules")), "rules has to be a list, not one item of it"),  # type: ignore[arg-type]
    ],
)
@pytest.mark.usefixtures("project")
def test_options_of_a_wrong_type(options: api.Options, reason: str) -> None:
    for use in (lambda: api.check_text(YAML, "a.yaml", options), lambda: api.check_paths(["."], options)):
        with pytest.raises(TypeError, match=reason):
            use()


@pytest.mark.parametrize(
    ("text", "name", "error", "reason"),
    [
        ("a: 1", None, TypeError, "expected str, bytes or os.PathLike object, not NoneType"),
        ("a: 1", "", ValueError, "^filename has to be a text that is not empty"),
    ],
)
def test_texts_and_names_that_cannot_be_used(text: Any, name: Any, error: type[Exception], reason: str) -> None:
    for function in (api.check_text, api.migrate_text):
        with pytest.raises(error, match=reason):
            function(text, name)


def test_paths_may_be_those_of_pathlib(project: Path) -> None:
    (project / "conf").mkdir()
    path = Path("conf/a.yaml")
    path.write_text(YAML)
    assert api.check_text(YAML, path) == api.check_text(YAML, str(path)) != ()
    assert api.migrate_text(YAML, path) == api.migrate_text(YAML, str(path))
    assert api.check_paths(Path("conf").glob("*")) == api.check_paths(["conf/a.yaml"])
    (project / "rules").mkdir()
    options = api.Options(select=["CG106"], ignore=["CG2"], exclude=["conf"], rules=[project / "rules"])
    assert api.check_paths([project], options).diagnostics == ()
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object, not NoneType"):
        api.check_paths([None])  # type: ignore[list-item]


@pytest.mark.usefixtures("project")
def test_what_cannot_be_read_is_not_clean(project: Path) -> None:
    with pytest.raises(ValueError, match="not a kind of file"):
        api.check_text(YAML, "a.log")
    (one,) = api.check_text("enable_cuda_graph: \udc80\n", "a.yaml")
    assert one.rule == "CG007"
    report = api.check_paths(["missing.yaml"])
    assert not report.clean and report.unread == (api.Unread("missing.yaml", "no such file or directory"),)
    with pytest.raises(TypeError, match="has to be a list"):
        api.check_paths(str(project))


@pytest.mark.parametrize(
    ("rule", "name", "data"),
    [
        ("CG001", "a.yaml", b"a: [1\nenable_cuda_graph: true\n"),
        ("CG002", "a.yaml", b"{% if x %}\nenable_cuda_graph: true\n{% endif %}\n"),
        ("CG007", "a.yaml", b"enable_cuda_graph: true  # \xff\n"),
        ("CG008", "a.yaml", b"enable_cuda_graph: true\n" + b"#" * 4 * 1024 * 1024),
        ("CG009", "a.py", b"cuda_graph_scope = (\n"),
        ("CG013", "a.py", b"cuda_graph_scope = " + b"-" * 100_000 + b"1\n"),
    ],
)
def test_a_file_whose_content_cannot_be_read_is_unread(rule: str, name: str, data: bytes, project: Path) -> None:
    (project / name).write_bytes(data)
    (project / "b.yaml").write_text("cuda_graph_impl: local\n")
    report = api.check_paths(["."])
    (one,) = report.diagnostics
    assert (one.rule, report.unread) == (rule, (api.Unread(name, one.message),))
    hidden = api.check_paths(["."], api.Options(ignore=[rule]))
    assert hidden.diagnostics == () and hidden.unread == report.unread and not hidden.clean


def test_a_page_that_cannot_be_read_is_unread_without_a_diagnostic(project: Path) -> None:
    (project / "a.md").write_bytes(b"`enable_cuda_graph` \xff\n")
    report = api.check_paths(["."])
    assert report.diagnostics == () and [one.path for one in report.unread] == ["a.md"] and not report.clean


def test_a_file_that_was_read_is_not_unread(project: Path) -> None:
    (project / "a.yaml").write_text(YAML)
    report = api.check_paths(["."])
    assert report.diagnostics and report.unread == ()
    assert api.check_paths(["."], api.Options(ignore=["CG1"])).clean


def test_a_fix_in_several_files_is_not_applied_to_one_text(project: Path) -> None:
    (project / "base.yaml").write_text("model:\n  hidden_size: 8\n  cuda_graph_impl: local\n  cuda_graph_scope: full\n")
    child = "defaults: base.yaml\nmodel:\n  cuda_graph_scope: [attn]\n"
    (project / "child.yaml").write_text(child)
    assert api.migrate_text(child, "child.yaml").text == child


def test_captures_are_those_of_the_model() -> None:
    settings: api.Settings = {"cuda_graph_impl": "none", "cuda_graph_scope": "full_iteration"}
    before = api.capture_of(settings, api.parse_release("0.17"), api.Reader.CONFIG)
    after = api.capture_of(settings, api.parse_release("0.18"), api.Reader.CONFIG)
    assert isinstance(before, api.Capture) and str(before) == "no graphs in training, no graphs in inference"
    assert isinstance(after, api.Capture) and str(after).startswith("full iteration in training")


def test_a_capture_of_a_release_as_text_and_a_reader_by_its_name() -> None:
    settings: api.Settings = {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}
    expected = api.capture_of(settings, api.parse_release("0.18"), api.Reader.NEMO_RL)
    assert isinstance(expected, api.Capture) and expected.training == api.Layers(
        api.Backend.TRANSFORMER_ENGINE, frozenset({"attn"})
    )
    for reader in ("NEMO_RL", "nemo-rl"):
        assert api.capture_of(settings, "0.18.2", reader) == expected
    assert isinstance(api.capture_of(settings, "0.17", "config"), api.Rejected)


@pytest.mark.parametrize(
    ("settings", "release", "reader", "error", "reason"),
    [
        ({}, 0.19, "config", TypeError, 'release has to be a release as text, such as "0.17", not 0.19'),
        ({}, "0.99", "config", ValueError, "0.99 is not known yet"),
        ({}, "0.19", "nemo", ValueError, "reader 'nemo' is none of CONFIG, COMMAND_LINE, BRIDGE, NEMO_RL"),
        ({}, "0.19", None, ValueError, "reader None is none of CONFIG"),
        ({"scope": 2}, "0.19", "config", ValueError, "'scope' in settings is no setting of the capture model"),
        ({"cuda_graph_imp": "local"}, "0.19", "config", ValueError, "did you mean 'cuda_graph_impl'?"),
        (
            {"hidden_size": 8},
            "0.19",
            "config",
            ValueError,
            "'hidden_size' in settings is no setting of the capture model; it has",
        ),
    ],
)
def test_captures_that_cannot_be_worked_out(
    settings: Any, release: Any, reader: Any, error: type[Exception], reason: str
) -> None:
    with pytest.raises(error, match=re.escape(reason)):
        api.capture_of(settings, release, reader)


def test_a_release_is_a_text() -> None:
    with pytest.raises(TypeError, match="text has to be a release as text"):
        api.parse_release(0.17)  # type: ignore[arg-type]


def test_the_package_imports_the_api_only_when_it_is_used() -> None:
    code = (
        "import cgmigrate, sys; assert 'cgmigrate.api' not in sys.modules; cgmigrate.check_text; print(dir(cgmigrate))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "__version__" in shown
    for name in api.__all__:
        assert getattr(api, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        api.nothing  # noqa: B018


def test_the_types_of_options_allow_lists_and_paths() -> None:
    hints = get_type_hints(api.Options)
    assert hints["select"] == hints["ignore"] == hints["exclude"] == Sequence[str]
    assert hints["rules"] == Sequence[str | os.PathLike[str]]


def test_the_example_of_the_page_runs_and_prints_what_it_says(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for folder in ("conf", "scripts"):
        (project / folder).mkdir()
    (project / "conf/train.yaml").write_text(YAML)
    names: dict[str, Any] = {}
    exec(code, names)
    *diagnostics, captured = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in diagnostics] == ["CG102", "CG106"]
    assert code.rstrip().endswith(f"# {captured}")
    assert not names["report"].clean and not names["result"].diagnostics


def test_the_page_describes_every_name_of_the_api() -> None:
    page = (ROOT / "docs/api.md").read_text(encoding="utf-8")
    for name in api.__all__:
        assert re.search(rf"^### `{name}`$|`{name}[`(]", page, re.MULTILINE), name
    for field in (*fields(api.Options), *fields(api.Diagnostic), *fields(api.Rejected)):
        assert f"| `{field.name}` |" in page
    assert all(f"`{word}`" in page for word in ("error", "warning", "note"))
