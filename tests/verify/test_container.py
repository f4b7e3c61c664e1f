"""Megatron-Bridge's container, as the judge of packs builds it, with a stand-in for its sections."""

from __future__ import annotations

import dataclasses
import sys
import types
from typing import Any

import pytest

from cgmigrate.verify.config_probe import CONTAINER, SECTIONS, answer

Sections = {
    name: dataclasses.make_dataclass(name, [(key, Any, None) for key in (*section, "eval_interval")])
    for name, section in SECTIONS.items()
}
Validation = dataclasses.make_dataclass("Validation", [("eval_interval", int, 1000)])


def validate(container: Any) -> None:
    """Do with the old section what Megatron-Bridge 0.4 to 0.6 does."""
    if container.train.eval_interval is not None:
        container.validation.eval_interval = container.train.eval_interval
    if container.validation.eval_interval <= 0:
        message = "validates every 0 steps"
        raise ValueError(message)


ConfigContainer = dataclasses.make_dataclass(
    "ConfigContainer",
    [*Sections.items(), ("dataset", None), ("validation", Validation, dataclasses.field(default_factory=Validation))],
    namespace={"validate": validate},
)


@pytest.fixture(autouse=True)
def bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType(CONTAINER.rpartition(".")[0])
    module.ConfigContainer = ConfigContainer  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)


def read(settings: dict[str, Any], fields: dict[str, Any] | None = None) -> dict[str, Any]:
    return answer({"id": 0, "reader": "config", "owner": CONTAINER, "settings": settings, "fields": fields or {}})


def test_without_settings_it_has_what_it_needs() -> None:
    result = read({})
    needed = {f"{name}.{key}": value for name, section in SECTIONS.items() for key, value in section.items()}
    assert result["ok"] and result["effective"].items() >= needed.items()
    assert result["effective"]["validation.eval_interval"] == 1000


@pytest.mark.parametrize("name", ["train.eval_interval", "validation.eval_interval"])
def test_settings_are_those_of_a_section_and_it_is_validated(name: str) -> None:
    assert read({name: 7})["effective"]["validation.eval_interval"] == 7


def test_what_it_refuses_is_refused() -> None:
    assert read({"train.eval_interval": 0})["error"]["message"] == "validates every 0 steps"
    assert read({"train.eval_steps": 7})["error"]["message"] == "ConfigContainer has no train.eval_steps"


def test_further_settings_that_it_lacks_are_omitted() -> None:
    result = read({}, {"train.eval_steps": 7, "train.train_iters": 3})
    assert result["effective"]["train.train_iters"] == 3 and result["omitted"].startswith("train.eval_steps (")
