"""Rewrites of objects of code that only a proof makes possible: what they write is right for some values only.

A scope that code computes, ``cfg.model.cuda_graph_scope = list(scope)``, becomes the modules if it only names modules.
Settings that code copies from another object are copied under their new names if that object has these.
"""

from __future__ import annotations

import re
from dataclasses import replace

from cgmigrate.documents.sites import Site
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, INFERENCE, MODULES, SCOPE, Settings, Undecided
from cgmigrate.megatron.types import Reader

_OLD_SCOPE = re.compile(rf"\.{SCOPE}\b")
_COPY = re.compile(r"(?P<object>[A-Za-z_][\w.]*)\.(?P<name>\w+)")


def proof_rewrites(file: ExaminedFile) -> dict[int, Settings]:
    """Return the settings of the sites of a file that only a proof makes possible, by their index."""
    result = {}
    for index, case in file.cases.items():
        site = file.document.sites[index]
        if case.reader is not Reader.BRIDGE or site.blocked_by:
            continue
        settings = _renamed(site)
        if settings is not None:
            result[index] = settings
    return result


def _renamed(site: Site) -> Settings | None:
    """Return the settings of a site with computed ones under the new names, None for any other site."""
    own = site.own
    scope = own.get(SCOPE)
    if (owner := _copied_from(scope, SCOPE)) and owner == _copied_from(own.get(MODULES), MODULES):
        # Copied with the modules: no code sets it once these are renamed.
        return {name: value for name, value in own.items() if name != SCOPE}
    if not isinstance(scope, Undecided) or any(name in own for name in (ENABLE, EXTERNAL, MODULES, INFERENCE)):
        return None
    others = {name: value for name, value in own.items() if name != SCOPE}
    if isinstance(value := others.get(IMPL), Undecided):
        others[IMPL] = _following(value)
    return {**others, MODULES: _following(scope)}


def _following(value: Undecided) -> Undecided:
    """Return what code computes from the modules of an object instead of its scope."""
    return replace(value, text=_OLD_SCOPE.sub(f".{MODULES}", value.text))


def _copied_from(value: object, *names: str) -> str:
    """Return the object from which a setting with one of some names is copied, empty if it is none."""
    match = _COPY.fullmatch(value.text) if isinstance(value, Undecided) else None
    return match["object"] if match and match["name"] in names else ""
