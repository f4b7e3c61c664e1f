"""Runs arms: one process (or torchrun) each, under the release of megatron-core that the arm names.

Arms of one release and workload are forked from a process that has done the imports, where that is possible. Whatever
stops an arm, its own exception, a signal, the clock, becomes its result. This module does not import torch.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from cgmigrate.verify.arms import CRASHED, DONE, MISSING, TIMED_OUT, TRAINING, Arm, ArmResult, result_of_ranks
from cgmigrate.verify.mcore import Home, environment, with_advice
from cgmigrate.verify.parents import ForkError, Parent, kill

TIMEOUT = 300.0
"""Seconds that one arm may take unless the user says otherwise."""

RESULT, MADE_BY = "result.json", "made-by.json"
"""In an arm's folder: its result; what made it, so that another probe or release does not take it for its own."""

GENERATING = 4
"""How many arms that generate run at once: they are small, most of their time is start-up, and no time is compared."""

FIXED = {
    # One hardware queue, as Megatron-LM demands for tensor parallelism, and kernels that repeat to the bit.
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "NVTE_ALLOW_NONDETERMINISTIC_ALGO": "0",
    "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    # Fusing small functions with torch.compile takes longer than the whole arm and decides nothing about graphs.
    "TORCHDYNAMO_DISABLE": "1",
    "PYTHONUNBUFFERED": "1",
}

_OF_A_JOB = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "SLURM_PROCID", "SLURM_NTASKS")


