"""Python files: sites are calls, dicts, runs of assignments, and lists of arguments that hold settings.

``ast`` finds everything; an edit replaces a name, a value, or a statement, and nothing emits Python. What
reads or defines the old names is no site: it is told as a problem, some with the text to write instead.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import accumulate

from cgmigrate.documents.python.assignments import Runs
from cgmigrate.documents.python.built_models import BuiltModels
from cgmigrate.documents.python.calls import places_in_calls
from cgmigrate.documents.python.enum_imports import import_edits
from cgmigrate.documents.python.equivalence import same_apart_from_settings
from cgmigrate.documents.python.fix_risks import Exposure
from cgmigrate.documents.python.name_resolution import MEGATRON, names_of, package_of
from cgmigrate.documents.python.other_uses import Read, Readings, function_of
from cgmigrate.documents.python.places import Form, Place
from cgmigrate.documents.python.site_rewriter import SiteWriter, delete_statements, spelled_at
from cgmigrate.documents.python.source import Source, matches_near_names
from cgmigrate.documents.sites import PROSE, CannotEditError, Origin, Problem, Site, Written
from cgmigrate.megatron.settings import DEPRECATED, Settings
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.edits import Edit, OverlapError, apply
from cgmigrate.text.failures import TOO_DEEP, too_deep
from cgmigrate.text.spans import Span

ITSELF = "megatron-core itself, which defines these names: upgrade it instead"
_OLD = re.compile(
    r"(?<![\w-])(?:enable_cuda_graph|external_cuda_graph|cuda_graph_scope|CudaGraphScope|"
    r"--enable-cuda-graph|--external-cuda-graph|--cuda-graph-scope)(?![\w-])"
)


class PythonDocument:
    """A Python file as sites; see ``documents.Document``. ``path`` tells whose code it is."""

    def __init__(self, text: str, path: str = "", sites_only: bool = False) -> None:
        self.text = text
        self.sites: list[Site] = []
        self.problems: list[Problem] = []
        self.skipped: list[tuple[Written, str]] = []
        self.top_level: list[str] = []
        self.builds_on = ""
        self._places: list[Place] = []
        self._fixes: dict[int, list[Edit]] = {}
        self._exposure: Exposure | None = None
        self._path = path
        self._checked = ""
        self._again: PythonDocument | None = None
        if is_part_of_megatron(path):
            self._leave_the_rest(ITSELF)
            return
        try:
            self._source = Source(text)
        except (SyntaxError, ValueError) as error:
            self.problems.append(_unreadable(text, error))
            return
        except TOO_DEEP as error:
            self.problems.append(Problem("CG013", Span(0, 0), too_deep(error)))
            return
        package = package_of(path)
        self._names = names_of(self._source.tree, package)
        self._names.path = path
        modules = tuple(dict.fromkeys([*self._names.modules, *([package] if package else [])]))
        self.top_level = list(modules)
        self._read(modules, sites_only)

    # --- reading ----------------------------------------------------------------------------

    def _read(self, modules: tuple[str, ...], sites_only: bool) -> None:
        runs = Runs(self._source, self._names)
        runs.collect()
        places = list(runs.places)
        consumed = set(runs.seen)
        for node in self._source.walk():
            for place in places_in_calls(node, self._source, self._names):
                places.append(place)
                consumed |= {id(item.node) for item in place.items}
                consumed |= {id(value) for item in place.items for value in item.values}
        places.sort(key=_position)
        self._places = places
        built = BuiltModels(self._source)
        for place in places:
            place.of_built_model = place.form is Form.RUN and built.owns(place)
        index = {id(place): at for at, place in enumerate(places)}
        self.sites = [_site(at, place, modules, index) for at, place in enumerate(places)]
        if sites_only:
            return
        megatron = any(module.partition(".")[0] in MEGATRON for module in modules)
        readings = Readings(self._source, self._names, consumed, megatron, len(places))
        readings.collect()
        self.problems += readings.problems
        self._fixes = readings.fixes
        self._hold_what_is_read_back(readings)
        self.skipped += readings.skipped
        self._leave_the_rest(PROSE)

    def _hold_what_is_read_back(self, readings: Readings) -> None:
        """Code that sets an old name and reads it further down has to change as a whole: leave both."""
        reads: dict[tuple[int, str], list[Read]] = {}
        for read in readings.reads:
            reads.setdefault((id(read.function), read.object), []).append(read)
        for place, site in zip(self._places, self.sites, strict=True):
            if place.form is not Form.RUN or not any(item.field in DEPRECATED for item in place.items):
                continue
            function = function_of(place.items[0].node, self._source)
            lines = {item.field: getattr(item.node, "lineno", 0) for item in place.items if item.field in DEPRECATED}
            first = min(lines.values())
            for read in reads.get((id(function), place.object), ()):
                if read.line <= first:
                    continue
                told = f"the code reads the setting back on line {read.line}, which has to change together with it"
                self.sites[site.index] = replace(self.sites[site.index], blocked_by=site.blocked_by or told)
                place.fixed = place.fixed or told
                at = read.index - readings.first_index
                self.problems[at] = _read_back(self.problems[at], read, lines)

    def _leave_the_rest(self, owner: str) -> None:
        """Every old name that nothing above has dealt with is named as left alone."""
        dealt = [written.span for site in self.sites for written in site.written]
        dealt += [problem.span for problem in self.problems]
        dealt += [written.span for written, _ in self.skipped]
        # Spans may lie in one another: what counts is how far those that begin before reach.
        dealt.sort(key=lambda span: span.start)
        starts = [span.start for span in dealt]
        reach = list(accumulate((span.end for span in dealt), max))
        for found in matches_near_names(_OLD, self.text):
            at = bisect_right(starts, found.start()) - 1
            if at < 0 or reach[at] < found.end():
                written = Written(found.group(), found.group(), None, Span(found.start(), found.end()))
                self.skipped.append((written, owner))

    def risk(self, index: int) -> str:
        """Why code that is not followed may see the object of a site or problem; see ``documents.Document``."""
        if self._exposure is None:
            self._exposure = Exposure(self._source, self._names)
        if index < len(self.sites):
            return self._exposure.of_place(self._places[index])
        return self._exposure.of_read(self.problems[index - len(self.sites)].span)

    # --- writing ----------------------------------------------------------------------------

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that give each site the rewrites own settings; see ``documents.Document``.

        An index behind the sites' is that of a problem, which is then rewritten, too.
        """
        if not rewrites:
            # A file that could not be read has no source, and is never rewritten.
            return []
        result: list[Edit] = []
        dropped = []
        for index, after in sorted(rewrites.items()):
            if index >= len(self.sites):
                result += self._fixes[index]
                continue
            writer = SiteWriter(index, self._places[index], self._source, self._names)
            result += writer.edits(self.sites[index].own, after)
            dropped += writer.dropped
        result += delete_statements(dropped, self._source)
        try:
            return result + import_edits(self._source, self._names, result)
        except (SyntaxError, OverlapError) as error:
            raise CannotEditError(min(rewrites), f"the result is not valid Python ({error})") from error

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text again; return what differs beyond ``rewrites``, empty when nothing."""
        if edited == self._checked:
            return ""
        again = PythonDocument(edited, self._path, sites_only=True)
        if again.problems and again.problems[0].rule in ("CG009", "CG013"):
            return f"it would no longer be read: {again.problems[0].message}"
        expected = ((site.path, rewrites.get(site.index, site.own)) for site in self.sites)
        if _in_order(expected) != _in_order((site.path, site.own) for site in again.sites):
            return "a site would not have the settings that it should"
        readings = [edit for index in rewrites if index >= len(self.sites) for edit in self._fixes[index]]
        before = Source(apply(self.text, readings)) if readings else self._source
        if not same_apart_from_settings(before, again._source):
            return "something else in the file would be read differently"
        self._checked, self._again = edited, again
        return ""

    def quotes(self, rewrites: Mapping[int, Settings]) -> Mapping[int, Mapping[str, str]]:
        """How settings read in the text that was checked last; see ``documents.Document``."""
        from cgmigrate.documents.quotes import quotes_of

        return quotes_of(self, self._again, rewrites) if self._again else {}

    def spelled(self, site: int, name: str, value: object) -> str:
        """A setting as it would be written at a site; see ``documents.Document``."""
        return spelled_at(self._places[site], name, value, self._source)


def _position(place: Place) -> tuple[int, str]:
    """Where a site is in the order of a file, which stays when settings that others surround are deleted."""
    first = place.elements[0] if place.elements else place.items[0].whole
    return first.start, place.prefix


def _in_order(sites: Iterable[tuple[tuple[str, ...], Settings]]) -> dict[tuple[str, ...], list[dict[str, object]]]:
    """The settings of the sites that have some, by what the sites configure: of two objects, either may be first."""
    result: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for path, own in sites:
        if own:
            result.setdefault(path, []).append(dict(own))
    return result


def _site(at: int, place: Place, modules: tuple[str, ...], index: Mapping[int, int]) -> Site:
    written: list[Written] = []
    for item in place.items:
        prefix = "--" if place.form is Form.FLAGS else ""
        key = prefix + item.field.replace("_", "-") if prefix else item.field
        written = [other for other in written if other.field != item.field]
        written.append(Written(item.field, key, item.value, item.span))
    first, last = place.items[0].whole.start, max(item.whole.end for item in place.items)
    fixed = place.fixed or (_too_late(place) if place.built else "")
    links = [link for link in place.links if link is not place.inherits]
    return Site(
        at,
        tuple(filter(None, (place.object or place.callee or place.owner).split("."))),
        Span(first, last),
        tuple(written),
        flags=place.form is Form.FLAGS,
        inherits=(index[id(place.inherits)],) if place.inherits is not None else (),
        linked=tuple(index[id(link)] for link in links),
        blocked_by=fixed,
        # A callee found in another file brings that file's import along.
        origin=Origin(place.callee, place.object, (*modules, place.callee) if place.callee else modules, place.foreign),
        overrides=place.overrides,
        built=place.built,
        of_built_model=place.of_built_model,
        uncertain=place.uncertain,
    )


def _read_back(problem: Problem, read: Read, lines: Mapping[str, int]) -> Problem:
    """A problem about a setting that code above has assigned; ``lines`` are those of the settings assigned."""
    advice = problem.advice or (f"write `{problem.replacement}`" if problem.replacement else "")
    problem = replace(problem, replacement="", risk="", advice=advice)
    if line := lines.get(read.name):
        message = f"until the configuration is built, `{read.object}.{read.name}` is what line {line} assigned"
        told = f"`{read.name}` is assigned on line {line}; both have to change together"
        return replace(problem, message=message, blocked_by=told)
    other, line = min(lines.items(), key=lambda item: item[1])
    told = f"`{other}` of the same object is assigned on line {line}; both have to change together"
    return replace(problem, blocked_by=told)


def _too_late(place: Place) -> str:
    """Why settings of an object that is built already cannot be rewritten one for one, empty when they can."""
    for item in place.items:
        value = item.values[0]
        members = isinstance(value, ast.List) and all(isinstance(member, ast.Attribute) for member in value.elts)
        if item.field != "cuda_graph_scope" or not members or not isinstance(item.value, list):
            return "the object was built, and with it validated, before: give the settings to its constructor"
        if {"full_iteration", "full_iteration_inference"} & set(item.value):
            return "the object was built, and with it validated, before: give the settings to its constructor"
    return ""


# --- the file ---------------------------------------------------------------------------------------


def _unreadable(text: str, error: Exception) -> Problem:
    line = getattr(error, "lineno", None) or 1
    lines = text.split("\n")
    start = sum(len(other) + 1 for other in lines[: line - 1])
    reason = getattr(error, "msg", None) or str(error) or type(error).__name__
    span = Span(min(start, len(text)), min(start + len(lines[min(line, len(lines)) - 1]), len(text)))
    return Problem("CG009", span, f"this is not valid Python: {reason}")


__all__ = ["PythonDocument"]
