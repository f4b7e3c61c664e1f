"""Keys of the files that a file builds on show whose settings its mappings have."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.capture_judges import fix
from tests.support.files import write

BASE = "model_config:\n  num_layers: 2\n  num_attention_heads: 4\n"
OWN = "model_config:\n  enable_cuda_graph: true\n"


@pytest.mark.parametrize(
    "named",
    ["extends: base.yaml\n", "base_config:\n- base\n", "_base_: ./base.yaml\n", "defaults: base.yaml\n"],
)
def test_a_mapping_of_the_base_shows_the_owner(project: Path, named: str) -> None:
    write(project / "base.yaml", BASE)
    path = write(project / "own.yaml", named + OWN)
    assert fix(project).written == {"own.yaml"}
    assert path.read_text() == named + "model_config:\n  cuda_graph_impl: local\n"
    assert not fix(project).written


def test_a_base_of_the_base_shows_it(project: Path) -> None:
    write(project / "base.yaml", BASE)
    write(project / "between.yaml", "extends: base.yaml\nlr: 1\n")
    write(project / "own.yaml", "extends: between.yaml\n" + OWN)
    assert fix(project).written == {"own.yaml"}


@pytest.mark.parametrize(
    "base",
    [
        "other:\n  num_layers: 2\n  num_attention_heads: 4\n",
        "model_config:\n  max_out_tokens: 100\n  replace_with_kernel_inject: true\n",
        "model_config: 3\n",
        "- model_config\n",
        "model_config:\n  lr: 1\n",
        "",
    ],
)
def test_another_mapping_shows_nothing(project: Path, base: str) -> None:
    write(project / "base.yaml", base)
    write(project / "own.yaml", "extends: base.yaml\n" + OWN)
    done = fix(project)
    assert not done.written


def test_a_mapping_that_is_replaced_shows_nothing(project: Path) -> None:
    write(project / "base.yaml", BASE)
    replacing = "model_config:\n  _override_: true\n  enable_cuda_graph: true\n"
    write(project / "own.yaml", "defaults: base.yaml\n" + replacing)
    assert not fix(project).written


def test_a_base_that_is_missing_shows_nothing(project: Path) -> None:
    write(project / "own.yaml", "extends: base.yaml\n" + OWN)
    assert not fix(project).written
