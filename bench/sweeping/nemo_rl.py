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
    """The judge of NeMo-RL's main branch, with a dense model."""
    judge_nemo_rl = import_module("tests.support.nemo_rl_judge").judge_nemo_rl

    def ask(question: dict[str, Any]) -> dict[str, Any]:
        refused = judge_nemo_rl(question["settings"]) or ""
        control = (judge_nemo_rl(question["control"]) or "") if refused else ""
        return {"refused": refused, "control": control, "effective": None}

    return ask
