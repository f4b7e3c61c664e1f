"""``python -m cgmigrate.verify.probe ARM.json STATE-FOLDER RESULT-FOLDER``: run one arm, write one file a rank."""

from __future__ import annotations

import json
import os
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cgmigrate.verify.arms import CRASHED, DONE, MISSING, REFUSED, TRAINING, Arm, Rank
from cgmigrate.verify.probe.model import place_among_processes
from cgmigrate.verify.probe.result import environment, failure_of, write


def main(arm_file: str, states: str, results: str) -> int:
    """Run the arm of ``arm_file``; return the exit status, 0 when it ran to its end."""
    arm = Arm.from_json(json.loads(Path(arm_file).read_text(encoding="utf-8")))
    rank, _, _ = place_among_processes()
    result: dict[str, Any] = {
        "outcome": DONE,
        "failure": "",
        "effective": {},
        "environment": {},
        "remarks": [],
        "rank": None,
    }
    try:
        _run(arm, Path(states), result)
    except BaseException as error:  # whatever stops an arm is its result
        traceback.print_exc()
        result["outcome"] = {"RefusedError": REFUSED, "MissingError": MISSING}.get(type(error).__name__, CRASHED)
        result["failure"] = str(error) if result["outcome"] != CRASHED else failure_of(error)
    write(result, Path(results), rank)
    return 0 if result["outcome"] == DONE else 1


def _run(arm: Arm, states: Path, result: dict[str, Any]) -> None:
    if arm.workload != TRAINING:
        from cgmigrate.verify.probe import flash_attention

        if remark := flash_attention.install():
            result["remarks"].append(remark)
    import torch

    from cgmigrate.verify.probe import model as proxy_model
    from cgmigrate.verify.probe.census import Census

    result["environment"] = environment()
    rank = proxy_model.start(arm)
    config = proxy_model.configuration(arm.proxy, arm.settings)
    result["effective"] = proxy_model.effective(config)
    training = arm.workload == TRAINING
    census = Census()
    census.install()
    model = proxy_model.build(arm.proxy, config, training)
    state = f"{arm.model_key}-{rank}.pt"
    proxy_model.same_start(model, states / state)
    torch.cuda.reset_peak_memory_stats()
    if training:
        from cgmigrate.verify.probe.training import train

        measured = train(model, config, arm, census)
    else:
        from cgmigrate.verify.probe.generation import generate

        measured = generate(model.eval(), config, arm, census)
    measured.pop("seconds", None)
    result["rank"] = asdict(
        Rank(
            rank=rank,
            graphs=census.graphs(),
            eager=census.eager(),
            seconds=tuple(census.seconds),
            peak_bytes=torch.cuda.max_memory_allocated(),
            reserved_bytes=torch.cuda.max_memory_reserved(),
            **measured,
        )
    )


if __name__ == "__main__":
    status = main(*sys.argv[1:4])
    sys.stdout.flush()
    sys.stderr.flush()
    # Tearing NCCL down under live graphs can hang; everything is written.
    os._exit(status)