@dataclass(slots=True)
class Runner:
    """Runs each arm once, however many comparisons ask for it.

    ``homes`` maps a version of megatron-core to where it is. ``folder`` takes the arms, their logs, results and the
    saved initial states. ``progress`` gets a line when an arm starts and when it ends. ``jobs`` training arms may run
    at once; their step times mean something only when it is 1. With ``read_only`` nothing runs: results come from
    ``folder``, where Slurm left them.
    """

    homes: Mapping[str, Home]
    folder: Path
    progress: Callable[[str], None]
    timeout: float = TIMEOUT
    jobs: int = 1
    read_only: bool = False
    results: dict[str, ArmResult] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: set[int] = field(default_factory=set)
    _parents: dict[tuple[str, bool], Parent] = field(default_factory=dict)
    """Processes that fork arms, by the release, and whether the arms train."""
    _stopped: bool = False

    def run(self, arms: Iterable[Arm]) -> dict[str, ArmResult]:
        """Run the arms that have not run; return all results by the arm's key."""
        ordered = in_order(arm for arm in arms if arm.key not in self.results)
        first = {arm.key for arm in firsts(ordered)}
        rest = [arm for arm in ordered if arm.key not in first]
        try:
            self._share_imports(ordered)
            self._together([arm for arm in ordered if arm.key in first], self.jobs)
            self._together([arm for arm in rest if arm.workload == TRAINING], self.jobs)
            self._together([arm for arm in rest if arm.workload != TRAINING], max(self.jobs, GENERATING))
        finally:
            while self._parents:
                self._parents.popitem()[1].close()
        return self.results

    def _share_imports(self, arms: Iterable[Arm]) -> None:
        """Start a process for each release and workload of which several arms run; all import at the same time.

        Its environment is that of the arms: what a package reads when it is imported is the same as in their own.
        """
        if self.read_only or sys.platform != "linux":
            return
        alone = [arm for arm in arms if arm.processes == 1 and arm.release in self.homes]
        runs = Counter(_kind(arm) for arm in alone if self.earlier_result(arm) is None)
        for kind, number in runs.items():
            if number > 1:
                home, workload = self.homes[kind[0]], TRAINING if kind[1] else "generation"
                self.progress(f"importing megatron-core {home.version} once for {number} arms of {workload} …")
                command = [home.python, "-m", "cgmigrate.verify.probe.parent", workload]
                place = self.folder / f"imports-{home.version}-{workload}"
                self._parents[kind] = Parent(command, self.environment(home), place, self._running)

    def _together(self, arms: Sequence[Arm], jobs: int) -> None:
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            try:
                list(pool.map(self._finish, arms))
            except BaseException:
                # Ctrl-C does not reach arms, which are sessions of their own, and the pool would wait for their end.
                self._stopped = True
                for process in list(self._running):
                    kill(process)
                raise

    def _finish(self, arm: Arm) -> None:
        result = self.remaining_result(arm) if self.read_only else self.earlier_result(arm)
        if result is None:
            with self._lock:
                self.progress(f"{describe(arm)} …")
            self.take(self._one(arm))
        else:
            self.results[arm.key] = result

    def take(self, result: ArmResult) -> None:
        """Take the result of an arm that has just ended, and say so."""
        why = f": {result.failure}" if result.failure else ""
        with self._lock:
            self.progress(f"{describe(result.arm)}: {result.outcome} in {result.seconds:.0f} s{why}")
        self.results[result.arm.key] = result

    def _one(self, arm: Arm) -> ArmResult:
        home = self.homes.get(arm.release)
        if home is None:
            return ArmResult(arm, MISSING, f"megatron-core {arm.release} is not available")
        place = self.prepare(arm)
        command, variables = self.command(arm, home), self.environment(home)
        start = time.monotonic()
        status = self._status(arm, Launch(command, variables, place, place))
        if self._stopped:
            # This process killed it, which says nothing about the arm.
            return ArmResult(arm, MISSING, "interrupted")
        seconds = time.monotonic() - start
        result = self._result_of_files(
            arm, f"no end after {self.timeout:.0f} s" if status is None else f"ended with {status}"
        )
        if status is None and result.outcome != DONE:
            result = replace(result, outcome=TIMED_OUT)
        result = replace(result, failure=with_advice(result.failure, home))
        result = replace(result, command=_for_a_shell(command, variables), seconds=round(seconds, 1))
        (place / RESULT).write_text(json.dumps(result.as_json()), encoding="utf-8")
        return result

    def _status(self, arm: Arm, launch: Launch) -> int | None:
        """Run an arm to its end: forked where that is possible, else by its own command."""
        if arm.processes == 1 and (parent := self._parents.get(_kind(arm))) is not None:
            try:
                return parent.run(self.program(arm)[2:], launch.place, self.timeout)
            except ForkError as error:
                with self._lock:
                    is_first = self._parents.pop(_kind(arm), None) is not None
                    if is_first and not self._stopped:
                        self.progress(f"Arms on megatron-core {arm.release} import for themselves: {error}")
                if is_first:
                    parent.close()
        return None if self._stopped else run_logged(launch, self.timeout, self._running)

    def _result_of_files(self, arm: Arm, end: str) -> ArmResult:
        """The result of what the arm's processes wrote; ``end`` says how they ended, for want of anything better."""
        place = self.folder / arm.key
        ranks = [read_json(place / f"rank-{rank}.json") for rank in range(arm.processes)]
        result = result_of_ranks(arm, [rank for rank in ranks if rank is not None])
        if None in ranks and result.outcome == DONE:
            log = text_of_log(place / "log")
            return replace(result, outcome=CRASHED, failure=f"{end}; {failure_line(log) or 'it said nothing'}")
        return result

    def earlier_result(self, arm: Arm) -> ArmResult | None:
        """The result of an arm that ran before, or under Slurm, in the same folder; None where it has to run.

        That is the case where another probe or another place of the release made the result, too, and where the clock
        stopped it or something was missing: that may have changed since.
        """
        result = self.stored_result(arm)
        return None if result is not None and result.outcome in (MISSING, TIMED_OUT) else result

    def remaining_result(self, arm: Arm) -> ArmResult:
        """What an arm left in the folder, whatever that is, for want of a machine that runs it."""
        if (result := self.stored_result(arm)) is not None:
            return result
        place = self.folder / arm.key
        if self._is_of(place, arm) and (place / "log").exists():
            return self._result_of_files(arm, "it left no result")
        return ArmResult(arm, MISSING, f"it has not run in {self.folder}")

    def ran(self, arm: Arm) -> bool:
        """Whether an arm left anything in the folder."""
        return self.stored_result(arm) is not None or self.remaining_result(arm).outcome != MISSING

    def stored_result(self, arm: Arm) -> ArmResult | None:
        """The result in the arm's folder, None where there is none, or another probe or release made it."""
        place = self.folder / arm.key
        if not self._is_of(place, arm):
            return None
        if (whole := read_json(place / RESULT)) is not None:
            try:
                return ArmResult.from_json(whole)
            except (ValueError, KeyError, TypeError):
                return None
        if all((place / f"rank-{rank}.json").exists() for rank in range(arm.processes)):
            return self._result_of_files(arm, "")
        return None

    def prepare(self, arm: Arm) -> Path:
        """Write what the arm's processes read; return the arm's own folder, without what an earlier run left there."""
        place = self.folder / arm.key
        place.mkdir(parents=True, exist_ok=True)
        for stale in (*place.glob("rank-*"), place / RESULT, place / "log"):
            stale.unlink(missing_ok=True)
        (place / "arm.json").write_text(json.dumps(arm.as_json(), indent=1), encoding="utf-8")
        (place / MADE_BY).write_text(json.dumps(self._made_by(arm)), encoding="utf-8")
        (self.folder / "states").mkdir(exist_ok=True)
        return place

    def _made_by(self, arm: Arm) -> dict[str, Any]:
        """What an arm's result depends on besides the arm: the probe, and which megatron-core it runs."""
        home = self.homes.get(arm.release)
        return {"probe": _digest_of_probe(), "home": [home.python, *home.paths] if home else []}

    def _is_of(self, place: Path, arm: Arm) -> bool:
        return read_json(place / MADE_BY) == self._made_by(arm)

    def program(self, arm: Arm) -> list[str]:
        """What Python runs for an arm: the probe, its arm, where initial states are, where results go."""
        place = self.folder / arm.key
        return ["-m", "cgmigrate.verify.probe", str(place / "arm.json"), str(self.folder / "states"), str(place)]

    def command(self, arm: Arm, home: Home) -> list[str]:
        """The command that runs an arm on this machine."""
        alone = [home.python, *self.program(arm)]
        if arm.processes == 1:
            return alone
        run = ["-m", "torch.distributed.run", "--standalone", "--no-python", f"--nproc-per-node={arm.processes}"]
        return [home.python, *run, *alone]

    def environment(self, home: Home) -> dict[str, str]:
        """The variables of an arm's processes: its megatron-core first, and what makes runs repeat."""
        result = {**os.environ, **FIXED, **environment(home)}
        result["PYTHONPATH"] = os.pathsep.join(filter(None, (result.get("PYTHONPATH"), str(self._own_program()))))
        # An arm is not part of a job that this process may itself belong to.
        return {name: value for name, value in result.items() if name not in _OF_A_JOB}

    def _own_program(self) -> Path:
        with self._lock:
            return own_program(self.folder)


