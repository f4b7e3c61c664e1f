"""Judges of a project before and after ``fix``: what each entry point captures, read by the real megatron-core."""

from __future__ import annotations

import functools
import json
import re
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cgmigrate.lint.diagnostics import Applicability, LintDiagnostic
from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.megatron.capture import capture_of, capture_of_resolved, validation_input
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.settings import DEPRECATED, FIELDS, IMPL, INFERENCE, MODULES
from cgmigrate.megatron.types import Capture, Reader, Rejected, ResolvedConfiguration
from cgmigrate.project.options import RunOptions
from tests.support.loaders import Config, without
from tests.support.nightly import NIGHTLY

Place = tuple[str, ...]
READERS: dict[Place, Reader] = {("model_config",): Reader.CONFIG, ("policy", "megatron_cfg"): Reader.NEMO_RL}
"""Where generated files have settings, and who reads them there."""


# --- what settings capture --------------------------------------------------------------------------


def settings_at(config: Any, place: Place) -> dict[str, Any]:
    """The capture settings of the mapping at a place of a merged configuration."""
    for name in place:
        config = config.get(name) or {} if isinstance(config, dict) else {}
    return {name: value for name, value in config.items() if name in FIELDS} if isinstance(config, dict) else {}


def captured_before(settings: Mapping[str, Any], reader: Reader) -> Capture | Rejected:
    """What settings capture in the release that reads all of their names."""
    new = MODULES in settings or INFERENCE in settings or settings.get(IMPL) == "full_iteration"
    return captured_by_newest(settings, reader) if new else capture_of(settings, LAST_OLD, reader)


def captured_by_newest(settings: Mapping[str, Any], reader: Reader) -> Capture | Rejected:
    """What settings capture in the newest release; at night its own class validates them, too.

    Its import takes most of a minute. ``tests/megatron/test_capture.py`` compares the model with it every time.
    """
    expected = capture_of(settings, NEWEST, reader)
    if not NIGHTLY or find_spec("megatron") is None:
        return expected
    passed = validation_input(settings, NEWEST, reader)
    if isinstance(passed, Rejected):
        return passed
    real = _validated(json.dumps(dict(passed), sort_keys=True))
    assert isinstance(real, Rejected) == isinstance(expected, Rejected) and (
        isinstance(real, Rejected) or real == expected
    ), f"the model of the newest release is wrong: {settings}"
    return expected


@functools.cache
def _validated(settings: str) -> Capture | Rejected:
    from megatron.core.transformer.transformer_config import TransformerConfig

    neighbours = {"num_layers": 2, "num_attention_heads": 4, "hidden_size": 64}
    neighbours |= {"num_moe_experts": 2, "moe_router_padding_for_fp8": False, "add_bias_linear": False}
    neighbours |= {"moe_layer_freq": [0, 1], "hidden_dropout": 0.0, "attention_dropout": 0.0}
    # The module `moe` is captured with experts of a fixed capacity only.
    neighbours |= {"moe_token_dispatcher_type": "alltoall", "moe_expert_capacity_factor": 1.0}
    neighbours |= {"moe_pad_expert_input_to_capacity": True}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = TransformerConfig(**neighbours, **json.loads(settings))
    except Exception as error:
        return Rejected("refused", f"{type(error).__name__}: {error}", ())
    modules = tuple(module.name for module in config.cuda_graph_modules)
    inference = config.inference_cuda_graph_scope.name
    return capture_of_resolved(ResolvedConfiguration(config.cuda_graph_impl, "full", modules, inference), NEWEST)


# --- one run of `fix` -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """What a run did: the checked files and those that it rewrote."""

    results: Sequence[FileResult]

    @property
    def written(self) -> set[str]:
        return {checked.path for checked in self.results if checked.after is not None}

    def promised(self, applicability: Applicability = Applicability.SAFE) -> set[str]:
        """The files of the fixes that diagnostics offer."""
        fixes = {one.fix for checked in self.results for one in checked.diagnostics if one.fix}
        return {path for fix in fixes if fix.applicability is applicability for path in fix.paths}

    @property
    def reasons(self) -> Counter[str]:
        """Why diagnostics that remain have no safe fix, by the first words of the reason."""
        counts: Counter[str] = Counter()
        for checked in self.results:
            for one in checked.remaining:
                if one.fix is None or one.fix.applicability is not Applicability.SAFE:
                    counts[f"{one.rule} {reason_of(one)}"] += 1
        return counts


