"""Versions of packages that megatron-core asserts: CG440 reports what the release refuses, at the exact bounds.

The release runs its own statements; only the versions that it finds are given to it.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from click.testing import Result

from tests.lint.test_companions import fetched
from tests.support.files import write
from tests.support.nightly import nightly_only
from tests.support.release_judges import printed
from tests.support.tables import table_of

Command = Callable[..., Result]

JUDGE = """
import contextlib, io, json, logging, sys, warnings
from types import SimpleNamespace
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
import torch
from packaging.version import Version
from megatron.core import utils
from megatron.core.models.common.language_module import language_module
from megatron.core.transformer import TransformerConfig, transformer_layer
from megatron.training import arguments

run = "--micro-batch-size 1 --global-batch-size 8 --tokenizer-type NullTokenizer --vocab-size 9 --lr 1 --bf16"
model = "--num-layers 4 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32"
language_module.te_parallel_cross_entropy = lambda logits, *_: logits[..., 0]
language_module.fused_vocab_parallel_cross_entropy = language_module.te_parallel_cross_entropy

def command_line(words):
    sys.argv = ["pretrain_gpt.py", *model.split(), *run.split(), *words]
    args = arguments.parse_args()
    args.world_size, args.rank = 8, 0
    arguments.validate_args(args)
    return arguments.core_transformer_config_from_args(args)

def built(settings):
    config = TransformerConfig(num_layers=4, hidden_size=64, num_attention_heads=4, **settings)
    return config

def check(config):
    # What a layer and the first loss add.
    layer = SimpleNamespace(config=config, is_moe_layer=False, input_layernorm=None, pre_mlp_layernorm=None)
    if hasattr(transformer_layer.TransformerLayer, "_set_offload_modules"):
        transformer_layer.TransformerLayer._set_offload_modules(layer)
    model = SimpleNamespace(config=config, pg_collection=SimpleNamespace(tp=None), tp_group=None)
    if config.cross_entropy_loss_fusion:
        labels, logits = torch.zeros(1, 4, dtype=torch.long), torch.zeros(4, 1, 9)
        language_module.LanguageModule.compute_language_model_loss(model, labels, logits)

out = sys.stdout
for line in sys.stdin:
    words, settings, te, torch_version = json.loads(line)
    utils._te_version, utils._torch_version = Version(te), Version(torch_version)
    said, errors = "", io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            check(command_line(words) if words else built(settings))
        except SystemExit:
            said = errors.getvalue()
        except Exception as error:
            said = type(error).__name__ + " " + str(error)
    print(" ".join(said.split()), file=out)
