"""Runs arms: one fresh process (or torchrun) each, under the release of megatron-core that the arm names.

Whatever stops an arm, its own exception, a signal, the clock, becomes its result. Nothing here imports torch.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cgmigrate.verify.arms import CRASHED, DONE, MISSING, TIMED_OUT, TRAINING, Arm, Result, result_of_ranks
from cgmigrate.verify.mcore import Home, environment

TIMEOUT = 300.0
"""Seconds that one arm may take unless the user says otherwise."""

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
    saved initial states. ``tell`` gets a line when an arm starts and when it ends. ``jobs`` training arms may run at
    once; their step times mean something only when it is 1.
    """

    homes: Mapping[str, Home]
    folder: Path
    tell: Callable[[str], None]
    timeout: float = TIMEOUT
    jobs: int = 1
    results: dict[str, Result] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, arms: Iterable[Arm]) -> dict[str, Result]:
        """Run the arms that have not run; return all results by the arm's key."""
        ordered = in_order(arm for arm in arms if arm.key not in self.results)
        first = {arm.key for arm in _firsts(ordered)}
        rest = [arm for arm in ordered if arm.key not in first]
        self._together([arm for arm in ordered if arm.key in first], self.jobs)
        self._together([arm for arm in rest if arm.workload == TRAINING], self.jobs)
        self._together([arm for arm in rest if arm.workload != TRAINING], max(self.jobs, GENERATING))
        return self.results

    def _together(self, arms: Sequence[Arm], jobs: int) -> None:
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            list(pool.map(self._finish, arms))

    def _finish(self, arm: Arm) -> None:
        result = self.found(arm)
        if result is None:
            with self._lock:
                self.tell(f"{describe(arm)} …")
            result = self._one(arm)
            why = f": {result.telling}" if result.telling else ""
            with self._lock:
                self.tell(f"{describe(arm)}: {result.outcome} in {result.seconds:.0f} s{why}")
        self.results[arm.key] = result

    def _one(self, arm: Arm) -> Result:
        home = self.homes.get(arm.release)
        if home is None:
            return Result(arm, MISSING, f"megatron-core {arm.release} is not at hand")
        place = self.prepare(arm)
        command = self.command(arm, home)
        start = time.monotonic()
        status = _run_logged(command, self.environment(home), place / "log", self.timeout)
        seconds = time.monotonic() - start
        result = self._told(arm, f"no end after {self.timeout:.0f} s" if status is None else f"ended with {status}")
        if status is None and result.outcome != DONE:
            result = replace(result, outcome=TIMED_OUT)
        result = replace(result, command=_for_a_shell(command, self.environment(home)), seconds=round(seconds, 1))
        (place / "result.json").write_text(json.dumps(result.as_json()), encoding="utf-8")
        return result

    def _told(self, arm: Arm, end: str) -> Result:
        """The result of what the arm's processes wrote; ``end`` says how they ended, for want of anything better."""
        place = self.folder / arm.key
        ranks = [_read(place / f"rank-{rank}.json") for rank in range(arm.processes)]
        result = result_of_ranks(arm, [rank for rank in ranks if rank is not None])
        if None in ranks and result.outcome == DONE:
            log = _text(place / "log")
            return replace(result, outcome=CRASHED, telling=f"{end}; {telling_line(log) or 'it said nothing'}")
        return result

    def found(self, arm: Arm) -> Result | None:
        """The result of an arm that ran before, or under Slurm, in the same folder; None where it did not."""
        place = self.folder / arm.key
        if (whole := _read(place / "result.json")) is not None:
            return Result.from_json(whole)
        if all((place / f"rank-{rank}.json").exists() for rank in range(arm.processes)):
            return self._told(arm, "")
        return None

    def prepare(self, arm: Arm) -> Path:
        """Write what the arm's processes read; return the arm's own folder."""
        place = self.folder / arm.key
        place.mkdir(parents=True, exist_ok=True)
        (place / "arm.json").write_text(json.dumps(arm.as_json(), indent=1), encoding="utf-8")
        (self.folder / "states").mkdir(exist_ok=True)
        return place

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
        """A folder that holds the probe and nothing else, so that an arm's Python gets no other package from here."""
        root = self.folder / "program"
        with self._lock:
            if not root.exists():
                package = Path(__file__).resolve().parents[1]
                for path in (
                    package / "__init__.py",
                    package / "verify/arms.py",
                    *(package / "verify/probe").glob("*.py"),
                ):
                    copy = root / "cgmigrate" / path.relative_to(package)
                    copy.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(path, copy)
                (root / "cgmigrate/verify/__init__.py").touch()
        return root


def in_order(arms: Iterable[Arm]) -> list[Arm]:
    """Each arm once, first those that write the initial state from which the others of the same model start."""
    unique = list({arm.key: arm for arm in arms}.values())
    first = _firsts(unique)
    return [*first, *(arm for arm in unique if arm not in first)]


def _firsts(arms: Sequence[Arm]) -> list[Arm]:
    found: dict[str, Arm] = {}
    # An arm that captures nothing is the least likely to fail before it has written the state.
    for arm in sorted(arms, key=lambda arm: bool(arm.settings)):
        found.setdefault(arm.model_key, arm)
    return list(found.values())


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


def _run_logged(command: Sequence[str], variables: Mapping[str, str], log: Path, timeout: float) -> int | None:
    """Run with output to ``log``; return the exit status, None after ``timeout`` seconds (all is killed then)."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env=dict(variables), start_new_session=True
        )
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # Whatever a failed arm leaves behind would hold the GPU's memory.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


_TELLING = re.compile(
    r"^(?:\[rank\d+\]:?\s*)?((?:[\w.]*(?:Error|Exception|Interrupt)\b|terminate called|Fatal Python error"
    r"|.*\bCUDA error\b|.*\bNCCL (?:error|WARN)\b|.*[Oo]ut of memory|.*[Kk]illed|.*Segmentation fault).*)$"
)


def telling_line(log: str) -> str:
    """The line of a log that says best why the process ended: its last error, else its last line."""
    found = [match.group(1).strip() for line in log.splitlines() if (match := _TELLING.match(line.strip()))]
    # torchrun's own summary comes last and says less than what went before.
    own = [line for line in found if "torch.distributed.elastic" not in line and "ChildFailedError" not in line]
    return _cut((own or found or [last_line(log)])[-1])


def last_line(log: str) -> str:
    """The last line of a log that is not empty."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return _cut(lines[-1]) if lines else ""


def _cut(line: str, width: int = 240) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
