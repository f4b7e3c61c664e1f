"""The level ``config``: how the real megatron-core reads settings before and after migration, on a CPU.

Each available release builds its TransformerConfig, or parses and validates its command line, in a process of
its own (``reading``). What it keeps of the settings is turned into a capture by ``cgmigrate.capture.captured``, so
that releases with other names can be compared. Three readings make a verdict: the old text on the source release, the
old text on the target (megatron-core's own migration), the migrated text on the target. With A and B two captures:

=====================  ====================  ==================  ===========================================
old text on its        migrated text on the  old text on the     verdict
release                target                target
=====================  ====================  ==================  ===========================================
A                      A                     A                   equivalent
A                      A                     B, refused, unread  equivalent, but (the target's own reading)
A                      B                     any                 different
A                      refused               any                 different
refused                A                     A                   equivalent, but only on the target
refused                A                     B                   different
refused                A                     refused, unread     inconclusive: the old text runs nowhere
refused or unread      refused               A                   different
refused or unread      refused               refused, unread     inconclusive: a refusal hides what would be
                                                                 captured, and may be about another setting
unread, or not there   A                     A                   equivalent, but only read by the target
unread, or not there   A                     B, refused, unread  equivalent, but, where cgmigrate's own table
                                                                 of the source release says A; it is named
unread, or not there   A                     any                 different, where that table says B
any                    unread                any                 inconclusive
=====================  ====================  ==================  ===========================================

Where nothing could read the old text on its release and the table, too, says that it is refused, the case counts as
refused. *Unread* is a failure that says nothing of the settings: a package is missing, the process ended.

The neighbouring settings (experts, recompute) are part of the reading as far as the release can build it: where
they are refused without any graphs, too, they are omitted, and a note says so.

Megatron-Bridge adds checks of its own before TransformerConfig. Those are cgmigrate's account of Bridge
(``capture.validation_input``); what they let through is read by the real TransformerConfig. A note says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from cgmigrate.megatron.capture import capture_of, capture_of_resolved, validation_input
from cgmigrate.megatron.command_line import argument_words
from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, MODULES, Settings
from cgmigrate.megatron.types import Capture, Reader, Rejected, ResolvedConfiguration, describe_both
from cgmigrate.text.plurals import counted
from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT, INCONCLUSIVE, validated, with_changes
from cgmigrate.verify.config_probe import REFUSED as REFUSED_KIND
from cgmigrate.verify.mcore import Home, environment, home_for, not_available, with_advice
from cgmigrate.verify.plan import Case, undecided
from cgmigrate.verify.related_fields import assumed_fields, related_fields
from cgmigrate.verify.run import failure_line

__all__ = ["Case", "ConfigVerdict", "Request", "RequestOutcome", "compare_readings", "read_all", "verify_config"]

TIMEOUT = 300.0
"""Seconds that one release may take to answer all requests; most of it is importing torch, 5 to 20 s."""

READ, REFUSED, UNREAD, ABSENT = "read", "refused", "unread", "absent"
"""``refused``: the release does not accept the settings; ``unread``: something failed that says nothing of them;
``absent``: the release is not available."""

_NEUTRAL = {
    # The same on every machine: no GPU, one process, and none of the variables that validate_args looks at.
    "CUDA_VISIBLE_DEVICES": "",
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "TORCH_CUDA_ARCH_LIST": "9.0",
    "PYTHONIOENCODING": "utf-8",
}
_LOOKED_AT = ("PYTORCH_CUDA_ALLOC_CONF", "NCCL_GRAPH_REGISTER", "CUDA_GRAPHS_USE_NODE_PRIORITY")


@dataclass(frozen=True, slots=True)
class Request:
    """Settings for ``release`` to read through ``reader``; ``fields`` are what else the configuration says.

    ``fields`` are fields of TransformerConfig; for a command line also flags (``--num-experts``) with their values.
    """

    reader: Reader
    settings: Settings
    release: Release
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestOutcome:
    """What became of a request.

    ``version`` is the megatron-core that read it, or the release that is missing. ``reason`` says why it was not read
    or not accepted, in the reader's own words; ``warnings`` are those about graphs.
    """

    request: Request
    version: str
    outcome: str
    reason: str = ""
    effective: ResolvedConfiguration | None = None
    warnings: tuple[str, ...] = ()
    omitted: str = ""
    """Which of the request's fields had to be omitted, and why."""
    by_bridge: bool = False
    """Whether Megatron-Bridge's own checks refused the settings, before megatron-core saw them."""

    @property
    def who(self) -> str:
        """Who read the settings."""
        return f"{'Megatron-Bridge on ' if self.by_bridge else ''}megatron-core {self.version}"

    @property
    def capture(self) -> Capture | Rejected | None:
        """What is captured, by what the release really kept; None where nothing was learnt."""
        if self.outcome == REFUSED:
            return Rejected("refused", self.reason, ())
        return capture_of_resolved(self.effective, self.request.release) if self.effective is not None else None


