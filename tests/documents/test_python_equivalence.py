"""The last check of an edited Python file, with planted differences: edits of settings are accepted, nothing else."""

from __future__ import annotations

import pytest

from cgmigrate.documents.python.document import PythonDocument
from cgmigrate.documents.python.equivalence import same_apart_from_settings
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.text.edits import apply
from tests.support.tables import from_table, table_of

TEXT = '''\
"""A recipe."""
import os
from megatron.core.transformer import TransformerConfig, cuda_graph_scope
from megatron.core.transformer.enums import CudaGraphScope

LAYERS = 2  # of the small model
options = {"num_layers": 2, "cuda_graph_scope": "full", **rest}
flags = ["--num-layers", "2", "--cuda-graph-scope", "full", "--bf16"]
config = TransformerConfig(num_layers=2, cuda_graph_scope="full", hidden_size=64)
config.first.cuda_graph_scope, size = "full", 8
size += len(config.cuda_graph_scope) + 1
named: dict[str, int] = {"cuda_graph_scope": 1, "n": 2}
message = f"{config.cuda_graph_scope} of {size:>8} layers"
pick = lambda item, *rest, key=3: (item.cuda_graph_scope, key)
every = [item.cuda_graph_scope + 4 for item in items if item.used]
table = {name: value for name, value in config.cuda_graph_scope.items() if name != 5}
assert config.cuda_graph_scope == "full", "why"
del config.cuda_graph_scope, size
raise_it(config.cuda_graph_scope if size > 6 else not size)
x = config.cuda_graph_scope[1:7]
print(config.cuda_graph_scope, sep="", end="a")


@decorated(config.cuda_graph_scope, 9)
def function(config, size: int = 10, *, scope=config.cuda_graph_scope, other=11) -> int:
    """A function."""
    global LAYERS
    try:
        config.cuda_graph_scope = "full"
        first(12)
    except (ValueError, KeyError) as error:
        config.cuda_graph_scope = "attn"
        second(13)
    else:
        config.cuda_graph_impl = "local"
        third(14)
    finally:
        config.cuda_graph_scope = "mlp"
        fourth(15)
    for item in range(16):
        config.cuda_graph_scope = "moe"
        fifth(17)
    else:
        config.cuda_graph_scope = "moe"
        sixth(18)
    while size < 19:
        config.cuda_graph_scope = "moe"
        seventh(20)
    with opened(21) as handle:
        config.cuda_graph_scope = "moe"
        eighth(22)
    match size:
        case 23 if size > 24:
            config.cuda_graph_scope = "moe"
            ninth(25)
        case Point(x=26, y=[*_, 27]):
            config.cuda_graph_scope = "moe"
    if size == 28:
        config.cuda_graph_scope = "moe"
        tenth(29)
    elif size == 30:
        config.cuda_graph_scope = "moe"
    else:
        config.cuda_graph_scope = "moe"
        eleventh(31)
    return config.cuda_graph_scope or 32


class Config(TransformerConfig, metaclass=Meta):
    layers: int = 33
    cuda_graph_scope: str = "full"

    async def method(self):
        async with opened() as self.cuda_graph_scope:
            await twelfth(34)
        yield self.cuda_graph_scope, 35
'''
CHANGES = table_of(__name__, "CHANGES")


def differs(old: str, new: str) -> bool:
    assert old in TEXT
    return not same_apart_from_settings(PythonSource(TEXT), PythonSource(TEXT.replace(old, new, 1)))


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=[f"{old.strip()} - {new.strip()}"[:60] for old, new in CHANGES])
def test_what_is_no_setting_may_not_change(old: str, new: str) -> None:
    assert differs(old, new)


@from_table
def test_settings_may_change(old: str, new: str) -> None:
    assert not differs(old, new)


SITES = """\
from megatron.core.transformer import TransformerConfig

config = TransformerConfig(num_layers=2, cuda_graph_impl="local", cuda_graph_scope=["attn"])
args.cuda_graph_impl = "local"
other.cuda_graph_scope = "full"
"""
REWRITTEN = {0: {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn"]}}
RIGHT = SITES.replace('cuda_graph_scope=["attn"]', 'cuda_graph_modules=["attn"]')


def test_the_settings_themselves_are_read_again() -> None:
    assert PythonDocument(SITES).check(RIGHT, REWRITTEN) == ""
    assert PythonDocument(SITES).check(SITES, {}) == ""


@from_table
def test_other_settings_than_those_meant_are_refused(old: str, new: str) -> None:
    assert old in RIGHT
    assert PythonDocument(SITES).check(RIGHT.replace(old, new, 1), REWRITTEN) != ""


def test_a_rewrite_that_was_not_made_is_refused() -> None:
    assert PythonDocument(SITES).check(SITES, REWRITTEN) == "a site would not have the settings that it should"
    assert PythonDocument(SITES).check(RIGHT, {}) == "a site would not have the settings that it should"


RECORD = """\
from dataclasses import dataclass


@dataclass
class Workload:
    cuda_graph_impl: str | None = None
    cuda_graph_scope: list | None = None


def workload_of(config):
    model = config.model
    return Workload(
        cuda_graph_impl=getattr(model, "cuda_graph_impl", None),
        cuda_graph_scope=getattr(model, "cuda_graph_scope", None),
    )
"""


def test_a_reader_in_the_value_of_a_site_may_be_fixed() -> None:
    document = PythonDocument(RECORD)
    (index,) = document._fixes
    fixed = apply(RECORD, document.edits({index: {}}))

    assert fixed == RECORD.replace('model, "cuda_graph_scope"', 'model, "cuda_graph_modules"')
    assert document.check(fixed, {index: {}}) == ""
    assert document.check(fixed.replace("cuda_graph_scope=", "cuda_graph_modules="), {index: {}}) != ""
    assert document.check(fixed.replace('"cuda_graph_modules", None', '"cuda_graph_modules", 1'), {index: {}}) != ""
