"""capture.py against what megatron-core really did: the executed tables and the installed release."""

from __future__ import annotations

import collections
import gzip
import itertools
import json
import shlex

import pytest

from cgmigrate.megatron.capture import capture_of, resolved_configuration
from cgmigrate.megatron.releases import KNOWN, NEWEST, SPLIT_IN, UPSTREAM, Release
from cgmigrate.megatron.settings import FLAGS, Undecided
from cgmigrate.megatron.types import (
    Backend,
    Blocks,
    Capture,
    Iteration,
    Layers,
    Reader,
    Rejected,
    ResolvedConfiguration,
    describe_both,
)
from tests.support.combinations import CONTEXT, cross_product
from tests.support.paths import TRUTH

needs_truth = pytest.mark.skipif(not TRUTH.exists(), reason="the executed tables are not beside the checkout")
RELEASES = ("0.14.0", "0.15.3", "0.16.1", "0.17.1", "0.19.2")


def rows(kind: str, version: str) -> list[dict]:
    with gzip.open(TRUTH / f"{kind}-{version}.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def release_of(version: str) -> Release:
    return Release(*map(int, version.split(".")[:2]))


def decided_elsewhere(row: dict) -> bool:
    return "err" in row and any(words in row["err"][1] for words in CONTEXT)


@needs_truth
@pytest.mark.parametrize("version", RELEASES)
def test_config_agrees_with_every_executed_row(version: str, capsys) -> None:
    release, counts = release_of(version), collections.Counter()
    for row in rows("config", version):
        kind = row.get("ctx", "main").split(":")[0]
        # An enum instance or a tuple cannot be written in a file; re-validation is not a reading of one.
        if "skipped" in row or kind in ("enum", "replace", "post_init", "deepcopy"):
            counts["other inputs (enum instances, re-validation)"] += 1
            continue
        if decided_elsewhere(row):
            counts["decided by other settings"] += 1
            continue
        if not row["ok"] and "('attn',)" in row["err"][1]:
            counts["other inputs (enum instances, re-validation)"] += 1
            continue
        got = resolved_configuration(row["in"], release, Reader.CONFIG)
        assert isinstance(got, ResolvedConfiguration) == row["ok"], (row, got)
        if isinstance(got, Rejected):
            kind_of_error, _, _ = got.reason.partition(":")
            assert kind_of_error == row["err"][0], (row, got)
            assert same_message(got.reason, row["err"][1]), (row, got)
        else:
            assert effective_as_table(got, release) == row["out"], (row, got)
        counts["agree"] += 1
    with capsys.disabled():
        print(f"\nconfig {version}: {dict(counts)}")
    assert counts["agree"] > 200


def same_message(ours: str, theirs: str) -> bool:
    """The reader's own reason, compared on its first words (values are quoted in several ways)."""
    return ours.partition(": ")[2][:40].replace('"', "'") == theirs[:40].replace('"', "'")


def effective_as_table(got: ResolvedConfiguration, release: Release) -> dict:
    if release < Release(0, 15):
        return {"scope": got.scope, "en": got.enable, "ext": got.external}
    if release < Release(0, 16):
        return {"impl": got.impl, "scope": got.scope, "en": got.enable, "ext": got.external}
    if release < SPLIT_IN:
        return {"impl": got.impl, "scope": list(got.modules), "en": got.enable, "ext": got.external}
    return {
        "impl": got.impl,
        "scope": None,
        "modules": list(got.modules),
        "inf": got.inference,
        "en": got.enable,
        "ext": got.external,
    }


def settings_of(argv: str) -> dict[str, object]:
    """The settings of a command line: words after a flag up to the next one."""
    settings: dict[str, object] = {}
    words: list[str] = []
    by_flag = {flag: name for name, flag in FLAGS.items()}
    for word in shlex.split(argv):
        if word.startswith("--"):
            words = []
            if word in by_flag:
                settings[by_flag[word]] = words
        else:
            words.append(word)
    for name in ("enable_cuda_graph", "external_cuda_graph"):
        if name in settings:
            settings[name] = True
    for name in ("cuda_graph_impl", "inference_cuda_graph_scope"):
        if name in settings:
            (settings[name],) = settings[name]
    return settings


@needs_truth
@pytest.mark.parametrize("version", RELEASES)
def test_command_line_agrees_with_every_executed_row(version: str, capsys) -> None:
    release, counts = release_of(version), collections.Counter()
    for row in rows("cli", version):
        if decided_elsewhere(row):
            counts["decided by other settings"] += 1
            continue
        settings = settings_of(row["argv"])
        got = resolved_configuration(settings, release, Reader.COMMAND_LINE)
        assert isinstance(got, ResolvedConfiguration) == (row["stage"] == "ok"), (row, got)
        if isinstance(got, ResolvedConfiguration):
            table = effective_as_table(got, release)
            # validate_args deletes or keeps the booleans; the config made from it never has them set.
            for name in ("en", "ext"):
                table[name] = False if release >= Release(0, 15) else table[name]
            config = {key: row["cfg"][key] for key in table}
            assert table == config, (row, got)
        counts["agree"] += 1
    with capsys.disabled():
        print(f"\ncommand line {version}: {dict(counts)}")
    assert counts["agree"] > 50


@needs_truth
@pytest.mark.parametrize("version", ("0.15.3", "0.16.1", "0.17.1", "0.19.2"))
def test_capture_agrees_with_the_layers_that_were_graphed(version: str) -> None:
    for row in rows("runtime", version):
        got = capture_of(row["in"], release_of(version), Reader.CONFIG)
        if "err" in row:
            assert isinstance(got, Rejected), (row, got)
            continue
        assert isinstance(got, Capture), (row, got)
        assert isinstance(got.training, Iteration) == row["train_full_iter_wrapper"], row
        assert isinstance(got.inference, Blocks) == row["block"]["inf"], row
        local = got.training
        if isinstance(local, Iteration):
            local = local.nested
        if isinstance(local, Layers) and local.backend is Backend.TRANSFORMER_ENGINE:
            assert row["te_list"]
            local = None
        dense, mamba = graphed(local, "attn", "mlp"), graphed(local, "mamba")
        assert (row["layer"]["train"], row["mamba"]["train"]) == (dense, mamba), (row, got)
        layers = got.inference if isinstance(got.inference, Layers) else None
        assert row["layer"]["inf"] == graphed(layers, "attn", "mlp"), (row, got)
        if not isinstance(got.inference, Blocks):  # 0.15 graphs mamba layers inside a graphed block, too
            assert row["mamba"]["inf"] == graphed(layers, "mamba"), (row, got)


def graphed(layers: Layers | None, *modules: str) -> bool:
    return layers is not None and (not layers.modules or bool(layers.modules & set(modules)))


def test_agrees_with_the_installed_megatron_core() -> None:
    config = pytest.importorskip("megatron.core.transformer.transformer_config", reason="no megatron-core")
    release = Release(*map(int, pytest.importorskip("megatron.core").__version__.split(".")[:2]))
    assert release in KNOWN and release >= SPLIT_IN
    base = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4}
    checked = 0
    for settings in cross_product():
        got = resolved_configuration(settings, release, Reader.CONFIG)
        try:
            real = config.TransformerConfig(**base, **settings)
        except (AssertionError, KeyError, ValueError) as error:
            if any(words in str(error) for words in CONTEXT):
                continue
            assert isinstance(got, Rejected), (settings, got, error)
            assert got.reason.startswith(type(error).__name__), (settings, got, error)
        else:
            assert isinstance(got, ResolvedConfiguration), (settings, got)
            assert got.impl == real.cuda_graph_impl
            assert list(got.modules) == [module.name for module in real.cuda_graph_modules]
            assert got.inference == real.inference_cuda_graph_scope.name
        checked += 1
    assert checked > 10_000


