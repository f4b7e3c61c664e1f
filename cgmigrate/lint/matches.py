"""The rules that match at a site, each with the setting that its diagnostic underlines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from cgmigrate.documents.changes import Change
from cgmigrate.documents.sites import Site, Use
from cgmigrate.lint.diagnostics import Applicability, Context, SiteCase
from cgmigrate.lint.rules import Rule, RuleCase, RuleKind, matching_case, matching_cases
from cgmigrate.lint.severity import Severity
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, Settings, Undecided
from cgmigrate.megatron.types import Rejected

# --- what a release refuses -----------------------------------------------------------------------


def refusal_of(case: SiteCase, context: Context) -> tuple[Rejected, Release] | None:
    """Return the refusal of a site's current settings and the release that refuses them.

    The target comes first, since its messages name the settings of today; None if both releases accept the settings.
    """
    for release in (context.target, case.source):
        verdict = capture_of(case.before, release, case.reader)
        if isinstance(verdict, Rejected) and verdict.stage == "config":
            return verdict, release
    return None


def refusal_note(case: SiteCase, context: Context) -> str:
    """Return who refuses a site's current settings and in which words; empty if both releases accept them."""
    refused = refusal_of(case, context)
    if refused is None:
        return ""
    refusal, release = refused
    # The releases of a run are megatron-core's; that of Megatron-Bridge is not known.
    program = "Megatron-Bridge" if refusal.code == "bridge-local" else f"megatron-core {release}"
    return f'{program} rejects it: "{refusal.reason}"'


def help_for(refusal: Rejected, settings: Settings, case: SiteCase, context: Context) -> str:
    """Return what to write instead of refused settings: the help of the rule about this refusal."""
    state = case.state(settings, context.target, refusal.code)
    matches = (matching_case(rule, state) for rule in context.possible_rules(state) if not rule.migrates)
    advice = next((match.help for match in matches if match is not None and match.about_refusal), "")
    return advice or f"write settings that {case.reader.value} accepts"


# --- matches ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Match:
    """A case of a rule that applies to a site, and the setting that the diagnostic underlines."""

    rule: Rule
    case: RuleCase
    written: Use
    refused: tuple[str, ...] = ()
    """The settings at fault, where the case is about a refusal."""
    of_source: bool = False
    """Whether it is the source release that refuses them, and the target does not."""

    @property
    def severity(self) -> Severity:
        """How severe the diagnostic is: what only the source refuses stops no job under the target."""
        own = self.case.severity
        return Severity.WARNING if self.of_source and own is Severity.ERROR else own


def place_of(fields: Sequence[str], case: SiteCase) -> Use | None:
    """Return the first of some settings that the site itself writes, or an older one, where a diagnostic points."""
    by_name = {written.setting: written for written in case.site.written}
    older = (old for name in fields for old in case.document.catalogue.all_older_names(name))
    return next((by_name[name] for name in chain(fields, older) if name in by_name), None)


def migrating_matches(case: SiteCase, changes: Sequence[Change]) -> list[Match]:
    """Return the matches of the rules that rewrite a site; ``changes`` are those of its fix."""
    site = case.site
    matches = [
        Match(rule, match, written)
        for rule, match in case.matches
        if (written := place_of(rule.fields, case)) is not None
    ]
    if not matches and changes and site.written:
        # The site only inherits what the rule is about, and changes together with its source. One that writes nothing
        # has no place of its own: it is reported where its source is.
        return [Match(rule, match, _changed(site, changes)) for rule, match in case.matches[:1]]
    return matches


def remarks_of(case: SiteCase, applicability: Applicability | None, context: Context) -> list[Match]:
    """Return the matches of the rules that rewrite nothing.

    They are evaluated on the settings after a safe fix, or on the current ones if there is none.
    """
    case = case.as_read()
    settings = case.before
    if applicability is Applicability.SAFE and case.final is not None and not case.keeps_captures:
        settings = case.final
    complete = _complete(case, settings)
    refusal = _refusal_at_run_time(case, context) if complete and settings is case.before else None
    remarks = _remarks(case, settings, refusal, context)
    return [remark for remark in remarks if complete or case.document.catalogue.captures.isdisjoint(remark.rule.fields)]


