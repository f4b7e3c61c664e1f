"""Files that are no Python and may set or read the objects of code: each prevents proofs, and prose does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.lint.relations import data_writer
from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.releases import LAST_OLD
from tests.support.files import write
from tests.support.tables import table_of

KEYS = table_of(__name__, "KEYS")
PROSE = {
    "a.json": '{"question": "What does cuda_graph_scope do?"}',
    "a.txt": "The setting `cuda_graph_scope` names the modules.\n",
    "a.csv": "question,What does cuda_graph_scope do?\n",
    "a.toml": 'text = "cuda_graph_scope"\n',
}


def data_place(path: Path) -> str:
    return data_writer([str(path)], lambda _: None, load(), LAST_OLD)


@pytest.mark.parametrize("name", KEYS)
def test_a_key_of_a_data_file_counts(name: str, tmp_path: Path) -> None:
    assert data_place(write(tmp_path / name, KEYS[name]))


@pytest.mark.parametrize("name", PROSE)
def test_a_text_of_a_data_file_does_not(name: str, tmp_path: Path) -> None:
    assert not data_place(write(tmp_path / name, PROSE[name]))
