"""One call of ``cgmigrate verify``: options → cases → arms → verdicts."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cgmigrate.project.checkout import WORK_MARK
from cgmigrate.text.plurals import counted
from cgmigrate.verify.arms import LEGACY_SOURCE, MIGRATED, Arm, ArmResult
from cgmigrate.verify.cluster import SLURM, parameters_of, run_as_jobs
from cgmigrate.verify.compare import INCONCLUSIVE, ArmComparison, exit_status, judge, with_changes
from cgmigrate.verify.config_level import ConfigVerdict, verify_config
from cgmigrate.verify.job import JobOptions, JobSession
from cgmigrate.verify.mcore import Home, check_values, home_for, homes_of, lacks_torch
from cgmigrate.verify.plan import Case, PlannedComparison, Scale, VerifySelection, cases_of, planned
from cgmigrate.verify.run import Runner
from cgmigrate.verify.slurm import script

CONFIG, CAPTURE = "config", "capture"
TORCHRUN, SRUN = "torchrun", "srun"


class VerifyError(Exception):
    """``verify`` cannot do what the options say; the message says why and what it could do instead."""


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What to verify, how thoroughly, and where.

    ``mcore`` are the values of ``--mcore``; ``folder`` keeps arms, logs and results (empty: a temporary one), and arms
    whose results are there already do not run again. ``timeout`` is in seconds, for one arm. ``slurm`` are options for
    the jobs of ``--launcher slurm`` (``partition=batch``).
    """

    selection: VerifySelection
    level: str = CONFIG
    mcore: tuple[str, ...] = ()
    scale: Scale = field(default_factory=Scale)
    jobs: int = 1
    timeout: float = 300.0
    folder: str = ""
    launcher: str = TORCHRUN
    slurm: tuple[str, ...] = ()


@dataclass(slots=True)
class SessionOutcome:
    """Verdicts of the config level, comparisons of runs with the results of their arms by key, and what to say.

    ``input_errors`` are files that could not be read, ``notes`` what was skipped; ``script`` is what to run under Slurm
    (``--launcher srun``).
    """

    config: list[ConfigVerdict] = field(default_factory=list)
    comparisons: list[ArmComparison] = field(default_factory=list)
    results: dict[str, ArmResult] = field(default_factory=dict)
    input_errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    script: str = ""

    @property
    def verdicts(self) -> list[str]:
        """All verdicts, of either level."""
        return [*(item.verdict for item in self.config), *(item.verdict for item in self.comparisons)]

    @property
    def status(self) -> int:
        """The exit status that the verdicts give."""
        return exit_status(self.verdicts)


def verify(options: VerifyOptions, progress: Callable[[str], None]) -> SessionOutcome:
    """Verify what the options select; ``progress`` gets progress lines.

    Raises VerifyError, MCoreError, PlanError or SubmitError.
    """
    outcome = SessionOutcome()
    _check_launcher(options)
    cases = list(cases_of(options.selection, outcome.input_errors, outcome.notes))
    if not cases:
        check_values(options.mcore)
        return outcome
    homes = homes_of(options.mcore, progress)
    if options.level == CONFIG and (reason := lacks_torch(homes)):
        raise VerifyError(reason)
    if options.level == CONFIG:
        clear = iter(verify_config([case for case in cases if not case.unclear], homes, progress))
        outcome.config = [
            ConfigVerdict(case.name, INCONCLUSIVE, case.unclear, diff=case.diff) if case.unclear else next(clear)
            for case in cases
        ]
        return outcome
    plans, outcome.comparisons = _plans(cases, homes, options.scale)
    with work_folder(options.folder) as name:
        runner = Runner(homes, Path(name), progress, options.timeout, options.jobs)
        arms = [arm for plan in plans for arm in plan.arms.values()]
        if options.launcher == SRUN:
            outcome.script = script(runner, arms)
            return outcome
        outcome.results = _results(options, runner, arms)
    outcome.comparisons += [_compared(plan, outcome.results) for plan in plans]
    return outcome


