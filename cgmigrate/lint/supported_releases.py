"""Releases that a project has to run on: a fix must keep what they capture, or it is withheld.

They are older ones of megatron-core, and the pinned one of a package that reads the settings by their names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import Syntax, syntax_of
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.lint.edit_sets import EditSet, FileGroup, Place
from cgmigrate.lint.withholding import Limits, Support, Withheld
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import SPLIT_IN, Release
from cgmigrate.megatron.settings import all_known
from cgmigrate.megatron.types import Rejected


def unsupported(
    edit_set: EditSet, group: FileGroup, cases: Mapping[Place, SiteCase], limits: Sequence[Limits]
) -> Withheld | None:
    """Return why a set is withheld since an older release that its project supports does not read its settings."""
    for number in edit_set.files:
        support = limits[number].support()
        release = _first_lost(edit_set, number, group, cases, support.releases) if support else None
        if support is not None and release is not None:
            return _withheld(support, release, group.files[number].context.target)
    return None


def unread(edit_set: EditSet, group: FileGroup, limits: Sequence[Limits]) -> Withheld | None:
    """Return why a set is withheld since the pinned release of a package does not read the names that it writes.

    Where code of the project reads them, it changes with the set, and no pin decides.
    """
    if any(syntax_of(group.files[number].path) is Syntax.PYTHON for number in edit_set.files):
        return None
    for (number, index), own in edit_set.rewrites.items():
        file = group.files[number]
        site = file.document.sites[index] if index < len(file.document.sites) else None
        owner = file.owners[index].ecosystem if site is not None else None
        if site is None or owner is None or owner.unread_up_to is None or own.keys() <= site.own.keys():
            continue
        if pin := limits[number].pinned_up_to(owner.package, owner.unread_up_to):
            names = ", ".join(f"`{name}`" for name in own if name not in site.own)
            return Withheld(
                f"{owner.package} reads {names} only after its release {owner.unread_up_to}, and this project pins an "
                f"older one ({pin})",
                f"raise the pin of {owner.package} first, or keep the settings as they are",
            )
    return None


def _withheld(support: Support, release: Release, target: Release) -> Withheld:
    if support.is_installed:
        return Withheld(
            f"{support.origin} installs megatron-core {release}, which ignores or rejects the new settings",
            f"install {SPLIT_IN} or a later release there first, or give `--to {target}`",
        )
    if support.is_requirement:
        return Withheld(
            f"{support.origin} admits megatron-core {release}, which ignores or rejects the new settings",
            f"to drop the releases before {SPLIT_IN}, add `--raise-pin`, which also raises the requirement",
        )
    return Withheld(
        f"the project supports megatron-core {release} as well ({support.origin}), which ignores or rejects the new "
        "settings",
        f"to drop the releases before {SPLIT_IN}, run with `--from {release} --to {target}`",
    )


def _first_lost(
    edit_set: EditSet, number: int, group: FileGroup, cases: Mapping[Place, SiteCase], releases: Sequence[Release]
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
    if after is None or not all_known((before, after)):
        return False
    if any(document.catalogue[name].since > release for name in after.keys() - before.keys()):
        return False
    was = capture_of(before, release, case.reader)
    return isinstance(was, Rejected) or was == capture_of(after, release, case.reader)
