"""What a site captures, in words: whether it is known, one release, and two that differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import TypeVar

from cgmigrate.documents.sites import Site
from cgmigrate.linking.branches import has_choice
from cgmigrate.lint.conditions import Condition, ConditionSurroundings, condition_of
from cgmigrate.lint.diagnostics import Context, SiteCase
from cgmigrate.lint.rule_texts import message
from cgmigrate.lint.rules import matching_case
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.layer_classes import GPT, HYBRID, LayerClass
from cgmigrate.megatron.releases import IMPL_SINCE, LAST_OLD, Release
from cgmigrate.megatron.rule_data import load_yaml, rules_folder
from cgmigrate.megatron.setting import Setting
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, Missing, Settings, Undecided
from cgmigrate.megatron.types import Backend, Capture, Layers, Reader, Rejected


def is_known(case: SiteCase, site: Site) -> bool:
    """Return whether what a site captures is known: every value is, and no branch decides which of them counts."""
    undecided = any(isinstance(value, Undecided) for value in case.before.values())
    return not (undecided or case.site.uncertain or has_choice(site))


def outcome(verdict: Capture | Rejected, release: Release) -> str:
    """Return what one release does with the settings of a site."""
    if isinstance(verdict, Rejected):
        return f"{release}: {verb(verdict)}{because(verdict)}"
    return f"{release}: {verdict.describe_briefly()}"


def because(verdict: Rejected) -> str:
    """Return the reason of a refusal that a rule describes, with the rule; empty for one that a diagnostic quotes."""
    return f": {verdict.reason} ({verdict.code})" if verdict.code.isupper() else ""


def verb(verdict: Rejected) -> str:
    """Return how a release refuses settings."""
    return "rejected" if verdict.stage == "config" else "capture fails"


def before_and_after(was: Capture | Rejected, source: Release, will: Capture | Rejected, target: Release) -> list[str]:
    """Return what two releases do with settings, in words that distinguish them."""
    if isinstance(was, Rejected) or isinstance(will, Rejected):
        return [outcome(was, source), outcome(will, target)]
    return [f"{release}: {text}" for text, release in zip(both(was, will), (source, target), strict=True)]


def _phases(capture: Capture) -> tuple[bool, bool]:
    """Return whether anything is captured in training, and in inference."""
    return capture.training is not None, capture.inference is not None


def both(first: Capture, second: Capture) -> tuple[str, str]:
    """Return two captures in words that distinguish them; what one of them does not capture at all is said."""
    if Capture() not in (first, second) and _phases(first) != _phases(second):
        return first.describe_by_phase(), second.describe_by_phase()
    same = first.describe_briefly() == second.describe_briefly()
    return first.describe_briefly(same), second.describe_briefly(same)


# --- what to know of a capture --------------------------------------------------------------------


def advice_on(case: SiteCase, settings: Settings, target: Release) -> tuple[str, ...]:
    """Return the facts that apply to a site with these settings, in the order of their files."""
    state = case.state(settings, target)
    return tuple(text for condition, text in _facts() if condition(state) is True)


@cache
def _facts() -> tuple[tuple[Condition, str], ...]:
    paths = sorted((rules_folder() / "advice").glob("*.yaml"))
    entries = [entry for path in paths for entry in load_yaml(path.read_text(encoding="utf-8"), str(path))]
    return tuple((condition_of(entry["when"]), entry["text"]) for entry in entries)


# --- graphs that other settings turn on -----------------------------------------------------------


def graphs_of_settings(case: SiteCase, after: Settings, target: Release) -> Iterator[str]:
    """Yield what each setting that is on captures; ``after`` are the settings in effect once fixes are written."""
    catalogue = case.document.catalogue
    for setting in (catalogue[name] for name in sorted(case.before)):
        if setting.graph_of and case.before[setting.name] is True and after.get(setting.name) is True:
            was, will = (_outcome(setting, release) for release in (case.source, target))
            if was == will:
                yield f"{case.source}: {was} -> {target}: the same"
            else:
                yield f"{case.source}: {was} -> {target}: {will} (without changes)"


def _outcome(setting: Setting, release: Release) -> str:
    if release < setting.since:
        return f"does not capture {setting.graph_of}"
    return f"{'fails when it captures' if release in setting.graph_fails_in else 'captures'} {setting.graph_of}"


_HYBRID_PROGRAMS = ("*mamba*", "*hybrid*")
"""Programs whose models are hybrid without a pattern, too."""
_PATTERNS = ("hybrid_layer_pattern", "hybrid_override_pattern")


def layers_of(capture: Capture | Rejected, case: SiteCase, target: Release) -> tuple[str, ...]:
    """Return what is captured of each class of layers that the model may have, a line each.

    Empty if the modules say it: those of Transformer Engine do, and so does a capture of whole layers.
    """
    training = None if isinstance(capture, Rejected) else capture.training
    if target < LAST_OLD or not isinstance(training, Layers):
        return ()
    if training.backend is not Backend.LOCAL or not training.modules:
        return ()
    return tuple(f"{one.name}: {one.captured(training.modules)}" for one in _classes(case))


def captured_of_model(capture: Capture, case: SiteCase) -> Capture:
    """Return what is captured of the layers that the model has, as far as its configuration shows them."""
    if case.surroundings is None or capture == Capture():
        return capture
    if case.reader is Reader.COMMAND_LINE and _trains_without_graphs(case.surroundings):
        capture = replace(capture, training=None)
    # A part of a command line leaves open what the rest of it has.
    is_whole = all(case.surroundings.default(name) is not Missing.UNKNOWN for name in _PATTERNS)
    if not is_whole or _classes(case) is not GPT:
        return capture
    return Capture(_of_gpt(capture.training), _of_gpt(capture.inference))


def _trains_without_graphs(around: ConditionSurroundings) -> bool:
    """Return whether Megatron-LM turns graphs off while it trains: in reinforcement learning it does by default."""
    in_training = around.get("rl_training_cuda_graphs")
    return around.get("perform_rl_step") is True and (in_training is Missing.ABSENT or in_training is False)


_T = TypeVar("_T")


def _of_gpt(captured: _T) -> _T | None:
    """Return what is captured of the layers of a GPT model; None if they have nothing of it."""
    if not isinstance(captured, Layers) or not captured.modules:
        return captured
    if captured.backend is Backend.LOCAL:
        return captured if (GPT[0].whole | GPT[0].fails) & captured.modules else None
    modules = captured.modules - {"mamba"}
    return replace(captured, modules=modules) if modules else None


def _classes(case: SiteCase) -> Sequence[LayerClass]:
    """Return the classes of layers of the model, as far as its configuration shows it."""
    if case.surroundings is None:
        return (*GPT, *HYBRID)
    patterns = [case.surroundings.get(name) for name in _PATTERNS]
    if case.surroundings.get("is_hybrid_model") is True or any(isinstance(one, str) for one in patterns):
        return HYBRID
    is_gpt = case.reader is Reader.COMMAND_LINE and all(one is Missing.ABSENT for one in patterns)
    programs = (*(case.site.programs or ()), *case.site.scripts)
    is_gpt = is_gpt and not any(fnmatchcase(program, one) for program in programs for one in _HYBRID_PROGRAMS)
    return GPT if is_gpt else (*GPT, *HYBRID)


def verdict_on(case: SiteCase, settings: Settings, release: Release, context: Context) -> Capture | Rejected:
    """Return what a release captures with some settings of a site, or its refusal."""
    capture = capture_of(settings, release, case.reader)
    if isinstance(capture, Rejected):
        return capture
    return _refusal_by_rule(case, settings, release, context) or captured_of_model(capture, case)


def _refusal_by_rule(case: SiteCase, settings: Settings, release: Release, context: Context) -> Rejected | None:
    """Return the refusal that a rule about other settings describes: the one that comes first in a job."""
    state = case.state_of_companions(_with_implementation(settings, release), release)
    refusals = [
        Rejected(rule.id, message(match.message, case, context), rule.fields, match.stage)
        for rule in context.possible_rules(state)
        if not rule.migrates and (match := matching_case(rule, state)) is not None and match.stage
    ]
    return min(refusals, key=lambda one: one.stage != "config", default=None)


def _with_implementation(settings: Settings, release: Release) -> Settings:
    """Return settings with the implementation that a boolean names."""
    named = {ENABLE: "local", EXTERNAL: "transformer_engine"}
    impl = next((value for name, value in named.items() if settings.get(name) is True), None)
    if impl is None or settings.get(IMPL, "none") != "none" or release < IMPL_SINCE:
        return settings
    return {**{name: value for name, value in settings.items() if name not in named}, IMPL: impl}
