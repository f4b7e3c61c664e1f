"""What of Megatron-Bridge builds a GPTModel, and what the pattern of layers of its hybrid model is.

``rules/gpt_providers.json`` has the providers by class, which ``scripts/gpt_providers.py`` reads from the releases, and
checkpoints by name, as patterns, with the kinds of layers that Megatron-Bridge makes of each. A null is a value that
only the configuration of the checkpoint has.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.hybrid_models import SINCE, HybridForm, NoHybridForm, graph_notes, hybrid_form
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.megatron.settings import Missing
from cgmigrate.megatron.types import Reader, Rejected

FIELDS = (
    "num_layers", "num_moe_experts", "moe_layer_freq", "mtp_num_layers", "multi_latent_attention",
    "experimental_attention_variant", "linear_attention_freq",
)  # fmt: skip
"""The fields whose defaults in a class decide the pattern."""
AUTO = frozenset(("megatron.bridge.AutoBridge", "megatron.bridge.models.conversion.auto_bridge.AutoBridge"))
"""The class that makes a provider of a checkpoint, by its full names."""
_FLAGS = {
    "spec": "transformer_layer_spec",
    "num_experts": "num_moe_experts",
    "num_virtual_stages_per_pipeline_rank": "virtual_pipeline_model_parallel_size",
    "decoder_first_pipeline_num_layers": "num_layers_in_first_pipeline_stage",
    "decoder_last_pipeline_num_layers": "num_layers_in_last_pipeline_stage",
}
"""Fields by the flags of Megatron-LM that set them, where the names differ."""
_FIELD_OF = re.compile(r"--([\w-]+)")
_GRAPHS = ("cuda_graph_impl", "cuda_graph_scope", "cuda_graph_modules", "enable_cuda_graph", "external_cuda_graph")
_FREQUENCIES = ("moe_layer_freq", "linear_attention_freq")
_IS_BUILT = "builds a GPTModel, which is deprecated since megatron-core"


def row_of(kind: str, name: str) -> Mapping[str, object] | None:
    """Return the fields of a class or a checkpoint by its name; None for one that is not known to be a GPTModel."""
    table = _table()[kind]
    row = table.get(name) if kind == "classes" else next((v for k, v in table.items() if re.fullmatch(k, name)), None)
    return None if row is None else {k: Missing.UNKNOWN if v is None else v for k, v in row.items()}


@cache
def _table() -> Mapping[str, Mapping[str, Mapping[str, object]]]:
    table: Mapping[str, Mapping[str, Mapping[str, object]]] = json.loads(
        (rules_folder() / "gpt_providers.json").read_text("utf-8")
    )
    return table


def about_provider(name: str, fields: Mapping[str, object], checkpoint: str = "") -> str:
    """Return the message about a place that makes a provider. ``fields`` are those that it has as it is written."""
    name = f"`{name}`" + (f" of `{checkpoint}`" if checkpoint else "")
    form, pattern = _form(fields), _repeated(fields)
    reason = "" if isinstance(form, HybridForm) else _FIELD_OF.sub(_named, form.reason)
    graphs: tuple[str, ...] = ()
    if isinstance(form, HybridForm):
        words, pattern = f'the pattern of its layers is `hybrid_layer_pattern="{form.pattern}"`', form.pattern
    elif form.is_known or not pattern:
        words = f"it has no hybrid form{'' if form.is_known else ' that is known'}: {reason}"
        pattern = ""
    else:
        is_read = checkpoint and "num_layers" not in fields
        why = "`config.json` of the checkpoint decides how many" if is_read else reason
        words = f"its hybrid pattern has {pattern}; {why}"
    if pattern:
        graphs = _graphs(pattern, fields)
    return "; ".join((f"{name} {_IS_BUILT} {SINCE}: {words}", *graphs))


def _form(fields: Mapping[str, object]) -> HybridForm | NoHybridForm:
    def value(flag: str) -> object:
        own = fields.get(_FLAGS.get(flag, flag), Missing.ABSENT)
        # The pattern is the same for experts of any kind; of a specification, no expression is read.
        if flag == "moe_grouped_gemm" or (flag == "spec" and own not in (Missing.ABSENT, None)):
            return True
        if isinstance(own, list) and flag in _FREQUENCIES:
            return str(own).replace(" ", "")
        # A field that is unset or false is the same as an absent flag.
        return Missing.ABSENT if own is None or own is False else own

    return hybrid_form(value)


def _repeated(fields: Mapping[str, object]) -> str:
    """Return the parts that the pattern is made of, in words; empty where it cannot be made."""
    frequency = fields.get("linear_attention_freq")
    count = frequency if isinstance(frequency, int) else 1
    whole = {**fields, "num_layers": count, "moe_layer_freq": 1, "mtp_num_layers": None}
    whole |= {name: None for name in fields if "pipeline" in name}
    parts = [("layers" if count == 1 else f"{count} layers", whole)]
    if fields.get("moe_layer_freq", 1) != 1 and fields.get("num_moe_experts"):
        parts = [("layers with experts", whole), ("dense layers", {**whole, "num_moe_experts": None})]
    forms = [(words, _form(own)) for words, own in parts]
    each = [
        f"`{form.pattern}` for {'every ' if words[0].isdigit() else 'all '}{words}"
        for words, form in forms
        if isinstance(form, HybridForm)
    ]
    return " and ".join(each) if len(each) == len(forms) else ""


def _named(flag: re.Match[str]) -> str:
    name = flag[1].replace("-", "_")
    return _FLAGS.get(name, name)


def _graphs(pattern: str, fields: Mapping[str, object]) -> tuple[str, ...]:
    settings = {name: fields[name] for name in _GRAPHS if fields.get(name) is not None}
    if not settings or Missing.UNKNOWN in settings.values():
        return ()
    capture = capture_of(settings, SINCE, Reader.BRIDGE)
    symbols = "".join(re.findall(r"`([^`]+)`", pattern)) or pattern
    return () if isinstance(capture, Rejected) else tuple(graph_notes(symbols, capture.training))
