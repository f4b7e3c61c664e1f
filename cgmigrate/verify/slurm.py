"""The arms of a verification as a script for Slurm: every line is one ``srun``."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterable

from cgmigrate.text.escaping import in_line
from cgmigrate.verify.arms import Arm
from cgmigrate.verify.run import FIXED, Runner, describe, in_order

_HEAD = """#!/usr/bin/env bash
# Run inside an allocation with as many GPUs as the largest arm needs; every srun is one arm.
# Then repeat the same `cgmigrate verify` with the same --work and without --launcher: it reads the results.
set -u
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1) MASTER_PORT=29500
"""


def script(runner: Runner, arms: Iterable[Arm]) -> str:
    """Write the arms to the runner's folder; return the script that runs them, those first that others start from."""
    lines = [
        _HEAD
        + "export "
        + " ".join(
            # The folder in which the script is started may hold another megatron-core.
            f"{name}={shlex.quote(value)}"
            for name, value in {**FIXED, "PYTHONSAFEPATH": "1"}.items()
        )
    ]
    for arm in in_order(arms):
        home = runner.homes.get(arm.release)
        if home is None or runner.earlier_result(arm):
            continue
        place = runner.prepare(arm)
        command = shlex.join([home.python, *runner.program(arm)])
        path = shlex.quote(runner.environment(home)["PYTHONPATH"])
        # Python 3.10 does not know PYTHONSAFEPATH: with -m it imports from the working directory first.
        folder = shlex.quote(str(place))
        # A task picks its GPU by its place on the node, so it has to see all of them.
        tasks = f"--ntasks={arm.processes} --gpus-per-task=1 --gpu-bind=none --kill-on-bad-exit=1"
        tasks += f" --time={max(1, math.ceil(runner.timeout / 60))}"
        lines.append(
            f"# {in_line(describe(arm))}\nPYTHONPATH={path} srun {tasks} --chdir={folder} "
            f"--output={shlex.quote(str(place / 'log'))} {command}"
        )
    return "\n".join(lines) + "\n"