def own_program(folder: Path) -> Path:
    """Return a folder with the probe and nothing else, so that a Python gets no other package of this one."""
    root = folder / "program"
    for path, text in _probe():
        copy = root / "cgmigrate" / path
        # The folder may be that of an earlier version, or of an interrupted run.
        if not copy.exists() or copy.read_bytes() != text:
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(text)
    return root


def _probe() -> list[tuple[Path, bytes]]:
    """The files of the program that runs an arm, by their paths in the package."""
    package = Path(__file__).resolve().parents[1]
    files = (package / "__init__.py", package / "verify/arms.py", *sorted((package / "verify/probe").glob("*.py")))
    return [*((path.relative_to(package), path.read_bytes()) for path in files), (Path("verify/__init__.py"), b"")]


@cache
def _digest_of_probe() -> str:
    return hashlib.sha256(repr(_probe()).encode()).hexdigest()[:12]


def in_order(arms: Iterable[Arm]) -> list[Arm]:
    """Each arm once, first those that write the initial state from which the others of the same model start."""
    unique = list({arm.key: arm for arm in arms}.values())
    first = firsts(unique)
    return [*first, *(arm for arm in unique if arm not in first)]


def firsts(arms: Sequence[Arm]) -> list[Arm]:
    """Of arms whose model has the same parameters, the one that writes the state from which they start."""
    first: dict[str, Arm] = {}
    # An arm that captures nothing is the least likely to fail before it has written the state.
    for arm in sorted(arms, key=lambda arm: bool(arm.settings)):
        first.setdefault(arm.model_key, arm)
    return list(first.values())


