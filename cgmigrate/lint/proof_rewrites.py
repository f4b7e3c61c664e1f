"""Rewrites of objects of code that only a proof makes possible: what they write is right for some values only.

A scope that code computes, ``cfg.model.cuda_graph_scope = list(scope)``, becomes the modules if it only names modules.
Settings that code copies from another object are copied under their new names if that object has these. Settings that
code reads back change if that code does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from cgmigrate.documents.changes import differ
from cgmigrate.documents.sites import Site
from cgmigrate.linking.branches import has_choice
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.site_examination import case_of
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, INFERENCE, MODULES, SCOPE, Choice, Settings, Undecided
from cgmigrate.megatron.types import Reader

_IMPLEMENTATIONS = {ENABLE: "local", EXTERNAL: "transformer_engine"}
_OLD_SCOPE = re.compile(rf"\.{SCOPE}\b")
_COPY = re.compile(r"(?P<object>[A-Za-z_][\w.]*)\.(?P<name>\w+)")


def proof_rewrites(file: ExaminedFile) -> dict[int, Settings]:
    """Return the settings of the sites of a file that only a proof makes possible, by their index."""
    result = {}
    for index, case in file.cases.items():
        site = file.document.sites[index]
        if case.reader is not Reader.BRIDGE or site.blocked_by:
            continue
        settings = _read_back(file, case) if site.read_back and not has_choice(site) else None
        if settings is None:
            settings = _renamed(site)
        if settings is not None:
            result[index] = settings
    return result


def _read_back(file: ExaminedFile, case: SiteCase) -> Settings | None:
    """Return what a site would get if no code read it back; None if that is not possible either, or nothing changes."""
    site = file.document.sites[case.site.index]
    alone = replace(case.site, read_back="")
    other = case_of(alone, file.owners[site.index], case.before, file.document, file.context)
    if site.inherits or not other.may_be_proved or other.final is None or not differ(other.final, site.own):
        return None
    return other.final


def _renamed(site: Site) -> Settings | None:
    """Return the settings of a site with computed ones under the new names, None for any other site."""
    own = site.own
    scope = own.get(SCOPE)
    flags = {name: own[name] for name in _IMPLEMENTATIONS if name in own}
    if (owner := _copied_from(scope, SCOPE)) and owner == _copied_from(own.get(MODULES), MODULES):
        # Copied with the modules: no code sets it once these are renamed.
        return {name: value for name, value in own.items() if name != SCOPE}
    is_computed = isinstance(scope, Undecided) or any(isinstance(value, Undecided) for value in flags.values())
    if not is_computed or MODULES in own or INFERENCE in own or not (scope is None or isinstance(scope, Undecided)):
        return None
    others = {name: value for name, value in own.items() if name not in (*flags, SCOPE)}
    if isinstance(value := others.get(IMPL), Undecided):
        others[IMPL] = _following(value)
    if flags:
        implementation = None if IMPL in own else _implementation(flags)
        if implementation is None:
            return None
        others[IMPL] = implementation
    if SCOPE not in own:
        return others
    return {**others, MODULES: _following(scope) if isinstance(scope, Undecided) else []}


def _following(value: Undecided) -> Undecided:
    """Return what code computes from the modules of an object instead of its scope."""
    return replace(value, text=_OLD_SCOPE.sub(f".{MODULES}", value.text))


def _implementation(flags: Mapping[str, object]) -> object:
    """Return the implementation that flags name, None if that is not known."""
    on = [name for name, value in flags.items() if value is not False]
    if not on:
        return "none"
    copied = {_copied_from(flags[name], *_IMPLEMENTATIONS) for name in on}
    if len(copied) == 1 and (owner := copied.pop()):
        value = flags[on[0]]
        assert isinstance(value, Undecided)
        return replace(value, text=f"{owner}.{IMPL}")
    value = flags[on[0]] if len(on) == 1 else None
    implementation = _IMPLEMENTATIONS[on[0]]
    if isinstance(value, Choice):
        return Choice(value.texts, tuple(implementation if one is True else "none" for one in value.branches))
    return implementation if value is True else None


def _copied_from(value: object, *names: str) -> str:
    """Return the object from which a setting with one of some names is copied, empty if it is none."""
    match = _COPY.fullmatch(value.text) if isinstance(value, Undecided) else None
    return match["object"] if match and match["name"] in names else ""
