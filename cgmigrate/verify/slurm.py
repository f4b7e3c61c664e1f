"""The arms of a verification as a script for Slurm: every line is one ``srun``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

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
    lines = [_HEAD + "export " + " ".join(f"{name}={shlex.quote(value)}" for name, value in FIXED.items())]
    for arm in in_order(arms):
        home = runner.homes.get(arm.release)
        if home is None or runner.found(arm):
            continue
        place = runner.prepare(arm)
        command = shlex.join([home.python, *runner.program(arm)])
        path = shlex.quote(runner.environment(home)["PYTHONPATH"])
        tasks = f"--ntasks={arm.processes} --gpus-per-task=1 --kill-on-bad-exit=1"
        lines.append(
            f"# {describe(arm)}\nPYTHONPATH={path} srun {tasks} --output={shlex.quote(str(place / 'log'))} {command}"
        )
    return "\n".join(lines) + "\n"
