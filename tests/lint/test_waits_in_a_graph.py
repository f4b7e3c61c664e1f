"""Rules about what a graph cannot capture, against code of the releases that waits for the device or copies from it.

What cannot be captured raises an error in these tests: a wait for the device, or a copy between it and the host. The
code that does it is megatron-core's own, executed on a CPU; that these are errors in a graph was seen on H200s.
"""

from __future__ import annotations

import ast
import json
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.lint.diagnostics import Context
from cgmigrate.megatron.releases import Release
from tests.lint.test_companions import fetched, shown
from tests.lint.test_companions_of_ecosystems import OWNERS, RULES, core
from tests.support.bridge_assertions import refuses
from tests.support.comparisons import Comparison, Judged, assert_judged
from tests.support.nightly import nightly_only
from tests.support.plans import examine
from tests.support.release_judges import printed

WAITS = "cannot be captured"
P2P = "pipeline_parallel/p2p_communication.py"
DISPATCHERS = """
import contextlib, json, logging, socket, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
import torch
from megatron.core import parallel_state
from megatron.core.transformer.moe import token_dispatcher
from megatron.core.transformer.moe.moe_utils import get_default_pg_collection
from megatron.core.transformer.transformer_config import TransformerConfig
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
torch.distributed.init_process_group("gloo", init_method=address, rank=0, world_size=1)
parallel_state.initialize_model_parallel()


class Waits(Exception):
    pass


def wait(*_, **__):
    raise Waits


class Stream:
    wait_stream = record_stream = lambda *_: None
    synchronize = wait
    record_event = lambda self: self


torch.cuda.Stream, torch.cuda.current_stream = Stream, Stream
torch.cuda.stream, torch.cuda.current_device = lambda _: contextlib.nullcontext(), lambda: "cpu"
torch.Tensor.record_stream = lambda *_: None
kinds = {
    "alltoall": token_dispatcher.MoEAlltoAllTokenDispatcher,
    "allgather": token_dispatcher.MoEAllGatherTokenDispatcher,
}
of_tensors = {name: getattr(torch.Tensor, name) for name in ("cpu", "item", "tolist")}
probabilities = torch.rand(16, 8)
routing = torch.zeros(16, 8, dtype=torch.bool).scatter(1, probabilities.topk(2, dim=1).indices, True)


def dispatched(config):
    groups = get_default_pg_collection()
    made = kinds[config.moe_token_dispatcher_type](8, list(range(8)), config=config, pg_collection=groups)
    for name in of_tensors:
        setattr(torch.Tensor, name, wait)
    try:
        tokens = made.dispatch_preprocess(torch.rand(16, 1, 64), routing, probabilities)
        made.dispatch_postprocess(*made.token_dispatch(*tokens))
        return ""
    except (Waits, AssertionError):
        # It asserts, too, that a wait is not before what a graph captures.
        return "waits"
    finally:
        for name, method in of_tensors.items():
            setattr(torch.Tensor, name, method)


for line in sys.stdin:
    settings = json.loads(line)
    size = {"num_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "add_bias_linear": False}
    try:
        config = TransformerConfig(**size, **settings)
    except Exception:
        print("refused")
        continue
    print(dispatched(config) if config.num_moe_experts else "")
"""
"""Prints for each configuration whether its experts get their tokens without a wait of the host."""
COMMUNICATION = """
import contextlib, io, json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
from megatron.training import arguments
try:
    from megatron.training.argument_utils import core_transformer_config_from_args
except ImportError:
    from megatron.training.arguments import core_transformer_config_from_args
arguments.is_te_min_version = lambda *_, **__: True
model = "--num-layers 16 --hidden-size 64 --num-attention-heads 4 --seq-length 32 --max-position-embeddings 32"
run = "--micro-batch-size 1 --global-batch-size 16 --tokenizer-type NullTokenizer --vocab-size 9 --lr 1 --bf16"
out = sys.stdout
for line in sys.stdin:
    sys.argv = ["pretrain_gpt.py", *model.split(), *run.split(), *json.loads(line)]
    said = "refused"
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        try:
            args = arguments.parse_args()
            args.world_size, args.rank = 8, 0
            arguments.validate_args(args)
            config = core_transformer_config_from_args(args)
            said = json.dumps([config.pipeline_model_parallel_size, config.batch_p2p_comm, config.batch_p2p_sync])
        except SystemExit:
            pass
        except Exception as error:
            said = "refused " + str(error)
    print(" ".join(said.split()), file=out)
"""
"""Prints how the stages of each command line communicate."""
CAPTURED: list[list[str]] = [[], ["attn"], ["moe_router"], ["attn", "moe_router"]]
IMPLEMENTATIONS = ["none", "local", "transformer_engine", "full_iteration"]


