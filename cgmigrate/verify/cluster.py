"""Runs arms as jobs of Slurm, through submitit: job arrays with a cap, arms from which others start first.

A job is one arm. It does on its node what ``verify`` does on a workstation, so its log and result are the same plain
files. It is not a task a GPU, as in the script for srun: of a job that Slurm preempts, the tasks that are left report a
broken connection, and this would be the arm's result.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cgmigrate.text.plurals import counted
from cgmigrate.verify.arms import MISSING, Arm, ArmResult
from cgmigrate.verify.mcore import Home, environment
from cgmigrate.verify.run import RESULT, Runner, firsts, in_order, read_json

SLURM, LOCAL = "slurm", "local"
"""submitit's names: the cluster, and processes of this machine (for tests, and for a workstation)."""

RETRIES = 2
"""How often an arm is submitted again whose job ended without a result: its node failed, or it was cancelled."""

ARRAY = 1000
"""The most jobs of one array: what Slurm takes unless its administrators say otherwise."""

JOBS = "jobs.json"
"""In the folder of the jobs: the last job of each arm (its id, by the arm's key)."""

SHOW_SECONDS = 10.0
POLL_SECONDS = {SLURM: 5.0, LOCAL: 0.1}
SHARED_SECONDS = 15.0
"""How long a file that another node wrote may be invisible on this one."""

INSTALL = "install cgmigrate with its extra `cluster`, as in `pip install 'cgmigrate[cluster] @ git+URL'`"

_REPEATED = ("setup", "teardown", "srun_args")


class SubmitError(Exception):
    """Arms cannot be submitted; the message says why."""


