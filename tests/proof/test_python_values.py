"""Values of the evaluator of Python code: large ones are neither made nor shown, whatever the code says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cgmigrate.proof.flow.run import frozen, thawed
from cgmigrate.proof.flow.world import value_of_member
from tests.support.files import write
from tests.support.paths import FETCHED
from tests.support.tables import table_of

HEAD = """\
from megatron.bridge.recipes.llama import base_config


def recipe():
    cfg = base_config()
    x = {first}
"""
REST = """\
    if x is None:
        return cfg
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["attn"]
    return cfg
"""
LARGE = table_of(__name__, "LARGE")
DOUBLED = {
    "a text": ("'ab'", "x = x + x"),
    "a number": ("3", "x = x * x"),
    "a list": ("[1]", "x = [x, x]"),
    "a dict": ("{1: 2}", "x = {1: x, 2: x}"),
    "a tuple in a comprehension": ("(1,)", "x = tuple(x for _ in range(900))"),
}


@pytest.fixture
def checkout(project: Path) -> Path:
    """A git checkout, whose code is followed."""
    (project / ".git/HEAD").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    return project


def checked(cgmigrate, text: str) -> None:
    write("recipe.py", text)
    subprocess.run(["git", "add", "."], check=True)
    result = cgmigrate("check", ".")
    assert result.exit_code == 1, result.stderr
    assert "CG106" in result.stdout and "CG013" not in result.stdout


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("first", LARGE.values(), ids=LARGE)
def test_a_large_value_is_not_made(cgmigrate, first: str) -> None:
    checked(cgmigrate, HEAD.format(first=first) + REST)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize(("first", "step"), DOUBLED.values(), ids=DOUBLED)
def test_a_value_that_grows_is_not_followed(cgmigrate, first: str, step: str) -> None:
    loop = f"    for _ in range(200):\n        {step}\n    helper(x)\n"
    checked(cgmigrate, HEAD.format(first=first) + loop + REST)


@pytest.mark.usefixtures("checkout")
def test_a_value_that_contains_itself_is_not_followed(cgmigrate) -> None:
    checked(cgmigrate, HEAD.format(first="[]") + "    x.append(x)\n    helper(x)\n    y = x + [1]\n" + REST)


@pytest.mark.parametrize("name", ["CudaGraphScope", "CudaGraphModule", "InferenceCudaGraphScope"])
def test_members_have_the_values_of_the_installed_release(name: str) -> None:
    enums = pytest.importorskip("megatron.core.transformer.enums")
    members = {one.name: one.value for one in getattr(enums, name)}

    assert {one: value_of_member(name, one) for one in members} == members


def test_members_have_the_values_of_a_former_release() -> None:
    source = FETCHED / "megatron-core-0.17.1/megatron/core/transformer/enums.py"
    if not source.exists():
        pytest.skip("megatron-core 0.17.1 is not in .corpus (.ci/run fetches it)")
    names: dict[str, object] = {}
    exec(compile(source.read_text(), str(source), "exec"), names)
    members = {one.name: one.value for one in names["CudaGraphScope"]}  # type: ignore[attr-defined]

    assert {one: value_of_member("CudaGraphScope", one) for one in members} == members


@pytest.mark.parametrize("value", [{"attn": [1]}, [{"attn": {"mlp"}}], ["attn", {}], {1: {2: [3]}}])
def test_any_value_of_a_setting_can_be_a_key(value: object) -> None:
    assert thawed(frozen(value)) == value
    assert {frozen(value): 1}[frozen(value)] == 1
