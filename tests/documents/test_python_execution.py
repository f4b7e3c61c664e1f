# ruff: noqa: E501 - source text on one line reads better than split
"""Judged by execution: generated code is run before, read as 0.17 reads it, and after, by the installed megatron-core."""

from __future__ import annotations

import enum
import re
import sys
import types
import warnings
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import FIELDS
from cgmigrate.megatron.types import Capture, Reader, Rejected
from tests.support.nightly import examples
from tests.support.python_tools import run
from tests.support.tables import table_of


@pytest.fixture(autouse=True, scope="module")
def judge() -> None:
    """Skip where there is no judge. The import is not at the top, since each worker collects this module, and few run it."""
    pytest.importorskip("torch", reason="the judge is the installed megatron-core, which needs torch")
    pytest.importorskip("megatron.core", reason="the judge is the installed megatron-core")


HEADER = """\
from functools import partial
from megatron.core.transformer import TransformerConfig
from megatron.core.transformer.enums import CudaGraphScope
from recipes import base, open_file

"""
LEGACY = re.compile(r"(?<!inference_)(?:enable_cuda_graph|external_cuda_graph|cuda_graph_scope)")


class OldScope(enum.Enum):
    full_iteration = 1
    attn = 2
    mlp = 3
    full_iteration_inference = 8


class Holder(types.SimpleNamespace):
    """What a recipe changes before anybody validates it."""


def _plain(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return value.name
    return [_plain(item) for item in value] if isinstance(value, list) else value


def capture_before(chosen: dict[str, Any]) -> Capture | Rejected:
    kept = {name: _plain(value) for name, value in chosen.items() if name in FIELDS}
    return capture_of(kept, Release(0, 17), Reader.CONFIG)


def capture_after(chosen: dict[str, Any]) -> Capture | Rejected | str:
    """Return what the installed release captures with the settings, from the object that it has validated."""
    from megatron.core.transformer import TransformerConfig

    kept = {name: value for name, value in chosen.items() if name in FIELDS}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            config = TransformerConfig(num_layers=2, hidden_size=8, num_attention_heads=2, **kept)
        except (AssertionError, KeyError, ValueError, TypeError) as error:
            return f"refused: {error!r}"
    validated = {
        "cuda_graph_impl": config.cuda_graph_impl,
        "cuda_graph_modules": [module.name for module in config.cuda_graph_modules],
        "inference_cuda_graph_scope": config.inference_cuda_graph_scope.name,
    }
    return capture_of(validated, Release(0, 19), Reader.CONFIG)


class _Call(Holder):
    """A configuration whose constructor only keeps its arguments; the judge validates them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)


def _execute(text: str, flags: tuple[bool, bool], start: dict[str, Any], old: bool) -> dict[str, Any]:
    """Run ``build`` of the text; old code sees 0.17's enum, new code that of the installed release."""
    from megatron.core.transformer import enums as real

    modules = {name: types.ModuleType(name) for name in ("megatron", "megatron.core", "megatron.core.transformer")}
    enums = types.ModuleType("megatron.core.transformer.enums") if old else real
    if old:
        enums.CudaGraphScope = OldScope  # type: ignore[attr-defined]
    modules["megatron.core.transformer"].TransformerConfig = _Call  # type: ignore[attr-defined]
    recipes = types.ModuleType("recipes")
    recipes.base = lambda: Holder(model=Holder(**start))  # type: ignore[attr-defined]
    import contextlib

    recipes.open_file = contextlib.nullcontext  # type: ignore[attr-defined]
    replaced = {**modules, "megatron.core.transformer.enums": enums, "recipes": recipes}
    saved = {name: sys.modules.get(name) for name in replaced}
    sys.modules.update(replaced)
    try:
        space: dict[str, Any] = {}
        exec(compile(text, "generated", "exec"), space)
        return vars(space["build"](*flags))
    finally:
        for name, module in saved.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


# --- generated code ---------------------------------------------------------------------------------

VALUES = table_of(__name__, "VALUES")
NAMES = st.sampled_from(["cuda_graph_impl", "cuda_graph_impl", "cuda_graph_scope", "cuda_graph_scope", *VALUES])


@st.composite
def values(draw: Any, name: str, depth: int = 0) -> str:
    """A plain value, or one that a condition chooses."""
    if depth > 1 or draw(st.integers(0, 3)):
        return draw(st.sampled_from(VALUES[name]))
    body, other = draw(values(name, depth + 1)), draw(values(name, depth + 1))
    test = draw(st.sampled_from(["a", "b", "not a", "a and b"]))
    return f"({body}) if {test} else {other}" if " if " in body else f"{body} if {test} else {other}"


@st.composite
def assignments(draw: Any, target: str) -> str:
    name = draw(NAMES)
    value = draw(values(name))
    if draw(st.integers(0, 5)) == 0:
        return f'setattr({target}, "{name}", {value})'
    comment = draw(st.sampled_from(["", "", "  # a comment"]))
    return f"{target}.{name} = {value}{comment}"


@st.composite
def blocks(draw: Any, depth: int = 0) -> list[str]:
    lines: list[str] = []
    for _ in range(draw(st.integers(1, 4 if depth == 0 else 2))):
        kind = draw(st.integers(0, 9 if depth < 2 else 4))
        inner = lambda: ["    " + line for line in draw(blocks(depth + 1))]  # noqa: E731
        if kind <= 4:
            lines.append(draw(assignments("cfg.model")))
        elif kind == 5:
            lines += [f"if {draw(st.sampled_from(['a', 'b']))}:", *inner()]
        elif kind == 6:
            lines += [f"if {draw(st.sampled_from(['a', 'b']))}:", *inner(), "else:", *inner()]
        elif kind == 7:
            lines += [f"if {draw(st.sampled_from(['a', 'b']))}:", *inner(), "    return cfg.model"]
        elif kind == 8:
            lines += ["with open_file():", *inner()]
        else:
            lines += [f"for _ in range({draw(st.sampled_from(['0', '1', '2', 'int(a)']))}):", *inner()]
    return lines


# What a base recipe may hold: before, and as the tool migrates it. Not the full iteration, nor a boolean: these move
# from one setting to another, so that code elsewhere that changes one of the two must be migrated together with them.
BASES: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"cuda_graph_impl": "none", "cuda_graph_scope": "full"}, {"cuda_graph_impl": "none", "cuda_graph_modules": []}),
    (
        {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn"]},
        {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]},
    ),
    ({"cuda_graph_impl": "local"}, {"cuda_graph_impl": "local"}),
]