def test_an_undecided_value_is_never_guessed() -> None:
    settings = {"enable_cuda_graph": Undecided("${oc.env:G}", "taken from the environment")}
    with pytest.raises(ValueError, match="taken from the environment"):
        capture_of(settings, Release(0, 17), Reader.CONFIG)


def test_captures_have_descriptions() -> None:
    def said(settings: dict[str, object], release: str = "0.17") -> str:
        return str(capture_of(settings, release_of(release), Reader.CONFIG))

    assert said({}) == "no graphs in training, no graphs in inference"
    assert said({"enable_cuda_graph": True}) == ("whole layers (local) in training, whole layers (local) in inference")
    assert said({"external_cuda_graph": True, "cuda_graph_scope": ["mlp", "attn"]}) == (
        "attn, mlp per layer (TE) in training, no graphs in inference"
    )
    assert said({"cuda_graph_impl": "local", "cuda_graph_scope": ["attn", "full_iteration"]}, "0.16") == (
        "full iteration (with whole layers (local) nested in it) in training, the block in inference"
    )


def test_messages_name_the_program_that_reads() -> None:
    names = ("TransformerConfig", "Megatron-LM's command line", "Megatron-Bridge", "NeMo-RL")
    assert names == (Reader.CONFIG.value, Reader.COMMAND_LINE.value, Reader.BRIDGE.value, Reader.NEMO_RL.value)