def _check_launcher(options: VerifyOptions) -> None:
    if options.launcher in (SRUN, SLURM) and not options.folder and options.level == CAPTURE:
        raise VerifyError(f"--launcher {options.launcher} runs arms elsewhere; say where to keep them (--work DIR)")
    if options.slurm and options.launcher != SLURM:
        raise VerifyError("--slurm is for --launcher slurm")
    parameters_of(options.slurm)


def _results(options: VerifyOptions, runner: Runner, arms: Sequence[Arm]) -> dict[str, ArmResult]:
    """Run the arms, or read what others left of them."""
    if options.launcher == SLURM:
        run_as_jobs(runner, arms, parameters_of(options.slurm))
    elif not all(map(runner.earlier_result, arms)) and (gpus := gpu_count()) < options.scale.gpus:
        # Arms that ran under Slurm are judged where there is no GPU, too.
        if not any(map(runner.ran, arms)):
            raise VerifyError(_too_few_gpus(gpus, options.scale.gpus))
        runner.read_only = True
    return runner.run(arms)


def verify_job(options: JobOptions, folder: str, progress: Callable[[str], None]) -> SessionOutcome:
    """Verify a job; ``folder`` keeps its forms, logs and results (empty: a temporary one). Raises VerifyError."""
    with work_folder(folder) as name:
        comparison, results = JobSession(options, Path(name), progress).run()
    return SessionOutcome(comparisons=[comparison], results=results)


def _plans(
    cases: Sequence[Case], homes: dict[str, Home], scale: Scale
) -> tuple[list[PlannedComparison], list[ArmComparison]]:
    """What to run, and the verdicts on cases for which nothing can run."""
    plans: list[PlannedComparison] = []
    settled: list[ArmComparison] = []
    releases = {release for case in cases for release in (case.source, case.target)}
    versions = {release: home.version for release in releases if (home := home_for(release, homes))}
    for case in cases:
        if case.unclear:
            releases_of_case = (str(case.source), str(case.target))
            settled.append(
                ArmComparison(case.name, "none", INCONCLUSIVE, case.unclear, (), {}, case.diff, *releases_of_case)
            )
        else:
            plans += planned(case, versions, scale)
    return plans, settled


def _compared(plan: PlannedComparison, results: dict[str, ArmResult]) -> ArmComparison:
    keys = {role: arm.key for role, arm in plan.arms.items()}
    verdict, reason, notes = judge({role: results[key] for role, key in keys.items()})
    verdict, reason = with_changes(verdict, reason, plan.case.changes)
    case, target = plan.case, plan.arms[MIGRATED].release
    source = plan.arms[LEGACY_SOURCE].release if LEGACY_SOURCE in plan.arms else str(case.source)
    return ArmComparison(case.name, plan.workload, verdict, reason, notes, keys, case.diff, source, target)


@contextmanager
def work_folder(named: str) -> Iterator[str]:
    """The folder to work in: the one that was named, kept, or a temporary one."""
    if not named:
        with tempfile.TemporaryDirectory(prefix="cgmigrate-verify-") as temporary:
            yield temporary
        return
    try:
        os.makedirs(named, exist_ok=True)
        if not os.listdir(named):
            # What is written there is no part of the project around it.
            for name, text in ((".gitignore", "*\n"), (WORK_MARK, "")):
                Path(named, name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise VerifyError(f"--work {named}: {error.strerror}") from error
    yield os.path.abspath(named)


def gpu_count() -> int:
    """How many GPUs NVIDIA's driver shows, within CUDA_VISIBLE_DEVICES; 0 without a driver."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    try:
        listed = subprocess.run([program, "-L"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    count = sum(line.startswith("GPU ") for line in listed.stdout.splitlines())
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return count if visible is None else min(count, len([part for part in visible.split(",") if part.strip()]))


def _too_few_gpus(available: int, required: int) -> str:
    there = (
        "this machine has no GPU" if not available else f"this machine has {counted(available, 'GPU')}, not {required}"
    )
    return (
        f"{there}, and --level capture trains on {'one' if required == 1 else required}. Without a GPU "
        "`--level config` compares how the real megatron-core reads the settings; on Slurm, `--launcher slurm "
        "--work DIR` submits the arms, and `--launcher srun` writes them as a script"
    )
