"""``fix --prove``: fixes that the project's own command proves, and wrong ones that it withholds."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path

import pytest

from cgmigrate.lint.proving import PlannedFixes
from tests.support.files import write
from tests.support.paths import FIXTURES, ROOT
from tests.support.tables import table_of

OPTIONS = ("--from", "0.17", "--to", "0.19")
TESTS = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")
DENSE = '{"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}'
MOE = '{"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn", "moe_router"]}'


@pytest.fixture
def tree(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose tests reach two of four dicts with settings, beside a release that imports in no time."""
    shutil.copytree(FIXTURES / "proving/project", project, dirs_exist_ok=True)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(FIXTURES / "proving/release"), str(project)]))
    # With the workers of the tests around it, another process would be the parent.
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Those of the environment around it take longer to import than its tests to run.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    return project


@pytest.fixture
def unittest(tree: Path) -> tuple[str, ...]:
    """A command that runs the same tests, and starts much faster than pytest does."""
    tests = "".join(f"    def test_{name}(self):\n        recipes.{name}()\n\n" for name in ("dense", "moe"))
    write(tree / "tests/test_more.py", f"import unittest\n\nimport recipes\n\n\nclass T(unittest.TestCase):\n{tests}")
    return (sys.executable, "-m", "unittest", "discover", "-s", "tests", "-p", "test_more.py")


def running(word: str) -> list[str]:
    """The command lines of processes that have a word."""
    lines = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            lines.append(one.read_text(errors="replace").replace("\0", " "))
    return [line for line in lines if word in line]


def test_without_fixes_nothing_is_run(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "model:\n  hidden_size: 8\n")
    result = cgmigrate("fix", "--prove", "--", "no-such-program")
    assert (result.exit_code, result.stderr) == (0, "Checked 1 file: nothing to do.\n")


def test_a_fix_is_safe_if_the_tests_depend_on_its_settings_and_nothing_differs(tree: Path, cgmigrate) -> None:
    result = cgmigrate("fix", *OPTIONS, "--prove", "--", *TESTS)
    text = (tree / "recipes.py").read_text()
    assert DENSE in text and MOE in text
    # No test calls these two.
    assert '{"enable_cuda_graph": True}' in text and '{"external_cuda_graph": True}' in text
    assert (
        "Proved by running: 2 fixes now safe, 0 withheld, 2 not reached or without effect (5 runs)\n" in result.stderr
    )
    assert [path.name for path in tree.iterdir() if "cgmigrate" in path.name] == []


def test_check_shows_the_same_plan_and_uses_what_was_proved_before(tree: Path, cgmigrate) -> None:
    first = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", *TESTS)
    result = cgmigrate("check", *OPTIONS, "--prove", "--output-format", "json", ".", "--", *TESTS)
    proved = [row for row in json.loads(result.stdout)["findings"] if row["fix"]["safety"] == "safe"]
    assert "(5 runs)" in first.stderr and "(0 runs)" in result.stderr
    assert {row["line"] for row in proved} == {9, 14}
    assert "proved by running: 1 configuration, 1 test" in proved[0]["notes"]


def test_without_the_option_the_command_of_the_configuration_is_not_run(tree: Path, cgmigrate) -> None:
    write(tree / "cgmigrate.toml", f'prove = "{" ".join(TESTS)}"\n')
    assert "running" not in cgmigrate("fix", "--diff", *OPTIONS, ".").stderr
    assert "2 fixes now safe" in cgmigrate("fix", "--diff", *OPTIONS, "--prove").stderr


def test_a_test_that_only_executes_a_place_proves_nothing(tree: Path, cgmigrate) -> None:
    code = "import recipes\n\n\ndef test_it():\n    recipes.build = dict\n    recipes.moe()\n"
    write(tree / "tests/test_recipes.py", code)
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", *TESTS)
    assert "0 fixes now safe, 0 withheld, 4 not reached" in result.stderr


def test_unittest_has_outcomes_of_single_tests(unittest: tuple[str, ...], cgmigrate) -> None:
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", *unittest)
    assert "2 fixes now safe, 0 withheld, 2 not reached or without effect (5 runs)\n" in result.stderr


