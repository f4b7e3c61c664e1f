"""The report on uses of deprecated names that are no sites: problems with their fixes, and names that are skipped."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.documents.python.deprecation_tests import asks_for_both, deprecation_test_around
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.release_checks import release_check_around
from cgmigrate.documents.python.site_nodes import SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.use_owners import UseOwners
from cgmigrate.documents.sites import BOTH_NAMES, FOLLOWS_OBJECT, Problem, ProblemKind, Use
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import SCOPE
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span


@dataclass(frozen=True, slots=True)
class UseReplacement:
    """What to write instead of a use.

    ``risk`` says why that may change what the code does. ``edits`` write it where replacing the use itself is not
    enough, and ``fix`` then describes them in short. With ``if_proved`` only a proof for all code that has the object
    shows that it is right. ``is_built`` and ``argument_of`` are those of ``Problem``.
    """

    text: str
    risk: str = ""
    edits: Sequence[Edit] = ()
    fix: str = ""
    if_proved: bool = False
    is_built: bool = False
    argument_of: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """What to say about a use; ``advice`` says what to write by hand."""

    kind: ProblemKind
    text: str
    replacement: UseReplacement | None = None
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Read:
    """A use that reads a setting of an object; ``index`` is that of its problem."""

    object: str
    name: str
    line: int
    index: int


@dataclass(slots=True)
class UseReport:
    """Collects what there is to say; ``first_index`` is the index of the first problem."""

    source: PythonSource
    owners: UseOwners
    first_index: int
    problems: list[Problem] = field(default_factory=list)
    fixes: dict[int, list[Edit]] = field(default_factory=dict)
    """The edits of each problem that has a replacement, by index."""
    skipped: list[tuple[Use, str]] = field(default_factory=list)
    reads: dict[tuple[int, str], list[Read]] = field(default_factory=dict)
    """By the id of the function and the object."""
    _statements: list[ast.AST] = field(default_factory=list)
    """The statement of each problem."""

    def skip(self, node: ast.AST, name: str, owner: str) -> None:
        """Record a name that gets no diagnostic."""
        self.skipped.append((Use(name, name, None, self._span(node)), owner))

    def add(self, node: ast.AST, message: Message, *, about: str = "", anywhere: bool = False) -> None:
        """Record a problem; in a file without Megatron the use is skipped, unless ``anywhere``.

        ``about`` is the setting that it is about, empty for those that the node names.
        """
        if not self.owners.megatron and not anywhere:
            self.skip(node, SCOPE, self.owners.of_unrelated_name())
            return
        if message.kind in (ProblemKind.READ, ProblemKind.NAME_IN_TEXT) and asks_for_both(node, self.source):
            self.skip(node, SCOPE, BOTH_NAMES)
            return
        span, replacement, advice = self._span(node), message.replacement, message.advice
        guard = release_check_around(node, self.source) or deprecation_test_around(node, self.source)
        if guard and replacement:
            advice = advice or f"for megatron-core 0.18 and later write `{replacement.text}`"
            replacement = None
        index = self.first_index + len(self.problems)
        named = frozenset([about] if about else _settings_named(node, self.source.catalogue))
        problem = Problem(message.kind, span, message.text, index, advice=advice, blocked_by=guard, settings=named)
        if replacement and replacement.if_proved:
            problem = replace(problem, if_proved=replacement.text, fix=replacement.fix)
            self.fixes[index] = list(replacement.edits) or [Edit(span.start, span.end, replacement.text)]
        elif replacement:
            text, risk, fix = replacement.text, replacement.risk, replacement.fix
            problem = replace(problem, replacement=text, risk=risk, fix=fix)
            problem = replace(problem, is_built=replacement.is_built, argument_of=replacement.argument_of)
            self.fixes[index] = list(replacement.edits) or [Edit(span.start, span.end, text)]
        self.problems.append(problem)
        self._statements.append(self.source.statement_of(node) or node)
        function, line = self.source.function_of(node), getattr(node, "lineno", 0)
        for path, name in sorted(_settings_read(node, self.source.catalogue.deprecated)):
            self.reads.setdefault((id(function), path), []).append(Read(path, name, line, index))

    def withhold_partial_fixes(self) -> None:
        """Make fixes unsafe that rewrite only a part of a statement whose other parts need a decision."""
        by_statement: dict[int, list[int]] = {}
        for at, statement in enumerate(self._statements):
            by_statement.setdefault(id(statement), []).append(at)
        for group in by_statement.values():
            if all(self.problems[at].replacement and not self.problems[at].risk for at in group):
                continue
            for at in group:
                problem = self.problems[at]
                if problem.replacement and not problem.risk:
                    risk = "another part of the expression needs review and has to change with it"
                    self.problems[at] = replace(problem, risk=risk)

    def _span(self, node: ast.AST) -> Span:
        span = self.source.span(node)
        if isinstance(node, ast.ClassDef):
            return Span(span.start, self.source.text.find("\n", span.start))
        return span


def _settings_named(node: ast.AST, catalogue: Catalogue) -> Iterator[str]:
    """Yield the deprecated settings that code names: as an attribute, a parameter, a field, a key or a flag."""
    for part in walk(node):
        match part:
            case ast.Attribute(attr=name) | ast.arg(arg=name) | ast.AnnAssign(target=ast.Name(id=name)):
                key = name
            case ast.Constant(value=str() as text):
                key = catalogue.by_key.get(text, text.rpartition(".")[2])
            case _:
                continue
        if key in catalogue.deprecated:
            yield key


def _settings_read(node: ast.AST, deprecated: frozenset[str]) -> set[tuple[str, str]]:
    """Return the deprecated settings that an expression reads: the object of each, and its name."""
    parts = (part for part in walk(node) if isinstance(part, ast.Attribute) and part.attr in deprecated)
    return {(path, part.attr) for part in parts if (path := dotted(part.value))}


# --- reads after writes ---------------------------------------------------------------------------


def withhold_reads_after(place: SiteNodes, source: PythonSource, report: UseReport) -> str:
    """Withhold the fixes of reads behind a place; return why the place is not rewritten either, empty if it may be."""
    deprecated = source.catalogue.deprecated
    lines = {item.field: getattr(item.node, "lineno", 0) for item in place.items if item.field in deprecated}
    if place.form is not SiteForm.ASSIGNMENTS or not lines:
        return ""
    function, why = source.function_of(place.items[0].node), ""
    for read in report.reads.get((id(function), place.object), ()):
        if read.line > min(lines.values()):
            why = why or f"line {read.line} reads the setting and has to change with it"
            at = read.index - report.first_index
            report.problems[at] = _without_fix(report.problems[at], read, lines)
    return why


def _without_fix(problem: Problem, read: Read, lines: Mapping[str, int]) -> Problem:
    """Return a problem with its fix withheld; ``lines`` are those of the settings assigned above the read."""
    advice = problem.advice or (f"write `{problem.replacement}`" if problem.replacement else "")
    if_proved = problem.if_proved or (problem.replacement if problem.risk in ("", FOLLOWS_OBJECT) else "")
    problem = replace(problem, replacement="", risk="", advice=advice, if_proved=if_proved)
    if line := lines.get(read.name):
        message = f"`{read.object}.{read.name}` is deprecated; this read is right only as long as line {line} sets it"
        blocked_by = f"line {line} assigns `{read.name}`; both have to change together"
        return replace(problem, message=message, blocked_by=blocked_by)
    other, line = min(lines.items(), key=lambda item: item[1])
    blocked_by = f"line {line} assigns `{other}` of the same object; both have to change together"
    return replace(problem, blocked_by=blocked_by)
