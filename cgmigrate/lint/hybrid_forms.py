"""The hybrid form of the GPT model that a command line trains: what the rule about GPT models writes, and its notes."""

from __future__ import annotations

from collections.abc import Iterator

from cgmigrate.linking.test_recipes import UNKNOWN
from cgmigrate.lint.diagnostics import Reason, SiteCase
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.hybrid_models import (
    PATTERN,
    PROGRAMS,
    REPLACED,
    SPEC,
    SPEC_FLAG,
    HybridForm,
    NoHybridForm,
    graph_notes,
    hybrid_form,
    layer_classes,
)
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Backend, Layers, Rejected

_BY_CODE = "code starts `pretrain_gpt.py` with this list: write `pretrain_hybrid.py`, the pattern and the specification"
_OF_RECIPE = "a recipe in `tests/test_utils/recipes` starts the program of the test case: it has to start the new one"
_NO_PROGRAM = "no recipe in `tests/test_utils/recipes` decides which program gets these arguments"
_NOT_COMPARED = "`{}` builds its model from these flags, too, but only models of `pretrain_gpt.py` are compared"
_IN_CAPTURE = "with `--cuda-graph-impl local`, {} {}: the pattern has such layers"


def form_of(case: SiteCase) -> HybridForm | NoHybridForm:
    """Return the hybrid form of the GPT model of a site, or why it has none."""
    if PROGRAMS.keys().isdisjoint(case.programs):
        other = _NO_PROGRAM if UNKNOWN in case.programs else _NOT_COMPARED.format(", ".join(case.programs))
        return NoHybridForm(other, is_known=False)

    def value(name: str) -> object:
        own = f"{name}_of_gpt"
        if own in case.before:
            return case.before[own]
        return case.document.value_beside(case.site.index, (), ("--" + name.replace("_", "-"),))

    return hybrid_form(value)


def as_hybrid(settings: Settings, case: SiteCase, rule: str) -> tuple[dict[str, object], Reason | None]:
    """Return the settings of a site with the hybrid form of its GPT model, or the reason why they stay as they are."""
    form = form_of(case)
    if isinstance(form, NoHybridForm):
        return {}, Reason(form.reason, rule)
    if case.site.scripts:
        return {}, Reason(_BY_CODE, rule)
    if reason := next(_capture_failures(form.pattern, case), ""):
        return {}, Reason(reason, rule)
    replaced = {f"{name}_of_gpt" for name in REPLACED}
    kept = {name: value for name, value in settings.items() if name not in replaced}
    scaled = {f"{name}_of_gpt": value for name, value in form.scaled.items()}
    # Megatron-LM's test cases have one text for the words of a flag.
    spec = list(SPEC) if case.site.programs is not None else f"[{' '.join(SPEC)}]"
    return {**kept, **scaled, PATTERN: form.pattern, SPEC_FLAG: spec}, None


def hybrid_notes(case: SiteCase, target: Release) -> tuple[str, ...]:
    """Return the pattern of the hybrid model, and what the graphs of the site capture of it; or why there is none."""
    form = form_of(case)
    if isinstance(form, NoHybridForm):
        return (f"no hybrid form{'' if form.is_known else ' is known'}: {form.reason}",)
    weights = "loads" if form.loads_gpt_weights else "cannot load"
    pattern = f"`--hybrid-layer-pattern '{form.pattern}'`; megatron-core {target} {weights} GPT weights into it"
    recipe = () if case.site.programs or case.site.scripts else (_OF_RECIPE,)
    return (pattern, *graph_notes(form.pattern, _captured(case, target)), *recipe)


def _captured(case: SiteCase, target: Release) -> Layers | None:
    capture = capture_of(
        {name: value for name, value in case.before.items() if name in case.document.catalogue.captures},
        target,
        case.reader,
    )
    training = None if isinstance(capture, Rejected) else capture.training
    return training if isinstance(training, Layers) else None


def _capture_failures(pattern: str, case: SiteCase) -> Iterator[str]:
    """Yield why layers of a pattern cannot be built with the modules of the site."""
    layers = _captured(case, Release(0, 19))
    if layers is None or layers.backend is not Backend.LOCAL or not layers.modules:
        return
    for one in layer_classes(pattern):
        if (text := one.captured(layers.modules)).startswith("cannot"):
            yield _IN_CAPTURE.format(one.name, text)