def test_old_text_is_compared_under_its_own_release(tree: Path, cgmigrate) -> None:
    command = " ".join(TESTS)
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--source-command", command, "--", *TESTS)
    assert "with the tree as it is, under the old release\n" in result.stderr
    assert "2 fixes now safe, 0 withheld, 2 not reached or without effect (6 runs)\n" in result.stderr
    # The old release ends otherwise: no new text does the same.
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--source-command", f"{command} --no-such", "--", *TESTS)
    assert "0 fixes now safe" in result.stderr


def test_what_is_withheld_is_not_written_with_unsafe_fixes(tree: Path, cgmigrate) -> None:
    # The program reads the old name of the file only.
    flag = "'external_cuda_graph: true' in open('train.yaml').read()"
    write(tree / "show.py", f"import recipes\n\nrecipes.build(external_cuda_graph={flag})\n")
    data = write(tree / "train.yaml", "model:\n  external_cuda_graph: true\n  hidden_size: 8\n")
    words = ("--unsafe-fixes", "--prove", "train.yaml", "--", sys.executable, "show.py")
    result = cgmigrate("fix", *OPTIONS, *words)
    assert "withheld: train.yaml: TransformerConfig of recipes.py:build: captures is " in result.stderr
    assert "external_cuda_graph" in data.read_text()


WRONG = table_of(__name__, "WRONG")


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_rewrite_is_withheld_by_name(
    what: str, tree: Path, unittest: tuple[str, ...], cgmigrate, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = PlannedFixes.texts
    old, new = (text.encode() for text in WRONG[what])

    def texts(self: PlannedFixes, ids: Collection[str]) -> dict[str, bytes]:
        edited = right(self, ids)
        return {path: text.replace(old, new) if MOE.encode() in text else text for path, text in edited.items()}

    monkeypatch.setattr(PlannedFixes, "texts", texts)
    command = TESTS if what == "a module is dropped" else unittest
    result = cgmigrate("fix", *OPTIONS, "--prove", "--", *command)
    assert "withheld: recipes.py:14: " in result.stderr
    text = (tree / "recipes.py").read_text()
    assert DENSE in text and '{"external_cuda_graph": True, "cuda_graph_scope": ["attn", "moe_router"]}' in text


def test_a_flaky_test_is_named_and_not_used(tree: Path, cgmigrate, tmp_path_factory: pytest.TempPathFactory) -> None:
    # It passes every second time.
    mark = tmp_path_factory.mktemp("mark") / "mark"
    code = f"mark = pathlib.Path({str(mark)!r})\n    was = mark.exists()\n    mark.unlink() if was else mark.touch()\n"
    write(tree / "tests/test_time.py", f"import pathlib\n\n\ndef test_it():\n    {code}    assert was\n")
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", *TESTS)
    assert "not used, since it ends differently without a change: tests/test_time.py::test_it\n" in result.stderr
    assert "2 fixes now safe, 0 withheld" in result.stderr


def test_hostile_tests_do_no_harm(tree: Path, cgmigrate) -> None:
    write(
        tree / "tests/test_hostile.py",
        "import os, socket, sys, time\n\nimport pytest\n\n\n"
        "def test_writes():\n    open('recipes.py', 'a').write('damaged')\n\n\n"
        "def test_leaves_a_process():\n    if os.fork() == 0:\n        os.setsid()\n        time.sleep(300)\n\n\n"
        "def test_prints():\n    for _ in range(200):\n        os.write(1, b'x' * 1000000)\n\n\n"
        "def test_network():\n    with pytest.raises(OSError):\n"
        "        socket.create_connection(('192.0.2.1', 80), timeout=60)\n",
    )
    before = (tree / "recipes.py").read_bytes()
    # A process that is left has the command line of the tests.
    word = f"cache_dir=hostile-{os.getpid()}"
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", *TESTS, "-o", word)
    assert "2 fixes now safe" in result.stderr
    assert (tree / "recipes.py").read_bytes() == before
    assert not running(word)


def test_a_command_that_kills_its_parent_proves_nothing(tree: Path, cgmigrate) -> None:
    write(tree / "tests/test_hostile.py", "import os\n\n\ndef test_it():\n    os.kill(os.getppid(), 9)\n")
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", *TESTS)
    assert (result.exit_code, "it ended with status -9" in result.stderr) == (2, True)


def test_a_kill_leaves_the_tree_as_it_is_and_no_process(tree: Path, cgmigrate, monkeypatch, tmp_path_factory) -> None:
    temporary = tmp_path_factory.mktemp("temporary")
    monkeypatch.setenv("TMPDIR", str(temporary))
    write(tree / "show.py", f"import time\n\nopen({str(temporary / 'begun')!r}, 'w').close()\ntime.sleep(300)\n")
    before = (tree / "recipes.py").read_bytes()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ["PYTHONPATH"]])}
    words = ["cgmigrate", "fix", *OPTIONS, "--prove", "--", sys.executable, "show.py"]
    killed = subprocess.Popen([sys.executable, "-P", "-m", *words], env=environment, stderr=subprocess.DEVNULL)
    while not (temporary / "begun").exists():
        time.sleep(0.05)
    killed.kill()
    killed.wait()
    for _ in range(50):
        time.sleep(0.1 if running("show.py") else 0)
    assert not running("show.py")
    assert (tree / "recipes.py").read_bytes() == before
    # The next command removes the copies.
    monkeypatch.setattr("tempfile.tempdir", None)
    cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", "true")
    assert [one.name for one in temporary.iterdir()] == ["begun"]


