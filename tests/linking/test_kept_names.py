"""A setting whose name stays gets another value: what sets the former one elsewhere may override the new one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.bridge_recipes import FULL_ITERATION as RECIPE
from tests.support.checkouts import staged
from tests.support.tables import from_table

TRAIN = """\
import csv, json, os, yaml
from megatron.bridge.training.pretrain import pretrain
from recipe import recipe

cfg = recipe()
for key, value in {}.items():
    setattr(cfg.model, {}, value)
pretrain(cfg)
"""
OVERLAYS = {
    "YAML": (TRAIN.format("yaml.safe_load(open('over.yaml'))", "key"), "over.yaml", "cuda_graph_impl: local\n"),
    "JSON": (TRAIN.format("json.load(open(path))", "key"), "over.json", '{"cuda_graph_impl": "none"}\n'),
    "CSV": (TRAIN.format("next(csv.DictReader(open(path)))", "key"), "gpus.csv", "gpu,cuda_graph_impl\nh100,none\n"),
    "environment": (TRAIN.format("os.environ", "key[7:].lower()"), "ci.sh", "export MODEL__CUDA_GRAPH_IMPL=local\n"),
}
MODEL = "model:\n  num_layers: 2\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n"
MERGE = "import yaml\n\ndoc = yaml.safe_load(open('conf.yaml'))\nConfig(**{**doc['model'], **doc['draft']})\n"
ARGS = "MODEL_ARGS:\n  --num-layers: 2\n  --external-cuda-graph: true\n"
LAUNCH = """\
import subprocess, yaml
from debug import MORE

words = []
for flag, value in yaml.safe_load(open('conf.yaml'))['MODEL_ARGS'].items():
    words += [flag] if value is True else [flag, *str(value).split()]
subprocess.run(['python', 'pretrain_gpt.py', *words, *MORE], check=True)
"""
Project = dict[str, str]


def _is_fixed(project: Path, cgmigrate: Callable[..., Any], texts: Project) -> bool:
    """Return whether `fix` changes the first of some files."""
    (project / "README.md").write_text("Trains with Megatron.\n")
    for name, text in texts.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    staged(project)
    cgmigrate("fix", ".")
    name, text = next(iter(texts.items()))
    return (project / name).read_text() != text


@pytest.mark.parametrize(
    "other", ["num_layers: 4\n", "# cuda_graph_impl: local\n", "help:\n  cuda_graph_impl: which one\n"]
)
def test_data_without_the_setting(project: Path, cgmigrate: Callable[..., Any], other: str) -> None:
    train, name, _ = OVERLAYS["YAML"]
    assert _is_fixed(project, cgmigrate, {"recipe.py": RECIPE, "train.py": train, name: other})


@pytest.mark.parametrize(("train", "name", "text"), OVERLAYS.values(), ids=OVERLAYS)
def test_data_that_code_sets_on_an_object(
    project: Path, cgmigrate: Callable[..., Any], train: str, name: str, text: str
) -> None:
    assert not _is_fixed(project, cgmigrate, {"recipe.py": RECIPE, "train.py": train, name: text})


@from_table
def test_another_mapping_with_the_former_value(
    project: Path, cgmigrate: Callable[..., Any], draft: str, expected: bool
) -> None:
    assert _is_fixed(project, cgmigrate, {"conf.yaml": MODEL + draft, "main.py": MERGE}) is expected


@pytest.mark.parametrize(
    ("more", "expected"), [("['--seed', '1']", True), ("['--seed', '1', '--cuda-graph-impl', 'none']", False)]
)
def test_words_that_join_a_mapping_of_flags(
    project: Path, cgmigrate: Callable[..., Any], more: str, expected: bool
) -> None:
    texts = {"conf.yaml": ARGS, "launch.py": LAUNCH, "debug.py": f"MORE = {more}\n"}
    assert _is_fixed(project, cgmigrate, texts) is expected
