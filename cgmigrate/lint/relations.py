"""What other files put on the fix of a site: files that are merged with its file, and code that uses its names."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import is_documentation
from cgmigrate.linking.surroundings import Overrides
from cgmigrate.lint.diagnostics import Context, LintDiagnostic, SiteCase
from cgmigrate.lint.kinds import CheckKind, enabled_rule_for
from cgmigrate.lint.matches import place_of
from cgmigrate.lint.rule_texts import OR_UNSAFE
from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.project.paths import is_test, shown_path
from cgmigrate.text.files import line_of_match, text_if_readable
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.linking.surroundings import Override


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
    guarded: Collection[int] = ()
    """Those of them for which the proof has looked for open places."""
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


# --- what overrides a mapping ---------------------------------------------------------------------

MODEL = "model"
"""The key of a configuration that has the settings, in the configurations of Megatron-Bridge."""
_YAML = (".yaml", ".yml")
_TABLES = (".csv", ".tsv", ".txt", ".lst", ".ini", ".cfg", ".conf", ".env", ".properties")
_SUFFIXES = (*_YAML, ".json", ".jsonl", ".json5", ".toml", *_TABLES)
DATA = (*(f"*{suffix}" for suffix in _SUFFIXES), "*.env.*")
_JSON = r"""(?<!\\)"([\w-]+\.)*({0})"\s*[:,\]}}]|^\s*'?({0})'?\s*:"""
_TOML = r"""(?<![\w\\])["']?({0})["']?\s*="""
_TABLE = r"""(^|[\s,;"'.\[{{(]|__)({0})["']?[ \t]*([=:,;\t\]}})]|$)"""
"""A key of a file, or a field, with the names to put in.

JSON5 has keys without quotes, too; an escaped quote is text.
"""
_OF_OTHERS = frozenset(("enable_cuda_graph",))
"""Names that other programs have, too: in YAML they count only under ``model``."""


def data_words(catalogue: Catalogue) -> list[str]:
    """Return words of which each data file has one that names a deprecated setting, in any spelling."""
    camel = {name.title().replace("_", "") for name in catalogue.deprecated}
    words = {word for name in catalogue.deprecated for word in (name, name.replace("_", "-"), name.upper())}
    return sorted(words | camel | {name[0].lower() + name[1:] for name in camel})


def data_writer(
    paths: Iterable[str], document_of: Callable[[str], Document | None], catalogue: Catalogue, release: Release
) -> str:
    """Return a data file that may set a deprecated setting of a configuration, with its place; empty if none does.

    ``release`` is the one that reads it now: what it refuses, such as a description of the setting, sets nothing.
    """
    words = data_words(catalogue)
    for path in sorted(paths):
        if path.endswith(_YAML):
            if (document := document_of(path)) is not None and (at := _site_in(document, catalogue, release)) >= 0:
                return f"{shown_path(path)}:{document.text.count(chr(10), 0, at) + 1}"
        elif line := _line_of_key(path, words):
            return f"{shown_path(path)}:{line}"
    return ""


def _site_in(document: Document, catalogue: Catalogue, release: Release) -> int:
    """Return where the first deprecated setting of a YAML file is that a configuration may get, -1 without one."""
    for site in document.sites:
        named = catalogue.deprecated & site.own.keys()
        is_own = site.path[-1:] == (MODEL,) or not named <= _OF_OTHERS
        if named and is_own and not _is_refused(site.own, release):
            return site.span.start
    return -1


def _is_refused(own: Settings, release: Release) -> bool:
    try:
        return isinstance(capture_of(own, release, Reader.BRIDGE), Rejected)
    except ValueError:
        return False


def _line_of_key(path: str, names: Collection[str]) -> int:
    """Return the line of a data file with a key of some names, 0 if it has none; text in a value is no key."""
    form = _TOML if path.endswith(".toml") else _JSON if ".json" in path.rpartition("/")[2] else _TABLE
    pattern = re.compile(form.format("|".join(map(re.escape, names))), re.MULTILINE)
    return line_of_match(pattern, text_if_readable(path) or "")


def override_writer(paths: Iterable[str], catalogue: Catalogue) -> str:
    """Return the first override of a deprecated setting of a configuration, with its place; empty if there is none.

    Documentation runs nothing, and what tests override is evaluated with them.
    """
    run = [path for path in paths if not is_documentation(path) and not is_test(os.path.realpath(path))]
    for one in Overrides(catalogue, run).every():
        if one.keys[-1:] == (MODEL,) and one.setting in catalogue.deprecated:
            return str(one)
    return ""
