"""Checking one file: decode, examine, suppress, and rewrite it or add suppression comments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import ProblemKind
from cgmigrate.documents.syntax import Syntax, document_of, is_documentation, unread_text
from cgmigrate.lint.diagnostics import LintDiagnostic, RelatedPlace
from cgmigrate.lint.file_contexts import FileContexts
from cgmigrate.lint.file_result import FileResult, FixChooser
from cgmigrate.lint.kinds import UNREADABLE, CheckKind, enabled_rule_for
from cgmigrate.lint.pages import as_notes
from cgmigrate.lint.plan import Plan
from cgmigrate.lint.planning import OpenedFile, Planned, Planner
from cgmigrate.project.inputs import InputFile, TooLarge
from cgmigrate.project.options import RunOptions

if TYPE_CHECKING:
    from cgmigrate.lint.baseline import Baseline
    from cgmigrate.lint.explanations import Details
    from cgmigrate.lint.plan import PlannedFile
    from cgmigrate.lint.suppressions import Suppressed, SuppressionComments
    from cgmigrate.proof.run.judge import RunVerdict

# --- sets that are withheld -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class OtherFile:
    """A file that is planned together with those of a run and is not one of them."""

    path: str
    text: str
    diagnostics: tuple[LintDiagnostic, ...]


def one_for_each_set(files: Sequence[FileResult], others: Sequence[OtherFile] = ()) -> list[FileResult]:
    """Return files with one diagnostic for each withheld set, at its first place of the highest severity."""
    shown = [(number, one) for number, checked in enumerate(files) for one in checked.diagnostics if one.withheld_set]
    if not shown:
        return list(files)
    places: dict[str, list[RelatedPlace]] = {}
    for place in _places(files, others):
        places.setdefault(place.withheld_set, []).append(place)
    chosen: dict[str, tuple[int, LintDiagnostic]] = {}
    for number, one in sorted(shown, key=lambda item: (item[1].severity.rank, item[0], item[1].span.start)):
        chosen.setdefault(one.withheld_set, (number, one))
    return [_with_chosen(number, checked, chosen, places) for number, checked in enumerate(files)]


def _with_chosen(
    number: int,
    checked: FileResult,
    chosen: Mapping[str, tuple[int, LintDiagnostic]],
    places: Mapping[str, Sequence[RelatedPlace]],
) -> FileResult:
    """Return a file with the diagnostics that are chosen for their sets, and with those of no withheld set."""
    diagnostics = []
    for one in checked.diagnostics:
        if not one.withheld_set:
            diagnostics.append(one)
        elif chosen[one.withheld_set] == (number, one):
            diagnostics.append(replace(one, related=_related(one, checked.path, places[one.withheld_set])))
    return replace(checked, diagnostics=tuple(diagnostics))


def _related(diagnostic: LintDiagnostic, path: str, places: Sequence[RelatedPlace]) -> tuple[RelatedPlace, ...]:
    """Return the other places of the set of a diagnostic, those of its own file first."""
    own = (path, diagnostic.rule, diagnostic.span)
    others = [place for place in places if (place.path, place.rule, place.span) != own]
    return tuple(sorted(others, key=lambda place: (place.path != path, place.path, place.span.start, place.rule)))


def _places(files: Sequence[FileResult], others: Sequence[OtherFile]) -> Iterator[RelatedPlace]:
    """Yield the places of all diagnostics of withheld sets, those that are not shown included."""
    for checked in files:
        for one in (*checked.diagnostics, *checked.hidden, *checked.known):
            if one.withheld_set:
                written = None if checked.after is None else (checked.after, checked.edits)
                yield RelatedPlace(
                    one.withheld_set, checked.path, one.rule, one.message, one.span, checked.text, written
                )
    for other in others:
        for one in other.diagnostics:
            if one.withheld_set:
                yield RelatedPlace(one.withheld_set, other.path, one.rule, one.message, one.span, other.text)


# --- file check ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FileChecker:
    """Checks the files of a run, one at a time; ``notes`` are those of the run."""

    planner: Planner
    baseline: Baseline | None
    chooser: FixChooser | None
    notes: list[str]
    verdicts: dict[str, RunVerdict] = field(default_factory=dict)
    """What runs of a command show of fixes, by the id of the fix."""
    _checked: dict[str, FileResult] = field(default_factory=dict)
    """Files that were planned together with another one, and wait for their turn."""
    _begun: set[str] = field(default_factory=set)
    """The paths of the files that the run has come to."""

    @property
    def options(self) -> RunOptions:
        """The options of the run."""
        return self.planner.options

    @property
    def contexts(self) -> FileContexts:
        """What applies to each file."""
        return self.planner.contexts

    def check(self, source: InputFile) -> FileResult:
        """Return the diagnostics of a file, and its new text as far as the options ask for it.

        Raises RuleError and ConfigurationError.
        """
        from cgmigrate.text.failures import TOO_DEEP, too_deep

        self._begun.add(source.path)
        if source.path in self._checked:
            return self._checked.pop(source.path)
        try:
            every = self._check(source)
        except TOO_DEEP as error:
            every = [self._without_known(self._unreadable(source, ProblemKind.TOO_COMPLEX, too_deep(error)))]
        self._checked.update({checked.path: checked for checked in every})
        return self._checked.pop(source.path)

    def check_too_large(self, file: TooLarge) -> FileResult:
        """Return the diagnostic of a file that is not parsed."""
        message = f"the file has {file.size:,} bytes and is not read as a configuration"
        return self._without_known(self._unreadable(file, CheckKind.TOO_LARGE, message))

    def _check(self, source: InputFile) -> Sequence[FileResult]:
        """Return a file and those that are planned together with it."""
        try:
            file = self.planner.open(source)
        except UnicodeDecodeError as error:
            line = source.data.count(b"\n", 0, error.start) + 1
            message = f"the file is not UTF-8 (byte {error.start}, line {line}: {error.reason}), so it is not read"
            return [self._without_known(self._unreadable(source, CheckKind.NOT_UTF8, message))]
        planned = self.planner.plan(file)
        if self.verdicts:
            from cgmigrate.lint.proving import judged

            planned = replace(planned, plan=judged(planned.plan, self.verdicts))
        every = [
            (one, self._with_diagnostics(one, of_plan))
            for one, of_plan in zip(planned.files, planned.plan.files, strict=True)
            if self.planner.is_in_run(one.path)
        ]
        if self.options.add_ignore:
            # Each place of a set gets a comment of its own.
            return [self._without_known(self._with_suppressions(checked, one)) for one, checked in every]
        files = [checked for _, checked in every]
        others = {one.path for one in planned.files if one.path != source.path}
        if source.syntax is Syntax.PYTHON and not others.isdisjoint(self._begun):
            # A part of a fix may be wrong: the other file was planned without this one.
            self.notes.append(f"{source.path}: not rewritten, since its other files were not; please report this")
            return [self._without_known(one) for one in files if one.path == source.path]
        files = self._rewritten(files, planned.plan) if self.options.rewrite else files
        return one_for_each_set([self._without_known(checked) for checked in files], self._others(planned))

    def _others(self, planned: Planned) -> list[OtherFile]:
        """Return the files of a plan that are not among the paths of the run."""
        pairs = zip(planned.files, planned.plan.files, strict=True)
        return [
            OtherFile(one.path, file.document.text, self.contexts.selected(one.path, file.diagnostics))
            for one, file in pairs
            if not self.planner.is_in_run(one.path)
        ]

    def _with_diagnostics(self, opened_file: OpenedFile, file: PlannedFile) -> FileResult:
        """Return a file with the diagnostics of its plan, as far as rules are selected and comments allow."""
        from cgmigrate.lint.identity import with_places

        source, comments, text = opened_file.source, opened_file.comments, file.document.text
        diagnostics = as_notes(file.diagnostics) if source.syntax.is_documentation else file.diagnostics
        shown = self.contexts.selected(source.path, with_places(diagnostics, file.document))
        hidden: tuple[LintDiagnostic, ...] = ()
        if comments is not None:
            suppressed = self._suppressed(comments, source.path, shown)
            unused = with_places(suppressed.unused, file.document)
            both = sorted((*suppressed.shown, *unused), key=lambda item: (item.span.start, item.rule))
            shown, hidden = tuple(both), suppressed.hidden
        return FileResult(
            source.path,
            source.data,
            text,
            shown,
            tuple((text.count("\n", 0, item.span.start) + 1, item.key, owner) for item, owner in file.skipped),
            bom=opened_file.bom,
            releases=(file.context.source, file.context.target),
            hidden=hidden,
            details=self._details(file),
            unread=next((one.message for one in file.document.problems if one.kind in UNREADABLE), ""),
        )

    def _details(self, file: PlannedFile) -> Details | None:
        if not self.options.details:
            return None
        from cgmigrate.lint.explanations import Details

        return Details(file)

    # --- suppressions -----------------------------------------------------------------------------

    def _suppressed(self, comments: SuppressionComments, path: str, every: tuple[LintDiagnostic, ...]) -> Suppressed:
        rules = self.contexts.rules_of(path)
        from cgmigrate.lint.suppressions import Codes

        selected = [rule for rule in rules if self.contexts.selects(path, rule)]
        codes = Codes(rules.keys(), selected, [rule.id for rule in rules.values() if rule.preview])
        suppressed = comments.apply(every, enabled_rule_for(CheckKind.UNUSED_SUPPRESSION, rules), codes)
        return replace(suppressed, unused=self.contexts.selected(path, suppressed.unused))

    def _with_suppressions(self, checked: FileResult, file: OpenedFile) -> FileResult:
        """Return a file with comments that suppress its diagnostics, except those that the baseline has."""
        if not checked.diagnostics:
            return checked
        from cgmigrate.lint.suppressions import add_suppressions

        path, syntax = checked.path, file.source.syntax
        if syntax.is_documentation or syntax is Syntax.TEXT:
            # A comment inside a code block would be part of the example; how other text has comments is not known.
            return checked
        if place := self.planner.outside(path):
            note = f"no comment is written, since the file is outside of the paths ({place}); give its path"
            self.notes.append(f"{path}: {note}")
            return checked
        diagnostics = self.baseline.part(path, checked.diagnostics)[0] if self.baseline else checked.diagnostics
        added = add_suppressions(
            file.document,
            diagnostics,
            lambda text: document_of(path, text, syntax, file.document.catalogue),
            self.options.reason,
        )
        return replace(checked, after=added.text if added.suppressed else None, fixed=added.suppressed)

    # --- rewrites ---------------------------------------------------------------------------------

    def _rewritten(self, files: Sequence[FileResult], plan: Plan) -> list[FileResult]:
        """Return files with the fixes applied that the options allow and the user accepts."""
        from cgmigrate.lint.diagnostics import Applicability
        from cgmigrate.lint.plan import UnwritableError

        allowed = tuple(Applicability) if self.options.unsafe else (Applicability.SAFE,)
        offered = [fix for fix in plan.fixes if fix.applicability in allowed]
        if self.options.group:
            offered = [fix for fix in offered if fix.id == self.options.group]
        chosen = {fix.id for fix in offered}
        if self.chooser is not None and offered:
            chosen = self.chooser.choose(files, offered)
        try:
            return applied(files, plan, ChosenFixes(frozenset(fix.id for fix in offered), frozenset(chosen)))
        except UnwritableError as error:
            # Each fix alone was checked; together they must not differ.
            self.notes.append(f"{files[0].path}: not rewritten, since {error}; please report this")
            return list(files)

    # --- the file as a whole ----------------------------------------------------------------------

    def _without_known(self, checked: FileResult) -> FileResult:
        """Return a file without the diagnostics that the baseline has."""
        if self.baseline is None:
            return checked
        # What the rewrite settles is not compared: what is left of a rule may be no more than is known.
        shown, known = self.baseline.part(checked.path, checked.remaining)
        diagnostics = sorted((*checked.fixed, *shown), key=lambda diagnostic: (diagnostic.span.start, diagnostic.rule))
        return replace(checked, diagnostics=tuple(diagnostics) if checked.fixed else shown, known=known)

    def _unreadable(self, file: InputFile | TooLarge, kind: ProblemKind | CheckKind, message: str) -> FileResult:
        from cgmigrate.lint.diagnostics import LintDiagnostic
        from cgmigrate.text.spans import Span

        path = file.path
        if is_documentation(path):
            self.notes.append(f"{path}: {message}")
            return FileResult(path, b"" if isinstance(file, TooLarge) else file.data, "", (), unread=message)
        rule = enabled_rule_for(kind, self.contexts.rules_of(path))
        diagnostic = LintDiagnostic(rule.id, rule.severity, Span(0, 0), message, help=rule.help, reports=rule.reports)
        diagnostics = self.contexts.selected(path, (diagnostic,))
        if isinstance(file, TooLarge):
            return FileResult(path, b"", "", diagnostics, unread=message)
        if b"cgmigrate:" in file.data and not self.options.strict:
            from cgmigrate.lint.suppressions import SuppressionComments

            comments = SuppressionComments(unread_text(file.data.decode("utf-8", "replace"), file.syntax))
            suppressed = self._suppressed(comments, path, diagnostics)
            return FileResult(path, file.data, "", suppressed.shown, hidden=suppressed.hidden, unread=message)
        return FileResult(path, file.data, "", diagnostics, unread=message)


# --- what a run has applied -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenFixes:
    """The fixes that options allow, and those of them that are applied, by their ids."""

    offered: frozenset[str]
    chosen: frozenset[str]


def applied(files: Sequence[FileResult], plan: Plan, choice: ChosenFixes) -> list[FileResult]:
    """Return files with the chosen fixes applied. Raises UnwritableError."""
    texts = {text.path: text for text in plan.edited(choice.chosen)}
    result = []
    for checked in files:
        fixed = tuple(one for one in checked.diagnostics if one.fix and one.fix.id in choice.chosen)
        declined = choice.offered - choice.chosen
        checked = replace(
            checked, declined=tuple(one for one in checked.diagnostics if one.fix and one.fix.id in declined)
        )
        text = texts.get(checked.path)
        result.append(replace(checked, after=text.text, fixed=fixed, edits=text.edits) if text else checked)
    return _with_transactions(result, plan, choice)


def _with_transactions(files: Sequence[FileResult], plan: Plan, choice: ChosenFixes) -> list[FileResult]:
    """Return files, each with those that are written together with it since they share a fix."""
    group = {checked.path: {checked.path} for checked in files}
    for fix in plan.fixes:
        if fix.id in choice.chosen and len(fix.paths) > 1:
            united = set().union(*(group[path] for path in fix.paths))
            group |= dict.fromkeys(united, united)
    return [
        replace(checked, together=tuple(other.light for other in files if _joins(other, checked, group[checked.path])))
        for checked in files
    ]


def _joins(other: FileResult, checked: FileResult, group: set[str]) -> bool:
    return other.path != checked.path and other.path in group and other.after is not None
