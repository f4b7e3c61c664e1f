"""One file as examined: its sites with their owners, the rules that match, and what each site would get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.documents.sites import Document, Problem, Site, Written
from cgmigrate.linking.inheritance import effective
from cgmigrate.linking.ownership import Owner, owned_sites
from cgmigrate.lint.branches import BranchRewrites, merge_branches
from cgmigrate.lint.cases import case_of
from cgmigrate.lint.diagnostics import Context, Diagnostic, SiteCase
from cgmigrate.lint.problems import problems_of
from cgmigrate.lint.relations import Relations
from cgmigrate.lint.rules import Rule
from cgmigrate.lint.unknown_owners import unknown_owner_diagnostics
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader


@dataclass(frozen=True, slots=True)
class ExaminedFile:
    """A file, its sites, and the cases of those that have a reader, by index."""

    path: str
    document: Document
    context: Context
    sites: Sequence[Site]
    """The sites without conditions, with all that they inherit."""
    owners: Sequence[Owner]
    by_branch: Mapping[int, BranchRewrites]
    """The rewrites of sites with conditions, by index."""
    cases: Mapping[int, SiteCase]
    problems: tuple[tuple[Problem, Rule], ...]
    diagnostics: tuple[Diagnostic, ...]
    """Those about sites whose owner is ambiguous."""
    skipped: tuple[tuple[Written, str], ...]
    """Settings of other systems, each with its owner."""
    relations: Relations = field(default_factory=Relations)

    @property
    def known_sites(self) -> Sequence[int]:
        """The indices of the sites that have a reader."""
        return tuple(self.cases)

    def with_settings(self, merged: Mapping[int, Settings]) -> ExaminedFile:
        """Return the file with other settings in effect at its sites, by index."""
        changed = {
            index: case_of(self.sites[index], self.owners[index], merged[index], self.document, self.context)
            for index, case in self.cases.items()
            if merged[index] != case.before
        }
        return replace(self, cases={**self.cases, **changed}) if changed else self


def examine(path: str, document: Document, context: Context) -> ExaminedFile:
    """Return a file with the owners and cases of its sites."""
    sites, owners = owned_sites(document.sites, document.top_level, context.ecosystems)
    sites, by_branch = merge_branches(document, sites, owners, context)
    merged = effective(sites)
    cases: dict[int, SiteCase] = {}
    diagnostics: list[Diagnostic] = []
    skipped = list(document.skipped)
    for site, owner in zip(sites, owners, strict=True):
        if owner.ecosystem is None:
            diagnostics += unknown_owner_diagnostics(site, document, context)
        elif owner.ecosystem.reader is None and not owner.conflict:
            skipped += [(written, owner.ecosystem.name) for written in site.written]
        else:
            cases[site.index] = case_of(site, owner, merged[site.index], document, context)
    return ExaminedFile(
        path,
        document,
        context,
        sites,
        owners,
        by_branch,
        cases,
        tuple(problems_of(document, context)),
        tuple(diagnostics),
        tuple(skipped),
        Relations(builds_on=document.builds_on),
    )


def settings_of(document: Document, context: Context) -> dict[int, tuple[Reader, Settings]]:
    """Return each site that has a reader, by index: the reader and the settings in effect, merged ones included."""
    sites, owners = owned_sites(document.sites, document.top_level, context.ecosystems)
    merged = effective(sites)
    return {
        site.index: (owner.ecosystem.reader, merged[site.index])
        for site, owner in zip(sites, owners, strict=True)
        if owner.ecosystem is not None and owner.ecosystem.reader is not None
    }
