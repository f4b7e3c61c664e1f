"""NeMo-RL as a judge: its own source, which tests/support/nemo_rl_judge.py runs where it is given."""

from __future__ import annotations

import random
from collections.abc import Callable
from importlib import import_module
from typing import Any


def missing() -> str:
    """What the judge lacks, empty if it can run."""
    try:
        return str(import_module("tests.support.nemo_rl_judge").missing())
    except ImportError as error:
        return str(error)


def policy(choose: random.Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """A random configuration, and the same without graphs."""
    configurations = import_module("tests.support.nemo_rl_configs")
    chosen = configurations.random_policy(choose)
    return {"policy": chosen}, {"policy": configurations.without_graphs(chosen)}


def asking() -> Callable[[dict[str, Any]], dict[str, Any]]:
    """The judge of NeMo-RL's main branch. It refuses what it refuses for every model: a file does not show which."""
    judge_nemo_rl = import_module("tests.support.nemo_rl_judge").judge_nemo_rl
    models = import_module("tests.support.nemo_rl_configs").MODELS.values()

    def refusal(settings: dict[str, Any]) -> str:
        refusals = [judge_nemo_rl(settings, model) or "" for model in models]
        return refusals[0] if all(refusals) else ""

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        refused = refusal(question["settings"])
        return {"refused": refused, "control": refusal(question["control"]) if refused else "", "effective": None}

    return ask