def reason_of(diagnostic: LintDiagnostic) -> str:
    """The first words of why a diagnostic has no safe fix, without the names of files."""
    text = " ".join((diagnostic.because or diagnostic.blocked_by or diagnostic.help).split())
    return re.sub(r"\S*[./]\S*|`[^`]*/[^`]*`|\d+", "#", text)[:70]


def names_old(text: str) -> bool:
    return any(name in text.replace(INFERENCE, "") for name in DEPRECATED)


def fix(folder: Path, unsafe: bool = False) -> Fixed:
    """Fix a folder with the library's own run, and write the files."""
    results = list(Run([str(folder)], RunOptions(unsafe=unsafe)))
    assert all(isinstance(item, FileResult) for item in results), results
    checked = [item for item in results if isinstance(item, FileResult)]
    for item in checked:
        if item.after is not None:
            Path(item.path).write_bytes(item.after.encode())
    return Fixed(checked)


# --- the judgement ----------------------------------------------------------------------------------


@dataclass
class Judgement:
    """What became of the entry points of one project."""

    wrong: list[str] = field(default_factory=list)
    """Entry points that capture, or contain, something else than before."""
    silent: list[str] = field(default_factory=list)
    """Files with old names that stay, without a diagnostic."""
    changed: int = 0
    """Entry points whose settings are written differently, with the same captures."""
    old: int = 0
    """Entry points that still have old names."""
    reasons: Counter[str] = field(default_factory=Counter)


Entries = Mapping[str, Callable[[], Config]]
"""By name: how each entry point is loaded."""


def load_all(entries: Entries) -> dict[str, Config]:
    return {name: load() for name, load in entries.items()}


def compare(before: Mapping[str, Config], after: Mapping[str, Config], places: Mapping[Place, Reader]) -> Judgement:
    """Compare all entry points before and after a fix."""
    judgement = Judgement()
    for name, was in before.items():
        will = after[name]
        if without(was, FIELDS) != without(will, FIELDS):
            judgement.wrong.append(f"{name}: other keys differ: {was} became {will}")
        for place, reader in places.items():
            _compare_place(
                f"{name}: {'.'.join(place)}", settings_at(was, place), settings_at(will, place), reader, judgement
            )
    return judgement


def _compare_place(
    where: str, was: Mapping[str, Any], will: Mapping[str, Any], reader: Reader, judgement: Judgement
) -> None:
    judgement.old += bool(DEPRECATED & {name for name, value in will.items() if value is not None})
    if was == will:
        return
    first, second = captured_before(was, reader), captured_by_newest(will, reader)
    same = isinstance(second, Rejected) if isinstance(first, Rejected) else first == second
    if same:
        judgement.changed += 1
    else:
        judgement.wrong.append(f"{where}: {dict(was)} captured {first}; {dict(will)} captures {second}")


def judge_fix(folder: Path, entries: Entries, places: Mapping[Place, Reader], unsafe: bool = False) -> Judgement:
    """Fix a project and compare what its entry points capture; a second run must have nothing to write."""
    before = load_all(entries)
    done = fix(folder, unsafe)
    try:
        after = load_all(entries)
    except Exception as error:
        return Judgement(wrong=[f"cannot be loaded after the fix: {type(error).__name__}: {error}"])
    judgement = compare(before, after, places)
    judgement.reasons = done.reasons
    promised = done.promised() | (done.promised(Applicability.UNSAFE) if unsafe else set())
    if not unsafe and promised != done.written:
        judgement.wrong.append(f"check offers to write {sorted(promised)}, fix wrote {sorted(done.written)}")
    if again := fix(folder, unsafe).written:
        judgement.wrong.append(f"a second run writes {sorted(again)}")
    reported = {checked.path for checked in done.results if checked.remaining or checked.skipped}
    reported |= {place.path for checked in done.results for one in checked.remaining for place in one.related}
    for path in sorted(folder.rglob("*.y*ml")):
        if str(path) not in reported and names_old(path.read_text(encoding="utf-8")):
            judgement.silent.append(str(path.relative_to(folder)))
    return judgement