@dataclass(frozen=True, slots=True)
class ConfigVerdict:
    """The verdict on a case by its configuration alone.

    ``verdict`` is one of compare.py's words, ``reason`` one sentence that goes on from it. ``readings`` are the old
    text on its release, the old text on the target, the migrated text on the target; empty where nothing was read.
    ``diff`` is what the migration changes in the file.
    """

    name: str
    verdict: str
    reason: str
    notes: tuple[str, ...] = ()
    readings: tuple[RequestOutcome, ...] = ()
    diff: str = ""

    def __str__(self) -> str:
        return f"{self.verdict}{' ' if self.verdict == EQUIVALENT_BUT else ': '}{self.reason}"

    def as_json(self) -> dict[str, Any]:
        """The verdict as JSON values."""
        roles = ("legacy-source", "legacy-target", "migrated")
        readings = {role: _as_json(reading) for role, reading in zip(roles, self.readings, strict=False)}
        return {
            "name": self.name,
            "verdict": self.verdict,
            "reason": self.reason,
            "notes": list(self.notes),
            "readings": readings,
        }


def _as_json(reading: RequestOutcome) -> dict[str, Any]:
    capture = reading.capture
    return {
        "megatron_core": reading.version,
        "settings": dict(reading.request.settings),
        "outcome": reading.outcome,
        "reason": reading.reason,
        "effective": asdict(reading.effective) if reading.effective is not None else None,
        "captures": str(capture) if isinstance(capture, Capture) else None,
        "warnings": list(reading.warnings),
        "left_out": reading.omitted,
    }


def verify_config(
    cases: Sequence[Case], homes: Mapping[str, Home], progress: Callable[[str], None] | None = None
) -> list[ConfigVerdict]:
    """Return the verdict on each case, in order; ``homes`` are the available releases, by version.

    ``progress`` gets a line when a release starts to read and when it ends. One process a release answers for all
    cases, the releases side by side: some seconds each, however many cases.
    """
    clear = [case for case in cases if not undecided(case.before, case.after)]
    requests = [request for case in clear for request in _requests(case)]
    answers = iter(_answered(requests, homes, progress))
    return [
        ConfigVerdict(case.name, INCONCLUSIVE, why, diff=case.diff)
        if (why := undecided(case.before, case.after))
        else _named(compare_readings(next(answers), next(answers), next(answers)), case)
        for case in cases
    ]


def _named(verdict: ConfigVerdict, case: Case) -> ConfigVerdict:
    assumed = assumed_fields(related_fields(case.fields, case.reader), (case.before, case.after), case.reader)
    shown = ", ".join(f"{name}={value}" for name, value in assumed.items())
    note = (f"not set beside the settings, so assumed: {shown}",) if assumed else ()
    word, reason = with_changes(verdict.verdict, verdict.reason, case.changes)
    return replace(verdict, name=case.name, verdict=word, reason=reason, notes=verdict.notes + note, diff=case.diff)


