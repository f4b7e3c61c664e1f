"""``verify --run``: the user's own training job, as it is written, migrated, eager, and eager again.

Only settings change: words of the command, and files that it names, in a copy of the checkout; the eager forms turn
graphs off in the parsed arguments and configurations. The job runs as it would, with an observer in each process that
ends it after some steps (``probe.job``).
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cgmigrate.lint.run import Run
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from cgmigrate.megatron.rule_data import upgrade_rules
from cgmigrate.project.cascade import Configurations
from cgmigrate.project.checkout import checkout_of
from cgmigrate.project.inputs import InputError
from cgmigrate.project.options import RunOptions
from cgmigrate.project.paths import is_below
from cgmigrate.proof.run.command import OBSERVER
from cgmigrate.proof.run.copies import Tree
from cgmigrate.text.diff import unified_diff
from cgmigrate.verify.arms import (
    CRASHED,
    EAGER,
    EAGER_AGAIN,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    MISSING,
    TIMED_OUT,
    TRAINING,
    Arm,
    ArmResult,
    Proxy,
    result_of_ranks,
)
from cgmigrate.verify.compare import INCONCLUSIVE, ArmComparison, judge
from cgmigrate.verify.measures import extrapolated, measured
from cgmigrate.verify.metrics import role_name
from cgmigrate.verify.probe.variable import VARIABLE
from cgmigrate.verify.run import Launch, failure_line, own_program, read_json, run_logged, text_of_log

STEPS = 12
"""Transformer Engine and full iterations are captured in the 4th step; the last step shows what stays eager."""
_COMMAND = "command.sh"
_HYBRID = "UPG501"
_NO_GPT = "neither the command nor a file that it names shows a GPT model (`--after COMMAND` gives its hybrid form)"
_NOT_LOADED = (
    "no process of the command trained with megatron-core where the observer was loaded: `python -I`, containers and "
    "clean environments do not pass PYTHONPATH and CGMIGRATE_JOB on"
)
_OF_RAY = (
    "no worker of Ray trained with megatron-core where the observer was loaded: a `runtime_env` of the job has to pass "
    "PYTHONPATH and CGMIGRATE_JOB on, as NeMo-RL's does, whose policy trains with megatron-core where "
    "`policy.megatron_cfg.enabled` is true"
)
_USES_RAY = re.compile(r"local Ray instance|Connected to Ray cluster|ray\.exceptions\.")
"""What Ray's driver logs when it has started, or when a worker failed."""
_SITE = Path(OBSERVER, "sitecustomize.py")
"""What starts the observer in each process: the one of `fix --prove`, which imports a module of this name."""
_OBSERVER = "cgmigrate_observer.py"
_START = """\
import sys

try:
    from cgmigrate.verify.probe.job import start
    start()
except Exception as error:
    sys.stderr.write(f"cgmigrate: the observer was not loaded: {error}\\n")
"""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """A job to verify: its command, what else of the checkout is migrated, the releases, and how long it runs.

    ``source_command`` is a line for a shell that runs the job, as it is written, on its own release. ``timeout`` is in
    seconds, for one form.
    """

    command: tuple[str, ...]
    also: tuple[str, ...] = ()
    source: Release | None = None
    target: Release | None = None
    source_command: str = ""
    after: str = ""
    """A line for a shell with the migrated form, made by whomever; empty for cgmigrate's own."""
    steps: int = STEPS
    timeout: float = 300.0
    measure: int = 0
    """How many further steps are timed, without the hooks."""
    layers: tuple[int, ...] = ()
    """Numbers of layers to run instead of the job's own, for which the memory of graphs is extrapolated."""
    hybrid: bool = False
    """Whether the migrated form is the hybrid form of the job's GPT model, with nothing else changed."""


@dataclass(frozen=True, slots=True)
class JobForm:
    """One form of the job: the command as a line for a shell, and the folder in which it runs.

    ``layers`` is the number of layers that the observer sets, 0 for the job's own, and ``settings`` are settings of
    graphs that it sets, None for those of the command.
    """

    role: str
    line: str
    cwd: Path
    layers: int = 0
    settings: Mapping[str, object] | None = None

    @property
    def name(self) -> str:
        """What the report calls it."""
        return role_name(self.role) + (f", {self.layers} layers" if self.layers else "")


