"""Configuration files: which one applies to a file, its keys, and the errors for a wrong one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cgmigrate.project.cascade import Configurations
from cgmigrate.project.configuration_file import KEYS
from tests.support.files import write
from tests.support.paths import ROOT
from tests.support.reports import places_in
from tests.support.tables import from_table

LEGACY = "model:\n  enable_cuda_graph: true\n  num_attention_heads: 8\n"
SCOPE = "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
DOCS = ROOT / "docs/configuration.md"


def reported(result) -> list[tuple[str, str]]:
    """(path, rule) of every diagnostic printed."""
    located = (place.split(": ") for place in places_in(result.stdout))
    return [(at.partition(":")[0], codes.partition(",")[0]) for at, codes in located]


# --- which file ---------------------------------------------------------------------------------------


def test_either_file_is_read_and_the_own_one_takes_precedence(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    write(project / "pyproject.toml", '[tool.cgmigrate]\nignore = ["CG101"]\n')
    assert reported(cgmigrate("check", ".")) == []
    write(project / "cgmigrate.toml", "")
    assert reported(cgmigrate("check", ".")) == [("a.yaml", "CG101")]


def test_the_nearest_file_decides_alone(project: Path, cgmigrate) -> None:
    for folder in ("", "team/", "team/deep/"):
        write(project / f"{folder}a.yaml", LEGACY)
    write(project / "pyproject.toml", '[tool.cgmigrate]\nignore = ["CG1"]\n')
    write(project / "team/cgmigrate.toml", 'from = "0.17"\n')
    result = cgmigrate("check", ".")
    assert reported(result) == [("team/a.yaml", "CG101"), ("team/deep/a.yaml", "CG101")]


def test_a_pyproject_without_the_table_is_passed_over(project: Path, cgmigrate) -> None:
    write(project / "cgmigrate.toml", 'ignore = ["CG1"]\n')
    write(project / "sub/pyproject.toml", '[project]\nname = "x"\ndependencies = ["cgmigrate"]\n')
    write(project / "sub/a.yaml", LEGACY)
    assert cgmigrate("check", ".").exit_code == 0


def test_the_search_ends_at_the_top_of_a_checkout(project: Path, cgmigrate) -> None:
    write(project / "cgmigrate.toml", 'ignore = ["CG1"]\n')
    write(project / "other/.git/HEAD", "ref: refs/heads/main\n")
    write(project / "other/a.yaml", LEGACY)
    assert reported(cgmigrate("check", "other/a.yaml")) == [("other/a.yaml", "CG101")]


def test_config_holds_for_all_and_isolated_for_none(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY)
    write(project / "sub/a.yaml", LEGACY)
    write(project / "sub/cgmigrate.toml", 'ignore = ["CG1"]\n')
    write(project / "ci/strict.toml", 'extend-exclude = ["/a.yaml"]\n')
    assert reported(cgmigrate("check", ".")) == [("a.yaml", "CG101")]
    # Its patterns are seen from the working directory.
    assert reported(cgmigrate("check", "--config", "ci/strict.toml", ".")) == [("sub/a.yaml", "CG101")]
    assert len(reported(cgmigrate("check", "--isolated", "."))) == 2
    assert cgmigrate("check", "--isolated", "--config", "ci/strict.toml", ".").exit_code == 2
    missing = cgmigrate("check", "--config", "nowhere.toml", ".")
    assert (missing.exit_code, "nowhere.toml: the configuration cannot be read" in missing.stderr) == (2, True)


# --- what keys do -------------------------------------------------------------------------------------


def test_releases_and_the_command_line_before_them(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", SCOPE)
    write(project / "cgmigrate.toml", 'from = "0.16"\nto = "core_v0.19.0"\n')
    assert "megatron-core 0.16 captures" in cgmigrate("check", ".").stdout
    assert "(safe: " in cgmigrate("check", "--from", "0.17", ".").stdout
    clash = cgmigrate("check", "--to", "0.15", ".")
    assert (clash.exit_code, "from 0.16 is newer than to 0.15" in clash.stderr) == (2, True)


def test_select_on_the_command_line_starts_afresh_and_ignore_takes_away(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", LEGACY + "  external_cuda_graph: false\n")
    write(project / "cgmigrate.toml", 'select = ["cg1"]\nignore = ["CG101"]\n')
    assert {rule for _, rule in reported(cgmigrate("check", "."))} == {"CG102"}
    assert {rule for _, rule in reported(cgmigrate("check", "--select", "CG101", "."))} == {"CG101"}
    assert reported(cgmigrate("check", "--ignore", "CG102", ".")) == []


def test_per_file_ignores(project: Path, cgmigrate) -> None:
    for name in ("a.yaml", "old/a.yaml", "old/new/a.yaml", "b.yaml"):
        write(project / name, LEGACY)
    write(project / "cgmigrate.toml", '[per-file-ignores]\n"old/" = ["CG101"]\n"b.*" = ["CG1"]\n')
    assert reported(cgmigrate("check", ".")) == [("a.yaml", "CG101")]
    assert reported(cgmigrate("check", "old/new/a.yaml")) == []
    write(project / "cgmigrate.toml", '[per-file-ignores]\n"!old/" = ["CG101"]\n')
    assert [path for path, _ in reported(cgmigrate("check", "."))] == ["old/a.yaml", "old/new/a.yaml"]


def test_what_is_ignored_is_not_fixed(project: Path, cgmigrate) -> None:
    path = write(project / "a.yaml", LEGACY)
    write(project / "cgmigrate.toml", '[per-file-ignores]\n"a.yaml" = ["CG101"]\n')
    assert (cgmigrate("fix", ".").exit_code, path.read_text()) == (0, LEGACY)


def test_excludes_hold_for_named_paths_and_exclude_is_replaced_by_the_command_line(project: Path, cgmigrate) -> None:
    for name in ("a.yaml", "old/a.yaml", "vendor/a.yaml"):
        write(project / name, LEGACY)
    write(project / "cgmigrate.toml", 'exclude = ["old/"]\nextend-exclude = ["vendor"]\n')
    everything = ("a.yaml", "old/a.yaml", "vendor/a.yaml")
    assert [path for path, _ in reported(cgmigrate("check", *everything))] == ["a.yaml"]
    # pre-commit names files, and a person a folder.
    assert [path for path, _ in reported(cgmigrate("check", "old", "vendor"))] == ["old/a.yaml", "vendor/a.yaml"]
    assert [path for path, _ in reported(cgmigrate("check", "--exclude", "a.yaml", "."))] == []
    assert [path for path, _ in reported(cgmigrate("check", "--exclude", "b.yaml", "."))] == [
        "a.yaml",
        "old/a.yaml",
    ]


@pytest.mark.parametrize("checkout", [True, False], ids=["git", "walk"])
def test_an_excluded_folder_is_not_entered_even_with_a_configuration_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cgmigrate, checkout: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if checkout:
        subprocess.run(["git", "init", "-q", "."], check=True)
    write(tmp_path / "vendor/a.yaml", LEGACY)
    write(tmp_path / "vendor/cgmigrate.toml", "")
    write(tmp_path / "cgmigrate.toml", 'extend-exclude = ["vendor/"]\n')
    assert cgmigrate("check", "--show-files", ".", "vendor/a.yaml").stdout == ""
    # In it, its own configuration is the one.
    monkeypatch.chdir(tmp_path / "vendor")
    assert cgmigrate("check", "--show-files", ".").stdout == "a.yaml\n"


def test_rules_of_ones_own_are_found_from_the_file(project: Path, cgmigrate, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project / "conf/a.yaml", LEGACY)
    write(
        project / "conf/rules/TEAM001-no-graphs.yaml",
        "id: TEAM001\nname: no-graphs\nsummary: we train without graphs\nfields: [enable_cuda_graph]\n"
        "when: {enable_cuda_graph: true}\nexplanation: Our cluster has too little memory for graphs, so leave them.\n"
        "sources: [a decision]\n",
    )
    write(project / "conf/cgmigrate.toml", 'extend-rules = ["rules"]\nselect = ["TEAM"]\n')
    assert reported(cgmigrate("check", ".")) == [("conf/a.yaml", "TEAM001")]
    assert reported(cgmigrate("check", "--select", "TEAM", "conf")) == [("conf/a.yaml", "TEAM001")]
    assert reported(cgmigrate("check", "--select", "TEAM001", "conf/a.yaml")) == [("conf/a.yaml", "TEAM001")]
    assert cgmigrate("check", "--select", "TEAM002", "conf").exit_code == 2
    monkeypatch.chdir(project / "conf")
    assert cgmigrate("explain", "TEAM001").stdout.startswith("TEAM001 no-graphs")
    assert "TEAM001  no-graphs" in cgmigrate("rules").stdout


@pytest.mark.parametrize(
    "words", [[], ["--isolated", "--rules", "conf/rules"], ["--isolated", "--rules", "./conf/rules/"]]
)
def test_rules_of_ones_own_are_not_rewritten(project: Path, cgmigrate, words: list[str]) -> None:
    write(project / "conf/a.yaml", LEGACY)
    rule = (
        "id: TEAM001\nname: no-graphs\nsummary: we train without graphs\nfields: [enable_cuda_graph]\n"
        "when:\n  enable_cuda_graph: true\nmessage: no graphs here\nfix:\n  set: {cuda_graph_scope: [attn]}\n"
        "explanation: Our cluster has too little memory for graphs, so leave them.\nsources: [a decision]\n"
    )
    path = write(project / "conf/rules/TEAM001-no-graphs.yaml", rule)
    write(project / "conf/rules/tool.py", "")
    write(project / "conf/cgmigrate.toml", 'extend-rules = ["rules"]\n')
    assert cgmigrate("check", *words, "--show-files", ".", path).stdout == "conf/a.yaml\nconf/rules/tool.py\n"
    assert cgmigrate("fix", *words, ".", path).exit_code == 0
    assert (path.read_text(), "enable" in (project / "conf/a.yaml").read_text()) == (rule, False)


def test_an_ecosystem_can_be_said(project: Path, cgmigrate) -> None:
    unclear = "runtime:\n  enable_cuda_graph: true\n"
    for name in ("ours/a.yaml", "theirs/a.yaml", "nobody/a.yaml"):
        write(project / name, unclear)
    write(project / "cgmigrate.toml", '[ecosystems]\n"ours/" = "megatron-core"\n"theirs/" = "other-systems"\n')
    result = cgmigrate("fix", ".")
    assert reported(result) == [("nobody/a.yaml", "CG006")]
    assert (project / "ours/a.yaml").read_text() == "runtime:\n  cuda_graph_impl: local\n"
    assert (project / "theirs/a.yaml").read_text() == unclear


# --- errors name the place and the remedy --------------------------------------------------------------


@from_table
def test_a_mistake_is_an_error_with_place_and_remedy(project: Path, cgmigrate, text: str, message: str) -> None:
    write(project / "a.yaml", "clean: true\n")
    write(project / "cgmigrate.toml", text)
    result = cgmigrate("check", ".")
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_a_mistake_in_a_folder_below_is_an_error_too(project: Path, cgmigrate) -> None:
    write(project / "sub/a.yaml", LEGACY)
    write(project / "sub/pyproject.toml", "[tool.cgmigrate]\nselects = []\n")
    result = cgmigrate("check", ".")
    assert (result.exit_code, "sub/pyproject.toml:2: `selects`: unknown key" in result.stderr) == (2, True)


@pytest.mark.parametrize("words", [["--from", "0.17"], []])
def test_nothing_is_written_where_one_of_several_configurations_cannot_be_used(
    project: Path, cgmigrate, words: list[str]
) -> None:
    path = write(project / "a.yaml", LEGACY)
    write(project / "sub/b.yaml", LEGACY)
    write(project / "sub/rules/X.yaml", "id: X\n")
    write(project / "sub/cgmigrate.toml", 'to = "0.15"\n' if words else 'extend-rules = ["rules"]\n')
    assert (cgmigrate("fix", *words, ".").exit_code, path.read_text()) == (2, LEGACY)


# --- showing ------------------------------------------------------------------------------------------


def test_what_is_shown_as_settings_is_a_configuration_that_says_the_same(project: Path, cgmigrate) -> None:
    write(project / "rules/.keep", "")
    text = (
        'from = "0.16"\nselect = ["CG1", "CG3"]\nignore = ["CG301"]\nexclude = ["a b/"]\nextend-rules = ["rules"]\n'
        'output-format = "github"\nbaseline = "known.json"\n'
        '[per-file-ignores]\n"x/*" = ["CG1"]\n[ecosystems]\n"y/" = "nemo"\n'
    )
    path = write(project / "cgmigrate.toml", text)
    shown = cgmigrate("check", "--show-settings", ".").stdout
    before = Configurations().for_run()
    path.write_text(shown)
    assert Configurations().for_run() == before
    assert 'to = "0.18"' in cgmigrate("check", "--show-settings", "--to", "0.18", ".").stdout
    assert cgmigrate("check", "--show-settings", "nowhere").exit_code == 2


def test_verbose_names_the_origin_of_the_releases(project: Path, cgmigrate) -> None:
    write(project / "sub/a.yaml", LEGACY)
    write(project / "sub/cgmigrate.toml", 'from = "0.16"\nto = "0.18"\n')
    stderr = cgmigrate("check", "-v", ".").stderr
    assert "Releases: from 0.16 (sub/cgmigrate.toml) to 0.18 (sub/cgmigrate.toml)\n" in stderr
    stderr = cgmigrate("check", "-v", "--to", "0.19", ".").stderr
    assert "Releases: from 0.16 (sub/cgmigrate.toml) to 0.19 (--to)\n" in stderr
    stderr = cgmigrate("check", "-v", "--from", "0.17", ".").stderr
    assert "Releases: from 0.17 (--from) to 0.18 (sub/cgmigrate.toml)\n" in stderr


def test_show_files_lists_what_would_be_looked_at(project: Path, cgmigrate) -> None:
    for name in ("b.yaml", "a/c.py", "old/x.yaml", "notes.txt"):
        write(project / name, "")
    write(project / "cgmigrate.toml", 'extend-exclude = ["old/"]\n')
    result = cgmigrate("check", "--show-files", ".")
    assert (result.exit_code, result.stdout) == (0, "a/c.py\nb.yaml\n")
    assert cgmigrate("check", "--show-files", "nowhere").exit_code == 2


def test_toml_is_parsed_only_where_there_is_a_configuration(project: Path) -> None:
    write(project / "a.yaml", "x: 1\n")
    write(project / "pyproject.toml", '[project]\nname = "x"\n')
    code = (
        "import sys\nfrom cgmigrate.cli.commands import main\n"
        "try: main(['check', '.'])\nexcept SystemExit: pass\n"
        "late = {'tomllib', 'cgmigrate.project.patterns', 'yaml', 'difflib', 'cgmigrate.lint.rules'}\n"
        "late |= {'cgmigrate.project.configuration_file'}\n"
        "print(sorted(late & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=project, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the reference ------------------------------------------------------------------------------------


def test_the_reference_names_every_key_and_its_example_is_valid(project: Path, cgmigrate) -> None:
    text = DOCS.read_text(encoding="utf-8")
    described = re.findall(r"^### `([a-z-]+)`$", text, re.MULTILINE)
    assert described == list(KEYS)
    (project / "team-rules").mkdir()
    write(project / "cgmigrate-baseline.json", '{"version": 2, "diagnostics": {}}\n')
    for block in re.findall(r"^```toml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        name = "pyproject.toml" if "[tool.cgmigrate" in block else "cgmigrate.toml"
        path = write(project / name, block)
        write(project / "a.yaml", "x: 1\n")
        result = cgmigrate("check", "a.yaml")
        assert result.exit_code == 0, result.stderr
        path.unlink()
