"""Settings of a known name whose owner is ambiguous."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Document, ProblemKind, Site, Use
from cgmigrate.lint.advice import OFF, advice_for
from cgmigrate.lint.diagnostics import Context, LintDiagnostic, SiteCase
from cgmigrate.lint.kinds import CheckKind, enabled_rule_for
from cgmigrate.lint.rules import Rule
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import DEPRECATED, IMPL, MergedValue, Undecided
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.python.definitions import OwnClass

DICT = "dict "
"""Begins the name of a dictionary in code, before that of its variable, or ``?``."""


_OF_FIELD = "if it is passed to megatron-core, replace the field, with everything that sets or reads it; else leave it"


def other_library(site: Site) -> str:
    """Return whose configuration an object of code is, if it is known to be none of Megatron; empty otherwise."""
    if site.origin is None:
        return ""
    from cgmigrate.documents.python.made_objects import is_of_hugging_face
    from cgmigrate.documents.python.use_owners import HUGGING_FACE

    return HUGGING_FACE if is_of_hugging_face(site.origin.object, site.origin.callee) else ""


def own_class(site: Site, document: Document) -> OwnClass | None:
    """Return the class of the checkout that gets a site's settings under the names of its own fields, if one does."""
    from cgmigrate.documents.python import PythonDocument

    return document.own_class(site.index) if isinstance(document, PythonDocument) else None


def own_fields(site: Site, document: Document) -> frozenset[str]:
    """Return the fields that the class of a site's object defines itself, in the checkout."""
    from cgmigrate.documents.python import PythonDocument

    if isinstance(document, PythonDocument):
        return document.own_fields(site.index)
    target = site.neighbours.get("_target_")
    if not isinstance(target, str) or not document.path or target.startswith("megatron."):
        return frozenset()
    from cgmigrate.documents.python.definitions import fields_of_class

    return fields_of_class(target, os.path.dirname(document.path), document.catalogue)


def unknown_owner_diagnostics(
    site: Site, document: Document, context: Context, own: OwnClass | None = None
) -> list[LintDiagnostic]:
    """Return a diagnostic for each setting of a site without an owner; in code only for deprecated names.

    ``own`` is the class of the checkout with these fields.
    """
    rule = enabled_rule_for(CheckKind.UNKNOWN_OWNER, context.rules)
    function = site.origin.callee if site.origin else ""
    if not re.search(rf"^def {re.escape(function)}\(", document.text, re.MULTILINE):
        function = ""

    def texts(written: Use) -> tuple[str, str]:
        """Return the message, and what to do."""
        if own:
            message = (
                f"`{written.key}` is a field of `{own.name}` ({own.place}), which is not known as a Megatron class"
            )
            return message, _OF_FIELD
        if function:
            message = f"`{written.key}` is an argument of `{function}` of this file; cgmigrate cannot tell what gets it"
            change = f", and change what `{function}` does with it first"
            return message, _if_megatrons(advice_for(document, site, written, site.own, context.target), site, change)
        is_common = written.setting in document.catalogue.captures
        advice = advice_for(document, site, written, site.own, context.target)
        return _message(site, written.key, is_common=is_common), _if_megatrons(advice, site)

    return [
        LintDiagnostic(rule.id, rule.severity, written.span, message, help=help_, reports=rule.reports)
        for written in site.written
        if _concerns(written.setting, site, document.catalogue, context) and not _is_refused(written, site, document)
        for message, help_ in (texts(written),)
    ]


def _concerns(name: str, site: Site, catalogue: Catalogue, context: Context) -> bool:
    """Whether it matters whose a setting is: other systems have settings with the names of the capture model."""
    if name in catalogue.deprecated and name not in context.deprecated(catalogue):
        return False
    if "." in name:
        # Many systems have a section of this name.
        return False
    # In a script, only the deprecated names are a reason to ask: programs of other systems have flags of their own.
    is_data = site.origin is None and site.programs is None
    return name in catalogue.deprecated or (is_data and name in catalogue.captures)


def _is_refused(written: Use, site: Site, document: Document) -> bool:
    """Return whether the call that gets a setting is reported, since its function does not take that any more."""
    reported = (one for one in document.problems if one.kind is ProblemKind.CHANGED_CALL)
    starts = [one.span.end for one in reported if f"`{written.setting}`" in one.message]
    # A call begins behind the name of its function, and the nearest one is that of the site.
    nearest = max((start for start in starts if start <= site.span.start), default=-1)
    name = site.origin.callee.rpartition(".")[2] if site.origin is not None else ""
    return nearest >= 0 and bool(name) and document.text[:nearest].endswith(name)


