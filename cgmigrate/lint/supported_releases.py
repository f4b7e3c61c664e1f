"""Older releases that a project has to run on: a fix must keep what they capture, or it is withheld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cgmigrate.documents.sites import Document
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.lint.edit_sets import EditSet, Group, Place
from cgmigrate.lint.withholding import Limits, Support, Withheld
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import Choice, Settings, Undecided
from cgmigrate.megatron.types import Rejected


def unsupported(
    edit_set: EditSet, group: Group, cases: Mapping[Place, SiteCase], limits: Sequence[Limits]
) -> Withheld | None:
    """Return why a set is withheld since an older release that its project supports does not read its settings."""
    for number in edit_set.files:
        support = limits[number].support()
        release = _first_lost(edit_set, number, group, cases, support.releases) if support else None
        if support is not None and release is not None:
            return _withheld(support, release, group.files[number].context.target)
    return None


def _withheld(support: Support, release: Release, target: Release) -> Withheld:
    return Withheld(
        f"the project supports megatron-core {release} as well ({support.origin}), where the new settings have no or "
        "another effect",
        f"to drop the releases before {SPLIT_IN}, run with `--from {release} --to {target}` and raise the requirement "
        f"to >={SPLIT_IN}",
    )


def _first_lost(
    edit_set: EditSet, number: int, group: Group, cases: Mapping[Place, SiteCase], releases: Sequence[Release]
) -> Release | None:
    """Return the newest release on which a set changes what a file does, None if there is none."""
    document = group.files[number].document
    for release in sorted(releases, reverse=True):
        for at, index in edit_set.members:
            if at != number:
                continue
            case = cases.get((at, index))
            if release < SPLIT_IN and (case is None or not _is_same_in(release, case, document)):
                return release
    return None


def _is_same_in(release: Release, case: SiteCase, document: Document) -> bool:
    """Return whether a release does the same with the settings before and after."""
    before, after = case.before, case.after
    if after is None or not (_all_known(before) and _all_known(after)):
        return False
    if any(document.catalogue[name].since > release for name in after.keys() - before.keys()):
        return False
    was = capture_of(before, release, case.reader)
    return isinstance(was, Rejected) or was == capture_of(after, release, case.reader)


def _all_known(settings: Settings) -> bool:
    return not any(isinstance(value, (Undecided, Choice)) for value in settings.values())
