"""Fixes that may be met by something outside of them: the guard, called for each fix that would be safe.

The fixes of files that are planned together account for each other's lines.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.sites import WORDS_ALONE, CannotEditError, Document, Site
from cgmigrate.lint.diagnostics import SiteCase
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.megatron.setting_names import CLASSES
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, SCOPE, Settings
from cgmigrate.megatron.types import Reader
from cgmigrate.text.diff import shared_ends
from cgmigrate.text.edits import OverlapError, apply
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.linking.name_places import OpenPlace
    from cgmigrate.linking.open_places import FixOutline
    from cgmigrate.lint.related_files import RelatedFiles

_IMPORTED = re.compile(r"^[ \t]*from megatron[.\w]* import (\([^)]*\)|[^\n#]+)", re.MULTILINE)
_Line = tuple[str, int]
"""A line of a file, by its real path."""


def with_open_places(examined: Sequence[ExaminedFile], related: RelatedFiles, apart: str = "") -> list[ExaminedFile]:
    """Return files that are planned together, with the places that may use what their safe fixes change.

    A file ``apart`` has no such place.
    """
    group = frozenset(line for one in examined for line in _lines_of(one)) if len(examined) > 1 else frozenset()
    if apart:
        group |= {(os.path.realpath(apart), line) for line in range(1, related.lines_of(apart) + 1)}
    return [_with_open_places(one, group, related) for one in examined]


def _with_open_places(examined: ExaminedFile, group: frozenset[_Line], related: RelatedFiles) -> ExaminedFile:
    reasons = {}
    for index, case in examined.cases.items():
        is_offered = any(match.fix for _, match in case.matches) and (case.may_be_proved or not case.risks)
        if case.blocked or not is_offered or index in examined.relations.guarded:
            continue
        fix = _outline(examined, case, group)
        places = related.open_places(examined.path) if fix.names else None
        if places is None:
            continue
        is_open = bool(case.site.meets)
        place = places.meeting_command(fix, is_open=is_open) if case.site.flags else places.meeting(fix)
        if place is not None:
            reasons[index] = _reason(place, fix, places.texts.text(place.path))
    replaced = _replaced_names(examined, related)
    if not (reasons or replaced):
        return examined
    not_proved = {**examined.relations.not_proved, **replaced}
    return replace(examined, relations=replace(examined.relations, open_places=reasons, not_proved=not_proved))


def _reason(place: OpenPlace, fix: FixOutline, text: str) -> str:
    """Return why a place makes a fix unsafe; a false that goes says nothing to code that reads it."""
    from cgmigrate.linking.name_places import PlaceKind, is_set_in

    begins = f"{place} also uses `{place.text}` and may"
    if not (fix.before and not any(fix.before.values()) and not fix.after):
        return f"{begins} set or read the same setting"
    if place.kind is PlaceKind.CODE and not is_set_in(text, place):
        return f"{begins} read the same setting, which would be missing or have its default"
    return f"{begins} set it to true for the same configuration, which this false turns off"


def _replaced_names(examined: ExaminedFile, related: RelatedFiles) -> dict[int, str]:
    """Return why fixes of imports are unsafe, by problem: the project puts something else in the place of a name."""
    from cgmigrate.linking.class_changes import replacements_of

    moved = [problem for problem, _ in examined.problems if problem.replacement and problem.replaced_names]
    if not moved:
        return {}
    texts = related.open_places(examined.path).texts
    why = {problem.index: next(replacements_of(problem.replaced_names, texts), "") for problem in moved}
    return {index: reason for index, reason in why.items() if reason}


def _outline(examined: ExaminedFile, case: SiteCase, group: frozenset[_Line]) -> FixOutline:
    """Return what the fix of a site changes, and the lines that are accounted for."""
    from cgmigrate.linking.open_places import FixOutline

    final, document, relations = case.final or {}, examined.document, examined.relations
    # A name that is written as null is written.
    names = {name for name in (*case.before, *final) if case.before.get(name, ...) != final.get(name, ...)}
    is_mapping = case.site.origin is None and not case.site.flags
    if is_mapping and IMPL in names:
        # An implementation may be refused beside one that code turns on.
        names |= {ENABLE, EXTERNAL}
    # Of what is not proved, the places count that a proof does not follow.
    is_proved = case.site.index in relations.proved or case.site.index in relations.not_proved
    kept = frozenset(names - document.catalogue.deprecated)
    if is_proved:
        # What code does with the names that stay is part of the proof; data with their values is not.
        names -= kept
    old, new = _lines_changed(document, case.site.index, final) if case.final is not None else ("", "")
    accounted = group or frozenset(_lines_with(examined, case.site))
    return FixOutline(
        os.path.realpath(examined.path),
        _by_key(case.before),
        _by_key(final),
        frozenset(_by_key(dict.fromkeys(names))) if case.final is not None else frozenset(),
        _joined(accounted, frozenset(relations.accounted)) if is_proved else accounted,
        old,
        new,
        is_proved=is_proved,
        kept=kept,
        makers=relations.makers.get(case.site.index, frozenset()),
        keys=case.site.path if case.site.origin is None else (),
        sections=frozenset(section for name in names if (section := document.catalogue[name].section)),
        classes=_classes_in(document.text) if case.site.origin is not None else frozenset(),
        enums=_classes_in(document.text) & set(CLASSES) if SCOPE in names else frozenset(),
    )


def _by_key(settings: Settings) -> Settings:
    """Return settings by the names that a text has: the key of one in a section."""
    return {name.rpartition(".")[2]: value for name, value in settings.items()}


@lru_cache(maxsize=4)
def _joined(lines: frozenset[_Line], others: frozenset[_Line]) -> frozenset[_Line]:
    """Return the lines of both: the same ones for each fix of a group."""
    return lines | others


def _lines_of(examined: ExaminedFile) -> Iterator[_Line]:
    """Yield the lines of a file of a group: those of its sites and of what a proof follows, or that copy keys."""
    document = examined.document
    spans = [span for site in document.sites for span in _spans_of(site)]
    if isinstance(document, PythonDocument):
        is_proved = bool(examined.relations.proved)
        spans = [*spans, *(use.span for use in document.uses)] if is_proved else [*examined.relations.key_places]
    return _lines_in(examined, spans)


def _lines_with(examined: ExaminedFile, site: Site) -> Iterator[_Line]:
    """Yield the lines of a file that a fix accounts for alone.

    In code these are those of all its sites, which were examined together; of mappings those that are merged. Flags
    without a command, such as those of a matrix, may join any.
    """
    is_mapping = site.origin is None and not site.flags
    loose = {one.index for one in examined.document.sites if one.flags and one.path == (WORDS_ALONE,) != site.path}
    return _lines_in(
        examined,
        [
            span
            for other in examined.document.sites
            if other.index not in loose
            for span in _spans_of(other)
            if not is_mapping or other.index in (site.index, *site.inherits) or site.index in other.inherits
        ],
    )


def _spans_of(site: Site) -> list[Span]:
    """Return the spans of the settings of a mapping, whose other values may refer to them, or that of other sites."""
    return [use.span for use in site.written] if site.origin is None and not site.flags else [site.span]


def _lines_in(examined: ExaminedFile, spans: Sequence[Span]) -> Iterator[_Line]:
    path, text = os.path.realpath(examined.path), examined.document.text
    for span in spans:
        yield from ((path, line) for line in span.lines(text))


def _classes_in(text: str) -> frozenset[str]:
    """Return the classes that code imports from Megatron, and the class with the settings."""
    names = (name for match in _IMPORTED.finditer(text) for name in re.findall(r"\w+", match[1]))
    return frozenset((Reader.CONFIG.value, *(name for name in names if name[:1].isupper() and not name.isupper())))


def _lines_changed(document: Document, index: int, final: Settings) -> tuple[str, str]:
    """Return the lines of a file that a fix changes, as they are and as they will be; empty if it changes none."""
    try:
        edited = apply(document.text, document.edits({index: final}))
    except (CannotEditError, OverlapError):
        return "", ""
    old, new = document.text.split("\n"), edited.split("\n")
    start, shared = shared_ends(old, new)
    return "\n".join(old[start : len(old) - shared]), "\n".join(new[start : len(new) - shared])