def _message(site: Site, key: str, *, is_common: bool) -> str:
    """Return what is ambiguous; ``is_common`` says whether other systems have a setting of this name."""
    if site.origin is None and is_common:
        return f"cannot tell whether `{key}` is megatron-core's: other systems have a setting of this name, too"
    if site.origin is None:
        return f"cannot tell whether `{key}` is megatron-core's: `{'.'.join(site.path)}` has settings of another class"
    name = site.origin.callee or site.origin.object
    if name and not name.startswith(DICT):
        return f"cannot tell whether `{key}` is megatron-core's: `{name}` is not known as a Megatron class"
    named = name.removeprefix(DICT)
    which = f"the dictionary `{named}`" if named not in ("", "?") else "this place"
    return f"cannot tell whether `{key}` is megatron-core's: cgmigrate does not see {which} reach a TransformerConfig"


def _if_megatrons(advice: str, site: Site, when: str = "") -> str:
    of_arguments = site.origin is not None and site.origin.object.rpartition(".")[2] == "args"
    # `validate_args` derives other arguments from these.
    when = ", before `validate_args` runs" if of_arguments else when
    if advice == OFF and site.origin is not None and site.origin.callee:
        is_set = IMPL in site.own
        advice = (
            "delete it" if is_set else 'write `cuda_graph_impl="none"`, or delete it where the class has this default'
        )
    if not advice:
        return ""
    return f"if megatron-core gets it, {advice}{when}; else, or where a test is about the old name, leave it"


# --- values that are not known --------------------------------------------------------------------

_DOTTED = re.compile(r"[A-Za-z_][\w.]*")


def unknown_value_diagnostics(case: SiteCase, context: Context) -> list[LintDiagnostic]:
    """Return the diagnostics about the values of a site that are not known."""
    catalogue = case.document.catalogue
    deprecated = context.deprecated(catalogue)
    # What the project's release does not deprecate is not to be migrated.
    concerned = catalogue.captures - (catalogue.deprecated - deprecated)
    relevant = [written for written in case.site.written if written.setting in concerned]
    undecided = [written for written in relevant if isinstance(written.value, Undecided)]
    if case.site.origin is not None and not DEPRECATED & deprecated & case.before.keys():
        # Code computes values all the time; only where an old name has to be migrated does that matter.
        return []
    rule = enabled_rule_for(CheckKind.UNKNOWN_VALUE, context.rules)
    if copied := _copied_from(undecided):
        return [_copy_diagnostic(rule, copied, undecided)]
    return [*(_diagnostic(rule, written, case, context) for written in undecided), *_merged_diagnostics(rule, case)]


def _merged_diagnostics(rule: Rule, case: SiteCase) -> Iterator[LintDiagnostic]:
    """Yield a diagnostic for each setting that the mappings which a site merges have differently, at its first line."""
    site, text = case.site, case.document.text
    if not site.unordered:
        return
    end = text.find("\n", site.span.start, site.span.end)
    span = Span(site.span.start, site.span.end if end < 0 else end)
    for name, value in case.before.items():
        if isinstance(value, MergedValue) and name in case.document.catalogue.captures:
            message = f"`{name}` has {value.reason}; cgmigrate cannot tell what is captured"
            help = f"write `{name}` in this mapping, or merge one mapping that has it"
            yield LintDiagnostic(rule.id, rule.severity, span, message, help=help, reports=rule.reports)


def _diagnostic(rule: Rule, written: Use, case: SiteCase, context: Context) -> LintDiagnostic:
    assert isinstance(written.value, Undecided)
    message = f"`{written.key}` has {written.value.reason}; cgmigrate cannot tell what is captured"
    advice = advice_for(case.document, case.site, written, case.before, context.target)
    advice = f"{advice}; not fixed: which value it has, and what else reads it, is not known" if advice else ""
    return LintDiagnostic(rule.id, rule.severity, written.span, message, help=advice, reports=rule.reports)


def _copied_from(undecided: Sequence[Use]) -> str:
    """Return the object from which all of several settings are copied, empty if there is no such object."""
    objects: set[str] = set()
    for written in undecided:
        assert isinstance(written.value, Undecided)
        owner, dot, name = written.value.text.rpartition(".")
        objects.add(owner if dot and name == written.setting and _DOTTED.fullmatch(owner) else "")
    return objects.pop() if len(objects) == 1 and len(undecided) > 1 else ""


def _copy_diagnostic(rule: Rule, copied: str, undecided: Sequence[Use]) -> LintDiagnostic:
    """Return one diagnostic for settings that are copied together and have to stay consistent."""
    written = next((written for written in undecided if written.setting in DEPRECATED), undecided[0])
    *first, last = (f"`{other.setting}`" for other in undecided)
    message = f"{', '.join(first)} and {last} are copied from `{copied}`, whose values are not known"
    advice = (
        "copy `cuda_graph_impl`, `cuda_graph_modules` and `inference_cuda_graph_scope`, and no deprecated setting, "
        f"once `{copied}` is written with the new names"
    )
    return LintDiagnostic(rule.id, rule.severity, written.span, message, help=advice, reports=rule.reports)
