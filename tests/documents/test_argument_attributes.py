"""What becomes of the deprecated settings among Megatron-LM's arguments: the messages on reads of them rest on it."""

from __future__ import annotations

import pytest

from tests.lint.test_companions import fetched
from tests.support.argument_judge import argument_judge
from tests.support.release_judges import printed

NAMES = ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_scope")
SAID = f"said += ' '.join(str(getattr(args, name, 'deleted')) for name in {NAMES}) + ' | '"
JUDGE = argument_judge(SAID, "--num-layers 4 --te-rng-tracker").replace(
    "arguments.validate_args(args)", f"{SAID}; arguments.validate_args(args)"
)
"""Says the three attributes before `validate_args`, and behind it."""


def package_of(version: str) -> str:
    if version != "installed":
        return fetched(version)
    return ""


@pytest.mark.parametrize(("version", "scope"), [("0.17.1", "[]"), ("0.18.2", "deleted"), ("installed", "deleted")])
def test_a_boolean_is_true_only_where_its_flag_is_written_and_deleted_there(version: str, scope: str) -> None:
    flags = [[], ["--enable-cuda-graph"], ["--external-cuda-graph"], ["--cuda-graph-impl", "local"]]
    assert printed(JUDGE, flags, package_of(version)) == [
        f"False False {scope} | False False {scope} |",
        f"True False {scope} | deleted False {scope} |",
        f"False True {scope} | False deleted {scope} |",
        f"False False {scope} | False False {scope} |",
    ]
