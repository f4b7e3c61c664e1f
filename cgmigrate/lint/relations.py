"""What other files put on the fix of a site: files that are merged with its file, and code that uses its names."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.lint.diagnostics import Context, LintDiagnostic, SiteCase
from cgmigrate.lint.kinds import CheckKind, enabled_rule_for
from cgmigrate.lint.matches import place_of
from cgmigrate.lint.rule_texts import OR_UNSAFE
from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.settings import Settings
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.linking.overrides import Override


@dataclass(frozen=True, slots=True)
class Relations:
    """The other files that the settings of one file concern."""

    builds_on: str = ""
    """Files that are merged into this one, as it names them."""
    merged_into: str = ""
    """A file that is merged with this one as an entry point."""
    overrides: tuple[Override, ...] = ()
    """Overrides on command lines that may start a recipe with this file."""
    merge_reason: str = "what that file sets is not known"
    """Why it is not known how these files have to change together."""
    key_places: Sequence[Span] = ()
    """Where code names keys that move with the mappings that have them."""
    is_followed: bool = True
    """Whether this run analyses the objects of the checkout."""
    proved: Mapping[int, int] = field(default_factory=dict)
    """The sites whose fixes are proved for all code that has their objects, by index, each with the number of those
    that are written together."""
    accounted: Collection[tuple[str, int]] = ()
    """The lines of the project's code whose use of settings the proof knows."""
    makers: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """The functions and modules through which other code gets what is proved, by the index of the site."""
    not_proved: Mapping[int, str] = field(default_factory=dict)
    """Why such a proof is not possible, by the index of the site."""
    own_options: Mapping[int, str] = field(default_factory=dict)
    """Why flags may be options of a program of the project, by the index of the site."""
    open_places: Mapping[int, str] = field(default_factory=dict)
    """Why the names that a fix changes may be used where nothing accounts for it, by the index of the site."""
    option_reads: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Which code depends on settings of a command line that keep their names, or on its words, by the index."""
    proved_rewrites: Mapping[int, Settings] = field(default_factory=dict)
    """The settings of proved sites that are written in another form than that of their own fix, by index."""


def with_relations(case: SiteCase, relations: Relations, context: Context) -> SiteCase:
    """Return a site with the risks and diagnostics that related files give it."""
    if any(match.fix for _, match in case.matches) and case.final is not None:
        case = _with_merged_files(case, relations, context)
    if option := relations.own_options.get(case.site.index, ""):
        return case.risk(option)
    if place := relations.open_places.get(case.site.index, ""):
        # A proof accounts for more places.
        return case.risk(place, of_object=not relations.is_followed)
    final = case.before if case.final is None else case.final
    for name, reason in relations.option_reads.get(case.site.index, {}).items():
        if final != case.before if not name else final.get(name) != case.before.get(name):
            return case.risk(reason)
    if case.overrides_parent and (reason := _unsets(case)):
        return case.risk(f"it overrides settings of another file, and {reason}")
    return case


def _unsets(case: SiteCase) -> str:
    """Return what happens if a setting is deleted, and one that it overrides takes effect; empty if that cannot be."""
    final, catalogue = case.before if case.final is None else case.final, case.document.catalogue
    for name, value in case.before.items():
        setting = catalogue.get(name)
        if name in final or setting is None or not setting.replaced_by:
            continue
        if setting.captures:
            if setting.is_flag and value is False:
                return "a false may turn one of them off"
        elif final.keys().isdisjoint(setting.replaced_by):
            return f"where `{name}` is deleted, a value that is set there takes effect"
    return ""


def _with_merged_files(case: SiteCase, relations: Relations, context: Context) -> SiteCase:
    """Add a risk and a diagnostic for each file that this one is merged with."""
    merged = ((CheckKind.BUILDS_ON_FILES, relations.builds_on), (CheckKind.MERGED_INTO_FILES, relations.merged_into))
    for kind, other in merged:
        if not other:
            continue
        rule = enabled_rule_for(kind, context.rules)
        message = _merge_risk(rule, other, relations.merge_reason)
        case = case.risk(message, rule.id)
        # A mapping that only merges another shows no setting: the diagnostic is at the mapping that it merges.
        if case.site.written:
            diagnostic = _merged_diagnostic(rule, message, case)
            case = replace(case, diagnostics=(*case.diagnostics, diagnostic))
    return case


def _merged_diagnostic(rule: Rule, message: str, case: SiteCase) -> LintDiagnostic:
    """Return the diagnostic about a site that is merged with settings of another file."""
    written = place_of(rule.fields, case) or case.site.written[0]
    advice = f"migrate these files together by hand{OR_UNSAFE} each as if it were used alone"
    return LintDiagnostic(rule.id, rule.severity, written.span, message, help=advice, reports=rule.reports)


def _merge_risk(rule: Rule, other: str, reason: str) -> str:
    direction = "is merged with" if rule.reports == CheckKind.BUILDS_ON_FILES else "is merged into"
    return f"the file {direction} `{other}`, and {reason}"