def _requests(case: Case) -> tuple[Request, Request, Request]:
    def fields_of(beside: Mapping[str, Any]) -> dict[str, Any]:
        fields = related_fields(beside, case.reader)
        return fields | assumed_fields(fields, (case.before, case.after), case.reader)

    fields = fields_of(case.fields)
    return (
        Request(case.reader, case.before, case.source, fields),
        Request(case.reader, case.before, case.target, fields),
        Request(case.reader, case.after, case.target, fields_of(case.migrated_fields)),
    )


def _answered(
    requests: Sequence[Request], homes: Mapping[str, Home], progress: Callable[[str], None] | None
) -> list[RequestOutcome]:
    groups: dict[Release, list[int]] = {}
    for index, request in enumerate(requests):
        groups.setdefault(request.release, []).append(index)

    def answer(release: Release) -> list[RequestOutcome]:
        group = [requests[index] for index in groups[release]]
        home = home_for(release, homes)
        if home is None:
            return [RequestOutcome(request, str(release), ABSENT, not_available(release)) for request in group]
        start = time.monotonic()
        say(f"megatron-core {home.version} reads {counted(len(group), 'configuration')} …")
        readings = read_all(group, home)
        say(f"megatron-core {home.version}: done in {time.monotonic() - start:.0f} s")
        return readings

    def say(line: str) -> None:
        if progress is not None:
            progress(line)

    with ThreadPoolExecutor(max(1, len(groups))) as pool:
        readings = {release: iter(readings) for release, readings in zip(groups, pool.map(answer, groups), strict=True)}
    return [next(readings[request.release]) for request in requests]


# --- a release reads --------------------------------------------------------------------------------------


def read_all(requests: Sequence[Request], home: Home) -> list[RequestOutcome]:
    """Return what the release at ``home`` makes of each request, in order.

    Nothing is raised: where the process cannot start or ends before its time, the readings that are missing say why.
    """
    readings: dict[int, RequestOutcome] = {}
    lines: dict[str, list[int]] = {}
    for index, request in enumerate(requests):
        reader = request.reader
        resolved = validation_input(request.settings, request.release, reader) if reader.validates_as_bridge else None
        if isinstance(resolved, Rejected):
            readings[index] = RequestOutcome(request, home.version, REFUSED, resolved.reason, by_bridge=True)
        else:
            # Many cases ask the same: one answer serves them all.
            line = _line(request, request.settings if resolved is None else resolved)
            lines.setdefault(json.dumps(line, sort_keys=True, default=str), []).append(index)
    lines_with_id = [{"id": number, **json.loads(line)} for number, line in enumerate(lines)]
    answers, failure = answers_of(lines_with_id, home) if lines_with_id else ({}, "")
    for number, indices in enumerate(lines.values()):
        for index in indices:
            readings[index] = _reading(requests[index], home, answers.get(number), failure)
    return [readings[index] for index in range(len(requests))]


def _line(request: Request, settings: Settings) -> dict[str, Any]:
    flags = request.reader is Reader.COMMAND_LINE
    values = {name: settings[name] for name in FIELDS if name in settings}
    if flags:
        values = {
            name: bool(value) if name in (ENABLE, EXTERNAL) else argument_words(value) for name, value in values.items()
        }
    fields = dict(request.fields)
    return {"reader": "command-line" if flags else "config", "settings": values, "fields": fields}


def answers_of(lines: Sequence[Mapping[str, Any]], home: Home) -> tuple[dict[int, dict[str, Any]], str]:
    """Return the release's answers by request, and what went wrong with it as a whole (empty when nothing did)."""
    program = Path(__file__).with_name("config_probe.py")
    variables = {name: value for name, value in os.environ.items() if name not in _LOOKED_AT}
    variables |= {**_NEUTRAL, **environment(home)}
    # An empty working directory: the user's may well be a checkout of another Megatron-LM.
    with tempfile.TemporaryDirectory(prefix="cgmigrate-") as nowhere:
        try:
            run = subprocess.run(
                [home.python, str(program)],
                input=json.dumps(lines, default=str),
                capture_output=True,
                encoding="utf-8",
                errors="replace",
                env=variables,
                cwd=nowhere,
                timeout=TIMEOUT,
            )
        except OSError as error:
            return {}, f"{home.python} does not run: {error}"
        except subprocess.TimeoutExpired:
            return {}, f"no answer within {TIMEOUT:.0f} s"
    answers = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{") and line.endswith("}")]
    failure = failure_line(run.stderr) or f"the process ended with {run.returncode}" if run.returncode else ""
    if answers and (wrong := _not_what_it_says(answers[0], home)):
        return {}, wrong
    return {answer["id"]: answer for answer in answers[1:]}, failure


