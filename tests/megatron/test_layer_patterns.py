"""List expressions are evaluated as Megatron-LM's own parser evaluates them, and nothing else is."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.megatron.layer_patterns import has_layer, layer_pattern
from tests.support.paths import FETCHED

READ = ("_eval_pattern", "moe_freq_type")
NUMBERS = st.integers(0, 4).map(str)
LISTS = st.lists(NUMBERS, max_size=3).map(lambda items: f"[{','.join(items)}]")
PATTERNS = st.recursive(
    LISTS,
    lambda inner: st.one_of(
        inner.map("({})".format),
        st.tuples(inner, inner).map("+".join),
        st.tuples(inner, NUMBERS).map(lambda parts: f"({parts[0]})*{parts[1]}"),
        st.tuples(NUMBERS, inner).map(lambda parts: f"{parts[0]}*({parts[1]})"),
    ),
    max_leaves=6,
)
CHARACTERS = st.text("0123[](),+* a-", max_size=12)


def sources() -> list[Path]:
    """The files of all releases on this machine that have Megatron-LM's parser."""
    fetched = sorted(FETCHED.glob("megatron-core-*/megatron/training/arguments.py"))
    spec = find_spec("megatron.training") if find_spec("megatron") else None
    return [*fetched, Path(str(spec.origin)).with_name("arguments.py")] if spec else fetched


def parser(path: Path) -> Callable[[str], Any]:
    """Megatron-LM's own function, without the packages that its file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in READ]
    space: dict[str, Any] = {"re": re}
    exec(compile(tree, str(path), "exec"), space)
    function: Callable[[str], Any] = space["moe_freq_type"]
    return function


PARSERS = [parser(path) for path in sources()]
needs_parser = pytest.mark.skipif(not PARSERS, reason="no release of megatron-core is here")


def said_by(read: Callable[[str], Any], text: str) -> Any:
    """The value that a parser reads from a text, ``None`` where it refuses it or makes what is no pattern."""
    try:
        value = read(text)
    except (ValueError, SyntaxError, TypeError, IndexError, MemoryError, OverflowError):
        return None
    return value if isinstance(value, (int, list)) else None


@needs_parser
@given(PATTERNS)
def test_a_list_expression_is_the_value_that_megatron_reads(text: str) -> None:
    for read in PARSERS:
        assert layer_pattern(text) == said_by(read, text)


@needs_parser
@given(CHARACTERS)
def test_a_text_that_is_evaluated_is_the_value_that_megatron_reads(text: str) -> None:
    value = layer_pattern(text)
    for read in PARSERS:
        assert value is None or value == said_by(read, text), text


@needs_parser
@pytest.mark.parametrize("text", ["1", "2", " 3", "([1]*4)", "[0]*1+[1]*26", "([0]*3+[1]*9)*2", "2*[0,1]", "[]"])
def test_the_usual_forms_are_evaluated(text: str) -> None:
    value = layer_pattern(text)
    assert value is not None
    assert all(said_by(read, text) == value for read in PARSERS)


@needs_parser
@pytest.mark.parametrize("text", ["[1, 0]", "[x]", "[1]-[0]", "", "x", "[1", "[1]*[1]", "1.5"])
def test_what_megatron_refuses_is_not_evaluated(text: str) -> None:
    assert layer_pattern(text) is None
    assert all(said_by(read, text) is None for read in PARSERS)


@pytest.mark.parametrize(
    "text",
    ["[1]*9**9**9", "[1]*99999999", "[[1]*9,2][0]", "[1](2)", "__import__('os')[0]", "[" * 500, "[1]+" * 400 + "[1]"],
)
def test_nothing_else_is_evaluated_and_no_list_is_long(text: str) -> None:
    assert layer_pattern(text) is None


@pytest.mark.parametrize(
    ("pattern", "dense", "experts"),
    [(1, False, True), (2, True, True), ([1, 1], False, True), ([0, 1], True, True), ([0], True, False)],
)
def test_layers_of_a_pattern(pattern: object, dense: bool, experts: bool) -> None:
    assert (has_layer(pattern, 0), has_layer(pattern, 1)) == (dense, experts)