@dataclass(frozen=True, slots=True)
class ArmJob:
    """What a job runs: an arm under a release, with its folder in ``folder``, for at most ``timeout`` seconds."""

    arm: Arm
    home: Home
    folder: Path
    timeout: float

    def __call__(self) -> str:
        """Run the arm, unless another job left its result meanwhile; return the outcome."""
        runner = Runner({self.arm.release: self.home}, self.folder, print, self.timeout)
        return runner.run([self.arm])[self.arm.key].outcome

    def checkpoint(self) -> Any:
        """What submitit has Slurm queue again when it stops the job: the arm, from its start."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


def parameters_of(values: Iterable[str]) -> dict[str, Any]:
    """Read ``KEY=VALUE`` options of sbatch, as submitit spells them. Raises SubmitError.

    ``KEY=`` omits an option that the jobs have otherwise. ``setup``, ``teardown`` and ``srun_args`` may be repeated.
    """
    result: dict[str, Any] = {}
    for text in values:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not name or not equals:
            raise SubmitError(f"--slurm {text}: expected KEY=VALUE, such as partition=batch")
        if name in _REPEATED:
            result.setdefault(name, []).append(value)
        else:
            result[name] = True if value == "true" else int(value) if value.isdecimal() else value
    if result.setdefault("cluster", SLURM) not in (SLURM, LOCAL):
        raise SubmitError(f"--slurm cluster={result['cluster']}: expected {SLURM} or {LOCAL}")
    return result


def run_as_jobs(runner: Runner, arms: Iterable[Arm], parameters: dict[str, Any]) -> None:
    """Run the arms that have no result yet as jobs, and give the runner their results. Raises SubmitError."""
    ordered = in_order(arm for arm in arms if arm.release in runner.homes)
    missing = [arm for arm in ordered if runner.earlier_result(arm) is None]
    if not missing:
        return
    try:
        import submitit  # noqa: F401
    except ImportError as error:
        raise SubmitError(f"--launcher slurm needs submitit, which is not installed; {INSTALL}") from error
    runner.progress(f"{counted(len(missing), 'arm')} to run as jobs …")
    folder = runner.folder / parameters["cluster"]
    folder.mkdir(exist_ok=True)
    queue = _Queue(runner, parameters, len(missing), folder, read_json(folder / JOBS) or {})
    first = {arm.key for arm in firsts(ordered)}
    try:
        for is_first in (True, False):
            part = [arm for arm in missing if (arm.key in first) is is_first]
            # The jobs of an array have the same size.
            for processes in sorted({arm.processes for arm in part}):
                queue.finish([arm for arm in part if arm.processes == processes])
    except KeyboardInterrupt:
        runner.progress("The same command waits for jobs that go on, and submits the rest.")
        raise


@dataclass(slots=True)
class _Queue:
    """Submits arms and waits for them. ``total`` arms are to run."""

    runner: Runner
    parameters: dict[str, Any]
    total: int
    folder: Path
    """Where submitit keeps the jobs, and their own logs."""
    ids: dict[str, str]
    jobs: dict[str, Any] = field(default_factory=dict)
    shown: float = 0.0

    @property
    def _cluster(self) -> str:
        return str(self.parameters["cluster"])

    def finish(self, arms: Sequence[Arm]) -> None:
        """Run arms with the same number of processes until each has a result, or has been tried often enough."""
        for _ in range(1 + RETRIES):
            self._round(arms)
            if self._cluster == SLURM and any(arm.key not in self.runner.results for arm in arms):
                time.sleep(SHARED_SECONDS)
            arms = [arm for arm in arms if not self._took(arm)]
            if not arms:
                return
            self.runner.progress(f"{counted(len(arms), 'job')} ended without a result, as on a node that failed")
        for arm in arms:
            reason = f"its job ended {1 + RETRIES} times without a result; logs: {self.folder}/{self.ids[arm.key]}_*"
            self.runner.results[arm.key] = ArmResult(arm, MISSING, reason)

    def _round(self, arms: Sequence[Arm]) -> None:
        """Submit each arm that no job runs, and wait until no job runs any."""
        running = [arm for arm in arms if arm.key in self.ids and not self._is_over(arm)]
        waiting = [arm for arm in arms if arm not in running]
        while waiting or running:
            # Slurm holds the cap in one array, so the next one waits; submitit's own processes have no cap.
            room = (not running) * ARRAY if self._cluster == SLURM else max(0, self.runner.jobs - len(running))
            if waiting[:room]:
                self._submit(waiting[:room])
            running, waiting = running + waiting[:room], waiting[room:]
            self._show(len(running))
            time.sleep(POLL_SECONDS[self._cluster])
            # In this order: a job writes the result before it ends.
            over = {arm.key for arm in running if self._is_over(arm)}
            running = [arm for arm in running if not self._took(arm) and arm.key not in over]

    def _submit(self, arms: Sequence[Arm]) -> None:
        runner = self.runner
        for arm in arms:
            (runner.folder / arm.key / RESULT).unlink(missing_ok=True)
        tasks = [ArmJob(arm, runner.homes[arm.release], runner.folder, runner.timeout) for arm in arms]
        try:
            with _away(self.folder):
                jobs = self._executor(arms[0].processes).submit_array(tasks)
        except (OSError, RuntimeError, ValueError) as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise SubmitError(f"submitit: {lines[-1]}") from error
        for arm, job in zip(arms, jobs, strict=True):
            self.ids[arm.key], self.jobs[job.job_id] = job.job_id, job
        partial = self.folder / f"{JOBS}.new"
        partial.write_text(json.dumps(self.ids, indent=1), encoding="utf-8")
        os.replace(partial, self.folder / JOBS)

    def _executor(self, processes: int) -> Any:
        import submitit

        executor = submitit.AutoExecutor(self.folder, cluster=self._cluster, slurm_max_num_timeout=RETRIES)
        # A thread for the forward, one for the backward.
        cpus = self.parameters.get("cpus_per_task", 2 * processes)
        # Since Slurm 22.05, srun does not take this from sbatch.
        words = [*self.parameters.get("srun_args", ()), *([f"--cpus-per-task={cpus}"] if cpus else [])]
        own = {
            "name": "cgmigrate",
            # The arm's own clock stops it first: a job that Slurm has to stop never came to run it.
            "timeout_min": math.ceil(self.runner.timeout / 60) + 4,
            "gpus_per_node": processes,
            "cpus_per_task": cpus or None,
        }
        executor.update_parameters(**{name: value for name, value in own.items() if name not in self.parameters})
        options = {"requeue": True, "array_parallelism": self.runner.jobs, **self.parameters, "srun_args": words}
        others = {}
        del options["cluster"]
        for name, value in options.items():
            try:
                executor.update_parameters(**{f"{self._cluster}_{name}": None if value == "" else value})
            except NameError:
                # submitit does not name it (reservation, licenses); sbatch knows whether it is an option.
                others[name] = value
        executor.update_parameters(slurm_additional_parameters={k: v for k, v in others.items() if v != ""})
        return executor

    def _is_over(self, arm: Arm) -> bool:
        """Whether the arm's last job is neither queued nor running."""
        job = self.ids[arm.key]
        if job not in self.jobs and self._cluster == SLURM:
            import submitit

            self.jobs[job] = submitit.SlurmJob(folder=self.folder, job_id=job)
        if job in self.jobs:
            return bool(self.jobs[job].done())
        # A local job that another process started, which submitit does not know; macOS does not show it.
        try:
            command = Path(f"/proc/{job}/cmdline").read_bytes()
        except OSError:
            return True
        return os.fsencode(self.folder) not in command

    def _took(self, arm: Arm) -> bool:
        """Take the result that the arm's job left; return whether it has one."""
        left = read_json(self.runner.folder / arm.key / RESULT) and self.runner.stored_result(arm)
        if left and arm.key not in self.runner.results:
            self.runner.take(left)
        return bool(left)

    def _show(self, running: int) -> None:
        if time.monotonic() - self.shown >= SHOW_SECONDS:
            self.shown = time.monotonic()
            ended = len(self.runner.results)
            self.runner.progress(f"{ended} of {self.total} arms have ended, {counted(running, 'job')} submitted")


@contextmanager
def _away(folder: Path) -> Iterator[None]:
    """Submit from ``folder``: with -m, the jobs' Python 3.10 imports from the working directory first."""
    from submitit.core.utils import environment_variables

    before = os.getcwd()
    os.chdir(folder)
    try:
        with environment_variables(**environment(Home("", sys.executable))):
            yield
    finally:
        os.chdir(before)
