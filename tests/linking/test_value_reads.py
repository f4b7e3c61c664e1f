"""Code that reads a setting whose name stays and whose value a fix changes."""

from __future__ import annotations

from pathlib import Path

from cgmigrate.linking.value_reads import read_otherwise
from tests.support.bridge_recipes import FULL_ITERATION as RECIPE
from tests.support.checkouts import staged
from tests.support.tables import from_table

TRAIN = """\
from megatron.bridge.training.pretrain import pretrain
from recipe import recipe
{}
cfg = recipe()
pretrain(cfg)
"""
READ = "def setup(cfg):\n    {}\n"


@from_table
def test_code_that_goes_the_same_way(code: str) -> None:
    others = frozenset(["cuda_graph_scope"])
    assert read_otherwise(READ.format(code), "cuda_graph_impl", ("local", "full_iteration"), others) is None


@from_table
def test_code_that_goes_another_way(project: Path, cgmigrate, code: str) -> None:  # type: ignore[no-untyped-def]
    train = TRAIN.format("import nccl").replace("pretrain(", "nccl.setup(cfg)\npretrain(")
    for name, text in (("recipe.py", RECIPE), ("train.py", train), ("nccl.py", READ.format(code))):
        (project / name).write_text(text)
    staged(project)
    cgmigrate("fix", ".")
    assert (project / "recipe.py").read_text() == RECIPE
    assert "nccl.py:2 also uses" in cgmigrate("check", ".").stdout


def test_without_such_code_the_recipe_is_rewritten(project: Path, cgmigrate) -> None:  # type: ignore[no-untyped-def]
    (project / "recipe.py").write_text(RECIPE)
    (project / "train.py").write_text(TRAIN.format(""))
    staged(project)
    cgmigrate("fix", ".")
    assert 'cuda_graph_impl = "full_iteration"' in (project / "recipe.py").read_text()