def test_a_command_that_hangs_is_stopped(tree: Path, cgmigrate) -> None:
    result = cgmigrate("fix", *OPTIONS, "--prove", "--timeout", "2", "--", "sleep", "300")
    assert (result.exit_code, "the command was stopped: it did not end within 2 s" in result.stderr) == (2, True)


def test_a_command_in_which_nothing_is_observed_is_an_error(tree: Path, cgmigrate) -> None:
    result = cgmigrate("fix", *OPTIONS, "--prove", "--", "true")
    assert result.exit_code == 2 and "the observer was not loaded" in result.stderr
    assert "program: No such file or directory" in cgmigrate("fix", *OPTIONS, "--prove", "--", "program").stderr
    result = cgmigrate("fix", *OPTIONS, "--prove", "--", sys.executable, "-c", "pass")
    assert "builds no configuration of Megatron and runs no test" in result.stderr


def test_a_sitecustomize_that_the_observer_hides_is_loaded(tree: Path, cgmigrate) -> None:
    write(tree / "sitecustomize.py", "import builtins\n\nbuiltins.LOADED = True\n")
    write(tree / "show.py", "import recipes\n\nassert LOADED\nrecipes.moe()\n")
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", sys.executable, "show.py")
    assert "1 fix now safe" in result.stderr and "ends with" not in result.stderr


SCRIPTS = table_of(__name__, "SCRIPTS")


@pytest.mark.parametrize("what", SCRIPTS)
def test_a_script_is_executed_and_observed_in_the_copy(what: str, tree: Path, cgmigrate) -> None:
    write(tree / "show.py", f"import multiprocessing as mp, sys\n\nTREE = {str(tree)!r}\n{SCRIPTS[what]}")
    result = cgmigrate("fix", "--diff", *OPTIONS, "--prove", "--", sys.executable, str(tree / "show.py"))
    assert "1 fix now safe, 0 withheld, 3 not reached" in result.stderr and "ends with" not in result.stderr
    assert MOE in result.stdout and DENSE not in result.stdout


def test_options_that_do_not_go_together_are_refused(project: Path, cgmigrate) -> None:
    write(project / "a.yaml", "model:\n  external_cuda_graph: true\n")
    assert "--prove runs a command" in cgmigrate("fix", "--prove", ".").stderr
    assert cgmigrate("fix", "--prove", "-", "--stdin-filename", "a.yaml", "--", "true").exit_code == 2
    write(project.parent / "outside.yaml", "model:\n  external_cuda_graph: true\n")
    assert "outside.yaml is outside of" in cgmigrate("fix", *OPTIONS, "--prove", "../outside.yaml", "--", "true").stderr
