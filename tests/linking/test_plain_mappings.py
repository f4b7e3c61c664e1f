"""Texts that surely have mappings at some keys: what is said without parsing agrees with the parsed text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.linking.plain_mappings import has_plain_mappings

SURE = [
    "model:\n  name: x\n",
    "# a\nmodel: # b\n\n  # c\n  name: x\nother: 1\n",
    "model:\r\n  name: x\r\n",
    "a:\n  model:\n    name: x\nb:\n  model:\n    name: y\n",
    "other: 1\n",
    "model_name: 1\nmodel:\n  name: x\n",
]
NOT_SURE = [
    "model: null\n",
    "model:\n",
    "model: {name: x}\n",
    "model: &a\n  name: x\n",
    "model:\n  - name: x\n",
    "model:\n  x\n",
    "model:\nname: x\n",
    '"model":\n  name: x\n',
    "? model\n: name: x\n",
    "model:\n  name: x\nb:\n  model: 3\n",
    '"mod\\x65l": 3\n',
    "model: # a\u2028  5\n  name: x\n",
    "model: # a\r  5\n  name: x\n",
    "a: [model, 3]\n",
]


@pytest.mark.parametrize("text", SURE)
def test_it_is_sure_of_block_mappings(text: str) -> None:
    assert has_plain_mappings(text.encode(), ["model"])


@pytest.mark.parametrize("text", NOT_SURE)
def test_it_is_not_sure_of_anything_else(text: str) -> None:
    assert not has_plain_mappings(text.encode(), ["model"])


def test_a_key_that_may_be_quoted_is_not_sure() -> None:
    assert not has_plain_mappings(b"'it''s': 3\n", ["it's"])


def _values(nodes: list[Node], key: str) -> list[Node]:
    """Return the values of a key anywhere in a text."""
    values = []
    waiting = list(nodes)
    while waiting:
        node = waiting.pop()
        if node.kind == "map":
            values += [value for name, value in node.pairs() if name.kind == "scalar" and name.value == key]
            waiting += [value for _, value in node.pairs()]
        waiting += node.items if node.kind == "seq" else []
    return values


_PIECES = st.sampled_from(
    ["model:", "name:", " x", " 3", "\n", "\n  ", "\n    ", "\n- ", " # c", "'", '"', "{", "}", "|", " &a", " *a", "\r"]
)


@given(st.lists(_PIECES, max_size=14).map("".join))
def test_what_is_sure_is_so_in_the_parsed_text(text: str) -> None:
    if has_plain_mappings(text.encode(), ["model"]):
        document = YamlDocument(text, "a.yaml")
        assert all(value.kind == "map" for value in _values(document.roots, "model"))