def without_expected(remarks: Sequence[Match], case: SiteCase) -> list[Match]:
    """Return the remarks of a site without the errors that its function expects: a test writes what is refused."""
    if not case.site.expects_error:
        return list(remarks)
    return [remark for remark in remarks if remark.severity is not Severity.ERROR]


def _complete(case: SiteCase, settings: Settings) -> bool:
    """Whether the settings are known well enough to say that one of them is missing or does not fit.

    A rule about a setting on which captures do not depend reports it in any case: it does not need the others.
    """
    if any(isinstance(value, Undecided) for value in settings.values()):
        return False
    # If a site overrides an object, its implementation may be set at another place.
    return not case.site.overrides or bool({IMPL, ENABLE, EXTERNAL} & set(settings))


def _refusal_at_run_time(case: SiteCase, context: Context) -> tuple[Rejected, Release] | None:
    refusal = refusal_of(case, context)
    if refusal is None:
        return None
    if refusal[0].code != "bridge-local":
        return refusal
    # Megatron-Bridge validates a configuration before the model is built, and not again: with what is set by then.
    is_other = case.site.of_built_model
    if not is_other and case.site.later:
        try:
            later = capture_of({**case.before, **case.site.later}, refusal[1], case.reader)
            is_other = not isinstance(later, Rejected)
        except ValueError:
            is_other = True
    return None if is_other else refusal


def _remarks(
    case: SiteCase, settings: Settings, refused_by: tuple[Rejected, Release] | None, context: Context
) -> Iterator[Match]:
    refusal, refuser = refused_by or (None, context.target)
    code = refusal.code if refusal else ""
    state = case.state(settings, context.target, code)
    of_companions = case.state_of_companions(settings, context.target, code)
    refusal_explained = False
    for rule in context.possible_rules(state) if of_companions == state else context.rules.values():
        decides = of_companions if rule.kind is RuleKind.COMPANION else state
        for fields, match in () if rule.migrates else matching_cases(rule, decides, settings):
            if match.about_refusal and refusal_explained:
                continue
            refused = refusal.fields if refusal and match.about_refusal else ()
            refusal_explained = refusal_explained or match.about_refusal
            if (written := place_of((*refused, *fields), case)) is not None:
                yield Match(rule, match, written, refused, match.about_refusal and refuser != context.target)


def without_repetition(matches: Sequence[Match], remarks: Sequence[Match]) -> tuple[list[Match], list[Match]]:
    """Return matches and remarks with one diagnostic a setting, for a site that is not rewritten.

    A rule about a specific trap takes precedence over a refusal that is not more severe, a refusal over any other
    rule, and all of them over the plain deprecation.
    """
    traps = [match for match in matches if match.rule.kind is not RuleKind.DEPRECATED]
    remarks = [remark for remark in remarks if not any(_precedes(trap, remark) for trap in traps)]
    refused = {name for remark in remarks for name in remark.refused}
    covered = {trap.written.setting for trap in traps}
    return [
        match
        for match in matches
        if match.written.setting not in refused
        and (match.rule.kind is not RuleKind.DEPRECATED or match.written.setting not in covered)
    ], remarks


def _precedes(trap: Match, remark: Match) -> bool:
    """Return whether a specific rule explains a refusal, and is as severe."""
    return trap.written.setting in remark.refused and trap.rule.severity.reaches(remark.rule.severity)


def _changed(site: Site, changes: Sequence[Change]) -> Use:
    """Return the first written setting that a fix changes."""
    names = {name for change in changes for name in (getattr(change, "name", ""), getattr(change, "old", ""))}
    return next((written for written in site.written if written.setting in names), site.written[0])