def codes(document: YamlDocument | ShellDocument, rule: str, release: Release) -> frozenset[str]:
    plan = examine(document, Context(release, release, RULES, OWNERS))
    return frozenset({diagnostic.rule for diagnostic in plan.diagnostics} & {rule})


# --- experts: CG411 ---------------------------------------------------------------------------------


def has_experts_in_it(impl: str, modules: list[str]) -> bool:
    """Whether graphs of a GPT model contain the dispatcher; `test_local_layers` shows it of `local`."""
    whole_layer = not modules or (impl == "local" and "attn" in modules)
    return impl == "full_iteration" or (impl in ("local", "transformer_engine") and whole_layer)


def models(name: str, implementations: list[str]) -> list[dict[str, Any]]:
    experts = product(("alltoall", "allgather"), (None, 1.0), (False, True))
    parts: list[dict[str, Any]] = [
        {"num_moe_experts": 8, "moe_token_dispatcher_type": dispatcher, "moe_pad_expert_input_to_capacity": pad}
        | ({"moe_expert_capacity_factor": capacity} if capacity else {})
        for dispatcher, capacity, pad in experts
    ]
    return [
        {"cuda_graph_impl": impl} | ({} if impl == "full_iteration" else {name: modules}) | model
        for impl, modules, model in product(implementations, CAPTURED, [{}, *parts])
        if not (impl == "full_iteration" and modules)
    ]


def command_line(settings: dict[str, Any]) -> str:
    """The same settings as flags; what has its default is not written."""
    words = ["torchrun", "pretrain_gpt.py", "--num-layers", "2"]
    for name, value in settings.items():
        flag = "--num-experts" if name == "num_moe_experts" else "--" + name.replace("_", "-")
        if value not in (False, [], "allgather"):
            words += [flag, *map(str, value if isinstance(value, list) else [] if value is True else [value])]
    return " ".join(words) + "\n"


def compared_experts(package: str, name: str, implementations: list[str], release: Release) -> Comparison:
    configurations = models(name, implementations)
    rows = []
    for one, said in zip(configurations, printed(DISPATCHERS, configurations, package), strict=True):
        is_captured = has_experts_in_it(one["cuda_graph_impl"], one.get(name, []))
        document = YamlDocument(yaml.safe_dump({"model": one | {"hidden_size": 64}}, sort_keys=False))
        if said != "refused":
            text = WAITS if said and is_captured else ""
            rows.append(Judged(str(one), text, codes(document, "CG411", release)))
            line = command_line(one)
            rows.append(Judged(line, text, codes(ShellDocument(line), "CG411", release)))
    return Comparison(f"token dispatchers of {release}", rows, {"CG411": (WAITS,)})


def test_experts_of_the_installed_release(capsys: pytest.CaptureFixture[str]) -> None:
    core("")
    comparison = shown(compared_experts("", "cuda_graph_modules", IMPLEMENTATIONS, Release(0, 19)), capsys)
    assert comparison.refused


@nightly_only
def test_experts_of_0_17(capsys: pytest.CaptureFixture[str]) -> None:
    implementations = ["none", "local", "transformer_engine"]
    package = fetched("0.17.1")
    assert shown(compared_experts(package, "cuda_graph_scope", implementations, Release(0, 17)), capsys).refused


# --- stages of a pipeline: CG410 --------------------------------------------------------------------


def waits_after_communication(path: Path, stages: int, batched: bool, sync: bool) -> bool:
    """Whether the communication of a release waits for the device; one stage has none."""

    def synchronize() -> None:
        raise AssertionError

    config = SimpleNamespace(batch_p2p_comm=batched, batch_p2p_sync=sync)
    names = {"config": config, "torch": SimpleNamespace(cuda=SimpleNamespace(synchronize=synchronize))}
    return stages > 1 and refuses(path, "config.batch_p2p_comm and config.batch_p2p_sync", "synchronize", names)


@pytest.mark.parametrize("impl", ["none", "transformer_engine", "full_iteration"])
@pytest.mark.parametrize(("stages", "batched", "sync"), list(product([1, 2, 4], [True, False], [True, False])))
def test_stages_of_a_configuration(impl: str, stages: int, batched: bool, sync: bool) -> None:
    model = {"cuda_graph_impl": impl, "pipeline_model_parallel_size": stages, "hidden_size": 64}
    model |= {"batch_p2p_comm": batched, "batch_p2p_sync": sync}
    waits = impl == "full_iteration" and waits_after_communication(core(P2P), stages, batched, sync)
    document = YamlDocument(yaml.safe_dump({"model": model}, sort_keys=False))
    assert_judged("CG410", bool(codes(document, "CG410", Release(0, 19))), waits)


