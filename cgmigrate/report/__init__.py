"""Reports: diagnostics in the forms that people and programs read.

Each format is a module with ``render(report) -> str``. This module has what they share: places as editors count them,
paths as repositories name them, and fingerprints that stay the same when lines move.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from cgmigrate.lint.severity import Severity
from cgmigrate.text.plurals import counted

if TYPE_CHECKING:
    from cgmigrate.lint.diagnostics import LintDiagnostic, RelatedPlace
    from cgmigrate.lint.explanations import Explanation
    from cgmigrate.lint.file_result import FileResult
    from cgmigrate.lint.rules import Rule
    from cgmigrate.project.inputs import InputError
    from cgmigrate.project.pins.resolution import Resolution
    from cgmigrate.text.edits import Edit
    from cgmigrate.text.spans import Span


@dataclass(frozen=True, slots=True)
class Place:
    """A line and a column, both from 1. Columns are code points; only ``\\n`` ends a line, as in editors."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class TextReplacement:
    """Replace the text from ``start`` to ``end`` (exclusive) by ``text``."""

    start: Place
    end: Place
    text: str


@dataclass(frozen=True, slots=True)
class RuleName:
    """How a report names a rule."""

    code: str
    name: str


@dataclass(frozen=True, slots=True)
class Label:
    """A part of the text beside the diagnostic's own, and what it has to do with it. ``end`` is exclusive."""

    start: Place
    end: Place
    text: str


@dataclass(frozen=True, slots=True)
class Related:
    """Another place of a withheld set: its file, as the user named it and in the repository, and its diagnostic."""

    path: str
    in_repository: str | None
    start: Place
    end: Place
    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Reported:
    """One diagnostic and where it is.

    ``path`` is the file as the user named it, ``in_repository`` its path from the root of the repository
    with ``/`` between folders, or None for a file outside of it. ``text`` is the file's. ``end`` is exclusive.
    ``label``, ``labels``, ``proof`` and ``edits`` explain it (see ``cgmigrate.lint.explanations``), where the format
    asks for that.
    """

    diagnostic: LintDiagnostic
    path: str
    in_repository: str | None
    text: str
    start: Place
    end: Place
    replacements: tuple[TextReplacement, ...] = ()
    releases: tuple[str, str] | None = None
    """From and to; None where a file could not be read."""
    rules: tuple[RuleName, ...] = ()
    label: str = ""
    labels: tuple[Label, ...] = ()
    proof: str = ""
    edits: tuple[Edit, ...] = ()
    fixed_with: Place | None = None
    """Where an earlier diagnostic of the file is that has the same edits and shows them."""
    related: tuple[Related, ...] = ()
    """The other places of its set, if that is withheld."""
    whole_fix: str = ""
    """All that its fix does in the file, in short; ``diagnostic.fix_text`` is the part of this place."""

    @property
    def named(self) -> str:
        """The path for services: the path in the repository, or else the path that the user named."""
        return self.in_repository or self.path

    @property
    def fingerprint(self) -> str:
        """A name of the diagnostic for good: it holds no line number, and no two diagnostics of a report share one."""
        from cgmigrate.lint.identity import fingerprint

        return fingerprint(self.named, self.diagnostic)

    @property
    def other_files(self) -> tuple[str, ...]:
        """The other files that the fix changes, as the user named them."""
        paths = self.diagnostic.fix.paths if self.diagnostic.fix else ()
        return tuple(path for path in map(readable, paths) if path != self.path)

    @property
    def applied(self) -> bool:
        """Whether `cgmigrate fix` settles the diagnostic by itself."""
        return self.diagnostic.applicability == "safe"


@dataclass(frozen=True, slots=True)
class RunReport:
    """The results of a run. ``files`` is the number of files searched; ``rules`` has the rules of the diagnostics."""

    files: int
    diagnostics: Sequence[Reported] = ()
    rules: Mapping[str, Rule] = field(default_factory=dict)
    input_errors: Sequence[InputError] = ()
    notes: Sequence[str] = ()
    resolutions: Sequence[Resolution] = ()
    """The releases that were used, each with the reason."""
    next_command: str = ""
    """The command to run next; empty if there is none."""
    check_command: str = ""
    """The command that checks the same files again, in the formats for programs."""

    @property
    def failed(self) -> bool:
        """Whether a path that the user named could not be read."""
        return any(input_error.missing for input_error in self.input_errors)

    @property
    def files_with_diagnostics(self) -> int:
        """The number of files with diagnostics."""
        return len({reported.path for reported in self.diagnostics})

    def count(self, severity: Severity) -> int:
        """Return the number of diagnostics of a severity."""
        return sum(reported.diagnostic.severity is severity for reported in self.diagnostics)

    def summary(self, by_place: bool = False) -> str:
        """Return the run in a sentence; ``by_place`` counts several codes for one fix of one setting once."""
        from cgmigrate.report.folding import folded

        diagnostics = folded(self.diagnostics) if by_place else self.diagnostics
        seen = counted(self.files, "file")
        if not diagnostics:
            return f"Checked {seen}: nothing found."
        severities = Counter(reported.diagnostic.severity for reported in diagnostics)
        kinds = ", ".join(counted(severities[one], str(one)) for one in Severity if severities[one])
        number = counted(len(diagnostics), "diagnostic")
        return f"Found {number} ({kinds}) in {self.files_with_diagnostics} of {seen}."


def renderer(name: str) -> Callable[..., str]:
    """Return the function that writes a format: ``render(report)``, for people also with a style."""
    from importlib import import_module

    render: Callable[..., str] = import_module(f"cgmigrate.report.{name}").render
    return render


