"""Fixes of two mappings that share settings: each captures what it captured, judged by PyYAML's own merging."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.lint.soundness import replaced_risk
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import FIELDS
from cgmigrate.megatron.types import Capture, Reader
from cgmigrate.text.edits import apply
from tests.support.plans import examine
from tests.support.tables import from_table

RULES, OWNERS = load(), ecosystems.load()
FIELDS_OF_OLD = ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_impl", "cuda_graph_scope")
RELEASES = [(14, 15), (14, 17), (15, 17), (14, 19), (16, 17), (16, 19), (17, 19)]


def written(settings: dict[str, object]) -> str:
    return "".join(f"    {name}: {json.dumps(value)}\n" for name, value in settings.items())


def two(parent: dict[str, object], child: dict[str, object]) -> str:
    """Two configurations, the second of which merges the first."""
    first = f"  base: &base\n    num_layers: 12\n    hidden_size: 64\n{written(parent)}"
    return f"transformer_config:\n{first}  large:\n    <<: *base\n    num_layers: 24\n{written(child)}"


def settings_of(text: str) -> list[dict[str, object]]:
    """The settings of both configurations as PyYAML merges them, less what says nothing."""
    both = yaml.safe_load(text)["transformer_config"]
    return [{name: value for name, value in both[key].items() if name in FIELDS} for key in ("base", "large")]


def fixed(text: str, source: int, target: int) -> str:
    document = YamlDocument(text)
    examined = examine(document, Context(Release(0, source), Release(0, target), RULES, OWNERS))
    return apply(text, document.edits(examined.safe)) if examined.safe else text


@pytest.mark.parametrize(("source", "target"), RELEASES)
def test_both_capture_what_they_captured(source: int, target: int) -> None:
    flags = [None, False, True]
    impls = [None, "none", "local", "transformer_engine"]
    scopes = [None, "full", "attn", "full_iteration", "attn,mlp"]
    rows = [
        {name: value for name, value in zip(FIELDS_OF_OLD, row, strict=True) if value is not None}
        for row in itertools.product(flags, flags, impls, scopes)
    ]
    changed = 0
    for parent, child in random.Random(source * 100 + target).sample(list(itertools.product(rows, rows)), 350):
        text = two(parent, child)
        after = fixed(text, source, target)
        if after == text:
            continue
        changed += 1
        for was, will in zip(settings_of(text), settings_of(after), strict=True):
            before = capture_of(was, Release(0, source), Reader.CONFIG)
            assert isinstance(before, Capture), text
            assert before == capture_of(will, Release(0, target), Reader.CONFIG), (text, after)
        assert fixed(after, source, target) == after
    assert changed > 3


LOCAL, TE = {"cuda_graph_impl": "local"}, {"cuda_graph_impl": "transformer_engine"}
ATTN, BOTH = {"cuda_graph_scope": "attn"}, {"cuda_graph_scope": ["attn", "full_iteration_inference"]}


@from_table
def test_what_each_of_two_mappings_writes(
    parent: dict[str, object], child: dict[str, object], after: list[dict[str, object]]
) -> None:
    source = 14 if "external_cuda_graph" in parent else 15 if "enable_cuda_graph" in child else 17
    result = YamlDocument(fixed(two(parent, child), source, 19))
    assert [site.own for site in result.sites] == after


@pytest.mark.parametrize(
    ("parent", "child"),
    [
        ({"enable_cuda_graph": True, "external_cuda_graph": True, **LOCAL}, TE),
        ({"enable_cuda_graph": True, "external_cuda_graph": True, **ATTN}, {"cuda_graph_impl": "none", **ATTN}),
    ],
)
def test_a_child_of_contradictory_settings_is_judged_without_them(
    parent: dict[str, object], child: dict[str, object]
) -> None:
    """It unsets both booleans, before and after: what its parent says does not prevent that they are deleted."""
    text = two(parent, {"enable_cuda_graph": False, "external_cuda_graph": False, **child})
    examined = examine(YamlDocument(text), Context(Release(0, 15), Release(0, 17), RULES, OWNERS))
    of_child = [diagnostic for diagnostic in examined.diagnostics if diagnostic.site == 1]
    assert of_child and not any(diagnostic.blocked_by for diagnostic in of_child)
    assert not examined.safe and not examined.unsafe


@from_table
def test_a_mapping_that_a_loader_may_replace_is_proved_alone(
    own: dict[str, object], after: dict[str, object], reason: str
) -> None:
    implementation = {"cuda_graph_impl": "transformer_engine"}
    case = SimpleNamespace(source=Release(0, 17), reader=Reader.CONFIG, keeps_captures=False)
    context = Context(Release(0, 17), Release(0, 19), RULES, OWNERS)
    risk = replaced_risk(case, implementation | own, implementation | after, context)
    assert (bool(risk), reason in risk) == (bool(reason), True), risk


ORDERS = ["<<: [*a, *b]", "<<: [*b, *a]", "<<: *a\n    <<: *b"]


def merging(first: dict[str, object], second: dict[str, object], order: str, own: dict[str, object]) -> str:
    """A configuration that merges two others."""
    shared = "    num_layers: 12\n    hidden_size: 64\n"
    return (
        f"transformer_config:\n  one: &a\n{shared}{written(first)}  two: &b\n{shared}{written(second)}"
        f"  both:\n    {order}\n    num_layers: 24\n{written(own)}"
    )


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("deprecated", [True, False])
def test_what_versions_of_pyyaml_merge_differently_is_reported_and_not_rewritten(order: str, deprecated: bool) -> None:
    name = "cuda_graph_scope" if deprecated else "cuda_graph_modules"
    text = merging({**LOCAL, name: ["attn"]}, {**LOCAL, name: ["mlp"]}, order, {})
    release = Release(0, 17 if deprecated else 19)
    examined = examine(YamlDocument(text), Context(release, Release(0, 19), RULES, OWNERS))
    assert not examined.safe and not examined.unsafe
    (reported,) = (one for one in examined.diagnostics if one.rule == "CG003")
    assert reported.message.startswith(f"`{name}` has different values in the mappings that `<<` merges")
    assert text.count("\n", 0, reported.span.start) == text[: text.index("<<")].count("\n")
    old = [one for one in examined.diagnostics if one.rule == "CG106"]
    assert len(old) == (2 if deprecated else 0)
    line = text[: text.index("<<")].count("\n") + 1
    assert all(f"the mapping on line {line}, which cannot be rewritten" in one.blocked_by for one in old)


@pytest.mark.parametrize("order", ORDERS)
@from_table
def test_what_all_versions_of_pyyaml_merge_alike_is_rewritten(
    order: str, first: dict[str, object], second: dict[str, object], own: dict[str, object]
) -> None:
    text = merging(first, second, order, own)
    assert "cuda_graph_scope" not in fixed(text, 17, 19)


def orders_of(text: str) -> list[str]:
    """The text as one version of PyYAML reads it, and in the other order, which is that of the other versions."""
    return [text, text.replace("[*a, *b]", "[*b, *a]")]


def test_no_fix_depends_on_the_order_of_merged_mappings() -> None:
    impls = [None, "none", "local", "transformer_engine"]
    scopes = [None, "full", "attn", "full_iteration", ["attn", "full_iteration_inference"]]
    rows = [
        {name: value for name, value in zip(FIELDS_OF_OLD, (None, None, *row), strict=True) if value is not None}
        for row in itertools.product(impls, scopes)
    ]
    changed = 0
    for first, second, own in random.Random(5).sample(list(itertools.product(rows, rows, rows)), 500):
        text = merging(first, second, "<<: [*a, *b]", own)
        after = fixed(text, 17, 19)
        changed += after != text
        for was, will in zip(orders_of(text), orders_of(after), strict=True) if after != text else ():
            for key in ("one", "two", "both"):
                old, new = (
                    {
                        name: value
                        for name, value in yaml.safe_load(one)["transformer_config"][key].items()
                        if name in FIELDS
                    }
                    for one in (was, will)
                )
                before = capture_of(old, Release(0, 17), Reader.CONFIG)
                assert isinstance(before, Capture), text
                assert before == capture_of(new, Release(0, 19), Reader.CONFIG), (text, after)
    assert changed > 20


def test_a_mapping_that_only_merges_is_reported_where_its_sources_are(
    tmp_path: Path, cgmigrate: Callable[..., Any]
) -> None:
    """A fix that would write to it has no setting of it to point at: this ended with a traceback."""
    text = (
        "first: {megatron_cfg: &first {cuda_graph_impl: none, enable_cuda_graph: FALSE, cuda_graph_modules: mlp}}\n"
        "second: {megatron_cfg: &second {external_cuda_graph: ~, cuda_graph_impl: none, cuda_graph_scope: [attn]}}\n"
        "child: {megatron_cfg: {<<: [*first, *second], other: 2}}\n"
    )
    (tmp_path / "model.yaml").write_text(text)

    result = cgmigrate("check", str(tmp_path))

    assert result.exit_code == 1, result.output
    assert "internal error" not in result.output
    assert "the mapping only merges others" in result.output
