"""Diagnostics with their fixes, and the records from which they are made: the context of a file, a site as examined."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.ecosystems import Ecosystem
from cgmigrate.lint.conditions import ConditionState, ConditionSurroundings
from cgmigrate.lint.rules import Rule, RuleCase
from cgmigrate.lint.severity import Severity
from cgmigrate.megatron.catalogue import Catalogue, load
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span
from cgmigrate.text.words import WordEnum


class Applicability(WordEnum):
    """Who may apply a fix."""

    SAFE = "safe"
    """``fix`` applies it."""
    UNSAFE = "unsafe"
    """``fix --unsafe-fixes`` applies it."""
    NOT_ANALYSED = "not analysed"
    """``fix`` of the whole checkout analyses whether it is safe."""


@dataclass(frozen=True, slots=True)
class Context:
    """The releases, rules and ecosystems for a file."""

    source: Release
    target: Release
    rules: Mapping[str, Rule]
    ecosystems: Sequence[Ecosystem]
    catalogue: Catalogue = field(default_factory=load)
    assumed_source: bool = True
    """Whether the source release is only the default: no option, configuration or pin names one."""
    path: str = field(default="", compare=False)
    """The path of the file; empty for a text without one, and for what many files share."""
    _possible: dict[int, tuple[Rule, ...]] = field(default_factory=dict, repr=False, compare=False)

    def at(self, path: str) -> Context:
        """Return the context of one of the files that share this one."""
        return replace(self, path=path)

    def deprecated(self, catalogue: Catalogue) -> frozenset[str]:
        """Return the deprecated settings, without those that are current where the release stays the same.

        Between two releases, a setting may get another meaning before it is deprecated. A name that the source release
        does not have any more is another one, since the code works there.
        """
        current = catalogue.deprecated_at(self.target)
        current -= {name for name in current if catalogue[name].is_gone_in(self.source)}
        return current if self.source == self.target else current | (catalogue.deprecated & catalogue.captures)

    def possible_rules(self, state: ConditionState) -> Iterable[Rule]:
        """Return the rules that a state does not exclude by its settings alone; files have few different ones."""
        number = state.number
        if number is None:
            return self.rules.values()
        if number not in self._possible:
            self._possible[number] = tuple(rule for rule in self.rules.values() if rule.may_match(state))
        return self._possible[number]


@dataclass(frozen=True, slots=True)
class FileEdits:
    """The part of an edit set that is in one file."""

    path: str
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Fix:
    """An edit set: changes that are written together or not at all.

    ``id`` names it in reports and for ``fix --group``; it does not depend on line numbers. ``because`` says why the
    fix is unsafe. ``paths`` are its files. ``edits`` write this fix and no other; they are worked out only for
    reports that offer fixes one by one, and are empty where the text allows it only together with other fixes.
    """

    id: str
    applicability: Applicability
    paths: tuple[str, ...]
    because: tuple[str, ...] = ()
    edits: tuple[FileEdits, ...] = ()

    def __hash__(self) -> int:
        # A fix of many diagnostics has many edits, which its name stands for.
        return hash((self.id, self.paths))

    def edits_in(self, path: str) -> tuple[Edit, ...]:
        """Return the edits in one file."""
        return next((file.edits for file in self.edits if file.path == path), ())


@dataclass(frozen=True, slots=True)
class RelatedPlace:
    """A place of a withheld set besides the one where the set is reported, with the diagnostic that it would have."""

    withheld_set: str
    path: str
    rule: str
    message: str
    span: Span
    text: str = field(compare=False, repr=False)
    written: tuple[str, tuple[Edit, ...]] | None = field(default=None, compare=False, repr=False)
    """The text of the file with other fixes applied and their edits, None if it stays as it is."""


@dataclass(frozen=True, slots=True)
class LintDiagnostic:
    """One message about one place of a file.

    ``fix`` settles it, None if there is no fix; ``fix_text`` is the part of the fix that concerns this place, in
    short. ``because`` says why a fix is unsafe, ``blocked_by`` which diagnostic or place prevents one, ``help`` what
    to write by hand. ``site`` is the index of the site that it is about, -1 for none. ``reports`` is the kind that its
    rule reports, empty for a rule with conditions.
    """

    rule: str
    severity: Severity
    span: Span
    message: str
    fix: Fix | None = None
    fix_text: str = ""
    because: str = ""
    blocked_by: str = ""
    help: str = ""
    notes: tuple[str, ...] = ()
    site: int = -1
    reports: str = ""
    place: str = ""
    """Where it is, in words that stay when lines move; see ``cgmigrate.lint.identity``."""
    withheld_set: str = ""
    """The id of the edit set that would settle it and is withheld, empty if there is none."""
    related: tuple[RelatedPlace, ...] = ()
    """The other places of that set, if this diagnostic reports all of them."""

    @property
    def applicability(self) -> Applicability | None:
        """Who may apply the fix, None if there is no fix."""
        return self.fix.applicability if self.fix else None

    @property
    def reasons(self) -> tuple[tuple[str, str], ...]:
        """The texts about a fix that is unsafe or missing, each with its label, in the order of reports."""
        labelled = (("because", self.because), ("blocked by", self.blocked_by), ("help", self.help))
        return tuple((label, text) for label, text in labelled if text)

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """The reasons and the notes, each with its label, in the order of reports."""
        return (*self.reasons, *(("note", note) for note in self.notes))

    def without_fix(self, blocked_by: str, help: str) -> LintDiagnostic:
        """Return the diagnostic without its fix, with what prevents it and what to do."""
        return replace(self, fix=None, fix_text="", because="", blocked_by=blocked_by, help=help)


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a fix is unsafe or missing; ``rule`` is the rule that says so, empty if it concerns the whole site.

    ``help`` is what to write by hand, where the reason itself is no such advice.
    """

    text: str
    rule: str = ""
    help: str = ""
    of_object: bool = False
    """Whether a proof for all code that has the object settles it."""


