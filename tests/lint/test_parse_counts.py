"""A file is parsed at most twice, before and after its edits, and planned once, whatever the options."""

from __future__ import annotations

import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import cgmigrate.lint.planning
from cgmigrate.cli.commands import main
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.yaml import YamlDocument
from tests.support.files import write

YAML = "model:\n  num_layers: 2\n  cuda_graph_impl: local\n  cuda_graph_scope: attn\n"
PYTHON = """\
from megatron.core.transformer import TransformerConfig

config = TransformerConfig(num_layers=2, cuda_graph_impl="local", cuda_graph_scope="full_iteration")
"""
READER = 'def graphs(config):\n    return config["cuda_graph_scope"]\n'
SUPPRESSED = YAML + "eval:\n  num_layers: 2\n  enable_cuda_graph: true  # cgmigrate: ignore[CG101] kept\n"


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """The number of parses by syntax, and of plans."""
    seen: Counter[str] = Counter()

    def counted(owner: object, name: str, key: str) -> None:
        original = getattr(owner, name)

        def call(*args: object, **kwargs: object) -> object:
            seen[key] += 1
            return original(*args, **kwargs)

        monkeypatch.setattr(owner, name, call)

    counted(YamlDocument, "__init__", "yaml")
    counted(PythonDocument, "__init__", "python")
    counted(cgmigrate.lint.planning, "make_plan", "plans")
    return seen


COMMANDS = [
    ("fix",),
    ("fix", "--unsafe-fixes"),
    ("fix", "--diff"),
    ("check",),
    ("check", "--output-format", "json"),
    ("check", "--output-format", "sarif"),
    ("check", "--output-format", "concise"),
]


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(
    ("name", "text", "syntax"),
    [("a.yaml", YAML, "yaml"), ("a.yaml", SUPPRESSED, "yaml"), ("a.py", PYTHON, "python")],
)
def test_a_file_is_parsed_twice_and_planned_once(
    project: Path, cgmigrate, counts: Counter[str], words: tuple[str, ...], name: str, text: str, syntax: str
) -> None:
    write(project / name, text)
    cgmigrate(*words, name)
    assert counts == {syntax: 2, "plans": 1}


@pytest.mark.parametrize("words", COMMANDS)
def test_readers_of_keys_do_not_make_a_second_plan(
    project: Path, cgmigrate, counts: Counter[str], words: tuple[str, ...]
) -> None:
    write(project / "a.yaml", YAML)
    write(project / "reader.py", READER)
    result = cgmigrate(*words, ".")
    assert counts["yaml"] == 2 and counts["python"] <= 2 and counts["plans"] == 2, result.output


def test_a_file_without_a_fix_is_parsed_once(project: Path, cgmigrate, counts: Counter[str]) -> None:
    write(project / "a.yaml", "model:\n  num_layers: 2\n  cuda_graph_impl: local\n")
    cgmigrate("check", "a.yaml")
    assert counts == {"yaml": 1, "plans": 1}


@pytest.mark.parametrize(
    ("text", "child", "parses"),
    [
        # Nothing in the file is rewritten.
        ("model:\n  num_layers: 2\n  cuda_graph_impl: local\n", "model:\n  cuda_graph_impl: none\n", 1),
        # The file that is merged over it has no setting.
        (YAML, "lr: 1\n", 2),
    ],
)
def test_what_is_merged_over_a_file_is_not_parsed_where_it_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cgmigrate, counts: Counter[str], text: str, child: str, parses: int
) -> None:
    monkeypatch.chdir(tmp_path)
    write("a.yaml", text)
    write("child.yaml", "defaults: a.yaml\n" + child)
    subprocess.run("git init -q . && git add .", shell=True, check=True)
    cgmigrate("check", "a.yaml")
    assert counts == {"yaml": parses, "plans": 1}


@pytest.mark.parametrize("words", COMMANDS)
def test_merged_files_are_parsed_twice_and_have_one_plan(
    project: Path, cgmigrate, counts: Counter[str], words: tuple[str, ...]
) -> None:
    write(project / "base.yaml", YAML)
    write(project / "between.yaml", "defaults: base.yaml\nlr: 1\n")
    write(project / "child.yaml", "defaults: between.yaml\nmodel:\n  cuda_graph_scope: mlp\n")
    result = cgmigrate(*words, ".")
    # The file between them does not have these mappings, which its text shows.
    assert counts == {"yaml": 4, "plans": 1}, result.output


def test_a_chosen_part_is_parsed_again(project: Path, counts: Counter[str]) -> None:
    write(project / "a.yaml", "a:\n  external_cuda_graph: true\nb:\n  external_cuda_graph: true\n")
    CliRunner().invoke(main, ["fix", "--interactive", "a.yaml"], input="y\nn\n")
    assert counts == {"yaml": 3, "plans": 1}
