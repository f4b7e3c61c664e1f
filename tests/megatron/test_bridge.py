"""capture.py's Megatron-Bridge against the code of Megatron-Bridge 0.6.2 itself, over megatron-core 0.19."""

from __future__ import annotations

import dataclasses
from types import ModuleType

import pytest

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.capture import resolved_configuration
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.types import Reader, Rejected, ResolvedConfiguration
from tests.support.combinations import CONTEXT, cross_product
from tests.support.paths import FETCHED
from tests.support.plans import Examined, examine
from tests.support.scripts import module_at

BRIDGE = FETCHED / "megatron-bridge-0.6.2/megatron/bridge/utils/cuda_graph.py"


def bridge() -> ModuleType:
    if not BRIDGE.exists():
        pytest.skip("megatron-bridge 0.6.2 is not in .corpus (.ci/run fetches it)")
    return module_at(BRIDGE)


def unvalidated(config: type, settings: dict[str, object]) -> object:
    """A provider as Bridge has it before finalize(): the fields are set, nothing is derived yet."""
    made = object.__new__(config)
    for field in dataclasses.fields(config):
        if field.default is not dataclasses.MISSING:
            setattr(made, field.name, field.default)
        elif field.default_factory is not dataclasses.MISSING:
            setattr(made, field.name, field.default_factory())
    for name, value in {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, **settings}.items():
        setattr(made, name, value)
    return made


def test_bridge_reads_settings_as_its_own_code_does() -> None:
    core = pytest.importorskip("megatron.core.transformer.transformer_config", reason="no megatron-core")
    module = bridge()
    compared = 0
    for settings in cross_product():
        if isinstance(settings.get("cuda_graph_scope"), str) and "Attn" in str(settings["cuda_graph_scope"]):
            continue  # Bridge rejects an unknown name later than megatron-core does
        got = resolved_configuration(settings, Release(0, 19), Reader.BRIDGE)
        config = unvalidated(core.TransformerConfig, settings)
        try:
            # The order of ConfigContainer.validate in Bridge 0.6.
            module.validate_cuda_graph_configuration(config)
            config.__post_init__()
            module.validate_cuda_graph_configuration(config)
        except (AssertionError, KeyError, ValueError) as error:
            if any(words in str(error) for words in CONTEXT):
                continue
            assert isinstance(got, Rejected), (settings, got, error)
        else:
            assert isinstance(got, ResolvedConfiguration), (settings, got)
            assert got.impl == config.cuda_graph_impl
            assert list(got.modules) == [m.name for m in config.cuda_graph_modules], (settings, got)
            assert got.inference == config.inference_cuda_graph_scope.name
        compared += 1
    assert compared > 10_000


def examined(text: str) -> Examined:
    return examine(YamlDocument(text), Context(Release(0, 17), Release(0, 19), load(), ecosystems.load()))


BESIDE = "train: {train_iters: 1}\nddp: {overlap_grad_reduce: true}\n"


@pytest.mark.parametrize("boolean", ["external_cuda_graph: true", "enable_cuda_graph: true"])
def test_a_boolean_beside_none_is_no_safe_fix(boolean: str) -> None:
    """Bridge 0.6 clears the scope with `none` before megatron-core reads the boolean, earlier releases afterwards."""
    scope = "attn" if "external" in boolean else "full_iteration"
    text = f"model:\n  cuda_graph_impl: none\n  {boolean}\n  cuda_graph_scope: [{scope}]\n{BESIDE}"
    result = examined(text)
    assert not result.safe and result.unsafe
    assert "Megatron-Bridge up to 0.5 captures" in result.diagnostics[0].because
    # megatron-core alone reads the boolean first.
    alone = examined(text.replace("model:", "transformer_config:").replace(BESIDE, ""))
    assert alone.safe and not alone.unsafe


def test_a_boolean_beside_none_has_one_meaning_where_the_target_refuses_it() -> None:
    old = "model:\n  cuda_graph_impl: none\n  enable_cuda_graph: true\n  cuda_graph_scope: attn,full_iteration\n"
    result = examine(YamlDocument(old + BESIDE), Context(Release(0, 17), Release(0, 18), load(), ecosystems.load()))
    assert result.safe == {0: {"cuda_graph_impl": "full_iteration"}}


def test_nemo_rl_is_read_as_megatron_bridge_reads_it() -> None:
    result = examined("policy:\n  megatron_cfg:\n    cuda_graph_impl: local\n    cuda_graph_modules: [attn]\n")
    (diagnostic,) = result.diagnostics
    assert diagnostic.rule == "CG501" and "Megatron Bridge supports" in diagnostic.notes[0]


def test_nemo_rl_drops_an_inference_scope_without_an_implementation() -> None:
    dropped = "policy:\n  megatron_cfg:\n    inference_cuda_graph_scope: block\n"
    (diagnostic,) = examined(dropped).diagnostics
    assert diagnostic.rule == "CG307" and "NeMo-RL ignores" in diagnostic.message
    # TransformerConfig itself refuses it.
    (diagnostic,) = examined(dropped.replace("megatron_cfg", "transformer_config")).diagnostics
    assert diagnostic.rule == "CG209"
    assert not examined(dropped + "    cuda_graph_impl: local\n").diagnostics


def test_text_that_two_mappings_share_belongs_to_the_reader_of_both() -> None:
    text = "base: &b\n  cuda_graph_impl: local\n  cuda_graph_modules: [attn]\npolicy:\n  megatron_cfg: *b\n"
    assert [diagnostic.rule for diagnostic in examined(text).diagnostics] == ["CG501"]