def command_lines(graphs: list[str]) -> list[list[str]]:
    stages = ["", "--pipeline-model-parallel-size 2", "--pipeline-model-parallel-size 4"]
    parts = ["", "--num-layers-per-virtual-pipeline-stage 2", "--num-virtual-stages-per-pipeline-rank 2"]
    overlap = ["", "--no-overlap-p2p-communication"]
    others = "--no-check-for-nan-in-loss-and-grad --te-rng-tracker --train-iters 9"
    return [" ".join(filter(None, [*one, others])).split() for one in product(graphs, stages, parts, overlap)]


def compared_stages(graphs: list[str], path: Path, package: str, release: Release) -> Comparison:
    lines = command_lines(graphs)
    rows = []
    for line, said in zip(lines, printed(COMMUNICATION, lines, package), strict=True):
        if not said.startswith("refused"):
            is_whole = "full_iteration" in line and "none" not in line
            text = WAITS if is_whole and waits_after_communication(path, *json.loads(said)) else ""
            document = ShellDocument(f"torchrun pretrain_gpt.py {' '.join(line)}\n")
            rows.append(Judged(" ".join(line), text, codes(document, "CG410", release)))
    return Comparison(f"communication of {release}", rows, {"CG410": (WAITS,)})


def test_stages_of_command_lines(capsys: pytest.CaptureFixture[str]) -> None:
    graphs = [f"--cuda-graph-impl {impl}" for impl in ("none", "full_iteration")]
    graphs.append("--cuda-graph-impl transformer_engine --cuda-graph-modules attn")
    comparison = shown(compared_stages(graphs, core(P2P), "", Release(0, 19)), capsys)
    assert comparison.refused


@nightly_only
def test_stages_of_command_lines_of_0_17(capsys: pytest.CaptureFixture[str]) -> None:
    package = fetched("0.17.1")
    graphs = ["--cuda-graph-impl none", "--cuda-graph-impl local --cuda-graph-scope full_iteration"]
    graphs.append("--cuda-graph-impl transformer_engine --cuda-graph-scope attn")
    path = Path(package, "megatron/core", P2P)
    assert shown(compared_stages(graphs, path, package, Release(0, 17)), capsys).refused


# --- the batch of `pretrain_gpt.py`: CG423 ----------------------------------------------------------


def copies_from_the_host(path: Path) -> bool:
    """Whether the lengths of sequences are sent with a number that the device gets from the host."""
    (outer,) = _functions(ast.parse(path.read_text(encoding="utf-8")), "get_batch_on_this_tp_rank")
    node = next(one for one in _functions(outer, "_broadcast_cu_seqlens") if one.args.args)

    def tensor(_value: object, *, device: object = None, **_others: object) -> None:
        # A new tensor with a value of Python is copied to the device.
        if device is not None:
            raise AssertionError

    cuda = SimpleNamespace(current_device=lambda: "cuda", current_stream=lambda: None)
    torch = SimpleNamespace(tensor=tensor, cuda=cuda, int64=0, int32=0, empty=lambda *_, **__: None, Tensor=object)
    names: dict[str, Any] = {"torch": torch, "_broadcast": lambda _: None}
    exec(compile(ast.Module([node], []), path.name, "exec"), names)
    try:
        names[node.name](None)
    except AssertionError:
        return True
    return False


def _functions(tree: ast.AST, name: str) -> list[ast.FunctionDef]:
    return [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef) and one.name == name]


@pytest.mark.parametrize("impl", ["--cuda-graph-impl none", "--cuda-graph-impl local", "--enable-cuda-graph"])
@pytest.mark.parametrize("scope", ["", "--cuda-graph-scope full_iteration", "--cuda-graph-scope attn"])
def test_the_batch_of_0_17(impl: str, scope: str) -> None:
    copies = copies_from_the_host(Path(fetched("0.17.1"), "megatron/training/utils.py"))
    is_whole = "full_iteration" in scope and "none" not in impl
    document = ShellDocument(f"torchrun pretrain_gpt.py {impl} {scope} --train-iters 9\n")
    assert_judged("CG423", bool(codes(document, "CG423", Release(0, 17))), is_whole and copies)
    assert not codes(document, "CG423", Release(0, 18))
