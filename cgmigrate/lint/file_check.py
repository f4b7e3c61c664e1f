"""Checking one file: decode, examine, suppress, and rewrite it or add suppression comments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import ProblemKind
from cgmigrate.documents.syntax import Syntax, document_of, unread_text
from cgmigrate.lint.checked import Checked, Chooser
from cgmigrate.lint.file_contexts import FileContexts
from cgmigrate.lint.kinds import CheckKind, enabled_rule_for
from cgmigrate.lint.related_files import RelatedFiles
from cgmigrate.project.inputs import Source, TooLarge
from cgmigrate.project.options import Options

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.lint.baseline import Baseline
    from cgmigrate.lint.details import Details
    from cgmigrate.lint.diagnostics import Diagnostic
    from cgmigrate.lint.plan import Plan, PlannedFile
    from cgmigrate.lint.suppressions import Suppressed, SuppressionComments


@dataclass(frozen=True, slots=True)
class FileChecker:
    """Checks the files of a run, one at a time; ``notes`` are those of the run."""

    paths: Sequence[str]
    """The paths of the command line: no other file is written."""
    options: Options
    contexts: FileContexts
    related: RelatedFiles
    baseline: Baseline | None
    chooser: Chooser | None
    notes: list[str]

    def check(self, source: Source) -> Checked:
        """Return the diagnostics of a file, and its new text as far as the options ask for it.

        Raises RuleError and ConfigurationError.
        """
        from cgmigrate.text.failures import TOO_DEEP, too_deep

        try:
            checked = self._check(source)
        except TOO_DEEP as error:
            checked = self._unreadable(source, ProblemKind.TOO_COMPLEX, too_deep(error))
        return self._without_known(checked)

    def check_too_large(self, file: TooLarge) -> Checked:
        """Return the diagnostic of a file that is not parsed."""
        message = f"the file has {file.size:,} bytes and is not read as a configuration"
        return self._without_known(self._unreadable(file, CheckKind.TOO_LARGE, message))

    def _check(self, source: Source) -> Checked:
        from cgmigrate.text.encoding import decode

        try:
            text, bom = decode(source.data)
        except UnicodeDecodeError as error:
            line = source.data.count(b"\n", 0, error.start) + 1
            message = f"the file is not UTF-8 (byte {error.start}, line {line}: {error.reason}), so it is not read"
            return self._unreadable(source, CheckKind.NOT_UTF8, message)
        catalogue = self.contexts.context(source.path).catalogue
        document = document_of(source.path, text, source.syntax, catalogue)
        comments = self._comments(document)
        plan = self._plan(source, document, comments)
        checked = self._with_diagnostics(source, bom, plan, comments)
        if self.options.add_ignore:
            return self._with_suppressions(checked, document, source.syntax)
        return self._rewritten(checked, plan) if self.options.rewrite else checked

    def _plan(self, source: Source, document: Document, comments: SuppressionComments | None) -> Plan:
        """Return the plan of a file, as options, comments and paths allow it."""
        from cgmigrate.lint.examination import examine
        from cgmigrate.lint.plan import has_proposals, make_plan
        from cgmigrate.lint.withholding import Limits

        file = examine(source.path, document, self.contexts.context(source.path))
        if source.syntax is Syntax.YAML and has_proposals(file):
            file = replace(file, relations=self.related.of(source.path, document))
        limits = Limits(partial(self.contexts.selects, source.path), comments, self._outside(source.path))
        one_by_one = self.options.edits or self.options.details or self.chooser is not None
        return make_plan([file], [limits], one_by_one)

    def _with_diagnostics(self, source: Source, bom: bool, plan: Plan, comments: SuppressionComments | None) -> Checked:
        """Return a file with the diagnostics of its plan, as far as rules are selected and comments allow."""
        from cgmigrate.lint.identity import with_places

        (file,) = plan.files
        text = file.document.text
        shown = self.contexts.selected(source.path, with_places(file.diagnostics, file.document))
        hidden: tuple[Diagnostic, ...] = ()
        if comments is not None:
            suppressed = self._suppressed(comments, source.path, shown)
            unused = with_places(suppressed.unused, file.document)
            both = sorted((*suppressed.shown, *unused), key=lambda item: (item.span.start, item.rule))
            shown, hidden = tuple(both), suppressed.hidden
        return Checked(
            source.path,
            source.data,
            text,
            shown,
            tuple((text.count("\n", 0, item.span.start) + 1, item.key, owner) for item, owner in file.skipped),
            bom=bom,
            releases=(file.context.source, file.context.target),
            hidden=hidden,
            details=self._details(file),
        )

    def _details(self, file: PlannedFile) -> Details | None:
        if not self.options.details:
            return None
        from cgmigrate.lint.details import Details

        return Details(file)

    # --- suppressions -----------------------------------------------------------------------------

    def _comments(self, document: Document) -> SuppressionComments | None:
        if "cgmigrate:" not in document.text or self.options.strict:
            return None
        from cgmigrate.lint.suppressions import SuppressionComments

        return SuppressionComments(document)

    def _suppressed(self, comments: SuppressionComments, path: str, diagnostics: tuple[Diagnostic, ...]) -> Suppressed:
        rules = self.contexts.rules_of(path)
        selected = [rule for rule in rules if self.contexts.selects(path, rule)]
        suppressed = comments.apply(
            diagnostics, enabled_rule_for(CheckKind.UNUSED_SUPPRESSION, rules), list(rules), selected
        )
        return replace(suppressed, unused=self.contexts.selected(path, suppressed.unused))

    def _with_suppressions(self, checked: Checked, document: Document, syntax: Syntax) -> Checked:
        """Return a file with comments that suppress its diagnostics, except those that the baseline has."""
        if not checked.diagnostics:
            return checked
        from cgmigrate.lint.boundary import not_written
        from cgmigrate.lint.suppression_writer import add_suppressions

        path = checked.path
        if place := self._outside(path):
            self.notes.append(not_written(path, place))
            return checked
        diagnostics = self.baseline.part(path, checked.diagnostics)[0] if self.baseline else checked.diagnostics
        added = add_suppressions(
            document, diagnostics, lambda text: document_of(path, text, syntax, document.catalogue), self.options.reason
        )
        return replace(checked, after=added.text if added.suppressed else None, fixed=added.suppressed)

    # --- rewrites ---------------------------------------------------------------------------------

    def _rewritten(self, checked: Checked, plan: Plan) -> Checked:
        """Return a file with the fixes applied that the options allow and the user accepts."""
        from cgmigrate.lint.diagnostics import Applicability
        from cgmigrate.lint.plan import UnwritableError

        applied = (Applicability.SAFE, Applicability.UNSAFE) if self.options.unsafe else (Applicability.SAFE,)
        fixes = [fix for fix in plan.fixes if fix.applicability in applied]
        chosen = {fix.id for fix in fixes}
        if self.chooser is not None and fixes:
            chosen = self.chooser.choose(checked.path, checked.text, fixes, checked.diagnostics)
        offered = [diagnostic for diagnostic in checked.diagnostics if diagnostic.fix in fixes]
        declined = tuple(one for one in offered if one.fix and one.fix.id not in chosen)
        checked = replace(checked, declined=declined)
        try:
            texts = plan.edited(chosen)
        except UnwritableError as error:
            # Each fix alone was checked; together they must not differ.
            self.notes.append(f"{checked.path}: not rewritten, since {error}; please report this")
            return checked
        if not texts:
            return checked
        fixed = tuple(one for one in offered if one.fix and one.fix.id in chosen)
        return replace(checked, after=texts[0].text, fixed=fixed, edits=texts[0].edits)

    # --- the file as a whole ----------------------------------------------------------------------

    def _without_known(self, checked: Checked) -> Checked:
        """Return a file without the diagnostics that the baseline has."""
        if self.baseline is None:
            return checked
        # What the rewrite settles is not compared: what is left of a rule may be no more than is known.
        shown, known = self.baseline.part(checked.path, checked.remaining)
        diagnostics = sorted((*checked.fixed, *shown), key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule))
        return replace(checked, diagnostics=tuple(diagnostics) if checked.fixed else shown, known=known)

    def _unreadable(self, file: Source | TooLarge, kind: ProblemKind | CheckKind, message: str) -> Checked:
        from cgmigrate.lint.diagnostics import Diagnostic
        from cgmigrate.text.spans import Span

        path = file.path
        rule = enabled_rule_for(kind, self.contexts.rules_of(path))
        diagnostic = Diagnostic(rule.id, rule.severity, Span(0, 0), message, help=rule.help, reports=rule.reports)
        diagnostics = self.contexts.selected(path, (diagnostic,))
        if isinstance(file, TooLarge):
            return Checked(path, b"", "", diagnostics)
        if b"cgmigrate:" in file.data and not self.options.strict:
            from cgmigrate.lint.suppressions import SuppressionComments

            comments = SuppressionComments(unread_text(file.data.decode("utf-8", "replace"), file.syntax))
            suppressed = self._suppressed(comments, path, diagnostics)
            return Checked(path, file.data, "", suppressed.shown, hidden=suppressed.hidden)
        return Checked(path, file.data, "", diagnostics)

    def _outside(self, path: str) -> str:
        """Return the real path of a file if a link leads out of the paths; empty for files in them, and for stdin."""
        from cgmigrate.lint.boundary import outside

        return "" if self.options.stdin else outside(path, self.paths)
