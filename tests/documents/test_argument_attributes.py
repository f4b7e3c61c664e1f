"""What becomes of the deprecated settings among Megatron-LM's arguments: the messages on reads of them rest on it."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from tests.lint.test_companions import fetched, judged
from tests.support.argument_judge import argument_judge

NAMES = ("enable_cuda_graph", "external_cuda_graph", "cuda_graph_scope")
ATTRIBUTES = argument_judge(
    f"said = ' '.join(str(getattr(args, name, 'deleted')) for name in {NAMES})", "--num-layers 4"
)
"""Says the three attributes behind `validate_args`."""
UNCHECKED = argument_judge("", "--num-layers 4").replace(
    "arguments.validate_args(args)",
    f"said = ' '.join(str(getattr(args, name, 'deleted')) for name in {NAMES})",
)
"""Says them before it."""
FLAGS = (
    ["--te-rng-tracker"],
    ["--te-rng-tracker", "--enable-cuda-graph"],
    ["--te-rng-tracker", "--external-cuda-graph"],
)


def package_of(version: str) -> str:
    if version != "installed":
        return fetched(version)
    if find_spec("megatron") is None or find_spec("megatron.training") is None:
        pytest.skip("megatron-core is not installed")
    return ""


@pytest.mark.parametrize(("version", "scope"), [("0.17.1", "[]"), ("0.18.2", "deleted"), ("installed", "deleted")])
def test_a_boolean_is_deleted_only_where_its_flag_is_written(version: str, scope: str) -> None:
    said = judged([*FLAGS], package_of(version), ATTRIBUTES)
    assert said == [f"False False {scope}", f"deleted False {scope}", f"False deleted {scope}"]


@pytest.mark.parametrize(("version", "scope"), [("0.17.1", "[]"), ("0.18.2", "deleted"), ("installed", "deleted")])
def test_before_it_is_validated_a_boolean_says_whether_its_flag_is_written(version: str, scope: str) -> None:
    said = judged([*FLAGS], package_of(version), UNCHECKED)
    assert said == [f"False False {scope}", f"True False {scope}", f"False True {scope}"]


@pytest.mark.parametrize("version", ["0.17.1", "0.18.2", "installed"])
def test_under_its_new_name_a_flag_leaves_the_boolean_false(version: str) -> None:
    flags = [["--te-rng-tracker", "--cuda-graph-impl", "local"]]
    assert judged(flags, package_of(version), UNCHECKED)[0].startswith("False False")
    assert judged(flags, package_of(version), ATTRIBUTES)[0].startswith("False False")
