"""The Python API: it says and writes what the command line does."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import cgmigrate as api
from cgmigrate.cli.commands import main
from tests.support.paths import ROOT

CONFIGS = sorted((ROOT / "examples/configs").glob("*/*.yaml"))
YAML = "model:\n  hidden_size: 8\n  external_cuda_graph: true  # on\n  cuda_graph_scope: attn\n"
PYTHON = "from megatron.core.transformer import TransformerConfig\n\nc = TransformerConfig(enable_cuda_graph=True)\n"
ONE_SIDED = "model:\n  cuda_graph_scope: full_iteration\n"


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
    names = ("path", "line", "column", "end_line", "end_column", "rule", "name", "severity", "message", "fingerprint")
    assert [{name: getattr(one, name) for name in names} for one in shown] == [
        {name: one[name] for name in names} for one in reported
    ]
    result = api.migrate_text(text, path.name)
    assert result.text == fixed(text, path.name)
    assert {*result.fixed, *result.diagnostics} == set(shown)
    assert api.migrate_text(result.text, path.name).text == result.text


def test_paths_are_checked_as_by_the_command(cgmigrate: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT / "examples")
    report = api.check_paths(["configs"])
    shown = json.loads(cgmigrate("check", "--output-format", "json", "configs").stdout)
    assert [(one.path, one.line, one.rule, one.fingerprint) for one in report.diagnostics] == [
        (one["path"], one["line"], one["rule"], one["fingerprint"]) for one in shown["findings"]
    ]
    assert report.files == shown["summary"]["files"] and not report.clean


@pytest.mark.parametrize(
    ("text", "name", "after"),
    [
        ("a: 1\n", "a.yaml", "a: 1\n"),
        (YAML, "a.yaml", YAML.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine")),
        (PYTHON, "a.py", PYTHON.replace("enable_cuda_graph=True", 'cuda_graph_impl="local"')),
        (PYTHON.replace("\n", "\r\n"), "a.py", PYTHON.replace("enable_cuda_graph=True", 'cuda_graph_impl="local"')),
    ],
)
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
        (api.Options(source="0.19", target="0.17"), "newer than"),
        (api.Options(select=("CG9",)), "no rule's code begins with CG9"),
        (api.Options(rules=("nowhere",)), "nowhere"),
    ],
)
@pytest.mark.usefixtures("project")
def test_options_that_cannot_be_used(options: api.Options, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        api.check_text(YAML, "a.yaml", options)


@pytest.mark.usefixtures("project")
def test_what_cannot_be_read_is_not_clean(project: Path) -> None:
    with pytest.raises(ValueError, match="not a kind of file"):
        api.check_text(YAML, "a.unknown")
    (one,) = api.check_text("enable_cuda_graph: \udc80\n", "a.yaml")
    assert one.rule == "CG007"
    report = api.check_paths(["missing.yaml"])
    assert not report.clean and report.unread == (api.Unread("missing.yaml", "no such file or directory"),)
    with pytest.raises(TypeError, match="list of paths"):
        api.check_paths(str(project))


def test_a_fix_in_several_files_is_not_applied_to_one_text(project: Path) -> None:
    (project / "base.yaml").write_text("model:\n  hidden_size: 8\n  cuda_graph_impl: local\n  cuda_graph_scope: full\n")
    child = "defaults: base.yaml\nmodel:\n  cuda_graph_scope: [attn]\n"
    (project / "child.yaml").write_text(child)
    assert api.migrate_text(child, "child.yaml").text == child


def test_captures_are_those_of_the_model() -> None:
    settings: api.Settings = {"cuda_graph_impl": "none", "cuda_graph_scope": "full_iteration"}
    before = api.capture_of(settings, api.parse_release("0.17"), api.Reader.CONFIG)
    after = api.capture_of(settings, api.parse_release("0.18"), api.Reader.CONFIG)
    assert isinstance(before, api.Capture) and str(before) == "nothing in training, nothing in inference"
    assert isinstance(after, api.Capture) and str(after).startswith("the whole iteration in training")


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
