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
