"""Code that loads a mapping: what copies its entries sees nothing of another name, what looks at all of them does."""

from __future__ import annotations

from cgmigrate.linking.whole_mappings import ChangedMapping, whole_uses_in
from tests.support.tables import from_table

NAMES = frozenset(("enable_cuda_graph", "cuda_graph_impl"))
TYPES = (frozenset(("bool",)), frozenset(("str",)))
LOADED = "import os, yaml\nmodel = yaml.safe_load(open('conf.yaml'))['model']\n"


def _uses(code: str, keys: tuple[str, ...] = ("model",), others: dict[str, str] | None = None) -> list[str]:
    """Return the files that use a mapping as a whole, of which ``own.py`` loads it."""
    mapping = ChangedMapping("conf.yaml", keys, NAMES, TYPES)
    every = whole_uses_in({"own.py": LOADED + code}, mapping, lambda words: others or {})
    return [path for path, _, _, package in every if not package]


@from_table
def test_code_that_gives_entries_on(code: str) -> None:
    assert _uses(code) == []


@from_table
def test_code_that_looks_at_all(code: str) -> None:
    assert set(_uses(code)) == {"own.py"}


@from_table
def test_another_file_that_gets_a_part(code: str, other: str, looks: bool) -> None:
    assert ("other.py" in _uses(code, others={"other.py": other})) is looks


def test_a_mapping_below_other_keys_is_another_one() -> None:
    assert _uses("print(len(model))", ("policy", "model")) == []
    assert _uses("print(len(model))", ("model", "transformer")) == []
