"""Checking one file: decode, examine, suppress, and rewrite it or add suppression comments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import ProblemKind
from cgmigrate.documents.syntax import Syntax, document_of
from cgmigrate.lint.checked import Checked, Chooser
from cgmigrate.lint.file_contexts import FileContexts
from cgmigrate.lint.kinds import CheckKind, enabled_rule_for
from cgmigrate.lint.related_files import RelatedFiles
from cgmigrate.megatron.settings import Settings
from cgmigrate.project.inputs import Source, TooLarge
from cgmigrate.project.options import Options

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.lint.baseline import Baseline
    from cgmigrate.lint.details import Details
    from cgmigrate.lint.diagnostics import Context, Diagnostic, FilePlan
    from cgmigrate.lint.suppressions import Suppressed, SuppressionComments
    from cgmigrate.text.spans import Span


@dataclass(frozen=True, slots=True)
class _Examined:
    """A file read and planned. ``hidden`` are the diagnostics that comments suppress."""

    document: Document
    plan: FilePlan
    context: Context
    diagnostics: tuple[Diagnostic, ...]
    hidden: tuple[Diagnostic, ...] = ()


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
            checked = self._unreadable(source.path, source.data, ProblemKind.TOO_COMPLEX, too_deep(error))
        return self._without_known(checked)

    def check_too_large(self, file: TooLarge) -> Checked:
        """Return the diagnostic of a file that is not parsed."""
        message = f"the file has {file.size:,} bytes and is not read as a configuration"
        return self._without_known(self._unreadable(file.path, b"", CheckKind.TOO_LARGE, message))

    def _check(self, source: Source) -> Checked:
        from cgmigrate.text.encoding import decode

        try:
            text, bom = decode(source.data)
        except UnicodeDecodeError as error:
            line = source.data.count(b"\n", 0, error.start) + 1
            message = f"the file is not UTF-8 (byte {error.start}, line {line}: {error.reason}), so it is not read"
            return self._unreadable(source.path, source.data, CheckKind.NOT_UTF8, message)
        examined = self._examined(source, text)
        document, plan = examined.document, examined.plan
        checked = Checked(
            source.path,
            source.data,
            text,
            examined.diagnostics,
            tuple((text.count("\n", 0, item.span.start) + 1, item.key, owner) for item, owner in plan.skipped),
            bom=bom,
            releases=(examined.context.source, examined.context.target),
            hidden=examined.hidden,
            details=self._details(examined),
        )
        if self.options.add_ignore:
            return self._with_suppressions(checked, document, source.syntax)
        return self._rewritten(checked, document, plan) if self.options.rewrite else checked

    def _details(self, examined: _Examined) -> Details | None:
        if not self.options.details:
            return None
        from cgmigrate.lint.details import Details

        return Details(examined.document, examined.plan, examined.context)

    def _examined(self, source: Source, text: str) -> _Examined:
        """Return a file with the diagnostics and fixes that options, comments and paths allow."""
        from cgmigrate.lint.identity import with_places

        document, plan, context = self._examine(source.path, text, source.syntax)
        placed = with_places(plan.diagnostics, document)
        examined = _Examined(document, plan, context, self.contexts.selected(source.path, placed))
        if "cgmigrate:" in text and not self.options.strict:
            examined = self._suppress(source, examined)
        plan, diagnostics = examined.plan, examined.diagnostics
        if (plan.safe or plan.unsafe) and (place := self._outside(source.path)):
            from cgmigrate.lint.boundary import withheld, without_fixes

            plan, diagnostics = without_fixes(plan), withheld(diagnostics, place)
        if self.options.edits:
            from cgmigrate.lint.fix_edits import with_edits

            diagnostics = with_edits(diagnostics, document, plan)
        return replace(examined, plan=plan, diagnostics=diagnostics)

    def _examine(
        self, path: str, text: str, syntax: Syntax, suppressed: frozenset[Span] = frozenset()
    ) -> tuple[Document, FilePlan, Context]:
        from cgmigrate.lint.plan import examine

        document = document_of(path, text, syntax)
        context = self.contexts.context(path)
        if suppressed:
            context = replace(context, suppressed=suppressed)
        plan = examine(document, context)
        if syntax is Syntax.YAML and (plan.safe or plan.unsafe):
            with_related = self.related.add_to(context, path, document)
            plan = plan if with_related == context else examine(document, with_related)
        return document, plan, context

    # --- suppressions -----------------------------------------------------------------------------

    def _suppress(self, source: Source, examined: _Examined) -> _Examined:
        """Return a file without the diagnostics that its comments suppress, and without their fixes."""
        from cgmigrate.lint.identity import with_places
        from cgmigrate.lint.suppressions import SuppressionComments, withhold_dependents

        comments = SuppressionComments(examined.document.text, source.syntax, examined.document)
        suppressed = self._suppressed(comments, source.path, examined.diagnostics)
        shown, hidden, plan = suppressed.shown, suppressed.hidden, examined.plan
        if spans := frozenset(diagnostic.span for diagnostic in hidden if diagnostic.applicability):
            _, plan, _ = self._examine(source.path, examined.document.text, source.syntax, spans)
            shown = withhold_dependents(shown, hidden, plan.diagnostics, comments.line_of)
        unused = with_places(suppressed.unused, examined.document)
        diagnostics = sorted((*shown, *unused), key=lambda item: (item.span.start, item.rule))
        return replace(examined, plan=plan, diagnostics=tuple(diagnostics), hidden=hidden)

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
            document, syntax, diagnostics, lambda text: document_of(path, text, syntax), self.options.reason
        )
        return replace(checked, after=added.text if added.suppressed else None, fixed=added.suppressed)

    # --- rewrites ---------------------------------------------------------------------------------

    def _rewritten(self, checked: Checked, document: Document, plan: FilePlan) -> Checked:
        """Return a file with the settings that its sites get, as far as the user accepts them."""
        from cgmigrate.lint.diagnostics import Applicability

        rewrites = {**plan.safe, **(plan.unsafe if self.options.unsafe else {})}
        if not rewrites:
            return checked
        applied = (Applicability.SAFE, Applicability.UNSAFE) if self.options.unsafe else (Applicability.SAFE,)
        fixed = tuple(diagnostic for diagnostic in checked.diagnostics if diagnostic.applicability in applied)
        if self.chooser is not None:
            groups = tuple(dict.fromkeys(plan.together.values()))
            rewrites = self.chooser.choose(checked.path, document, rewrites, groups, checked.diagnostics)
            fixed, declined = _divided_by_choice(fixed, document, rewrites)
            checked = replace(checked, declined=declined)
        return self._written(checked, document, rewrites, fixed) if rewrites else checked

    def _written(
        self,
        checked: Checked,
        document: Document,
        rewrites: Mapping[int, Settings],
        fixed: tuple[Diagnostic, ...],
    ) -> Checked:
        """Return a file with its edited text; unchanged, with a note, if the text reads otherwise than planned."""
        from cgmigrate.documents.sites import CannotEditError
        from cgmigrate.text.edits import OverlapError, apply

        try:
            edits = tuple(document.edits(rewrites))
            after = apply(checked.text, edits)
            error_text = document.check(after, rewrites)
        except (CannotEditError, OverlapError) as error:
            error_text = str(error)
        if error_text:
            # Each fix alone was checked; together they must not differ.
            self.notes.append(f"{checked.path}: not rewritten, since {error_text}; please report this")
            return checked
        return replace(checked, after=after, fixed=fixed, edits=edits)

    # --- the file as a whole ----------------------------------------------------------------------

    def _without_known(self, checked: Checked) -> Checked:
        """Return a file without the diagnostics that the baseline has."""
        if self.baseline is None:
            return checked
        # What the rewrite settles is not compared: what is left of a rule may be no more than is known.
        shown, known = self.baseline.part(checked.path, checked.remaining)
        diagnostics = sorted((*checked.fixed, *shown), key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule))
        return replace(checked, diagnostics=tuple(diagnostics) if checked.fixed else shown, known=known)

    def _unreadable(self, path: str, data: bytes, kind: ProblemKind | CheckKind, message: str) -> Checked:
        from cgmigrate.lint.diagnostics import Diagnostic
        from cgmigrate.text.spans import Span

        rule = enabled_rule_for(kind, self.contexts.rules_of(path))
        diagnostic = Diagnostic(rule.id, rule.severity, Span(0, 0), message, help=rule.help, reports=rule.reports)
        diagnostics = self.contexts.selected(path, (diagnostic,))
        if b"cgmigrate:" in data and not self.options.strict:
            from cgmigrate.lint.suppressions import SuppressionComments

            comments = SuppressionComments(data.decode("utf-8", "replace"), Syntax.YAML, None)
            suppressed = self._suppressed(comments, path, diagnostics)
            return Checked(path, data, "", suppressed.shown, hidden=suppressed.hidden)
        return Checked(path, data, "", diagnostics)

    def _outside(self, path: str) -> str:
        """Return the real path of a file if a link leads out of the paths; empty for files in them, and for stdin."""
        from cgmigrate.lint.boundary import outside

        return "" if self.options.stdin else outside(path, self.paths)


def _divided_by_choice(
    diagnostics: Sequence[Diagnostic], document: Document, chosen: Mapping[int, Settings]
) -> tuple[tuple[Diagnostic, ...], tuple[Diagnostic, ...]]:
    """Return the diagnostics whose fix the user chose, and those whose fix the user declined."""
    from cgmigrate.documents.sites import spans_of

    spans = spans_of(document, list(chosen))
    return tuple(f for f in diagnostics if f.span in spans), tuple(f for f in diagnostics if f.span not in spans)
