"""The fixes of a run, as runs of the user's command can judge them, and plans with what these show."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.documents.nesting import outer_of
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.lint.candidates import spans_of
from cgmigrate.lint.diagnostics import Applicability, Fix, LintDiagnostic
from cgmigrate.lint.edit_sets import Place
from cgmigrate.lint.plan import Plan, UnwritableError
from cgmigrate.lint.planning import Planner
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.settings import IMPL, MODULES, Settings
from cgmigrate.project.inputs import InputFile
from cgmigrate.project.paths import is_below
from cgmigrate.proof.run.judge import ChangedPlace, ProposedFix, RunVerdict
from cgmigrate.text.edits import Edit, OverlapError, apply
from cgmigrate.text.encoding import encode

_ALSO_USES = re.compile(r"(.+?):(\d+) also uses ")
_OTHERS: Sequence[Settings] = ({}, {IMPL: "local"}, {IMPL: "transformer_engine", MODULES: ["attn"]})
"""Settings that capture different graphs: those of a place are replaced by the first that differ from its own."""


@dataclass(slots=True)
class PlannedFixes:
    """The fixes of all plans of a run, in the tree with root ``root``."""

    root: str
    every: list[ProposedFix] = field(default_factory=list)
    _plans: dict[str, Plan] = field(default_factory=dict)
    """The plan of each fix, by its id."""
    _places: list[tuple[Plan, Place]] = field(default_factory=list)
    _boms: dict[str, bool] = field(default_factory=dict)

    @classmethod
    def of(cls, planner: Planner, sources: Iterable[InputFile], root: str) -> PlannedFixes:
        """Return the fixes of some files, but for documentation, which no command runs."""
        own, seen = cls(root), set[str]()
        for source in sources:
            if source.path in seen or source.syntax.is_documentation:
                continue
            try:
                planned = planner.plan(planner.open(source))
            except Exception:
                # What is wrong with it is reported when the file is checked.
                continue
            seen.update(one.path for one in planned.files)
            own._boms |= {one.path: one.bom for one in planned.files}
            if all(is_below(os.path.realpath(one.path), root) for one in planned.files):
                own._add(planned.plan)
        return own

    def _add(self, plan: Plan) -> None:
        for candidate in plan.candidates:
            fix = candidate.fix
            if not candidate.is_written or fix.id in self._plans:
                continue
            self._plans[fix.id] = plan
            places = []
            for place in candidate.edit_set.rewrites:
                places.append(ChangedPlace(len(self._places), frozenset(self._lines(plan, place))))
                self._places.append((plan, place))
            path, line = min(min(one.lines) for one in places)
            title = f"{path}:{line}" if line else path
            is_safe = fix.applicability is Applicability.SAFE
            self.every.append(ProposedFix(fix.id, title, is_safe, tuple(places), frozenset(self._open(fix))))

    def _open(self, fix: Fix) -> Iterator[tuple[str, int]]:
        """Yield the places of other code that also uses what a fix changes."""
        for match in filter(None, map(_ALSO_USES.match, fix.because)):
            yield self._name(match[1]), int(match[2])

    def _lines(self, plan: Plan, place: Place) -> Iterator[tuple[str, int]]:
        """Yield the lines that Python executes for a place; of a file of data, line 0."""
        file = plan.group.files[place[0]]
        name = self._name(file.path)
        document = outer_of(file.document)
        if not isinstance(document, PythonDocument) or document.tree is None:
            yield name, 0
            return
        lines = {line for span in spans_of(file.document, place[1]) for line in span.lines(file.document.text)}
        statements = (node for node in walk(document.tree) if isinstance(node, ast.stmt) and not hasattr(node, "body"))
        spans = [range(one.lineno, (one.end_lineno or one.lineno) + 1) for one in statements]
        yield from ((name, line) for line in lines.union(*(span for span in spans if not lines.isdisjoint(span))))

    def texts(self, ids: Collection[str]) -> dict[str, bytes]:
        """Return the files that some fixes change, with these fixes."""
        by_plan: dict[int, list[str]] = {}
        for one in ids:
            by_plan.setdefault(id(self._plans[one]), []).append(one)
        result: dict[str, bytes] = {}
        for own in by_plan.values():
            try:
                edited = self._plans[own[0]].edited(own)
            except UnwritableError:
                continue
            result |= {self._name(one.path): self._encoded(one.path, one.text) for one in edited}
        return result

    def others(self, places: Collection[int], ids: Collection[str]) -> dict[str, bytes]:
        """Return the files with some fixes in which some places capture something else; without those that cannot."""
        chosen: dict[tuple[int, int], tuple[Plan, list[int]]] = {}
        for number in places:
            plan, (at, index) = self._places[number]
            chosen.setdefault((id(plan), at), (plan, []))[1].append(index)
        result = self.texts(ids)
        for (_, at), (plan, indices) in chosen.items():
            file, rewrites = plan.group.files[at], dict[int, Settings]()
            for one in plan.candidates:
                rewrites |= one.edit_set.in_file(at) if one.fix.id in ids and one.is_written else {}
            try:
                edits = _otherwise(plan, at, rewrites, indices)
                result[self._name(file.path)] = self._encoded(file.path, apply(file.document.text, edits))
            except (CannotEditError, OverlapError):
                continue
        return result

    def _name(self, path: str) -> str:
        return os.path.relpath(os.path.realpath(path), self.root)

    def _encoded(self, path: str, text: str) -> bytes:
        return encode(text, self._boms.get(path, False))


def _otherwise(plan: Plan, number: int, rewrites: Mapping[int, Settings], indices: Collection[int]) -> Sequence[Edit]:
    """Return the edits of a file with which some places capture something else. Raises CannotEditError."""
    file, own = plan.group.files[number], dict(rewrites)
    for index in indices:
        case = plan.cases.get((number, index))
        if case is not None:
            captured = capture_of(case.final or {}, file.context.target, case.reader)
            own[index] = next(one for one in _OTHERS if capture_of(one, file.context.target, case.reader) != captured)
    return file.document.edits(own)


def judged(plan: Plan, verdicts: Mapping[str, RunVerdict]) -> Plan:
    """Return a plan with what runs showed of its fixes."""
    if not verdicts.keys() & {fix.id for fix in plan.fixes}:
        return plan
    files = tuple(
        replace(file, diagnostics=tuple(_judged(one, verdicts) for one in file.diagnostics)) for file in plan.files
    )
    withheld = {id for id, verdict in verdicts.items() if not verdict.is_proved}
    return replace(plan, fixes=tuple(_fix(one, verdicts) for one in plan.fixes if one.id not in withheld), files=files)


def _judged(diagnostic: LintDiagnostic, verdicts: Mapping[str, RunVerdict]) -> LintDiagnostic:
    fix = diagnostic.fix
    if fix is None or (verdict := verdicts.get(fix.id)) is None:
        return diagnostic
    if verdict.is_proved:
        notes = (*diagnostic.notes, f"proved by running: {verdict.text}")
        return replace(diagnostic, fix=_fix(fix, verdicts), because="", notes=notes)
    return diagnostic.without_fix(f"when run, {verdict.text}", "")


def _fix(fix: Fix, verdicts: Mapping[str, RunVerdict]) -> Fix:
    return replace(fix, applicability=Applicability.SAFE, because=()) if fix.id in verdicts else fix
