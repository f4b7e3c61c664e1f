"""What a site captures, in words: whether it is known, one release, and two that differ."""

from __future__ import annotations

from cgmigrate.documents.sites import Site
from cgmigrate.linking.branches import has_choice
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Undecided
from cgmigrate.megatron.types import Capture, Rejected


def is_known(case: SiteCase, site: Site) -> bool:
    """Return whether what a site captures is known: every value is, and no branch decides which of them counts."""
    undecided = any(isinstance(value, Undecided) for value in case.before.values())
    return not (undecided or case.site.uncertain or has_choice(site))


def outcome(verdict: Capture | Rejected, release: Release) -> str:
    """Return what one release does with the settings of a site."""
    if isinstance(verdict, Rejected):
        return f"{verb(verdict)} {release}"
    return f"captures {verdict.describe_briefly()} in {release}"


def verb(verdict: Rejected) -> str:
    """Return how a release refuses settings."""
    return "is refused by" if verdict.stage == "config" else "fails when captured by"


def both(first: Capture, second: Capture) -> tuple[str, str]:
    """Return two captures in words that distinguish them."""
    same = first.describe_briefly() == second.describe_briefly()
    return first.describe_briefly(same), second.describe_briefly(same)
