"""Functions that copy settings into a configuration that is validated when it is made."""

from __future__ import annotations

import ast

import pytest

from cgmigrate.linking.python.layers import copies_built
from cgmigrate.proof.flow.modules import Modules

PATH = "/vision.py"
TEXT = """\
from dataclasses import dataclass
from megatron.core.transformer import TransformerConfig


@dataclass
class Vision(TransformerConfig):
    patch_size: int = 14


def vision(config):
    vision = Vision(num_layers=2)
    vision.cuda_graph_impl = config.cuda_graph_impl
    vision.cuda_graph_scope = config.cuda_graph_scope
    return vision
"""
DEFERRED = "    def __post_init__(self):\n        pass\n"


def copies(text: str) -> bool:
    modules = Modules({PATH: text})
    module = modules.read(PATH)
    assert module is not None
    function = module.bindings["vision"]
    assert isinstance(function, ast.FunctionDef)
    return copies_built(function, module, modules)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, True),
        (TEXT.replace("cuda_graph_scope", "cuda_graph_modules"), True),
        (TEXT.replace("    patch_size: int = 14\n", DEFERRED), False),
        (TEXT.replace("import TransformerConfig", "import Other as TransformerConfig"), False),
        (TEXT.replace("Vision(num_layers", "config(num_layers"), False),
    ],
    ids=["validated", "new names", "deferred", "another class", "no class"],
)
def test_only_a_class_that_validates_when_it_is_made_counts(text: str, expected: bool) -> None:
    assert copies(text) is expected
