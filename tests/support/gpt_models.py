"""Generated GPT models of Megatron-LM's command line, and their command lines."""

from __future__ import annotations

import random
from typing import Any

from cgmigrate.megatron.hybrid_models import REPLACED, SPEC, HybridForm
from cgmigrate.megatron.settings import Missing

SIZE = "--hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32 --micro-batch-size 1"
RUN = "--bf16 --no-rope-fusion --global-batch-size 64 --train-iters 1 --eval-interval 1 --lr 1"
DATA = "--tokenizer-type NullTokenizer --vocab-size 9"


def options_of(seed: int) -> dict[str, object]:
    """A GPT model: dense, or with experts; most have a pipeline, some multi-token prediction or other attention."""
    chosen = random.Random(seed)
    size = chosen.choice([1, 1, 2, 3, 4])
    count = size * chosen.choice([1, 2, 2, 3, 4])
    options: dict[str, object] = {"num_layers": count}
    if chosen.random() < 0.6:
        options |= {"num_experts": chosen.choice([2, 4]), "moe_grouped_gemm": True, "disable_bias_linear": True}
        options |= {"moe_layer_freq": frequency(chosen, count)} if chosen.random() < 0.7 else {}
    if chosen.random() < 0.2:
        options |= {"multi_latent_attention": True}
    elif chosen.random() < 0.15:
        options |= linear_attention(chosen, count)
    elif chosen.random() < 0.1:
        options |= {
            "experimental_attention_variant": "dsa",
            "multi_latent_attention": True,
            "disable_bias_linear": True,
        }
    if chosen.random() < 0.35:
        options |= {"mtp_num_layers": chosen.choice([1, 2]), "position_embedding_type": "rope"}
    if chosen.random() < 0.2:
        options |= {"recompute_granularity": "full", "recompute_method": "uniform", "recompute_num_layers": 1}
    if size > 1:
        options |= {"pipeline_model_parallel_size": size, **pipeline(chosen, count, size, options)}
    return options


def frequency(chosen: random.Random, count: int) -> object:
    """A number, or a list expression, mostly for as many layers as there are."""
    lists = [f"[{','.join(chosen.choice('01') for _ in range(count))}]", f"([0]*1+[1]*{count - 1})", f"[1]*{count}"]
    return chosen.choice([1, 2, 3, *lists, *lists, f"[0]*{chosen.choice([count, count + 1])}"])


def linear_attention(chosen: random.Random, count: int) -> dict[str, object]:
    sizes = dict.fromkeys(("linear_key_head_dim", "linear_value_head_dim"), 16)
    heads = dict.fromkeys(("linear_num_key_heads", "linear_num_value_heads"), 4)
    pattern = {
        "linear_attention_freq": chosen.choice([1, 2, 3, f"[{','.join(chosen.choice('01') for _ in range(count))}]"])
    }
    return {
        "experimental_attention_variant": "gated_delta_net",
        "linear_conv_kernel_dim": 4,
        **sizes,
        **heads,
        **pattern,
    }


def pipeline(chosen: random.Random, count: int, size: int, options: dict[str, object]) -> dict[str, object]:
    """Stages: even, uneven, virtual, with the embedding and the loss as layers, or a layout."""
    form = chosen.choice(["even", "virtual", "stages", "uneven", "accounted", "layout", "layout"])
    if form == "virtual":
        return {"num_layers_per_virtual_pipeline_stage": chosen.choice([1, 2])}
    if form == "stages":
        return {"num_virtual_stages_per_pipeline_rank": chosen.choice([1, 2])}
    if form == "uneven":
        ends = {"decoder_first_pipeline_num_layers": chosen.choice([1, 2]), "decoder_last_pipeline_num_layers": 1}
        return {name: ends[name] for name in ends if chosen.random() < 0.8}
    if form == "accounted":
        options["num_layers"] = count - 2
        options.pop("moe_layer_freq", None)
        options.pop("linear_attention_freq", None)
        if options.get("experimental_attention_variant") == "gated_delta_net":
            options.pop("experimental_attention_variant")
        more = {"num_layers_per_virtual_pipeline_stage": 1} if chosen.random() < 0.4 else {}
        return {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True, **more}
    return {"pipeline_model_parallel_layout": layout(chosen, count, size, options)} if form == "layout" else {}


def layout(chosen: random.Random, count: int, size: int, options: dict[str, object]) -> str:
    depths = int(str(options.get("mtp_num_layers", 0)))
    cuts = sorted(chosen.randrange(count + 1) for _ in range(size * chosen.choice([1, 2]) - 1))
    stages = ["t" * (end - start) for start, end in zip([0, *cuts], [*cuts, count], strict=True)]
    if depths and chosen.random() < 0.2 and len(stages) > 2:
        stages[-2:] = [stages[-2] + stages[-1] + "m" * depths, "L"]
    else:
        stages[-1] += "m" * depths + "L"
    text = "|".join(["E" + stages[0], *stages[1:]])
    return text.replace("ttt", "t*3,", 1) if chosen.random() < 0.5 else text


def get(options: dict[str, object]) -> Any:
    return lambda name: str(value) if (value := options.get(name, Missing.ABSENT)) is not Missing.ABSENT else value


def line(options: dict[str, object]) -> list[str]:
    words = f"{SIZE} {RUN} {DATA}".split()
    for name, value in options.items():
        words += ["--" + name.replace("_", "-"), *([] if value is True else [str(value)])]
    return words


def rewritten(options: dict[str, object], form: HybridForm) -> list[str]:
    kept = {name: value for name, value in options.items() if name not in REPLACED} | form.scaled
    return [*line(kept), "--hybrid-layer-pattern", form.pattern, "--spec", *SPEC]
