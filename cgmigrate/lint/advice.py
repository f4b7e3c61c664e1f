"""What to write by hand for one setting that has no fix, in the syntax of the file."""

from __future__ import annotations

import re
from collections.abc import Callable

from cgmigrate.documents.sites import Document, Site, Use
from cgmigrate.megatron.releases import IMPL_SINCE, SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import (
    ENABLE,
    EXTERNAL,
    IMPL,
    INFERENCE,
    MODULES,
    SCOPE,
    Choice,
    Settings,
    Undecided,
    names_in,
)

_A_NAME = re.compile(r"[A-Za-z_][\w.]*(?:\[[\w\"'.-]+\])*")
"""A variable, or an attribute or entry of one."""
_ON_IF = re.compile(r"True if .+ else False")
"""A flag that is on where an expression is true."""
_FULL, _FULL_INFERENCE = "full_iteration", "full_iteration_inference"
_OLD_VALUES = frozenset(("full", _FULL, _FULL_INFERENCE))
OFF = "delete it: false is the default"
"""What to do with a boolean that is false."""


def advice_for(document: Document, site: Site, written: Use, settings: Settings, target: Release) -> str:
    """Return what to write instead of a setting, if the target has it; ``settings`` are those in effect at its site."""

    def spelled(name: str, value: object) -> str:
        return f"`{document.spelled(site.index, name, value)}`"

    setting = document.catalogue[written.setting]
    if setting.captures and setting.is_flag:
        return _boolean(site, written, settings, target, spelled) if target >= IMPL_SINCE else ""
    if target < SPLIT_IN:
        is_whole = written.setting == SCOPE and names_in(written.value) == ["full"] and target >= SCOPE_LIST_SINCE
        return f"write {spelled(SCOPE, [])}, which captures whole layers" if is_whole else ""
    if written.setting == SCOPE or (written.setting == MODULES and _OLD_VALUES & set(names_in(written.value))):
        if site.programs is not None and names_in(written.value) == ["full"]:
            return "delete it: whole layers are captured where no module is listed"
        return _scope(written.value, settings, spelled, site.written_as(MODULES))
    return ""


def _boolean(
    site: Site, written: Use, settings: Settings, target: Release, spelled: Callable[[str, object], str]
) -> str:
    backend = "local" if written.setting == ENABLE else "transformer_engine"
    match written.value:
        case False if site.overrides:
            return f"delete it (false is the default), or write {spelled(IMPL, 'none')} where it overrides a true"
        case False:
            return OFF
        case Undecided(text=text) if site.origin is not None and (condition := _condition(text)):
            chosen = Choice(("", f" if {condition} else ", ""), (f'"{backend}"', '"none"'))
            return f"write {spelled(IMPL, chosen)}"
        case Undecided() if site.origin is None:
            both = all(isinstance(settings.get(name), Undecided) for name in (ENABLE, EXTERNAL))
            instead = " in place of both settings" if both else ""
            values = "none, local or transformer_engine" if both else f"none or {backend}"
            example = "`${oc.env:CUDA_GRAPH_IMPL,none}`"
            written_as = site.written_as(IMPL)
            return f"write `{written_as}`{instead} with an interpolation that yields {values}, such as {example}"
        case Undecided():
            return f"write `{site.written_as(IMPL)}` with an expression that yields none or {backend}"
    full = target >= SPLIT_IN and written.setting == ENABLE and _FULL in names_in(settings.get(SCOPE))
    return f"write {spelled(IMPL, _FULL if full else backend)}"


def _condition(text: str) -> str:
    """Return the condition under which a flag that code computes is on, empty if it is not known."""
    if _A_NAME.fullmatch(text):
        return text
    return text.removeprefix("True if ").removesuffix(" else False") if _ON_IF.fullmatch(text) else ""


def _scope(value: object, settings: Settings, spelled: Callable[[str, object], str], modules: str) -> str:
    if isinstance(value, (Undecided, Choice)):
        return (
            f"write `{modules}` instead, with the same value if it names modules; {_FULL} is {spelled(IMPL, _FULL)}, "
            f"and {_FULL_INFERENCE} is {spelled(INFERENCE, 'block')}"
        )
    names = names_in(value)
    if _FULL in names:
        return _full_iteration(settings, spelled)
    if _FULL_INFERENCE in names:
        return f"write {spelled(INFERENCE, 'block')}, if the implementation is local; else delete it"
    if value is None:
        return "delete it: None is the default"
    if not names or names == ["full"]:
        return f"write {spelled(MODULES, [])}, which captures whole layers"
    return f"write {spelled(MODULES, value)}"


def _full_iteration(settings: Settings, spelled: Callable[[str, object], str]) -> str:
    if settings.get(IMPL) == "none":
        return "delete it: it captures nothing if the implementation is none"
    is_local = settings.get(IMPL) == "local" or settings.get(ENABLE) is True
    return f"write {spelled(IMPL, _FULL)} and delete it{'' if is_local else ', if the implementation is local'}"
