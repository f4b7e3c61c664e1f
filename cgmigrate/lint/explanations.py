"""What explains a diagnostic to a person: the settings that it depends on, what is captured, and the edits of its fix.

All of it is computed when a diagnostic is shown, so that reports without it cost nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.sites import Document, Site, Use
from cgmigrate.lint.captures import because, both, is_known, outcome, verb, verdict_on
from cgmigrate.lint.diagnostics import Context, LintDiagnostic, SiteCase
from cgmigrate.lint.plan import PlannedFile
from cgmigrate.megatron.releases import LAST_OLD, SCOPE_LIST_SINCE
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, IMPL, MODULES, SCOPE, names_in
from cgmigrate.megatron.types import Rejected
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_BLOCKED_BY = re.compile(r"([A-Z]{2,5}\d+) on line (\d+)$")


@dataclass(frozen=True, slots=True)
class RelatedText:
    """A part of the text beside the diagnostic's own, and what it has to do with it."""

    span: Span
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is shown with one diagnostic.

    ``label`` is about its own span; it says what the text as it is captures before and after the upgrade, where that
    differs. ``labels`` are other parts of the text. ``proof`` is what the fix captures, ``edits`` are the whole fix.
    """

    label: str = ""
    labels: tuple[RelatedText, ...] = ()
    proof: str = ""
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True, slots=True)
class Details:
    """Explains the diagnostics of a file as it was planned."""

    file: PlannedFile
    _written: dict[int, Mapping[str, Use]] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Where the settings in effect at each site are written, by its index, as far as it is known."""

    @property
    def document(self) -> Document:
        """The file as it was read."""
        return self.file.document

    @property
    def context(self) -> Context:
        """The releases and rules for the file."""
        return self.file.context

    def of(self, diagnostics: Sequence[LintDiagnostic]) -> list[Explanation]:
        """Return an explanation for each diagnostic."""
        return [self._explanation(diagnostic) for diagnostic in diagnostics]

    def _explanation(self, diagnostic: LintDiagnostic) -> Explanation:
        case = self.file.cases.get(diagnostic.site)
        edits = diagnostic.fix.edits_in(self.file.path) if diagnostic.fix else ()
        if case is None:
            return Explanation(edits=edits)
        own = next((written for written in case.site.written if written.span == diagnostic.span), None)
        about_captures = own is not None and own.setting in self.document.catalogue.captures
        labels = {label.span: label for label in self._labels(case, own)} if own and about_captures else {}
        labels |= {label.span: label for label in self._blockers(diagnostic)}
        labels.pop(diagnostic.span, None)
        # What is captured says nothing of other settings.
        captures = bool(self.document.catalogue.captures & case.before.keys())
        known = captures and is_known(case, self.document.sites[case.site.index])
        return Explanation(
            _upgrade(case, self.context) if known and not case.site.overrides else "",
            tuple(labels.values()),
            _proof(case, self.context) if known and diagnostic.fix else "",
            edits,
        )

    def _labels(self, case: SiteCase, own: Use) -> Iterator[RelatedText]:
        """Yield the settings that are read together with one, of its site or of those that it inherits from."""
        for setting, written in self._written_at(case.site).items():
            if setting in FIELDS and setting != own.setting:
                yield RelatedText(written.span, _role(written, case))

    def _written_at(self, site: Site) -> Mapping[str, Use]:
        """Return where each setting in effect at a site is written: in the site first, then in those that it merges."""
        waiting = list(site.inherits)
        # No recursion: a chain of merges may be longer than the stack.
        while waiting:
            current = self.document.sites[waiting[-1]]
            unread = [index for index in current.inherits if index not in self._written]
            waiting += unread
            if not unread:
                self._written[waiting.pop()] = self._own_first(current)
        return self._own_first(site)

    def _own_first(self, site: Site) -> Mapping[str, Use]:
        first: dict[str, Use] = {}
        for use in (*reversed(site.written), *(use for i in site.inherits for use in self._written[i].values())):
            first.setdefault(use.setting, use)
        return first

    def _blockers(self, diagnostic: LintDiagnostic) -> Iterator[RelatedText]:
        """Yield the place of the diagnostic that prevents a fix."""
        match = _BLOCKED_BY.match(diagnostic.blocked_by)
        for other in self.file.diagnostics if match else ():
            line = self.document.text.count("\n", 0, other.span.start) + 1
            if match and (other.rule, str(line)) == match.groups():
                yield RelatedText(other.span, f"{other.rule} prevents the fix")


def _role(written: Use, case: SiteCase) -> str:
    """Return what a setting does for the others of its site."""
    has_full_iteration = "full_iteration" in names_in(case.before.get(SCOPE))
    if written.setting == IMPL and written.value == "none" and has_full_iteration:
        if SCOPE_LIST_SINCE <= case.source <= LAST_OLD:
            return f"{case.source} reads full_iteration only if this is `local`"
        return "the implementation"
    if written.setting in (ENABLE, EXTERNAL):
        impl = "local" if written.setting == ENABLE else "transformer_engine"
        sets = {True: f"sets `{IMPL}` to {impl}", False: f"no effect on `{IMPL}`"}
        return sets[written.value] if isinstance(written.value, bool) else f"sets `{IMPL}` to {impl} where it is true"
    return {IMPL: "the implementation", SCOPE: "the scope", MODULES: "the modules"}.get(
        written.setting, "the scope in inference"
    )


def _upgrade(case: SiteCase, context: Context) -> str:
    """Return what the text as it is captures before and after the upgrade; empty where that is the same."""
    target = context.target
    was = verdict_on(case, case.before, case.source, context)
    will = verdict_on(case, case.before, target, context)
    if isinstance(was, Rejected) and because(was) and was == will:
        return ""
    if was == will or (isinstance(was, Rejected) and isinstance(will, Rejected)):
        return f"{case.source}: {verb(was)}" if isinstance(was, Rejected) and case.source == target else ""
    if isinstance(was, Rejected) or isinstance(will, Rejected):
        return f"{outcome(was, case.source)} -> {outcome(will, target)}"
    first, second = both(was, will)
    return f"{case.source}: {first} -> {target}: {second}"


def _proof(case: SiteCase, context: Context) -> str:
    """Return what is captured before and after the fix, as the check of its soundness computes it."""
    if case.after is None:
        return ""
    target = context.target
    was = verdict_on(case, case.before, case.source, context)
    will = verdict_on(case, case.after, target, context)
    if isinstance(was, Rejected) or isinstance(will, Rejected):
        return ""
    if was != will:
        first, second = both(was, will)
        return f"{case.source}: {first} -> {target}: {second}"
    if case.site.overrides:  # Other code may set what these lines do not.
        return f"{case.source} -> {target}: the same graphs"
    return f"{case.source}: {was.describe_briefly()} -> {target}: the same"
