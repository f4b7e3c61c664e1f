"""Messages and notes: the text of a rule with the spelling of the site, the releases and the refusal filled in."""

from __future__ import annotations

import re

from cgmigrate.lint.diagnostics import Applicability, Context, SiteCase
from cgmigrate.lint.release_refusals import refusal_of
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, SPLIT_IN, Release
from cgmigrate.megatron.settings import SCOPE
from cgmigrate.megatron.types import Capture, Reader

_ASSIGNED = re.compile(r"`\{([\w.]+)\}: ([^`]+)`")
"""A setting with its value in the text of a rule, which is shown in the syntax of the file."""
_NAME = re.compile(r"\{([\w.]+)\}")


def message(template: str, case: SiteCase, context: Context) -> str:
    """Return a text of a rule with its placeholders filled in for a site."""
    if "{" not in template:
        return template
    target = context.target
    filled = _ASSIGNED.sub(lambda match: f"`{_spelled(case, *_of_target(case, target, *match.groups()))}`", template)
    filled = _NAME.sub(lambda match: _named(case, target, match), filled)
    filled = filled.replace("{source}", str(case.source)).replace("{target}", str(context.target))
    if "{ignored}" in filled and case.surroundings is not None:
        filled = filled.replace(
            "{ignored}", ", ".join(f"`{case.site.written_as(n)}`" for n in case.surroundings.ignored())
        )
    if "{reason}" in filled or "{refuser}" in filled:
        refusal = refusal_of(case, context)
        assert refusal is not None, "only rules about a refusal quote one"
        filled = filled.replace("{reason}", refusal[0].reason.rstrip(".")).replace("{refuser}", str(refusal[1]))
    return filled


def _named(case: SiteCase, target: Release, match: re.Match[str]) -> str:
    """Return the spelling of the setting that a placeholder names; the placeholder of anything else."""
    name = match[1]
    return _key(case, _of_target(case, target, name, "")[0]) if name in case.document.catalogue else match[0]


def _of_target(case: SiteCase, target: Release, name: str, value: str) -> tuple[str, str]:
    """Return a setting and its value by the name that the target has for it: an old one where the new one is newer."""
    catalogue = case.document.catalogue
    if (setting := catalogue.get(name)) is None or setting.since <= target or name in case.before:
        return name, value
    for old in catalogue.all_older_names(name):
        if catalogue[old].since > target or catalogue[old].replaced_by[:1] != (name,):
            continue
        values = {str(new): str(former).lower() for former, new in catalogue[old].values}
        if not values or not value:
            return old, value
        if value in values:
            return old, values[value]
    return name, value


def _key(case: SiteCase, name: str) -> str:
    return case.site.written_as(name) if case.surroundings is None else case.surroundings.key(name)


def _spelled(case: SiteCase, name: str, value: str) -> str:
    if name not in case.document.catalogue.name_set:
        return f"{_key(case, name)}: {value}"
    plain: object = value.strip("[]").replace(",", " ").split() if value.startswith("[") else value
    return case.document.spelled(case.site.index, name, {"null": None, "[]": []}.get(value, plain))


def notes_of(case: SiteCase, applicability: Applicability | None, context: Context) -> tuple[str, ...]:
    """Return the notes of a site: an assignment that comes too late, and a different meaning in an older release."""
    origin = case.site.origin
    assigns = case.site.overrides and origin is not None and not origin.callee and SCOPE in case.site.own
    if assigns and case.reader is Reader.CONFIG and context.target >= SPLIT_IN:
        late = "megatron-core >= 0.18 silently ignores an assignment to `cuda_graph_scope`"
        return (late if case.site.built else f"if the config is already built, {late}",)
    known = applicability is Applicability.SAFE and not case.keeps_captures
    if not known or not context.assumed_source or case.source > LAST_OLD:
        return ()
    now = capture_of(case.before, case.source, case.reader)
    for minor in (16, 15, 14):
        older = Release(0, minor)
        then = capture_of(case.before, older, case.reader)
        if isinstance(then, Capture) and then != now:
            return (f"in megatron-core {older} this captured {then}; if you come from there, run with --from {older}",)
    return ()
