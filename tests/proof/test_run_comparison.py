"""What two runs of a command differ in."""

from __future__ import annotations

from typing import Any

import pytest

from cgmigrate.megatron.settings import DEPRECATED, FIELDS
from cgmigrate.megatron.versions import parse_release
from cgmigrate.proof.run.command import Ended
from cgmigrate.proof.run.observations import Built, Comparison, Observations

COMPARISON = Comparison(frozenset(FIELDS), DEPRECATED, parse_release("0.17"), parse_release("0.19"))
VALIDATED = {"cuda_graph_impl": "none", "cuda_graph_modules": [], "inference_cuda_graph_scope": "none"}


def run_with(settings: dict[str, Any], error: str | None = "", **fields: Any) -> Observations:
    """A run in which one test builds one configuration."""
    run = Observations(Ended(0))
    run.built["test"].append(Built("Config", "recipes.py:make", settings, {**VALIDATED, **fields}, error))
    return run


@pytest.mark.parametrize(
    ("before", "after", "difference"),
    [
        pytest.param(run_with({}), run_with({}), [], id="nothing"),
        pytest.param(run_with({}, enable_cuda_graph=True), run_with({}), [], id="an old name, after validation"),
        pytest.param(
            run_with({}, layers=2),
            run_with({}, layers=3),
            ["Config of recipes.py:make in test: layers is 3 instead of 2"],
            id="another field",
        ),
        pytest.param(
            run_with({}, api_key="a"),
            run_with({}, api_key="b"),
            ["Config of recipes.py:make in test: api_key differs"],
            id="a secret",
        ),
        pytest.param(
            run_with({"enable_cuda_graph": True}, cuda_graph_impl="local"),
            run_with({"cuda_graph_impl": "none"}),
            ["Config of recipes.py:make in test: captures is "],
            id="a capture",
        ),
        pytest.param(
            run_with(
                {"cuda_graph_impl": "none", "cuda_graph_scope": "full_iteration", "cuda_graph_modules": "full"},
                cuda_graph_impl="full_iteration",
            ),
            run_with({"cuda_graph_impl": "none", "cuda_graph_modules": "full"}),
            [],
            id="the new release reads the old text otherwise than its own",
        ),
        pytest.param(
            run_with({}, None, model={"external_cuda_graph": True, "cuda_graph_scope": ["attn"]}),
            run_with({}, None, model={"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}),
            [],
            id="a model in a container",
        ),
        pytest.param(
            run_with({}, None, model={"external_cuda_graph": True, "cuda_graph_scope": ["attn", "mlp"]}),
            run_with({}, None, model={"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}),
            ["Config of recipes.py:make in test: model.captures is "],
            id="a model in a container, with a module less",
        ),
        pytest.param(
            run_with({}, "ValueError: no layers", enable_cuda_graph=True),
            run_with({}, "ValueError: no layers", cuda_graph_impl="local"),
            [],
            id="refused for another reason, with the same capture",
        ),
    ],
)
def test_differences(before: Observations, after: Observations, difference: list[str]) -> None:
    texts = [how for _, how in COMPARISON.built_otherwise(before, after)]
    assert len(texts) == len(difference)
    assert all(one.startswith(other) for one, other in zip(texts, difference, strict=True)), texts


def test_what_differs_by_itself_is_not_used() -> None:
    one, other = run_with({}, started="12:00", layers=2), run_with({}, started="12:01", layers=2)
    comparison, flaky = COMPARISON.with_noise(one, other)
    assert flaky == []
    assert [*comparison.built_otherwise(one, run_with({}, started="12:02", layers=2))] == []
    assert [*comparison.built_otherwise(one, run_with({}, started="12:02", layers=3))] != []