def _judge(text: str, start: tuple[dict[str, Any], dict[str, Any]]) -> None:
    result = run(text)
    if result.after == text:
        return
    whole = not LEGACY.search(result.after)
    for flags in [(a, b) for a in (False, True) for b in (False, True)]:
        was = capture_before(_execute(text, flags, start[0], old=True))
        if isinstance(was, Rejected):
            continue
        will = capture_after(_execute(result.after, flags, start[1], old=False))
        untouched = None if whole else capture_after(_execute(text, flags, start[1], old=False))
        assert will in (was, untouched), f"{flags}\n{text}\n--- after\n{result.after}\nwas {was}\nwill {will}"


@settings(max_examples=examples(400), deadline=None)
@given(body=blocks(), start=st.sampled_from(BASES), fresh=st.booleans())
def test_mutated_objects(body: list[str], start: tuple[dict[str, Any], dict[str, Any]], fresh: bool) -> None:
    lines = ["cfg = base()", *body, "return cfg.model"]
    if fresh:
        lines = ["cfg = base()", 'cfg.model.cuda_graph_impl = "none"', *body, "return cfg.model"]
    _judge(HEADER + "def build(a, b):\n" + "".join(f"    {line}\n" for line in lines), start)


@st.composite
def calls(draw: Any) -> str:
    names = draw(st.lists(st.sampled_from(list(VALUES)), min_size=1, max_size=4, unique=True))
    pairs = [(name, draw(values(name))) for name in names]
    pairs.insert(draw(st.integers(0, len(pairs))), ("layers", "2"))
    form = draw(st.integers(0, 5))
    if form == 0:
        return f"TransformerConfig({', '.join(f'{n}={v}' for n, v in pairs)})"
    if form == 1:
        return "TransformerConfig(\n" + "".join(f"        {n}={v},  # {n[:3]}\n" for n, v in pairs) + "    )"
    if form == 2:
        return "TransformerConfig(\n        " + ",\n        ".join(f"{n}={v}" for n, v in pairs) + ")"
    if form == 3:
        return "TransformerConfig(**{" + ", ".join(f"'{n}': {v}" for n, v in pairs) + "})"
    if form == 4:
        return "TransformerConfig(**dict(" + ", ".join(f"{n}={v}" for n, v in pairs) + "))"
    return f"partial(TransformerConfig, {', '.join(f'{n}={v}' for n, v in pairs)})()"


@settings(max_examples=examples(300), deadline=None)
@given(call=calls())
def test_calls(call: str) -> None:
    _judge(HEADER + f"def build(a, b):\n    config = {call}\n    return config\n", ({}, {}))


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data())
def test_conditional_values(data: st.DataObject) -> None:
    """The pairs that are written in practice, at least one of the two with a condition."""
    impl = data.draw(st.sampled_from(["cuda_graph_impl", "enable_cuda_graph", "external_cuda_graph"]))
    pairs = [(impl, data.draw(values(impl))), ("cuda_graph_scope", data.draw(values("cuda_graph_scope")))]
    assume(any(" if " in value for _, value in pairs))
    if data.draw(st.booleans()):
        call = ", ".join(f"{name}={value}" for name, value in pairs)
        body = [f"return TransformerConfig({call})"]
    else:
        body = ["cfg = base()", *(f"cfg.model.{name} = {value}" for name, value in pairs), "return cfg.model"]
    _judge(HEADER + "def build(a, b):\n" + "".join(f"    {line}\n" for line in body), ({}, {}))
