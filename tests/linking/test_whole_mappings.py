"""Code that loads a mapping: what copies its entries sees nothing of another name, what looks at all of them does."""

from __future__ import annotations

from cgmigrate.linking.whole_mappings import whole_uses_in
from tests.support.tables import from_table

NAMES = ("enable_cuda_graph", "cuda_graph_impl")
LOADED = "import os, yaml\nmodel = yaml.safe_load(open('conf.yaml'))['model']\n"


def _uses(code: str, keys: tuple[str, ...] = ("model",)) -> list[int]:
    return [line for line, _, package in whole_uses_in(LOADED + code, keys, NAMES, "conf.yaml") if not package]


@from_table
def test_code_that_gives_entries_on(code: str) -> None:
    assert _uses(code) == []


@from_table
def test_code_that_looks_at_all(code: str) -> None:
    assert _uses(code) == [3]


def test_the_mapping_is_followed_into_functions_of_the_file() -> None:
    assert _uses("def count(settings):\n    return len(settings)\ncount(model)\n") == [4]
    assert _uses("def load(path):\n    return yaml.safe_load(open(path))\nlen(load(PATH)['model'])\n") == [5]


def test_functions_that_call_themselves_end() -> None:
    assert _uses("def walk(part):\n    return walk(part['model'])\nwalk(model)\n") == []
    assert (
        _uses("def one(part):\n    return other(part)\ndef other(part):\n    return one(part)\nlen(one(model))\n") == []
    )


def test_a_mapping_below_other_keys_is_another_one() -> None:
    assert _uses("print(len(model))", ("policy", "model")) == []
    assert _uses("print(len(model))", ("model", "transformer")) == []