@dataclass(frozen=True, slots=True)
class SiteCase:
    """A site as examined; each step of the examination returns a new one."""

    site: Site
    document: Document
    reader: Reader
    before: Settings
    source: Release
    surroundings: ConditionSurroundings | None = None
    """The other settings of its configuration."""
    ecosystem: str = ""
    """The identifier of its owner's ecosystem."""
    overrides_parent: bool = False
    """Whether the owner's settings override those of another file."""
    path: str = ""
    """The path of its file, empty for a text without one."""
    matches: tuple[tuple[Rule, RuleCase], ...] = ()
    final: Settings | None = None
    after: Settings | None = None
    """The settings in effect once the fixes of its group are written."""
    blocked: Reason | None = None
    """Why the site cannot be rewritten, with or without --unsafe-fixes."""
    withheld_set: str = ""
    """The name of the sites of several files that cannot be rewritten for the same reason; empty if it is alone."""
    kept: Mapping[str, Reason] = field(default_factory=dict)
    """Settings that stay as they are while the others are rewritten, each with the reason."""
    risks: tuple[Reason, ...] = ()
    """Why it is rewritten only with --unsafe-fixes."""
    notes: tuple[str, ...] = ()
    """What to know about its fix."""
    programs: tuple[str, ...] = ()
    """The programs that get its flags, as far as they are known."""
    diagnostics: tuple[LintDiagnostic, ...] = ()
    """Diagnostics that the examination itself gives, apart from those of matching rules."""

    def state(self, settings: Settings, target: Release, rejected: str = "") -> ConditionState:
        """Return what conditions are evaluated on if the site has these settings."""
        reader = self.reader.name.lower().replace("_", "-")
        names = self.document.catalogue.name_set
        about = (
            rejected,
            self.surroundings,
            names,
            self.before,
            self.ecosystem,
            self.programs,
            os.path.dirname(self.path) if self.path else None,
        )
        return ConditionState(settings, reader, self.source, target, *about)

    def as_read(self) -> SiteCase:
        """Return the site without the settings that the installed release of their reader ignores.

        Old names count, since they are rewritten.
        """
        ignored = (self._unread() & self.before.keys()) - self.document.catalogue.deprecated
        if not ignored:
            return self
        final = None if self.final is None else _without(self.final, ignored)
        return replace(self, before=_without(self.before, ignored), final=final)

    def state_of_companions(self, settings: Settings, target: Release, rejected: str = "") -> ConditionState:
        """Return the state without all settings that the installed release of their reader ignores."""
        return self.state(_without(settings, self._unread()), target, rejected)

    def _unread(self) -> frozenset[str]:
        return self.surroundings.unread() if self.surroundings is not None else frozenset()

    def block(self, text: str, rule: str = "", help: str = "") -> SiteCase:
        """Return the site with a reason why it cannot be rewritten; the first reason stays."""
        return self if self.blocked else replace(self, blocked=Reason(text, rule, help))

    def keep(self, names: Iterable[str], reason: Reason) -> SiteCase:
        """Return the site with settings that stay as they are; the first reason for each stays."""
        return replace(self, kept={**dict.fromkeys(names, reason), **self.kept})

    def reason_to_keep(self, rule: Rule) -> Reason | None:
        """Return why the settings of a rule stay as they are, None if they are rewritten."""
        return next((self.kept[name] for name in self.kept if name in rule.names), None) if self.kept else None

    @property
    def keeps_captures(self) -> bool:
        """Whether the settings on which captures depend stay as they are."""
        return bool(self.kept) and not self.document.catalogue.captures.isdisjoint(self.kept)

    def risk(self, text: str, rule: str = "", *, of_object: bool = False) -> SiteCase:
        """Return the site with one more reason why its fix is unsafe."""
        return replace(self, risks=(*self.risks, Reason(text, rule, of_object=of_object)))

    @property
    def may_be_proved(self) -> bool:
        """Whether a proof for all code that has the object makes its fix safe."""
        return not self.blocked and all(reason.of_object for reason in self.risks)

    def proved(self) -> SiteCase:
        """Return the site without the reasons that such a proof settles."""
        return replace(self, risks=tuple(reason for reason in self.risks if not reason.of_object))


def _without(settings: Settings, names: Collection[str]) -> Settings:
    return {name: value for name, value in settings.items() if name not in names} if names else settings