def _not_what_it_says(self_description: Mapping[str, Any], home: Home) -> str:
    """Whether another release was imported, or one whose number does not fit its settings (source trees have lied)."""
    # Inside a git checkout megatron-core appends that checkout's commit to its version.
    version = self_description["version"].partition("+")[0]
    if version != home.version:
        return f"megatron-core {version} was imported instead of {home.version}"
    if (MODULES in self_description["known"]) != (home.release >= SPLIT_IN):
        era = "has" if MODULES in self_description["known"] else "does not have"
        return f"it calls itself {home.version} but {era} `{MODULES}`, which came with {SPLIT_IN}"
    return ""


def _reading(request: Request, home: Home, answer: Mapping[str, Any] | None, failure: str) -> RequestOutcome:
    if answer is None:
        return RequestOutcome(request, home.version, UNREAD, with_advice(failure, home) or "it gave no answer")
    warnings = tuple(answer["warnings"])
    if answer["ok"]:
        effective = validated(answer["effective"], home.release)
        return RequestOutcome(request, home.version, READ, "", effective, warnings, answer["omitted"])
    error, omitted = answer["error"], answer["omitted"]
    reason = error["message"] if error["type"] == "UsageError" else f"{error['type']}: {error['message']}"
    reason = with_advice(reason, home)
    refused = error["kind"] == REFUSED_KIND
    if refused and omitted and isinstance(capture_of(request.settings, request.release, request.reader), Capture):
        # The settings alone are not refused: the omitted fields are missing.
        refused, reason = False, f"it cannot be built without {omitted}: {reason}"
    return RequestOutcome(request, home.version, REFUSED if refused else UNREAD, reason, None, warnings, omitted)


# --- verdicts ----------------------------------------------------------------------------------------------


def compare_readings(source: RequestOutcome, target: RequestOutcome, migrated: RequestOutcome) -> ConfigVerdict:
    """Return the verdict by the table at the head of this module.

    ``source`` and ``target`` are the old text on either release, ``migrated`` the new text on the target.
    """
    new = migrated.capture
    if new is None:
        verdict, reason = INCONCLUSIVE, _not_read(migrated, "the migrated text")
    elif isinstance(new, Rejected):
        verdict, reason = _migrated_is_refused(source, target, migrated)
    else:
        verdict, reason = _migrated_captures(source, target, migrated, new)
    return ConfigVerdict("", verdict, reason, tuple(_notes(source, target, migrated)), (source, target, migrated))


def _migrated_captures(
    source: RequestOutcome, target: RequestOutcome, migrated: RequestOutcome, new: Capture
) -> tuple[str, str]:
    was, known, by = source.capture, f"{source.version} did", ""
    if was is None:
        was = capture_of(source.request.settings, source.request.release, source.request.reader)
        by = f" by cgmigrate's own table, as {_why(source)}"
        known = f"{source.version} does{by}"
    if isinstance(was, Rejected):
        return _old_text_is_refused(source, target, new, was)
    if was != new:
        own = ", as megatron-core's own migration of the old text does" if target.capture == new else ""
        before, after = _apart(was, new)
        return DIFFERENT, (
            f"the old text captures {before} on megatron-core {source.version}{by}; "
            f"the migrated text captures {after} on {migrated.version}{own}"
        )
    if target.capture != new:
        shown = _apart(target.capture, new)[1] if isinstance(target.capture, Capture) else _in_words(new)
        return EQUIVALENT_BUT, f"{_own_reading(target, new)}; the migrated text captures {shown}, as {known}"
    if by:
        return EQUIVALENT_BUT, f"only read by {target.version}: {_why(source)}"
    return EQUIVALENT, f"{source.version} captures {_in_words(was)}, and so does {migrated.version}"