def _kind(arm: Arm) -> tuple[str, bool]:
    """What arms share that one process can fork: generation imports more, and a stand-in for flash_attn."""
    return arm.release, arm.workload == TRAINING


def describe(arm: Arm) -> str:
    """An arm in a few words, for progress lines."""
    settings = " ".join(f"{name}={_short(value)}" for name, value in arm.settings.items()) or "eager"
    again = ", again" if arm.repeat else ""
    work = "training" if arm.workload == TRAINING else f"{arm.workload} generation"
    return f"{work} on {arm.release}, {settings}{again}"


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _for_a_shell(command: Sequence[str], variables: Mapping[str, str]) -> str:
    """The command as a line for a shell, with the variables that it needs."""
    needed = {**FIXED, "PYTHONPATH": variables["PYTHONPATH"], "PYTHONSAFEPATH": "1"}
    return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in needed.items()), shlex.join(command)])


@dataclass(frozen=True, slots=True)
class Launch:
    """A command to start: its words, its environment, the folder of its log, and the one in which it runs."""

    words: Sequence[str]
    variables: Mapping[str, str]
    place: Path
    cwd: Path


def run_logged(launch: Launch, timeout: float, running: set[int]) -> int | None:
    """Run a command, with its output in its log; return the exit status, None after ``timeout`` seconds, killed.

    The process is among ``running`` while it runs.
    """
    with (launch.place / "log").open("wb") as output:
        process = subprocess.Popen(
            launch.words,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=dict(launch.variables),
            # Python 3.10 does not know PYTHONSAFEPATH: with -m it imports from the working directory first.
            cwd=launch.cwd,
            start_new_session=True,
        )
        running.add(process.pid)
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Whatever a failed arm leaves behind would hold the GPU's memory.
            kill(process.pid)
            process.wait()
            running.discard(process.pid)


def text_of_log(path: Path) -> str:
    """Return the text of a log; empty where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def read_json(path: Path) -> dict[str, Any] | None:
    """Return what a process wrote; None where there is no such file, or a part of one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


_FAILURE = re.compile(
    r"^(?:\[rank\d+\]:?\s*)?((?:[\w.]*(?:Error|Exception|Interrupt)\b|terminate called|Fatal Python error"
    r"|.*\bCUDA error\b|.*\bNCCL (?:error|WARN)\b|.*[Oo]ut of memory|.*[Kk]illed|.*Segmentation fault"
    # Python's own, and argparse's.
    r"|\S+: (?:can't open file|No module named|error:) ).*)$"
)
_LONGEST = 240
"""Characters of a line that are shown."""


def failure_line(log: str) -> str:
    """The line of a log that says best why the process ended: its last error, else its last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [match.group(1).strip() for line in lines if (match := _FAILURE.match(line))]
    # torchrun's own summary comes last and says less than the lines above it.
    own = [line for line in errors if "torch.distributed.elastic" not in line and "ChildFailedError" not in line]
    best = (own or errors or lines or [""])[-1]
    return best if len(best) <= _LONGEST else best[: _LONGEST - 1] + "…"
