"""Options that users of ruff try first: more and fewer rules, more and fewer fixes, the plan as data."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from cgmigrate.cli.progress import ProgressLine
from cgmigrate.report.style import for_terminal
from tests.support.files import write
from tests.support.tables import from_table

Run = Callable[..., Result]
OLD = "policy:\n  megatron_cfg:\n    enabled: true\n    external_cuda_graph: true\n    cuda_graph_scope: [attn]\n"
NEW = OLD.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine").replace("_scope", "_modules")
TRAP = "policy:\n  megatron_cfg:\n    enabled: true\n    cuda_graph_impl: none\n    cuda_graph_scope: full_iteration\n"


def codes(result: Result) -> list[str]:
    return sorted(row["rule"] for row in json.loads(result.stdout)["findings"])


@pytest.fixture
def tree(project: Path) -> Path:
    write("a.yaml", OLD)
    write("trap/b.yaml", TRAP)
    return project


@from_table
def test_rules_are_selected(tree: Path, cgmigrate: Run, words: tuple[str, ...], expected: list[str]) -> None:
    assert codes(cgmigrate("check", *words, "--output-format", "json", ".")) == expected


def test_a_folder_that_is_named_has_its_ignores(tree: Path, cgmigrate: Run) -> None:
    write("cgmigrate.toml", '[per-file-ignores]\n"trap/" = ["CG3"]\n')
    assert codes(cgmigrate("check", "--output-format", "json", "trap")) == []


@pytest.mark.parametrize(
    ("words", "fixed"),
    [
        (("--fixable", "CG1"), {"a.yaml"}),
        (("--unfixable", "CG1"), {"trap/b.yaml"}),
        (("--fixable", "CG102"), set()),
        (("--fixable", "CG", "--unfixable", "CG301"), {"a.yaml"}),
    ],
)
def test_fixes_are_applied_for_some_rules_and_a_set_is_whole(
    tree: Path, cgmigrate: Run, words: tuple[str, ...], fixed: set[str]
) -> None:
    result = cgmigrate("fix", *words, ".")
    after = {"a.yaml": Path("a.yaml").read_text() != OLD, "trap/b.yaml": Path("trap/b.yaml").read_text() != TRAP}
    assert {name for name, changed in after.items() if changed} == fixed
    # What is not fixed is reported.
    assert result.exit_code == 1 and "whose fixes are turned off" in result.stdout


@pytest.mark.parametrize("option", ["--fixable", "--unfixable", "--extend-select"])
def test_a_code_that_no_rule_has_is_refused(tree: Path, cgmigrate: Run, option: str) -> None:
    assert "no rule's code begins with CX1" in cgmigrate("check", option, "cx1", ".").stderr
    assert "PATTERN:CODE" in cgmigrate("check", "--per-file-ignores", "trap/", ".").stderr


def test_the_configuration_has_them_too(tree: Path, cgmigrate: Run) -> None:
    write("cgmigrate.toml", 'select = ["CG3"]\nextend-select = ["CG1"]\nunfixable = ["CG301"]\n')
    cgmigrate("fix", ".")
    assert (Path("a.yaml").read_text(), Path("trap/b.yaml").read_text()) == (NEW, TRAP)


def test_check_fix_is_fix(tree: Path, cgmigrate: Run) -> None:
    result = cgmigrate("check", "--fix", ".")
    assert result.exit_code == 0 and Path("a.yaml").read_text() == NEW
    assert "--fix takes no options of gates" in cgmigrate("check", "--fix", "--write-baseline", ".").stderr


def test_a_diff_as_json_is_the_plan_with_its_sets(tree: Path, cgmigrate: Run) -> None:
    result = cgmigrate("fix", "--diff", "--output-format", "json", ".")
    plan = json.loads(result.stdout)["fixes"]
    assert [(one["safety"], [*one["files"]]) for one in plan] == [("safe", ["a.yaml"]), ("safe", ["trap/b.yaml"])]
    assert [edit["text"] for edit in plan[1]["files"]["trap/b.yaml"]] == [""]
    assert Path("a.yaml").read_text() == OLD and result.exit_code == 1
    # A format in the configuration does not replace the patch.
    write("cgmigrate.toml", 'output-format = "json"\n')
    assert cgmigrate("fix", "--diff", ".").stdout.startswith("--- a/a.yaml")


def test_a_baseline_has_a_name_of_its_own(tree: Path, cgmigrate: Run) -> None:
    assert "Wrote cgmigrate-baseline.json: 3 diagnostics" in cgmigrate("check", "--write-baseline", ".").stderr
    result = cgmigrate("check", ".")
    assert (result.exit_code, "3 known diagnostics of cgmigrate-baseline.json" in result.stderr) == (0, True)
    assert cgmigrate("check", "--strict", ".").exit_code == cgmigrate("check", "--isolated", ".").exit_code == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_gets_its_completion(cgmigrate: Run, shell: str) -> None:
    assert f"_CGMIGRATE_COMPLETE={shell}_complete" in cgmigrate("completion", shell).stdout


@from_table
def test_a_suggestion_is_like_what_was_typed(cgmigrate: Run, name: str, hint: str) -> None:
    assert f"no rule or setting {name}{hint}" in cgmigrate("explain", name).stderr


def test_on_a_terminal_lines_end_between_words() -> None:
    long = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
    text = f"CG1 name\n\n{long}\nsecond line\n\nBefore:\n    {long}\n  key: {long}\n"
    assert for_terminal(text, 60).split("\n") == [
        "\x1b[1mCG1 name\x1b[0m",
        "",
        "one two three four five six seven eight nine ten eleven",
        "twelve thirteen fourteen second line",
        "",
        "\x1b[1mBefore:\x1b[0m",
        f"    {long}",
        "  key: one two three four five six seven eight nine ten",
        "    eleven twelve thirteen fourteen",
        "",
    ]


def test_in_a_log_progress_is_a_line_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cgmigrate.cli.progress._SECONDS", 0.01)
    log = io.StringIO()
    with ProgressLine(log, is_quiet=False) as progress:
        progress.show(1, 4)
        while "1 of 4 files with settings checked\n" not in log.getvalue():
            time.sleep(0.01)
    with ProgressLine(quiet := io.StringIO(), is_quiet=True):
        time.sleep(0.05)
    assert quiet.getvalue() == ""