def test_the_main_branch_reads_like_the_newest_release() -> None:
    """Executed upstream: for every combination 0.20.0 of August 2026 gives what 0.19.2 gives."""
    values: dict[str, list[object]] = {
        "enable_cuda_graph": [True],
        "external_cuda_graph": [True],
        "cuda_graph_impl": ["none", "local", "transformer_engine", "full_iteration"],
        "cuda_graph_scope": ["full", [], ["attn"], "full_iteration", ["full_iteration_inference"]],
        "cuda_graph_modules": [["moe_router"], ["nonsense"]],
        "inference_cuda_graph_scope": ["none", "block"],
    }
    names = list(values)
    for choice in itertools.product(*([None, *values[name]] for name in names)):
        written = {name: value for name, value in zip(names, choice, strict=True) if value is not None}
        for reader in Reader:
            assert capture_of(written, UPSTREAM, reader) == capture_of(written, NEWEST, reader), written


def test_modules_of_local_are_named_only_where_captures_are_compared_by_them() -> None:
    """A GPT layer is captured as a whole under `local`, whatever its modules (executed, 0.17.1 and 0.19.2)."""
    captures = [
        capture_of({"cuda_graph_impl": "local", "cuda_graph_modules": modules}, Release(0, 19), Reader.CONFIG)
        for modules in (["moe_router"], ["attn"], [])
    ]
    router, attn, whole = (capture for capture in captures if isinstance(capture, Capture))
    assert str(router) == str(attn) == "whole layers (local) in training, no graphs in inference"
    assert describe_both(router, attn) == (
        "layers (local, modules moe_router, moe_preprocess) in training, no graphs in inference",
        "layers (local, modules attn) in training, no graphs in inference",
    )
    assert describe_both(attn, whole) == (str(attn), str(whole))


@pytest.mark.parametrize(
    ("settings", "release"),
    [({"external_cuda_graph": True}, Release(0, 14)), ({"cuda_graph_impl": "transformer_engine"}, Release(0, 15))],
)
def test_transformer_engine_refuses_other_scopes_when_it_captures(
    settings: dict[str, object], release: Release
) -> None:
    """The configuration accepts them; the capture asserts that the scope is full or attn."""
    for scope in ("full", "attn"):
        assert isinstance(capture_of({**settings, "cuda_graph_scope": scope}, release, Reader.CONFIG), Capture)
    verdict = capture_of({**settings, "cuda_graph_scope": "full_iteration"}, release, Reader.CONFIG)
    assert isinstance(verdict, Rejected)
    assert (verdict.code, verdict.stage, verdict.fields) == ("unknown-module", "capture", ("cuda_graph_scope",))
    assert "should be full or attn, got full_iteration" in verdict.reason


@pytest.mark.parametrize(
    ("name", "code"), [("cuda_graph_impl", "bad-impl"), ("inference_cuda_graph_scope", "bad-value")]
)
def test_a_command_line_refuses_values_that_are_no_choice(name: str, code: str) -> None:
    verdict = capture_of({name: "bogus"}, NEWEST, Reader.COMMAND_LINE)
    assert isinstance(verdict, Rejected)
    assert (verdict.code, verdict.fields) == (code, (name,))


@pytest.mark.parametrize(
    ("name", "release"),
    [("cuda_graph_scope", Release(0, 17)), ("cuda_graph_scope", NEWEST), ("cuda_graph_modules", NEWEST)],
)
@pytest.mark.parametrize(
    ("parts", "code"), [(["moe", "moe_router"], "moe-with-router"), (["moe_preprocess"], "preprocess-without-router")]
)
def test_parts_of_experts_that_exclude_or_need_each_other_are_refused(
    name: str, release: Release, parts: list[str], code: str
) -> None:
    verdict = capture_of({"cuda_graph_impl": "transformer_engine", name: parts}, release, Reader.CONFIG)
    assert isinstance(verdict, Rejected)
    assert (verdict.code, verdict.fields) == (code, (name,))


@pytest.mark.parametrize(("one", "other"), [(True, 1), (["attn"], ("attn",)), (["attn"], "attn"), ([], None)])
@pytest.mark.parametrize("name", ["enable_cuda_graph", "cuda_graph_scope", "cuda_graph_modules"])
def test_values_that_are_alike_are_looked_up_apart(name: str, one: object, other: object) -> None:
    values = [{"cuda_graph_impl": "local", name: value} for value in (one, other, one, other)]
    first = [capture_of(own, NEWEST, Reader.CONFIG) for own in values]
    assert first == [capture_of(own, NEWEST, Reader.CONFIG) for own in reversed(values)][::-1]
    assert first[:2] == first[2:]
    alone = [resolved_configuration(own, NEWEST, Reader.CONFIG) for own in values[:2]]
    assert [isinstance(one, Rejected) for one in alone] == [isinstance(one, Rejected) for one in first[:2]]