def _own_reading(target: RequestOutcome, new: Capture) -> str:
    """How the target reads the old text, where that is not ``new``, what the migrated text captures."""
    match target.capture:
        case None:
            return _not_read(target, "the old text")
        case Rejected(reason=reason):
            return f"{target.who} refuses the old text ({reason})"
        case Capture() as own:
            turns = "turns graphs on: it " if new == Capture() else ""
            return (
                f"megatron-core {target.version}'s own migration of the old text {turns}captures {_apart(own, new)[0]}"
            )


def _old_text_is_refused(
    source: RequestOutcome, target: RequestOutcome, new: Capture, was: Rejected
) -> tuple[str, str]:
    refusal = f"{source.who} refuses the old text ({was.reason})"
    if source.capture is None:
        refusal += f", by cgmigrate's own table, as {_why(source)}"
    match target.capture:
        case Capture() as own if own == new:
            return EQUIVALENT_BUT, f"only on {target.version}, which captures {_in_words(new)}: {refusal}"
        case Capture() as own:
            before, after = _apart(own, new)
            both = f"the old text captures {before}, the migrated text {after}"
            return DIFFERENT, f"on megatron-core {target.version} {both}; {refusal}"
    return INCONCLUSIVE, f"nothing ran the old text, so there is nothing to compare with: {refusal}"


def _migrated_is_refused(source: RequestOutcome, target: RequestOutcome, migrated: RequestOutcome) -> tuple[str, str]:
    refusal = f"{migrated.who} refuses the migrated text ({migrated.reason})"
    was, own = source.capture, target.capture
    if isinstance(was, Capture):
        also = ", and the old text, too: the release changed, not the migration" if isinstance(own, Rejected) else ""
        return DIFFERENT, f"{refusal}{also}; {source.version} captures {_in_words(was)}"
    if isinstance(own, Capture):
        return DIFFERENT, f"{refusal}; it accepts the old text, which captures {_in_words(own)}"
    old = f"{source.who} the old text ({source.reason})" if was is not None else _why(source)
    return INCONCLUSIVE, f"{refusal}, and {old}, so nothing shows what would be captured"


def _not_read(reading: RequestOutcome, text: str) -> str:
    if reading.outcome == ABSENT:
        return reading.reason
    return f"{reading.who} could not read {text} on this machine ({reading.reason})"


def _why(source: RequestOutcome) -> str:
    return _not_read(source, "the old text")


def _in_words(capture: Capture) -> str:
    return "nothing" if capture == Capture() else str(capture)


def _apart(first: Capture, second: Capture) -> tuple[str, str]:
    """Two different captures, each in words that the other does not have."""
    before, after = describe_both(first, second)
    return (before, after) if Capture() not in (first, second) else (_in_words(first), _in_words(second))


def _notes(source: RequestOutcome, target: RequestOutcome, migrated: RequestOutcome) -> list[str]:
    notes = []
    if migrated.request.reader.validates_as_bridge:
        notes.append("Megatron-Bridge's own checks are cgmigrate's account of them; TransformerConfig is the real one")
    for reading in (source, target, migrated):
        request = reading.request
        if reading.outcome != READ or (capture := reading.capture) is None:
            continue
        if reading.omitted:
            notes.append(f"{reading.who} read the settings without {reading.omitted}")
        expected = capture_of(request.settings, request.release, request.reader)
        if capture != expected:
            said = _in_words(expected) if isinstance(expected, Capture) else expected.reason
            table = f"cgmigrate's own table of megatron-core {request.release}"
            notes.append(f"{table} says {said} of {dict(request.settings)}; the release decides, please report this")
    # Without any modules megatron-core warns of its own default, `full`.
    old = [text for text in migrated.warnings if "deprecated" in text and "full scope" not in text]
    if old:
        notes.append(f"megatron-core {migrated.version} still warns of the migrated text: {old[0]}")
    return list(dict.fromkeys(notes))
