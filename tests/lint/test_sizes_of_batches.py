"""CG428 against megatron-core's own sizes of batches: the installed release, 0.18.2 and 0.17.1 compute them.

What they assert of their own arithmetic (checklist R8, R9, R10 and R13) is never violated, so no rule is about it.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.lint.diagnostics import Context
from cgmigrate.megatron.releases import Release
from tests.lint.test_companions import fetched
from tests.lint.test_companions_of_ecosystems import OWNERS, RULES
from tests.support.nightly import nightly_only
from tests.support.plans import examine
from tests.support.release_judges import printed

JUDGE = """
import json, logging, sys, warnings
warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)
import inspect
from megatron.core.inference.batch_dimensions_utils import CUDAGraphBatchDimensionBuilder
make = CUDAGraphBatchDimensionBuilder.generate_cuda_graph_batch_dimensions_list
known = inspect.signature(make).parameters
try:
    from megatron.core.inference.config import CudaGraphSizingDistribution
    distributions = list(CudaGraphSizingDistribution)
except ImportError:
    distributions = [None]
for line in sys.stdin:
    requests, tokens, guessed, size, graphs, mixed, cap, linear = json.loads(line)
    decoded = requests * (guessed + 1)
    # As DynamicInferenceContext calls it.
    largest = min(max(cap, decoded), tokens) if "sizing_distribution" in known else decoded
    more = {"sizing_distribution": distributions[linear % len(distributions)]} if distributions[0] else {}
    said = "" if tokens >= requests else "max_tokens must be >= max_requests"
    try:
        make(
            tp_size=size,
            num_cuda_graphs=graphs,
            cuda_graph_max_tokens=largest,
            cuda_graph_mixed_prefill_request_count=mixed,
            max_requests=requests,
            max_tokens=tokens,
            max_sequence_length=4096,
            use_cuda_graphs_for_non_decode_steps=bool(mixed),
            num_speculative_tokens=guessed,
            **more,
        )
    except AssertionError as error:
        said = said or str(error) or "an assertion without a text"
    print(" ".join(said.split()))
"""
SIZES = list(
    product([8, 64, 200, 512], [64, 256, 1000], [0, 1, 3], [1, 2, 8], [-1, 1, 2, 16], [0, 16], [8, 512], [0, 1])
)
"""Requests, tokens, guessed tokens, ranks, graphs, requests with a prompt, the bound of 0.19 and its distribution."""


def is_reported(requests: int, tokens: int, guessed: int, release: Release) -> bool:
    flags = f"--inference-dynamic-batching-max-requests {requests} --inference-dynamic-batching-max-tokens {tokens}"
    text = f"torchrun gpt_dynamic_inference.py --cuda-graph-impl local {flags} --num-speculative-tokens {guessed}\n"
    plan = examine(ShellDocument(text), Context(release, release, RULES, OWNERS))
    return "CG428" in {diagnostic.rule for diagnostic in plan.diagnostics}


def check(package: str, release: Release) -> None:
    reported = {size: is_reported(*size, release) for size in {one[:3] for one in SIZES}}
    rows = list(zip(SIZES, printed(JUDGE, SIZES, package), strict=True))
    assert [(one, said) for one, said in rows if bool(said) is not reported[one[:3]]] == []
    texts = {said for _, said in rows if said}
    assert all("max_requests" in text for text in texts) and len(texts) > 1


def test_the_sizes_of_the_installed_release() -> None:
    check("", Release(0, 19))


@nightly_only
@pytest.mark.parametrize(("version", "release"), [("0.17.1", Release(0, 17)), ("0.18.2", Release(0, 18))])
def test_the_sizes_of_former_releases(version: str, release: Release) -> None:
    assert Path(fetched(version)).is_dir()
    check(fetched(version), release)
