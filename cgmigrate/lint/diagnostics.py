"""Diagnostics, and the records from which they are made: the context of a run, a site under examination, a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from cgmigrate.documents.sites import Document, Site, Written
from cgmigrate.linking.ecosystems import Ecosystem
from cgmigrate.lint.conditions import State
from cgmigrate.lint.rules import Case, Rule
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span


class Applicability(str, Enum):
    """Who may apply a fix."""

    SAFE = "safe"
    """``fix`` applies it."""
    UNSAFE = "unsafe"
    """``fix --unsafe-fixes`` applies it."""
    DISPLAY_ONLY = "display-only"
    """Only a person does."""

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class Context:
    """The releases, rules and ecosystems for a file, and the other files that its settings concern."""

    source: Release
    target: Release
    rules: Mapping[str, Rule]
    ecosystems: Sequence[Ecosystem]
    assumed_source: bool = True
    """Whether the source release is only the default: no option, configuration or pin names one."""
    merged_into: str = ""
    """A file with settings of its own that is merged over this one."""
    names_files: str = ""
    """Files that this one names at its top level, which may have settings of the same model."""
    key_readers: Mapping[str, str] = field(default_factory=dict)
    """Old name → the file and line of code that reads it by name from a mapping."""
    suppressed: frozenset[Span] = frozenset()
    """Places whose fixes a comment suppresses."""


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One message about one place of a file.

    ``fix`` is the fix in short and ``applicability`` who may apply it, None if there is no fix.
    ``because`` says why a fix is unsafe, ``blocked_by`` which diagnostic or place prevents one, ``help`` what to
    write by hand. ``site`` is the index of what the fix rewrites, -1 for nothing; ``edits`` are those of the
    whole fix, filled in only if a report needs them. ``reports`` is the kind that its rule reports, empty for a rule
    with conditions.
    """

    rule: str
    severity: str
    span: Span
    message: str
    fix: str = ""
    applicability: Applicability | None = None
    because: str = ""
    blocked_by: str = ""
    help: str = ""
    notes: tuple[str, ...] = ()
    site: int = -1
    edits: tuple[Edit, ...] = ()
    reports: str = ""
    place: str = ""
    """Where it is, in words that stay when lines move; see ``cgmigrate.lint.identity``."""

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """The texts about a fix that is unsafe or missing, each with its label, in the order of reports."""
        labelled = (("because", self.because), ("blocked by", self.blocked_by), ("help", self.help))
        return tuple((label, text) for label, text in labelled if text)


@dataclass(slots=True)
class FilePlan:
    """The diagnostics of one document and the settings that its sites get.

    ``safe`` and ``unsafe`` map a site's index to its own settings afterwards; ``unsafe`` holds
    only what ``safe`` does not. ``together`` maps such an index to all that are rewritten with it.
    ``unwritable`` maps to settings that are right but that the text does not allow to be written.
    ``quotes`` says how the settings of a site read after its fix, by site and field.
    ``skipped`` are settings of other systems, each with its owner.
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    safe: dict[int, Settings] = field(default_factory=dict)
    unsafe: dict[int, Settings] = field(default_factory=dict)
    together: dict[int, tuple[int, ...]] = field(default_factory=dict)
    unwritable: dict[int, Settings] = field(default_factory=dict)
    quotes: dict[int, Mapping[str, str]] = field(default_factory=dict)
    skipped: list[tuple[Written, str]] = field(default_factory=list)
    cases: dict[int, SiteCase] = field(default_factory=dict)
    """The sites with a known owner, by index."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a fix is unsafe or missing; ``rule`` is the rule that says so, empty if it concerns the whole site.

    ``help`` is what to write by hand, where the reason itself is no such advice.
    """

    text: str
    rule: str = ""
    help: str = ""


@dataclass(slots=True)
class SiteCase:
    """A site under examination."""

    site: Site
    document: Document
    reader: Reader
    before: Settings
    source: Release
    matches: list[tuple[Rule, Case]] = field(default_factory=list)
    final: Settings | None = None
    after: Settings | None = None
    """The settings in effect once the fixes of its group are written."""
    blocked: Reason | None = None
    """Why the site cannot be rewritten, with or without --unsafe-fixes."""
    risks: list[Reason] = field(default_factory=list)
    """Why it is rewritten only with --unsafe-fixes."""
    diagnostics: list[Diagnostic] = field(default_factory=list)
    """Diagnostics that the examination itself gives, apart from those of matching rules."""

    def state(self, settings: Settings, target: Release, rejected: str = "") -> State:
        """Return what conditions are evaluated on if the site has these settings."""
        return State(settings, _reader_name(self.reader), self.source, target, rejected)

    def block(self, text: str, rule: str = "", help: str = "") -> None:
        """Set the reason why the site cannot be rewritten, unless there is one."""
        self.blocked = self.blocked or Reason(text, rule, help)

    def risk(self, text: str, rule: str = "") -> None:
        """Add a reason why the fix of the site is unsafe."""
        self.risks.append(Reason(text, rule))


def _reader_name(reader: Reader) -> str:
    """Return how rules name a reader: config, command-line, bridge."""
    return reader.name.lower().replace("_", "-")
