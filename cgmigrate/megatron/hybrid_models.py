"""The hybrid model that computes what a GPT model of Megatron-LM's command line computes: its pattern of layers.

A GPT layer becomes two hybrid layers, attention and then an MLP or experts. The pattern also has the pipeline stages
(``|``) and multi-token prediction (``/``). What the hybrid model does not build, or silently builds in another way, has
a reason and no pattern; so has what the command line does not show.

Sources: megatron-core 0.19.2, hybrid_layer_allocation.py, hybrid_layer_specs.py, hybrid_model.py, gpt_layer_specs.py;
Megatron-LM core_v0.19.0, megatron/training/{arguments,argument_utils}.py, models/{gpt,hybrid}.py and both programs.
``tests/megatron/test_hybrid_models.py`` compares patterns with what these build.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cgmigrate.megatron.layer_classes import GPT, HYBRID, LayerClass
from cgmigrate.megatron.layer_patterns import layer_pattern
from cgmigrate.megatron.pipeline_layouts import Layout, LayoutError, Pipeline
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.setting import Setting, SettingKind
from cgmigrate.megatron.settings import Missing
from cgmigrate.megatron.types import Backend, Layers

SINCE = Release(0, 19)
"""The first release that logs that GPTModel is deprecated, and that trains its layers as a hybrid model."""
PROGRAMS: Mapping[str, str] = {"pretrain_gpt.py": "pretrain_hybrid.py"}
SPEC = ("megatron.core.models.hybrid.hybrid_layer_specs", "hybrid_stack_spec")

Options = Callable[[str], object]
"""Returns the value of an argument by the name of its flag, with underscores: plain data, or ``Missing``."""

_STAGES = "num_layers_per_virtual_pipeline_stage", "num_virtual_stages_per_pipeline_rank"
_UNEVEN = "decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers"
_ACCOUNTED = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
REPLACED = frozenset(("num_layers", "pipeline_model_parallel_layout", *_STAGES, *_UNEVEN, *_ACCOUNTED))
"""What the pattern replaces: the parser of the hybrid model rejects these flags, or ignores them."""

PATTERN, SPEC_FLAG = "hybrid_layer_pattern", "spec_of_gpt"
_READ = ("num_experts", "moe_layer_freq", "pipeline_model_parallel_size", "mtp_num_layers", "recompute_num_layers")
_SWITCHES = frozenset(_ACCOUNTED)
_TEXTS = frozenset(("pipeline_model_parallel_layout", "moe_layer_freq"))

_IS_OTHER_PROGRAM = "the model is that of a file or of a checkpoint, which the command line does not show"
_OF_SPEC = "the layers are those of a specification, which is not read"
_NOT_IN_STACK = "`hybrid_stack_spec` builds its modules without it, and does not refuse it"
_IGNORED = "the hybrid model does not read it, and does not refuse it"
_BY_LAYER = "it counts layers, and one GPT layer is two hybrid layers"
_OTHER_MODULES = "ModelOpt builds the model with a specification of its own"
_REFUSED: Mapping[str, str] = {
    "yaml_cfg": _IS_OTHER_PROGRAM,
    "use_checkpoint_args": _IS_OTHER_PROGRAM,
    "encoder_num_layers": "`--num-layers` is the number of layers that the pattern is made of",
    "spec": _OF_SPEC,
    "heterogeneous_layers_config_path": _OF_SPEC,
    "heterogeneous_layers_config_encoded_json": _OF_SPEC,
    "fim_data": "`pretrain_hybrid.py` builds no data set for it, and trains with `GPTDataset`",
    "overlap_moe_expert_parallel_comm": "`pretrain_hybrid.py` has no schedule plan: TypeError at the first step",
    "rotary_interleaved": _IGNORED,
    "use_rope_scaling": _IGNORED,
    "defer_embedding_wgrad_compute": _IGNORED,
    "fp8_output_proj": _IGNORED,
    "cpu_offloading": _IGNORED,
    "use_transformer_engine_op_fuser": _NOT_IN_STACK,
    "use_te_activation_func": _NOT_IN_STACK,
    "use_grouped_gemm_for_dense_mlp": _NOT_IN_STACK,
    "kitchen_config_file": _NOT_IN_STACK,
    "kitchen_recipe_number": _NOT_IN_STACK,
    "te_precision_config_file": "its entries name layers by index, and one GPT layer is two hybrid layers",
    "no_rope_freq": _BY_LAYER,
    "window_attn_skip_freq": _BY_LAYER,
    "first_last_layers_bf16": _BY_LAYER,
    "cpu_offloading_num_layers": _BY_LAYER,
    "use_mup": "the release says that MuP of the hybrid model is experimental and not fully validated",
    "moe_use_upcycling": "it makes the experts of a dense GPT checkpoint",
    "modelopt_enabled": _OTHER_MODULES,
    "export_kd_teacher_load": _OTHER_MODULES,
    "export_default_te_spec": _OTHER_MODULES,
    "export_te_mcore_model": _OTHER_MODULES,
}
"""Flags with which a GPT model has no hybrid form, each with the reason."""
_OF_SYMBOL = {"-": "MLP", "E": "experts", "M": "Mamba"}
"""A word of the name of a class of layers, by symbol; every other symbol is attention."""
_MODULES = {"attn": "attention", "mlp": "MLP", "moe": "experts", "moe_router": "experts", "moe_preprocess": "experts"}
_POSITIONS = ("learned_absolute", "rope", "none")
_GPT_CLASS = re.compile(r"megatron\.(?:core|training|bridge)\.(?:\w+\.)*(GPTModel(?:Config|Builder|Provider)?)")


@dataclass(frozen=True, slots=True)
class HybridForm:
    """A GPT model as a hybrid model. ``scaled`` are settings that count layers, with their new values."""

    pattern: str
    scaled: Mapping[str, int] = field(default_factory=dict)

    @property
    def loads_gpt_weights(self) -> bool:
        """Whether the release can load the weights of the GPT model into it: one kind of layers, and no others."""
        return "/" not in self.pattern and set(self.pattern) - {"|"} in ({"*", "-"}, {"*", "E"})


@dataclass(frozen=True, slots=True)
class NoHybridForm:
    """Why a GPT model has no hybrid form. ``is_known`` says that this is so, and not only that it is not shown."""

    reason: str
    is_known: bool = True


class _NoFormError(Exception):
    def __init__(self, reason: str, is_known: bool = True) -> None:
        super().__init__(reason)
        self.form = NoHybridForm(reason, is_known)


def hybrid_form(options: Options) -> HybridForm | NoHybridForm:
    """Return the hybrid form of the GPT model that a command line describes, or why it has none."""
    try:
        return _GptModel(options).form()
    except _NoFormError as error:
        return error.form


class _GptModel:
    """A GPT model as a command line describes it."""

    def __init__(self, options: Options) -> None:
        self.options = options

    def form(self) -> HybridForm:
        for name, reason in _REFUSED.items():
            if self._is_on(name):
                raise _NoFormError(f"`{_flag(name)}`: {reason}")
        self._check_modules()
        count = self._required("num_layers")
        layers = [a + b for a, b in zip(self._attention(count), self._mlps(count), strict=True)]
        layout = self._layout(count)
        segments = [[layers.pop(0) for _ in range(size)] for size in layout.stages]
        last = [layer for segment in segments for layer in segment][-1]
        if self._has_experts() and not segments[-1]:
            # Without a layer in the last stage, the layers of multi-token prediction have experts in any case.
            last = f"{last[0]}E"
        depths = self._multi_token(layout)
        return HybridForm(
            "/".join(["|".join("".join(one) for one in segments), *[last] * depths]), self._scaled(depths)
        )

    # --- values ---------------------------------------------------------------------------------------

    def _value(self, name: str) -> object:
        """Return a plain value, None if it is not written. Raises _NoFormError for one that is not shown."""
        value = self.options(name)
        if value is Missing.ABSENT or value is None or isinstance(value, (bool, int, str)):
            return None if value is Missing.ABSENT else value
        raise _NoFormError(f"the value of `{_flag(name)}` is not shown", is_known=False)

    def _is_on(self, name: str) -> bool:
        """Return whether a flag is written, in YAML not as false."""
        value = self.options(name)
        if value is Missing.UNKNOWN:
            raise _NoFormError(f"whether `{_flag(name)}` is written is not shown", is_known=False)
        return value is not Missing.ABSENT and value is not False and value != "false"

    def _number(self, name: str) -> int | None:
        value = self._value(name)
        if value is None:
            return None
        try:
            return int(str(value))
        except ValueError:
            raise _NoFormError(f"the value of `{_flag(name)}` is no number", is_known=False) from None

    def _required(self, name: str) -> int:
        number = self._number(name)
        if number is None:
            raise _NoFormError(f"`{_flag(name)}` is not written", is_known=False)
        if number < 1:
            raise _NoFormError(f"Megatron-LM rejects `{_flag(name)} {number}`")
        return number

    def _has_experts(self) -> bool:
        return bool(self._number("num_experts"))

    # --- layers ---------------------------------------------------------------------------------------

    def _check_modules(self) -> None:
        """Check that the layers of the GPT model are made of what the layers of `hybrid_stack_spec` are."""
        if (value := self._value("transformer_impl")) not in (None, "transformer_engine"):
            raise _NoFormError(f"`--transformer-impl {value}`: `hybrid_stack_spec` builds Transformer Engine modules")
        if self._value("attention_backend") == "local":
            raise _NoFormError(f"`--attention-backend local`: {_NOT_IN_STACK}")
        if (value := self._value("position_embedding_type")) not in (None, *_POSITIONS):
            raise _NoFormError(f"`--position-embedding-type {value}`: only {', '.join(_POSITIONS)} are compared")
        if self._has_experts() and not self._is_on("moe_grouped_gemm"):
            raise _NoFormError("`hybrid_stack_spec` computes experts with grouped GEMM: add `--moe-grouped-gemm` first")
        if (self._number("dsa_indexer_topk_freq") or 1) > 1:
            raise _NoFormError(f"`--dsa-indexer-topk-freq`: {_BY_LAYER}")

    def _attention(self, count: int) -> list[str]:
        variant = self._value("experimental_attention_variant")
        latent = self._is_on("multi_latent_attention")
        if variant is None:
            return ["+" if latent else "*"] * count
        if (self._number("mtp_num_layers") or 0) > 0:
            raise _NoFormError("Megatron-LM rejects multi-token prediction with an experimental attention variant")
        if variant == "dsa":
            return ["D"] * count
        if variant not in ("gated_delta_net", "gdn") or latent:
            raise _NoFormError(f"`--experimental-attention-variant {variant}` is not compared with the hybrid model")
        pattern = self._pattern("linear_attention_freq", count)
        if isinstance(pattern, int):
            pattern = [int((at + 1) % pattern != 0) for at in range(count)]
        return ["G" if one else "*" for one in pattern]

    def _mlps(self, count: int) -> list[str]:
        if not self._has_experts():
            return ["-"] * count
        pattern = self._pattern("moe_layer_freq", count)
        if isinstance(pattern, int):
            pattern = [int(at % pattern == 0) for at in range(count)]
        return ["E" if one else "-" for one in pattern]

    def _pattern(self, name: str, count: int) -> int | list[int]:
        """Return a frequency, or a list with 0 or 1 for each layer; the frequency is 1 if none is written."""
        value = self._value(name)
        pattern = layer_pattern(str(value)) if value is not None else 1
        if pattern is None:
            raise _NoFormError(f"`{_flag(name)} {value}` is no number or list expression", is_known=False)
        is_list = isinstance(pattern, list) and len(pattern) == count and all(one in (0, 1) for one in pattern)
        if is_list or (isinstance(pattern, int) and pattern > 0):
            return pattern  # type: ignore[return-value]
        raise _NoFormError(f"Megatron-LM rejects `{_flag(name)} {value}` with {count} layers")

    # --- pipeline and multi-token prediction --------------------------------------------------------------

    def _layout(self, count: int) -> Layout:
        text = self._value("pipeline_model_parallel_layout")
        layers, stages = (self._number(name) for name in _STAGES)
        first, last = (self._number(name) for name in _UNEVEN)
        embedding, loss = (self._is_on(name) for name in _ACCOUNTED)
        pipeline = Pipeline(
            self._number("pipeline_model_parallel_size") or 1,
            None if text is None else str(text),
            layers,
            stages,
            (first, last),
            (embedding, loss),
        )
        try:
            return pipeline.layout(count)
        except LayoutError as error:
            raise _NoFormError(str(error)) from error

    def _multi_token(self, layout: Layout) -> int:
        """Return the number of layers of multi-token prediction."""
        depths = self._number("mtp_num_layers") or 0
        if layout.multi_token and sum(layout.multi_token) != depths:
            raise _NoFormError("Megatron-LM rejects a layout with another number of layers of multi-token prediction")
        if any(layout.multi_token[:-1]):
            raise _NoFormError("the hybrid model has multi-token prediction in the last stage only")
        return depths

    def _scaled(self, depths: int) -> Mapping[str, int]:
        if self._value("recompute_granularity") != "full":
            return {}
        if depths:
            raise _NoFormError(f"`--recompute-num-layers`: {_BY_LAYER}, and multi-token prediction requires 1")
        number = self._number("recompute_num_layers")
        return {} if number is None else {"recompute_num_layers": 2 * number}


def about_class(path: str) -> str:
    """Return what there is to say of a class by its full name: that it is GPTModel, or builds one; else nothing."""
    if (match := _GPT_CLASS.fullmatch(path)) is None:
        return ""
    what = "`GPTModel`" if match[1] == "GPTModel" else f"`{match[1]}` builds a GPTModel, which"
    return f"{what} is deprecated since megatron-core {SINCE}"


def settings() -> Iterator[Setting]:
    """Yield the flags that a rewrite reads, deletes and writes, each as a setting.

    The names are no field's, so that only command lines have them.
    """
    for name in (*sorted(REPLACED), *_READ):
        kind = SettingKind.FLAG if name in _SWITCHES else SettingKind.TEXT if name in _TEXTS else SettingKind.NUMBER
        line_for = (PATTERN,) if name == "num_layers" else ()
        yield _setting(f"{name}_of_gpt", kind, _flag(name), line_for)
    yield _setting(SPEC_FLAG, SettingKind.TEXT, "--spec", ())


def _setting(name: str, kind: SettingKind, flag: str, line_for: tuple[str, ...]) -> Setting:
    return Setting(
        name, kind, "training.Arguments", flag, "A flag of pretrain_gpt.py", line_for=line_for,
        can_unset=True, sources=("rules/releases.json",),
    )  # fmt: skip


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def symbols_of(pattern: str) -> Sequence[str]:
    """Return the symbols of layers that a pattern has."""
    return sorted(set(pattern) - {"|", "/"})


def layer_classes(pattern: str) -> Sequence[LayerClass]:
    """Return the classes of the layers of a pattern."""
    words = {_OF_SYMBOL.get(symbol, "attention") for symbol in symbols_of(pattern)}
    return [one for one in HYBRID if any(word in one.name for word in words)]


def graph_notes(pattern: str, layers: object) -> Iterator[str]:
    """Yield what each class of layers has in graphs, before and after, if parts of each layer are captured."""
    if not isinstance(layers, Layers):
        return
    if layers.backend is Backend.LOCAL:
        before = "; ".join(f"{one.name}: {one.captured(layers.modules)}" for one in GPT)
        after = "; ".join(f"{one.name}: {one.captured(layers.modules)}" for one in layer_classes(pattern))
        yield f"`local` captures before: {before}; after: {after}"
    elif not layers.modules:
        yield "Transformer Engine captures before: whole GPT layers; after: each hybrid layer, twice as many graphs"
    else:
        names = [one.name for one in layer_classes(pattern)]
        for module in sorted(layers.modules):
            of = next((name for name in names if _MODULES.get(module, module) in name), "nothing")
            yield f"`{module}` is a part of the graph of each GPT layer before; after it has graphs of its own: {of}"
