"""Judge of packs: the old and the new form of a setting, built by real releases on a CPU and compared.

A pack is an entry of the catalogue with its replacement, or the examples of a rule that deletes a setting, writes a
default or writes several settings for one. Each value or example makes pairs of forms. A pair *proves* that both mean
the same where one release reads both, or where the same words of a command line set both names. Old and new in two
releases without such a link are *accepted*: values arrive, and no other field differs.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cgmigrate.lint.fixes import shown
from cgmigrate.megatron.data_schema import line_of
from cgmigrate.megatron.gone import ARGUMENTS
from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.rule_data import text_of
from cgmigrate.megatron.setting import ABSENT
from cgmigrate.text.plurals import counted
from cgmigrate.verify.config_level import answers_of
from cgmigrate.verify.config_probe import REFUSED
from cgmigrate.verify.mcore import Home, home_for, with_advice

PROVED, ACCEPTED, UNTESTED, WRONG = "proved", "accepted", "not tested", "FAIL"

_TRANSFORMER = "megatron.core.transformer.transformer_config"
MODULES = {
    "TransformerConfig": _TRANSFORMER,
    "MLATransformerConfig": _TRANSFORMER,
    "ModelParallelConfig": "megatron.core.model_parallel_config",
    "OptimizerConfig": "megatron.core.optimizer.optimizer_config",
    "DistributedDataParallelConfig": "megatron.core.distributed.distributed_data_parallel_config",
    "InferenceConfig": "megatron.core.inference.config",
}
"""The classes of megatron-core that hold settings, each with its module."""
BRIDGE = "bridge.ConfigContainer"

Values = Mapping[str, Any]
Key = tuple[Release, str]
_Answers = Mapping[Key, Mapping[str, Any] | str]
"""What a release answered to a request of the probe, or why it gave no answer."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on one pack: ``reason`` says what was compared and where, or what is wrong, with file and line."""

    name: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Build:
    """One form of a setting, for a release to build; ``fields`` are what else the configuration has."""

    release: Release
    owner: str
    settings: Values
    fields: Values

    @property
    def key(self) -> Key:
        """The release, and the request of the probe as JSON."""
        of_arguments = self.owner == ARGUMENTS
        module = MODULES.get(self.owner, f"megatron.{'bridge.' if self.owner == BRIDGE else ''}training.config")
        request = {
            "reader": "command-line" if of_arguments else "config",
            "owner": "arguments" if of_arguments else f"{module}.{self.owner.rpartition('.')[2]}",
            "settings": {name: value for name, value in self.settings.items() if value != ABSENT},
            "fields": self.fields,
        }
        return self.release, json.dumps(request, default=str)

    def __str__(self) -> str:
        written = [f"{name} = {shown(value)}" for name, value in self.settings.items() if value != ABSENT]
        return ", ".join(written) or "the default"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two forms that have to mean the same; ``place`` leads to what says so in the file.

    ``names`` are the settings in question, the old and the new one of an entry with their ``values``.
    """

    before: Build
    after: Build
    place: tuple[str | int, ...]
    names: tuple[str, ...]
    values: tuple[object, ...] = ()
    proves: bool = False

    @property
    def builds(self) -> tuple[Build, ...]:
        """What releases have to build for it: both forms, and the same without the settings."""
        return self.before, self.after, replace(self.before, settings={}), replace(self.after, settings={})

    def where(self, homes: Mapping[Release, Home]) -> tuple[str, str]:
        """Return what is compared, and in which releases."""
        versions = dict.fromkeys(homes[build.release].version for build in (self.before, self.after))
        forms = dict.fromkeys(" ".join(build.settings) or "the default" for build in (self.before, self.after))
        what = f"both forms in {self.before.owner}" if len(versions) == 1 else " and ".join(forms)
        return what, " and ".join(versions)

    def judged(self, answers: _Answers) -> tuple[str, str]:
        """Return the verdict on this pair, and why it is wrong or not tested."""
        effects: list[Values] = []
        for number, build in enumerate(self.builds):
            answer = answers[build.key]
            if isinstance(answer, str):
                return UNTESTED, answer
            if not answer["ok"]:
                is_refused = answer["error"]["kind"] == REFUSED
                said = f"{'refuses' if is_refused else 'cannot build'} {build}: {answer['error']['message']}"
                # What the old release refuses is in no configuration, or needs others beside it.
                return WRONG if is_refused and number == 1 else UNTESTED, f"megatron-core {build.release} {said}"
            effects.append(answer["effective"])
        before, after, *bases = effects
        # What both releases have, with the same default.
        same = [n for n in before if n in after and n in bases[1] and bases[0].get(n) == bases[1][n]]
        within = self.before.release == self.after.release
        # One release reads both: what the new name has is a part of the proof.
        own = self.names[:1] if within and self.values else self.names
        wrong = next((name for name in sorted(same) if before[name] != after[name] and name not in own), "")
        if not wrong and not within:
            if contradicted := self._values_of(before, after):
                return WRONG, contradicted
            # A default that is written is the value that it was before.
            kept = () if self.values or self.before.settings else self.names
            wrong = next((name for name in kept if before.get(name) != after.get(name)), "")
        if wrong:
            both = f"{shown(before.get(wrong))} with {self.before} in megatron-core {self.before.release}"
            return WRONG, f"{wrong} is {both}, and {shown(after.get(wrong))} with {self.after} in {self.after.release}"
        is_proof = self.proves and (bool(self.values) or all(before.get(n) == after.get(n) for n in self.names))
        return PROVED if is_proof else ACCEPTED, ""

    def shows_one_reading(self, answers: _Answers) -> bool:
        """Return whether both forms set the new name to the same, which is no default, or are refused alike."""
        got = [one for build in self.builds[:3] if not isinstance(one := answers[build.key], str)]
        if len(got) < 3 or not got[2]["ok"] or got[0]["error"] != got[1]["error"]:
            return False
        old, new, default = (one["effective"].get(self.names[-1]) for one in got)
        return not got[0]["ok"] or bool(old == new != default)

    def _values_of(self, *effects: Values) -> str:
        """Return which name does not have its value in its release; empty if each has."""
        for build, read, name, value in zip(
            (self.before, self.after), effects, self.names, self.values or (ABSENT, ABSENT), strict=False
        ):
            if value != ABSENT and read.get(name) != value:
                has = f"{name} is {shown(read[name])}" if name in read else f"there is no {name}"
                return f"with {build} in megatron-core {build.release} {has}, and not {shown(value)}"
        return ""

    def against_defaults(self, answers: _Answers, mapped: Sequence[tuple[object, object]]) -> str:
        """Return how the defaults of a flag contradict its values; empty if they do not."""
        bases = [answers[build.key] for build in self.builds[2:]]
        defaults = [
            one["effective"].get(name) if isinstance(one, Mapping) and self.values else None
            for one, name in zip(bases, self.names, strict=False)
        ]
        meant = next((new for old, new in mapped if old is defaults[0]), defaults[0])
        if not all(isinstance(one, bool) for one in (*defaults, meant)) or meant is defaults[1]:
            return ""
        old, new = (f"{n} of megatron-core {b.release}" for n, b in zip(self.names, self.builds, strict=False))
        return f"{old} is {shown(defaults[0])} by default, so {new} would be {shown(meant)}, not {shown(defaults[1])}"


@dataclass(frozen=True, slots=True)
class Pack:
    """An entry or a rule whose forms are compared; ``mapped`` are the values that the entry lists."""

    name: str
    path: str
    pairs: tuple[Pair, ...]
    mapped: tuple[tuple[object, object], ...] = ()
    since: Release | None = None
    """The first release that reads the old name of an entry as the new one."""
    untested: str = ""
    """Why nothing is compared."""

    def verdict(self, answers: _Answers, homes: Mapping[Release, Home]) -> Verdict:
        """Return the verdict on all pairs: proved where each value is that was built."""
        judged = [(pair, *pair.judged(answers)) for pair in self.pairs]
        if contradicted := self._contradicted(judged, answers):
            return Verdict(self.name, WRONG, contradicted)
        judged = [one for one in judged if not self._is_early(one[0])]
        proved, built, every = (
            {repr((pair.place, pair.values)) for pair, one, _ in judged if one in verdicts}
            for verdicts in ((PROVED,), (PROVED, ACCEPTED), (PROVED, ACCEPTED, UNTESTED))
        )
        for pair, one, reason in judged:
            if one == ACCEPTED and not proved:
                reason = pair.against_defaults(answers, self.mapped)
            if one == WRONG or (one == ACCEPTED and reason):
                line = line_of(text_of(Path(self.path)), pair.place)
                return Verdict(self.name, WRONG, f"{self.path}:{line}: {reason}")
        verdict = PROVED if proved == built else ACCEPTED
        if not built or (self.mapped and built != every):
            verdict = UNTESTED
        compared: dict[str, list[str]] = {}
        for (what, where), count in Counter(
            pair.where(homes) for pair, one, _ in judged if one == verdict != UNTESTED
        ).items():
            compared.setdefault(what, []).append(f"{where} ({count})")
        done = [f"{what}, {', '.join(where)}" for what, where in compared.items()]
        untested = [
            (pair.before.release, pair.after.release, reason) for pair, one, reason in judged if one == UNTESTED
        ]
        absent = sorted({release for *both, _ in untested for release in both if release not in homes})
        why = [f"no megatron-core {', '.join(map(str, absent))}"] if absent else []
        why += [reason for old, new, reason in untested if not {old, new}.intersection(absent)]
        done += [reason if verdict == UNTESTED else f"not tested: {reason}" for reason in dict.fromkeys(why)]
        return Verdict(self.name, verdict, "; ".join(done) or self.untested)

    def _is_early(self, pair: Pair) -> bool:
        return self.since is not None and pair.proves and pair.after.release < self.since

    def _contradicted(self, judged: Sequence[tuple[Pair, str, str]], answers: _Answers) -> str:
        """Return which release reads the old name as the new one first, if that is not the one of the entry."""
        same = [(pair, one) for pair, one, _ in judged if pair.before.release == pair.after.release]
        reads = {pair.before.release for pair, one in same if pair.shows_one_reading(answers)}
        refuted = {pair.before.release for pair, one in same if one == WRONG}
        first = min(reads - refuted, default=None)
        if self.since is None or first is None or not (first < self.since or self.since in refuted):
            return ""
        line = line_of(text_of(Path(self.path)), ["deprecated-in"])
        old, new = same[0][0].names
        reason = f"megatron-core {first} is the first that reads {old} as {new}, not {self.since}"
        return f"{self.path}:{line}: deprecated-in: {reason}"


def judge(packs: Sequence[Pack], homes: Mapping[str, Home]) -> list[Verdict]:
    """Return the verdict on each pack; ``homes`` are the available releases, by version.

    Raises nothing for a release that is missing or cannot be imported: its pairs are not tested, with the reason.
    """
    available = {release: home for release in KNOWN if (home := home_for(release, homes))}
    keys = {build.key for pack in packs for pair in pack.pairs for build in pair.builds}
    answers: dict[Key, Mapping[str, Any] | str] = {}
    for release in sorted({release for release, _ in keys}):
        requests = sorted(request for one, request in keys if one == release)
        if (home := available.get(release)) is None:
            answers |= {(release, request): "not available" for request in requests}
            continue
        got, failure = answers_of([{"id": number, **json.loads(one)} for number, one in enumerate(requests)], home)
        for number, request in enumerate(requests):
            answer: Any = got.get(number) or with_advice(failure, home) or "it gave no answer"
            if isinstance(answer, Mapping) and (answer["error"] or {}).get("type") == "ModuleNotFoundError":
                # A package that is missing is no property of a form.
                answer = f"megatron-core {release}: {with_advice(answer['error']['message'], home)}"
            answers[release, request] = answer
    return [pack.verdict(answers, available) for pack in packs]


def summary(judged: Sequence[Verdict], homes: Mapping[str, Home]) -> str:
    """Return how many packs have which verdict, and by which releases."""
    counts = Counter(one.verdict for one in judged)
    shares = ", ".join(f"{counts[one]} {one}" for one in (PROVED, ACCEPTED, UNTESTED, WRONG) if counts[one])
    return f"Compared {counted(len(judged), 'pack')} in megatron-core ({', '.join(sorted(homes)) or 'none'}): {shares}."