@dataclass
class JobSession:
    """The forms of one job, run one after the other in ``folder``; ``progress`` gets a line for each."""

    options: JobOptions
    folder: Path
    progress: Callable[[str], None]
    diff: str = ""
    notes: list[str] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Why GPT models that the command or a file shows have no hybrid form."""
    own_layers: int = 0
    """The job's own number of layers, where it runs with others."""

    def run(self) -> tuple[ArmComparison, dict[str, ArmResult]]:
        """Run all forms; return the verdict, and the results by key."""
        *smaller, largest = sorted(self.options.layers) or [0]
        forms = [replace(form, layers=largest) for form in self.forms()]
        name, hybrid = shlex.join(self.options.command), self.options.hybrid
        if hybrid and not self.diff:
            target, reason = str(self.options.target or NEWEST), "; ".join(self.refusals) or _NO_GPT
            return ArmComparison(name, TRAINING, INCONCLUSIVE, reason, (), {}, "", target, target), {}
        results = {form.role: self.result(form, number) for number, form in enumerate(forms)}
        two = [form for form in forms if form.role in (EAGER, MIGRATED)]
        sizes = {
            layers: {form.role: self.result(replace(form, layers=layers), 0, str(layers)) for form in two}
            for layers in smaller
        }
        sizes |= {largest: results} if smaller else {}
        if LEGACY_SOURCE not in results and not hybrid:
            source = str(self.options.source or LAST_OLD)
            arm = Arm(source, TRAINING, {}, Proxy(), repeat=len(results))
            results[LEGACY_SOURCE] = ArmResult(arm, MISSING, "it was not run (`--source-command LINE` runs it)")
        verdict, reason, notes = judge(results, hybrid=hybrid)
        old = results[LEGACY_TARGET if hybrid else LEGACY_SOURCE]
        releases = old.arm.release, results[MIGRATED].arm.release
        keys = {role: result.arm.key for role, result in results.items()}
        shown = {role: key for role, key in keys.items() if results[role].outcome != MISSING}
        remarks = (*self.notes, *notes, *measured(results), *extrapolated(sizes, self.own_layers))
        comparison = ArmComparison(name, TRAINING, verdict, reason, remarks, shown, self.diff, *releases)
        return comparison, {result.arm.key: result for result in results.values()}

    # --- forms ------------------------------------------------------------------------------------

    def forms(self) -> list[JobForm]:
        """Return the forms in the order in which they run."""
        line, cwd = shlex.join(self.options.command), Path.cwd()
        migrated = self._migrated(line, cwd)
        forms = [
            JobForm(EAGER, line, cwd),
            JobForm(LEGACY_TARGET, line, cwd),
            migrated,
            JobForm(EAGER_AGAIN, line, cwd),
        ]
        if self.options.source_command:
            forms.insert(1, JobForm(LEGACY_SOURCE, self.options.source_command, cwd))
        return forms

    def _migrated(self, line: str, cwd: Path) -> JobForm:
        """Return the form with new settings: in the command, or in a copy of the checkout with other files."""
        if self.options.after:
            self.diff = unified_diff("the command", line + "\n", self.options.after + "\n")
            return JobForm(MIGRATED, self.options.after, cwd)
        # It is read like a script in the working directory, whose project has configuration and pins.
        text = line + "\n"
        of_command = self._changed(("-",), (str(cwd / _COMMAND), text.encode("utf-8", "surrogateescape")))
        command, *_ = (*of_command.values(), (text, text))
        named = [word for part in self.options.command for word in (part, part.rpartition("=")[2])]
        files = dict.fromkeys([*(word for word in named if os.path.isfile(word)), *self.options.also])
        root = os.path.realpath(checkout_of(str(cwd)) or cwd)
        inside = [path for path in files if is_below(os.path.realpath(path), root)]
        self.notes += [f"{path} is outside of {root} and stays as it is" for path in files if path not in inside]
        changed = self._changed(inside)
        every = {"the command": command, **changed}
        self.diff = "".join(unified_diff(name, old, new) for name, (old, new) in every.items() if old != new)
        if not self.diff:
            self.notes.append(
                "migration changes neither the command nor a file that it names (--also PATH names others)"
            )
        if not changed:
            return JobForm(MIGRATED, command[1].rstrip("\n"), cwd)
        tree = Tree(root, str(self.folder / "tree"))
        real = {os.path.relpath(os.path.realpath(path), tree.root): new for path, (_, new) in changed.items()}
        tree.make({path: new.encode("utf-8", "surrogateescape") for path, new in real.items()})
        below = os.path.relpath(os.path.realpath(cwd), tree.root)
        return JobForm(MIGRATED, command[1].rstrip("\n"), Path(tree.copy, below))

    def _changed(self, paths: Sequence[str], stdin: tuple[str, bytes] | None = None) -> dict[str, tuple[str, str]]:
        """Return the files that fixes change, unsafe ones included, with both texts; ``stdin`` has no file."""
        if not paths:
            return {}
        options = RunOptions(self.options.source, self.options.target, unsafe=True, stdin=stdin)
        if self.options.hybrid:
            options = replace(options, hybrid=True, select=(_HYBRID,), rule_folders=(upgrade_rules(),))
        run = Run(paths, options, Configurations())
        changed = {}
        for one in run:
            if isinstance(one, InputError):
                continue
            self.refusals += [other.blocked_by or other.help for other in one.remaining if other.rule == _HYBRID]
            if one.after is not None and one.text != one.after:
                changed[one.path] = (one.text, one.after)
        return changed

    # --- runs -------------------------------------------------------------------------------------

    def result(self, form: JobForm, number: int, suffix: str = "") -> ArmResult:
        """Run a form to its end, and return what its ranks wrote; its folder has the role and the ``suffix``."""
        place = self.folder / "-".join(filter(None, (form.role, suffix)))
        place.mkdir(parents=True, exist_ok=True)
        for stale in place.glob("rank-*"):
            stale.unlink()
        self.progress(f"{form.name}: {form.line} …")
        task = {
            "folder": str(place),
            "steps": self.options.steps,
            "eager": form.role in (EAGER, EAGER_AGAIN),
            "measure": self.options.measure,
            "layers": form.layers,
            "settings": form.settings,
            "hybrid": self.options.hybrid,
        }
        variables = {**os.environ, **self._path(), VARIABLE: json.dumps(task)}
        status = run_logged(Launch(["bash", "-c", form.line], variables, place, form.cwd), self.options.timeout, set())
        result = self._read(form, place, status, number)
        why = f": {result.failure}" if result.failure else ""
        self.progress(f"{form.name}: {result.outcome} on {result.arm.release}{why}")
        return result

    def _path(self) -> Mapping[str, str]:
        site = self.folder / "site"
        site.mkdir(exist_ok=True)
        (site / _SITE.name).write_bytes(_SITE.read_bytes())
        (site / _OBSERVER).write_text(_START, encoding="utf-8")
        paths = (str(site), str(own_program(self.folder)), os.environ.get("PYTHONPATH"))
        return {"PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def _read(self, form: JobForm, place: Path, status: int | None, number: int) -> ArmResult:
        files = [one for path in sorted(place.glob("rank-*.json")) if (one := read_json(path)) is not None]
        # The version has the state of the checkout in which the job runs behind a plus.
        release = next((one["environment"].get("megatron-core", "") for one in files), "").partition("+")[0]
        release = release or str(self._release(form))
        self.own_layers = max(self.own_layers, *(int(one.get("own_layers", 0)) for one in files), 0)
        effective: dict[str, Any] = next((one["effective"] for one in files), {})
        arm = Arm(release, TRAINING, effective, Proxy(), self.options.steps, max(1, len(files)), repeat=number)
        result = replace(result_of_ranks(arm, files), command=form.line)
        if files:
            return result
        log = text_of_log(place / "log")
        unseen = _OF_RAY if _USES_RAY.search(log) else _NOT_LOADED
        if status == 0:
            return replace(result, outcome=MISSING, failure=unseen)
        end = f"no end after {self.options.timeout:.0f} s"
        end = end if status is None else f"ended with {status}; {failure_line(log)}"
        why = f"; {unseen}" if unseen == _OF_RAY or status is None else ""
        return replace(result, outcome=CRASHED if status else TIMED_OUT, failure=end + why)

    def _release(self, form: JobForm) -> Release:
        is_source = form.role == LEGACY_SOURCE
        return (self.options.source or LAST_OLD) if is_source else (self.options.target or NEWEST)
