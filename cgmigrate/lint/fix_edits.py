"""The edits of single fixes, for reports that offer them one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from cgmigrate.documents.sites import CannotEditError, Document
from cgmigrate.lint.diagnostics import Diagnostic, FilePlan
from cgmigrate.megatron.settings import Settings
from cgmigrate.text.edits import Edit, OverlapError, apply


def with_edits(diagnostics: Sequence[Diagnostic], document: Document, plan: FilePlan) -> tuple[Diagnostic, ...]:
    """Return diagnostics with the edits of their fixes, each with those of the sites that change together with it."""
    planned = {**plan.unsafe, **plan.safe}
    try:
        known = set(document.edits(planned))
    except CannotEditError:
        known = set()
    result = []
    tried: dict[frozenset[Edit], bool] = {}
    for diagnostic in diagnostics:
        together = plan.together.get(diagnostic.site, (diagnostic.site,))
        rewrites = {index: planned[index] for index in together if index in planned}
        edits = _edits_alone(document, rewrites, known, tried) if diagnostic.applicability and rewrites else ()
        result.append(replace(diagnostic, edits=edits) if edits else diagnostic)
    return tuple(result)


def _edits_alone(
    document: Document, rewrites: Mapping[int, Settings], known: Set[Edit], tried: dict[frozenset[Edit], bool]
) -> tuple[Edit, ...]:
    """Return the edits that write these settings and no others; empty if they cannot be written alone.

    The plan has read the text with all ``known`` edits. Others (an import, say) are ``tried`` once for all diagnostics
    that need them: each trial reads the whole file.
    """
    try:
        edits = document.edits(rewrites)
        further = frozenset(edits) - known
        if further and further not in tried:
            tried[further] = not document.check(apply(document.text, edits), rewrites)
    except (CannotEditError, OverlapError):
        return ()
    return tuple(edits) if tried.get(further, True) else ()