"""
TE = ("2.6.0", "2.7.0.dev0", "2.7.0", "2.9.0", "2.10.0.dev1", "2.10.0", "2.12.0rc1", "2.12.0", "2.13.0", "2.14.0")
TE_OF_OFFLOADING = ("2.13.0", "2.14.0.dev1", "2.14.0")
TORCH = ("2.8.0", "2.9.0a0", "2.9.0", "2.13.0")
OVERLAP = table_of(__name__, "OVERLAP")
GRAPHS = "--cuda-graph-impl transformer_engine {} {}"


class Requested(NamedTuple):
    """One configuration with the versions of Transformer Engine and PyTorch that are there."""

    words: list[str]
    settings: dict[str, Any]
    te: str
    torch: str

    @property
    def file(self) -> tuple[str, str]:
        if self.words:
            return "run.sh", f"torchrun pretrain_gpt.py {' '.join(self.words)}\n"
        arguments = "".join(f"    {name}={value!r},\n" for name, value in self.settings.items())
        imported = "from megatron.core.transformer import TransformerConfig\n\n"
        return "model.py", f"{imported}config = TransformerConfig(\n{arguments})\n"


def requested(modules: str) -> list[Requested]:
    """All configurations with all versions; ``modules`` is the name of the setting in the release."""
    flag = "--" + modules.replace("_", "-")
    scope = "cuda_graph_scope" if modules == "cuda_graph_scope" else ""
    full = {"cuda_graph_impl": "local", scope: ["full_iteration"]} if scope else {"cuda_graph_impl": "full_iteration"}
    lines = [
        [*GRAPHS.format(flag, "attn").split(), *OVERLAP, "--overlap-grad-reduce"],
        [*GRAPHS.format(flag, "attn").split(), *OVERLAP],
        [*GRAPHS.format(flag, "moe_router").split(), *OVERLAP, "--overlap-grad-reduce"],
        [
            *GRAPHS.format(flag, "moe_router").split(),
            *(*OVERLAP, "--overlap-grad-reduce --moe-shared-expert-intermediate-size 64"),
        ],
    ]
    lines = [" ".join(line).split() for line in lines]
    if scope:
        loss = "--cross-entropy-loss-fusion --cross-entropy-fusion-impl te --no-check-for-nan-in-loss-and-grad"
        lines.append(f"--cuda-graph-impl local {flag} full_iteration --te-rng-tracker {loss}".split())
    fused = {"cross_entropy_loss_fusion": True, "cross_entropy_fusion_impl": "te"}
    calls: list[dict[str, Any]] = [full | fused, full | fused | {"cross_entropy_fusion_impl": "native"}]
    offloading = {"cuda_graph_impl": "transformer_engine", "fine_grained_activation_offloading": True}
    inside = (["core_attn"], ["core_attn", "attn_proj"], ["qkv_linear"], ["moe_act"], ["attn_norm"])
    if not scope:
        calls += [offloading | {modules: ["attn"], "offload_modules": names} for names in inside]
        calls += [offloading | {modules: ["mlp"], "offload_modules": ["core_attn"]}]
    both = [(line, {}) for line in lines] + [([], settings) for settings in calls]
    versions = list(itertools.product(TE, TORCH[-1:]))
    of_offloading = list(itertools.product(TE_OF_OFFLOADING, TORCH))
    return [
        Requested(words, settings, te, version)
        for words, settings in both
        for te, version in (of_offloading if "offload_modules" in settings else versions)
    ]


def reported(rows: list[Requested], cgmigrate: Command, release: str) -> list[bool]:
    """Whether CG440 is reported of each row, whose project pins its versions."""
    for number, row in enumerate(rows):
        name, text = row.file
        write(f"{number:04}/{name}", text)
        write(f"{number:04}/requirements.txt", f"transformer-engine[pytorch]=={row.te}\ntorch=={row.torch}\n")
    output = cgmigrate("check", "--format", "json", "--from", release, "--to", release, "--select", "CG440", ".").stdout
    diagnosed = {int(Path(one["path"]).parts[0]) for one in json.loads(output)["findings"]}
    return [number in diagnosed for number in range(len(rows))]


def compare(rows: list[Requested], said: list[str], diagnosed: list[bool], capsys: pytest.CaptureFixture[str]) -> None:
    refused = [bool(text) for text in said]
    with capsys.disabled():
        print(f"\n{len(rows)} configurations with versions, {sum(refused)} refused, {sum(diagnosed)} reported")
    kinds = {text.partition(" ")[0] for text in said if text}
    assert kinds <= {"AssertionError"}, [text for text in said if text and not text.startswith("AssertionError")][:3]
    different = [(row, text) for row, text, one in zip(rows, said, diagnosed, strict=True) if bool(text) != one]
    assert not different, different[:5]
    assert 0 < sum(refused) < len(rows)


def test_what_0_19_refuses_with_the_pinned_versions_is_reported(
    project: Path, cgmigrate: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = requested("cuda_graph_modules")
    compare(rows, printed(JUDGE, rows, ""), reported(rows, cgmigrate, "0.19"), capsys)


@nightly_only
@pytest.mark.parametrize(("version", "modules"), [("0.17.1", "cuda_graph_scope")])
def test_what_earlier_releases_refuse_with_the_pinned_versions_is_reported(
    project: Path, cgmigrate: Command, capsys: pytest.CaptureFixture[str], version: str, modules: str
) -> None:
    rows = requested(modules)
    compare(rows, printed(JUDGE, rows, fetched(version)), reported(rows, cgmigrate, version[:4]), capsys)
