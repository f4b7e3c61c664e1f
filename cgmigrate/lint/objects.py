"""The objects of a planned file, explained: settings in effect and their origins, edit set, and captures.

An object is what a site configures, or a place in code that a rule is about. All of it is read from the plan, so that
it is what ``check`` reports and ``fix`` writes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Document, Problem, Site, Use, site_places
from cgmigrate.lint.candidates import Candidate
from cgmigrate.lint.captures import (
    advice_on,
    because,
    before_and_after,
    graphs_of_settings,
    is_known,
    layers_of,
    verb,
    verdict_on,
)
from cgmigrate.lint.diagnostics import LintDiagnostic, SiteCase
from cgmigrate.lint.edit_sets import FileGroup, Place
from cgmigrate.lint.plan import Plan
from cgmigrate.lint.run import Run
from cgmigrate.lint.site_diagnostics import quoted
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings, Undecided
from cgmigrate.megatron.types import Capture, Rejected
from cgmigrate.project.inputs import InputError, InputFile, TooLarge
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.lint.planning import Planned
    from cgmigrate.project.cascade import Configurations
    from cgmigrate.project.options import RunOptions

TOP_LEVEL = "the top level"
"""The name of an object that nothing encloses."""
NOT_KNOWN = "not known: a condition or a value computed at run time decides"
"""What an object captures if no single value of its settings is known."""


@dataclass(frozen=True, slots=True)
class FileLine:
    """A line of a file, from 1."""

    path: str
    number: int

    def __str__(self) -> str:
        return f"{self.path}:{self.number}"


@dataclass(frozen=True, slots=True)
class SettingOrigin:
    """Where a setting is written and how it reads; ``how`` says how it gets to the object, empty for its own."""

    line: FileLine
    text: str
    how: str = ""


@dataclass(frozen=True, slots=True)
class SettingInEffect:
    """A setting of an object: the text that takes effect, and those that it overrides."""

    origin: SettingOrigin
    overrides: tuple[SettingOrigin, ...] = ()


@dataclass(frozen=True, slots=True)
class SetMember:
    """A place of an edit set.

    ``writes`` are its settings afterwards, None if it stays as it is. ``fix`` describes a fix that does something else.
    """

    line: FileLine
    name: str
    writes: tuple[str, ...] | None
    fix: str = ""


@dataclass(frozen=True, slots=True)
class CapturesOf:
    """What is captured before and after at some entry points, in words."""

    text: str
    entry_points: tuple[FileLine, ...]


@dataclass(frozen=True, slots=True)
class SetOfObject:
    """The edit set of an object. ``withheld`` says why it is not written and what to do, empty if it is."""

    id: str
    applicability: str
    members: tuple[SetMember, ...]
    files: tuple[str, ...]
    because: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ExplainedObject:
    """An object and all that the plan has of it."""

    first: FileLine
    last: int
    """Its last line."""
    name: str
    owner: str
    """The ecosystem, empty if it is ambiguous or of no matter."""
    releases: tuple[Release, Release]
    settings: tuple[SettingInEffect, ...] = ()
    captures: tuple[CapturesOf, ...] = ()
    layers: tuple[str, ...] = ()
    """What is captured of each class of layers, where the modules do not say it."""
    advice: tuple[str, ...] = ()
    """What to know of it."""
    edit_set: SetOfObject | None = None
    diagnostics: tuple[tuple[int, LintDiagnostic], ...] = ()
    """With their lines."""

    def distance(self, line: int) -> int:
        """Return the number of lines between a line and the object, 0 for its own lines."""
        return max(self.first.number - line, line - self.last, 0)

    @property
    def length(self) -> int:
        """The number of its lines."""
        return self.last - self.first.number + 1


def objects_of(plan: Plan, number: int) -> list[ExplainedObject]:
    """Return the objects of one file of a plan, in the order of the text."""
    objects = _Objects(plan, number, plan.group.components())
    return sorted(objects.all(), key=lambda one: (one.first.number, one.last))


@dataclass(frozen=True, slots=True)
class _Objects:
    plan: Plan
    number: int
    """Of the file in the plan."""
    components: Sequence[Sequence[int]]
    """The sites of the group that share settings."""

    @property
    def group(self) -> FileGroup:
        return self.plan.group

    def all(self) -> Iterator[ExplainedObject]:
        document = self.group.files[self.number].document
        for site in document.sites:
            yield self._of_site(site)
        for problem in document.problems:
            if diagnostics := self._diagnostics(problem.index, problem.span):
                yield self._of_problem(problem, diagnostics)

    def _of_site(self, site: Site) -> ExplainedObject:
        place, file = (self.number, site.index), self.group.files[self.number]
        case, owner = self.plan.cases.get(place), file.owners[site.index].ecosystem
        first, last = self._lines(place)
        index = self.group.offsets[self.number] + site.index
        return ExplainedObject(
            first,
            last.number,
            self._name(place),
            owner.name if owner else "",
            (case.source if case else file.context.source, file.context.target),
            tuple(self._settings(index)),
            tuple(self._captures(index)),
            *(self._layers_and_advice(place, case) if case else ((), ())),
            self._edit_set(place),
            self._diagnostics(site.index),
        )

    def _of_problem(self, problem: Problem, diagnostics: tuple[tuple[int, LintDiagnostic], ...]) -> ExplainedObject:
        context, place = self.group.files[self.number].context, (self.number, problem.index)
        first, last = (self._line(self.number, offset) for offset in (problem.span.start, problem.span.end))
        return ExplainedObject(
            first,
            last.number,
            quoted(self._text(self.number, problem.span)),
            "",
            (context.source, context.target),
            edit_set=self._edit_set(place) if problem.index >= 0 else None,
            diagnostics=diagnostics,
        )

    def _diagnostics(self, index: int, span: Span | None = None) -> tuple[tuple[int, LintDiagnostic], ...]:
        """Return the diagnostics about a site, or about a problem at a span, each with its line."""
        return tuple(
            (self._line(self.number, one.span.start).number, one)
            for one in self.plan.files[self.number].diagnostics
            if one.site == index and (span is None or one.span == span)
        )

    # --- places -----------------------------------------------------------------------------------

    def _text(self, number: int, span: Span) -> str:
        return " ".join(self.group.files[number].document.text[span.start : span.end].split())

    def _line(self, number: int, offset: int) -> FileLine:
        file = self.group.files[number]
        return FileLine(file.path, file.document.text.count("\n", 0, offset) + 1)

    def _lines(self, place: Place) -> tuple[FileLine, FileLine]:
        """Return the first and the last line of a site or problem."""
        number, index = place
        document = self.group.files[number].document
        if index < len(document.sites):
            site = document.sites[index]
            spans = [site.span, *(written.span for written in site.written)]
        else:
            spans = [problem.span for problem in document.problems if problem.index == index]
        start, end = min(span.start for span in spans), max(span.end for span in spans)
        # A mapping of YAML ends where the next key begins.
        end = start + len(document.text[start:end].rstrip())
        return self._line(number, start), self._line(number, max(start, end - 1))

    def _name(self, place: Place) -> str:
        number, index = place
        document = self.group.files[number].document
        if index < len(document.sites):
            return site_places(document)[index] or TOP_LEVEL
        return next(quoted(self._text(number, one.span)) for one in document.problems if one.index == index)

    # --- settings ---------------------------------------------------------------------------------

    def _settings(self, index: int) -> Iterator[SettingInEffect]:
        """Yield the settings in effect at a site of the group, each with what it overrides."""
        origins: dict[str, list[SettingOrigin]] = {}
        stack = self.group.stacks.get(index)
        over = [use for one in reversed(stack.above if stack else ()) for use in self._own_uses(one)]
        for source, written in (*over, *self._uses(index, set())):
            origins.setdefault(written.setting, []).append(self._origin(index, source, written))
        settings = [SettingInEffect(first, tuple(others)) for first, *others in origins.values()]
        yield from sorted(
            settings, key=lambda one: (bool(one.origin.how), one.origin.line.path, one.origin.line.number)
        )

    def _uses(self, index: int, seen: set[int]) -> Iterator[tuple[int, Use]]:
        """Yield the uses of a site of the group: its own, the last one first, then those of the nearest source."""
        seen.add(index)
        yield from self._own_uses(index)
        for source in self.group.sources(index):
            if source not in seen:
                yield from self._uses(source, seen)

    def _own_uses(self, index: int) -> Iterator[tuple[int, Use]]:
        number, own = self.group.place(index)
        yield from ((index, written) for written in reversed(self.group.files[number].document.sites[own].written))

    def _origin(self, index: int, source: int, written: Use) -> SettingOrigin:
        number, _ = self.group.place(source)
        document, at = self.group.files[number].document, self.group.place(source)[1]
        value = document.sites[at].own.get(written.setting)
        quote = document.text[written.span.start : written.span.end]
        shown = _in_one_line(quote, document, (at, written.setting, value))
        return SettingOrigin(self._line(number, written.span.start), shown, self._how(index, source))

    def _how(self, index: int, source: int) -> str:
        """Return how the settings of one site get to another; empty for its own."""
        if index == source:
            return ""
        site, other = self.group.sites[index], self.group.sites[source]
        if self.group.place(index)[0] != self.group.place(source)[0]:
            return "merged file"
        if site.origin is not None:
            return "earlier code"
        return "mapping around it" if other.path == site.path[:-1] else "merge key"

    # --- edit sets and captures -------------------------------------------------------------------

    def _edit_set(self, place: Place) -> SetOfObject | None:
        candidate = next((one for one in self.plan.candidates if place in one.edit_set.members), None)
        if candidate is None or not candidate.edit_set.rewrites:
            return None
        members = [self._member(candidate, member) for member in sorted(candidate.edit_set.members)]
        return SetOfObject(
            candidate.fix.id,
            str(candidate.fix.applicability),
            tuple(members),
            candidate.fix.paths,
            candidate.edit_set.because,
            _why_withheld(candidate),
        )

    def _member(self, candidate: Candidate, place: Place) -> SetMember:
        number, index = place
        line, _ = self._lines(place)
        own = candidate.edit_set.rewrites.get(place)
        document = self.group.files[number].document
        if own is None:
            return SetMember(line, self._name(place), None)
        if index >= len(document.sites):
            problem = next(one for one in document.problems if one.index == index)
            written = () if problem.fix else (problem.replacement,)
            return SetMember(line, self._name(place), written, problem.fix)
        quotes = candidate.quotes.get(place, {})
        writes = (_in_one_line(quotes.get(name, ""), document, (index, name, value)) for name, value in own.items())
        return SetMember(line, self._name(place), tuple(writes))

    def _captures(self, index: int) -> Iterator[CapturesOf]:
        """Yield what a site and the entry points of its component capture, those with the same captures together."""
        component = next(one for one in self.components if index in one)
        sources = {source for one in component for source in self.group.sources(one)} - {index}
        groups: dict[str, list[FileLine]] = {}
        for place in (self.group.place(one) for one in component if one not in sources):
            if (case := self.plan.cases.get(place)) is not None:
                for text in self._captures_at(place, case):
                    groups.setdefault(text, []).append(self._lines(place)[0])
        for text, lines in groups.items():
            yield CapturesOf(text, tuple(sorted(lines, key=lambda line: (line.path, line.number))))

    def _captures_at(self, place: Place, case: SiteCase) -> Iterator[str]:
        """Yield what a site captures, each graph that another setting turns on in a line of its own."""
        file = self.group.files[place[0]]
        others = list(graphs_of_settings(case, self._after(place, case), file.context.target))
        if not others or case.before.keys() & file.document.catalogue.captures:
            yield self._before_and_after(place, case)
        yield from others

    def _layers_and_advice(self, place: Place, case: SiteCase) -> tuple[tuple[str, ...], tuple[str, ...]]:
        file = self.group.files[place[0]]
        if not is_known(case, file.document.sites[place[1]]):
            return (), ()
        after, target = self._after(place, case), file.context.target
        verdict = verdict_on(case, after, target, file.context)
        if isinstance(verdict, Rejected):
            return (), ()
        return layers_of(capture_of(after, target, case.reader), case, target), advice_on(case, after, target)

    def _after(self, place: Place, case: SiteCase) -> Settings:
        """Return the settings of a site once fixes are written."""
        is_fixed = any(place in one.edit_set.members for one in self.plan.candidates)
        return case.after if is_fixed and case.after is not None else case.before

    def _before_and_after(self, place: Place, case: SiteCase) -> str:
        file = self.group.files[place[0]]
        if not is_known(case, file.document.sites[place[1]]):
            return NOT_KNOWN
        is_fixed = any(place in one.edit_set.members for one in self.plan.candidates)
        after, target = self._after(place, case), file.context.target
        was = verdict_on(case, case.before, case.source, file.context)
        will = verdict_on(case, after, target, file.context)
        if was == will and isinstance(was, Capture):
            same = "" if case.source == target else f" -> {target}: the same"
            return f"{case.source}: {was.describe_briefly(modules=True)}{same}"
        if isinstance(was, Rejected) and was == will and because(was):
            releases = str(target) if case.source == target else f"{case.source} and {target}"
            return f"{releases}: {verb(was)}{because(was)}"
        before, later = before_and_after(was, case.source, will, target)
        return f"{before} -> {later} ({'after the fix' if is_fixed else 'without changes'})"


def _why_withheld(candidate: Candidate) -> tuple[str, ...]:
    """Return why a set is not written and what to do; empty if it is written."""
    if candidate.write_error:
        return (f"the text cannot be changed safely: {candidate.write_error}",)
    withheld = candidate.withheld
    if withheld is None:
        return ()
    cause = next(iter(withheld.causes), None)
    reason = f"{cause.rule} in {cause.path}:{cause.line}, {withheld.reason}" if cause else withheld.reason
    return reason, withheld.help


def _in_one_line(quote: str, document: Document, spelled: tuple[int, str, object]) -> str:
    """Return a setting as its text reads; one of several lines, which may hold comments, as it would be written in one.

    ``spelled`` are its site, its name and its value.
    """
    text = quote.strip()
    if text and ("\n" not in text or isinstance(spelled[2], Undecided)):
        return " ".join(text.split())
    return document.spelled(*spelled)


# --- the objects of a file ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ExplainedFile:
    """The objects of a file in the order of the text, and the releases that apply to it."""

    path: str
    objects: tuple[ExplainedObject, ...] = ()
    releases: str = ""
    """With their origins; empty for a file without settings."""
    notes: tuple[str, ...] = ()

    def at(self, line: int) -> ExplainedObject | None:
        """Return the smallest object around a line, None if there is none."""
        around = [one for one in self.objects if one.distance(line) == 0]
        return min(around, key=lambda one: one.length, default=None)

    def nearest(self, line: int) -> ExplainedObject | None:
        """Return the object nearest to a line, None for a file without objects."""
        return min(self.objects, key=lambda one: one.distance(line), default=None)


def explain_file(path: str, options: RunOptions, configurations: Configurations) -> ExplainedFile | InputError:
    """Return a file with its objects, or why it cannot be examined. Raises RuleError and ConfigurationError."""
    run = Run([path], options, configurations)
    planned = _planned(run, path)
    if planned is not None and not isinstance(planned, InputError) and len(planned.files) > 1:
        # A file outside of the paths of a run is not written: with all of them as paths, the plan is that of `.`.
        run = Run([one.path for one in planned.files], options, configurations)
        planned = _planned(run, path)
    if planned is None or isinstance(planned, InputError):
        return planned or ExplainedFile(path)
    number = [_is_same(one.path, path) for one in planned.files].index(True)
    objects = tuple(objects_of(planned.plan, number))
    return ExplainedFile(path, objects, "; ".join(map(str, run.resolutions)), tuple(run.notes))


def _planned(run: Run, path: str) -> Planned | InputError | None:
    """Return the plan of a file in a run; None for a file without settings."""
    inputs = list(run.discovery)
    sources = [item for item in inputs if isinstance(item, InputFile)]
    file = next((item for item in inputs if _is_same(item.path, path)), None)
    match file:
        case None | InputError():
            return file
        case TooLarge():
            return InputError(path, f"has {file.size:,} bytes and is not read as a configuration", missing=True)
    return _plan(run, sources, file)


def _plan(run: Run, sources: Sequence[InputFile], file: InputFile) -> Planned | InputError:
    from cgmigrate.text.failures import TOO_DEEP, too_deep

    planner = run.checker(sources).planner
    try:
        return planner.plan(planner.open(file))
    except UnicodeDecodeError as error:
        return InputError(file.path, f"is not UTF-8 ({error.reason})", missing=True)
    except TOO_DEEP as error:
        return InputError(file.path, too_deep(error), missing=True)


def _is_same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)