def place(text: str, offset: int) -> Place:
    """The place of an offset of the text."""
    starts = _line_starts(text)
    line = bisect_right(starts, offset)
    return Place(line, offset - starts[line - 1] + 1)


@lru_cache(maxsize=8)
def _line_starts(text: str) -> Sequence[int]:
    # A file has a place for each diagnostic, label and edit.
    return (0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1]))


@dataclass(frozen=True, slots=True)
class Naming:
    """How a report names files and rules: ``root`` is the folder that repository paths start from."""

    root: str
    rules: Mapping[str, RuleName]


def reported(
    checked: FileResult, chosen: Sequence[LintDiagnostic], naming: Naming, written: bool = False
) -> tuple[Reported, ...]:
    """Return some of the diagnostics of a file, as a report has them.

    Where the file's rewrite was ``written``, places are those of the text that it has now.
    """
    from cgmigrate.report.fix_words import whole_fixes

    after = checked.after if written else None
    text = checked.text if after is None else after
    edits = () if after is None else checked.edits
    inside = in_repository(checked.path, naming.root)
    selected, whole = set(chosen), whole_fixes(checked.diagnostics)
    diagnostics = [diagnostic for diagnostic in checked.diagnostics if diagnostic in selected]
    result = [
        Reported(
            diagnostic,
            readable(checked.path),
            inside,
            text,
            *_places(text, diagnostic.span, edits),
            # The edits of a fix were made for the text as it was.
            () if after is not None else _replacements(text, checked.path, diagnostic),
            checked.releases and (str(checked.releases[0]), str(checked.releases[1])),
            (naming.rules[diagnostic.rule],),
            related=tuple(_related(one, naming, written) for one in diagnostic.related),
            whole_fix=whole.get(diagnostic.fix.id, "") if diagnostic.fix else "",
        )
        for diagnostic in diagnostics
    ]
    if checked.details is None:
        return tuple(result)
    explanations = checked.details.of(diagnostics)
    explained = [_explained(one, more, edits) for one, more in zip(result, explanations, strict=True)]
    return tuple(_with_edits_once(explained))


def _related(place: RelatedPlace, naming: Naming, written: bool) -> Related:
    """Return a related place as reports have it; ``written`` says that the other fixes of its file are written."""
    text, edits = place.written if written and place.written else (place.text, ())
    inside = in_repository(place.path, naming.root)
    return Related(readable(place.path), inside, *_places(text, place.span, edits), place.rule, place.message)


def _places(text: str, span: Span, edits: Sequence[Edit]) -> tuple[Place, Place]:
    """Return where a span of the text before the edits begins and ends in the text after them."""
    from cgmigrate.text.edits import moved

    start, end = moved(span.start, edits), moved(span.end, edits)
    return place(text, start), place(text, max(start, end))


def _explained(reported: Reported, explanation: Explanation, edits: Sequence[Edit]) -> Reported:
    """Return a diagnostic with what explains it; ``edits`` were written since."""
    from cgmigrate.text.edits import moved_edits

    return replace(
        reported,
        label=explanation.label,
        labels=tuple(Label(*_places(reported.text, one.span, edits), one.text) for one in explanation.labels),
        proof=explanation.proof,
        edits=moved_edits(explanation.edits, edits),
    )


def _with_edits_once(diagnostics: Sequence[Reported]) -> Iterator[Reported]:
    """Yield the diagnostics of a file, where only the first of those with the same edits keeps them."""
    first: dict[tuple[Edit, ...], Reported] = {}
    owners: dict[int, Reported] = {}
    for one in diagnostics:
        # Diagnostics of one fix have the same object.
        owner = owners.get(id(one.edits)) if one.edits else one
        if owner is None:
            owner = owners[id(one.edits)] = first.setdefault(one.edits, one)
        same_place = owner.start == one.start
        yield one if same_place else replace(one, edits=(), fixed_with=owner.start)


def alone(path: str, text: str, diagnostic: LintDiagnostic, rule: RuleName) -> Reported:
    """One diagnostic of a text, as it is shown beside a question."""
    return Reported(diagnostic, readable(path), None, text, *_places(text, diagnostic.span, ()), rules=(rule,))


def _replacements(text: str, path: str, diagnostic: LintDiagnostic) -> tuple[TextReplacement, ...]:
    """Return what the fix of a diagnostic replaces in a file, by line and column."""
    edits = diagnostic.fix.edits_in(path) if diagnostic.fix else ()
    return tuple(TextReplacement(place(text, one.start), place(text, one.end), one.text) for one in edits)


def repository_root(paths: Sequence[str]) -> str:
    """Return the root of the checkout around the working directory, or else around the first path."""
    from cgmigrate.project.checkout import checkout_of

    working_directory = os.getcwd()
    first = os.path.realpath(paths[0]) if paths else working_directory
    return checkout_of(working_directory) or checkout_of(first) or working_directory


def in_repository(path: str, root: str) -> str | None:
    """Return the path from the root, with ``/`` between folders; None for a path outside of the root."""
    for resolved in (os.path.abspath, os.path.realpath):
        below = os.path.relpath(resolved(path), resolved(root))
        if below.split(os.sep, 1)[0] != os.pardir:
            return readable(below).replace(os.sep, "/")
    return None


def readable(path: str) -> str:
    """Return a path as text; bytes that are not UTF-8 become replacement characters."""
    return os.fsencode(path).decode("utf-8", "replace")
