"""What is reported without conditions: problems that a document lists, checks of files, sites, comments and copies.

A rule names a kind (``reports: invalid-yaml``), and that rule gives the diagnostic its code, severity and help.
"""

from __future__ import annotations

from collections.abc import Mapping

from cgmigrate.documents import sites
from cgmigrate.documents.sites import ProblemKind
from cgmigrate.lint.rules import Rule
from cgmigrate.text.words import WordEnum


class CheckKind(WordEnum):
    """What lint reports besides the problems of documents."""

    NOT_UTF8 = "not-utf8"
    TOO_LARGE = "too-large"
    BUILDS_ON_FILES = "builds-on-other-files"
    MERGED_INTO_FILES = "merged-into-other-files"
    UNKNOWN_VALUE = "unknown-value"
    UNKNOWN_OWNER = "unknown-owner"
    UNUSED_SUPPRESSION = "unused-suppression"


KINDS = (*ProblemKind, *CheckKind)

UNREADABLE = frozenset((*sites.UNREADABLE, CheckKind.NOT_UTF8, CheckKind.TOO_LARGE))
"""Kinds that concern a file of which nothing else is known."""


def rule_for(kind: ProblemKind | CheckKind, rules: Mapping[str, Rule]) -> Rule | None:
    """Return the rule that reports a kind, None if it is not among ``rules``."""
    return next((rule for rule in rules.values() if rule.reports == kind), None)


def enabled_rule_for(kind: ProblemKind | CheckKind, rules: Mapping[str, Rule]) -> Rule:
    """Return the rule that reports a kind and is always among ``rules``, since its kind is ``file``."""
    rule = rule_for(kind, rules)
    assert rule is not None, f"no rule reports {kind}"
    return rule
