"""A Python file: sites are calls, dicts, assignments to one object, and lists of arguments that hold settings.

All is read from the tree of ``ast``. An edit replaces a name, a value or a statement; no Python is generated from a
tree. Code that reads or defines the deprecated names is no site: it is a problem, in some cases with a replacement.
"""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import accumulate
from typing import TYPE_CHECKING

from cgmigrate.documents.python.assignments import Assignments
from cgmigrate.documents.python.built_copies import BuiltCopy, copy_at, is_of_built_model
from cgmigrate.documents.python.calls import places_in
from cgmigrate.documents.python.deprecation_tests import asks_for_both, deprecation_test_around, expects_error
from cgmigrate.documents.python.enum_imports import import_edits
from cgmigrate.documents.python.equivalence import same_apart_from_settings
from cgmigrate.documents.python.fix_risks import FixRisks
from cgmigrate.documents.python.flag_uses import goes_to_parser, own_option
from cgmigrate.documents.python.keyword_dicts import class_behind, class_with
from cgmigrate.documents.python.name_resolution import MEGATRON, SCOPE_CLASS, QualifiedNames, names_of, package_of
from cgmigrate.documents.python.programs import names_program
from cgmigrate.documents.python.setters import (
    Setters,
    clears_scope,
    import_edits_of,
    same_with_setters,
    without_cleared,
)
from cgmigrate.documents.python.site_nodes import SiteForm, SiteNodes, position_of, sites_of
from cgmigrate.documents.python.site_rewriter import PythonSiteRewriter
from cgmigrate.documents.python.source import PythonSource, dotted, last_name, matches_near_names
from cgmigrate.documents.python.spelling import spelled_at
from cgmigrate.documents.python.statement_edits import delete_statements
from cgmigrate.documents.python.use_owners import UseOwners, is_another_system
from cgmigrate.documents.python.use_problems import report_problems
from cgmigrate.documents.python.use_report import withhold_reads_after
from cgmigrate.documents.sites import PROSE, UNREADABLE, CannotEditError, Document, Problem, ProblemKind, Site, Use
from cgmigrate.megatron.catalogue import FLAG_BEGINS, Catalogue
from cgmigrate.megatron.settings import ENABLE, MODULES, Settings, Undecided
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.edits import Edit, OverlapError, apply, moved
from cgmigrate.text.failures import TOO_DEEP, too_deep
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.python.definitions import Definitions, OwnClass
    from cgmigrate.documents.python.key_places import KeyPlace
    from cgmigrate.documents.python.key_renames import Replacements
    from cgmigrate.documents.python.surroundings import PythonSurroundings

ITSELF = "megatron-core itself, which defines these names: upgrade it instead"


@lru_cache(maxsize=8)
def _deprecated_word(catalogue: Catalogue) -> re.Pattern[str]:
    names, flags = catalogue.alternatives(deprecated=True), catalogue.alternatives(deprecated=True, flags=True)
    return re.compile(rf"(?:(?<![\w-])(?:{names}|{SCOPE_CLASS})|{FLAG_BEGINS}(?:{flags}))(?![\w-])")


@dataclass(frozen=True, slots=True)
class ReadingMode:
    """How a file is read. ``tree`` is that of the text if it is parsed already."""

    tree: ast.Module | None = None
    sites_only: bool = False
    works_with: str = ""
    """The package whose objects other code gives to the file, if it does not import that itself."""


WHOLE = ReadingMode()
_SITES = ReadingMode(sites_only=True)


class PythonDocument(Document):
    """A Python file; see ``sites.Document``. ``path`` shows whose code it is.

    Without a catalogue, the settings are those that ship.
    """

    def __init__(
        self, text: str, path: str = "", catalogue: Catalogue | None = None, reading: ReadingMode = WHOLE
    ) -> None:
        super().__init__(text, path, catalogue)
        self.works_with = reading.works_with
        self.skipped: list[tuple[Use, str]] = []
        self._places: list[SiteNodes] = []
        self._built_copies: list[BuiltCopy] = []
        self._fixes: dict[int, list[Edit]] = {}
        self.setters: Setters | None = None
        """The functions of the project with which rewrites are written that clear the old scope."""
        self._renamed: frozenset[int] = frozenset()
        """The indices of the problems about keys that get other names."""
        self._spans_of_keys: list[Span] = []
        self._is_read = False
        self._checked = ""
        self._qualified_names = QualifiedNames()
        if is_part_of_megatron(path):
            self._skip_the_rest(ITSELF)
            return
        try:
            self._source = PythonSource(text, self.catalogue, reading.tree)
            self._qualified_names = QualifiedNames(self._source)
        except (SyntaxError, ValueError) as error:
            if _may_be_megatrons(text, path, self.catalogue):
                self.problems.append(_syntax_error(text, error))
            return
        except TOO_DEEP as error:
            self.problems.append(Problem(ProblemKind.TOO_COMPLEX, Span(0, 0), too_deep(error)))
            return
        self._is_read = True
        package = package_of(path)
        self._names = names_of(self._source.tree, package)
        self._names.path, self._names.catalogue = path, self.catalogue
        self.top_level = list(dict.fromkeys([*self._names.modules, *filter(None, (package, reading.works_with))]))
        nodes_of_sites = self._read_sites()
        if not reading.sites_only:
            self._read_problems(nodes_of_sites)

    @property
    def tree(self) -> ast.Module | None:
        """The tree of the text, None if it could not be read."""
        return self._source.tree if self._is_read else None

    @property
    def is_of_unknown_owner(self) -> bool:
        """Whether neither Megatron nor another system with settings of the same names is imported."""
        return self._is_read and not self._imports_megatron and not is_another_system(self._names)

    def working_with(self, package: str) -> PythonDocument:
        """Return the document of a file that gets objects of a package which it does not import."""
        return PythonDocument(self.text, self.path, self.catalogue, ReadingMode(tree=self.tree, works_with=package))

    # --- reading ----------------------------------------------------------------------------

    def _read_sites(self) -> set[int]:
        """Read the sites; return the ids of the nodes that belong to them."""
        assignments = Assignments(self._source, self._names, lambda: self.definitions)
        assignments.collect()
        places = list(assignments.places)
        nodes = set(assignments.seen)
        for node in self._source.walk():
            for place in places_in(node, self._source, self._names):
                places.append(place)
                nodes |= {id(item.node) for item in place.items}
                nodes |= {id(value) for item in place.items for value in item.values}
        for place in places:
            place.later = assignments.later.get(self._source.parent(place.items[0].node), {})
            place.expects_error = expects_error(self._source, place.items[0].node)
            place.of_built_model = place.form is SiteForm.ASSIGNMENTS and is_of_built_model(self._source, place)
            place.blocked_by = place.blocked_by or deprecation_test_around(place.items[0].node, self._source)
            place.blocked_by = place.blocked_by or self._own_option(place)
            self._name_class_behind(place)
        self._built_copies = self._copies_in(places)
        removed = [copy.place for copy in self._built_copies]
        removed += [place for place in places if self._sets_both(place)]
        self._places = sorted(_without(removed, places), key=position_of)
        self.sites = sites_of(self._places, tuple(self.top_level), self.catalogue)
        return nodes

    def _sets_both(self, place: SiteNodes) -> bool:
        """Return whether settings are written only where the release has them, and the new ones are written, too."""
        if place.form is not SiteForm.ASSIGNMENTS or not place.blocked_by:
            return False
        return all(asks_for_both(item.node, self._source) for item in place.items)

    def _name_class_behind(self, place: SiteNodes) -> None:
        """Set which class of Megatron gets the settings of a call or dict, if code of the checkout passes them on."""
        node = self._source.parent(place.items[0].node)
        settings = {item.field for item in place.items}
        is_dict = place.form is SiteForm.DICT or (isinstance(node, ast.Call) and dotted(node.func) == "dict")
        is_class = place.callee.rpartition(".")[2][:1].isupper()
        if is_class and (not is_dict or not place.overrides):
            # The class itself gets the keyword arguments, or the dict that is written in its call.
            return
        if is_dict and isinstance(node, ast.expr):
            behind = class_with(node, settings, self._source.tree, self.definitions)
        elif place.constructs and isinstance(node, ast.Call):
            behind = class_behind(dotted(node.func), settings, self.definitions)
            place.through = last_name(node.func)
        else:
            return
        if behind:
            # The code may set others.
            place.callee, place.overrides, place.merged = behind, True, True

    def _copies_in(self, places: Iterable[SiteNodes]) -> list[BuiltCopy]:
        """Return the places that copy settings of a configuration that is built."""
        if not self._imports_megatron:
            return []
        copies = (copy_at(place, self._source, lambda: self.definitions) for place in places)
        return [copy for copy in copies if copy is not None]

    @property
    def _imports_megatron(self) -> bool:
        return any(module.partition(".")[0] in MEGATRON for module in self.top_level)

    def _own_option(self, place: SiteNodes) -> str:
        """Return which option of the file's own parser gets a list of arguments, empty if none does."""
        arguments = self._source.parent(place.items[0].node)
        if place.form is not SiteForm.FLAGS or arguments is None or not goes_to_parser(arguments, self._source):
            return ""
        return own_option({item.field for item in place.items}, self._source)

    def _read_problems(self, nodes_of_sites: set[int]) -> None:
        owners = UseOwners(
            self._source, self._names, self._imports_megatron, names_program(self._source), lambda: self.definitions
        )
        copies = [copy for copy in self._built_copies if copy.deprecated]
        report = report_problems(self._source, owners, nodes_of_sites, len(self._places), copies)
        for at, place in enumerate(self._places):
            if why := withhold_reads_after(place, self._source, report):
                self.sites[at] = replace(self.sites[at], read_back=why)
        self.problems += report.problems
        self.skipped += report.skipped
        self._fixes = report.fixes
        if self.catalogue.reads_code:
            self._read_code()
        self._skip_the_rest(PROSE)

    def _read_code(self) -> None:
        from cgmigrate.documents.python.megatron_code import code_problems

        first = len(self.sites) + len(self.problems)
        for problem in code_problems(self._source, self._names, first, lambda: self.definitions):
            self.problems.append(problem)
            if problem.replacement:
                self._fixes[problem.index] = [Edit(problem.span.start, problem.span.end, problem.replacement)]

    def _skip_the_rest(self, owner: str) -> None:
        """Record every deprecated name as skipped that belongs to no site and to no problem."""
        covered = [written.span for site in self.sites for written in site.written]
        covered += [problem.span for problem in self.problems]
        covered += [written.span for written, _ in self.skipped]
        # Spans may be nested: what counts is the farthest end of all that begin before.
        covered.sort(key=lambda span: span.start)
        starts = [span.start for span in covered]
        ends = list(accumulate((span.end for span in covered), max))
        for match in matches_near_names(_deprecated_word(self.catalogue), self.text, self.catalogue):
            at = bisect_right(starts, match.start()) - 1
            if at < 0 or ends[at] < match.end():
                written = Use(match.group(), match.group(), None, Span(*match.span()))
                self.skipped.append((written, owner))

    def enclosing(self, offset: int) -> str:
        """Return the class and function around an offset; see ``sites.Document``."""
        return self._qualified_names.at(offset)

    @cached_property
    def uses(self) -> Sequence[Use]:
        """Every appearance of a setting that is no import and no variable; see ``sites.Document``."""
        from cgmigrate.documents.python.uses import PythonRoleReader
        from cgmigrate.documents.uses import appearances_in

        if is_part_of_megatron(self.path) or any(problem.kind in UNREADABLE for problem in self.problems):
            return ()
        names = list(appearances_in(self.text, self.catalogue))
        written: dict[int, Use] = {}
        for place, site in zip(self._places, self.sites, strict=True):
            keys = {use.setting: use for use in site.written}
            for item in place.items:
                # Of two writes of one setting, the site has the last.
                written[item.name.start] = replace(keys[item.field], value=item.value, span=item.span)
        lines = sorted({self._source.line_of(name.span.start) for name in names})
        use_of = PythonRoleReader(self._source, lines, written, self._comments[0])
        return tuple(use for name in names if (use := use_of(name)) is not None)

    def own_class(self, index: int) -> OwnClass | None:
        """Return the class that gets the settings of a site and defines them as fields itself, None if none does."""
        items = self._places[index].items
        call = self._source.parent(items[0].node)
        made = self.definitions.made_by(call) if isinstance(call, ast.Call) else None
        return made.own_class({item.field for item in items}) if made else None

    def own_fields(self, index: int) -> frozenset[str]:
        """Return the fields that the class of a site's object defines itself, in the checkout."""
        place = self._places[index]
        call = self._source.parent(place.items[0].node)
        name = dotted(call.func) if place.constructs and isinstance(call, ast.Call) else place.class_name
        return self.definitions.declared_by(name) if name else frozenset()

    def value_beside(self, index: int, section: Sequence[str], keys: Sequence[str], /) -> object:
        """Return a value of the configuration that a site belongs to; see ``sites.Document``."""
        return self._surroundings.value(self._places[index], section, keys)

    @cached_property
    def _surroundings(self) -> PythonSurroundings:
        from cgmigrate.documents.python.surroundings import PythonSurroundings

        return PythonSurroundings(self._source, self._names)

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        """Return the comments, and the strings and statements of several lines with the rest of their lines."""
        from cgmigrate.documents.python.comments import comments_of

        return comments_of(self.text, self.comment_form)

    def key_places(self, names: Collection[str]) -> list[KeyPlace]:
        """Return the places that name some keys of mappings. Raises KeyNotFollowedError."""
        from cgmigrate.documents.python.key_places import key_places_in

        if not self._is_read:
            return []
        return key_places_in(self._source, names, [site.span for site in self.sites if not _is_undecided(site.own)])

    def rename_keys(
        self, places: Sequence[KeyPlace], new: Replacements, same_value: frozenset[str], where: str
    ) -> list[Problem]:
        """Add a problem for each place that names a key, and return the problems; ``where`` are the mappings in words.

        Their fixes name the keys that replace it in these mappings; those in ``same_value`` keep their values.
        Raises KeyNotFollowedError.
        """
        from cgmigrate.documents.python.key_renames import problem_of, renaming_edits

        edits = renaming_edits(places, new, same_value, self._source)
        first = len(self.sites) + len(self.problems)
        added = [problem_of(place, new, where, first + at) for at, place in enumerate(places) if new[place.name]]
        self._fixes |= {problem.index: [] if at else edits for at, problem in enumerate(added)}
        self.problems += added
        self._renamed = frozenset(problem.index for problem in added)
        self._spans_of_keys = [self.span_of(place) for place in places]
        return added

    def span_of(self, place: KeyPlace) -> Span:
        """Return the span of the statement, field or element of a place."""
        is_statement = isinstance(place.owner, ast.stmt) and not isinstance(place.owner, ast.ClassDef)
        return self._source.span(place.owner) if is_statement else place.span

    def _apart_from(self, spans: Sequence[Span]) -> list[Site]:
        """Return the sites of which no setting is in some spans."""
        return [site for site in self.sites if not is_written_in(site, spans)]

    def risk(self, index: int) -> str:
        """Return why the fix of a site or problem is not safe; see ``sites.Document``."""
        if index < 0:
            return ""
        if index < len(self.sites):
            return self._fix_risks.of_place(self._places[index])
        return self._fix_risks.of_read(self.problems[index - len(self.sites)].span)

    def is_guarded(self, index: int) -> bool:
        """Return whether a condition around a site may test for a release."""
        return bool(self._fix_risks.guard_of(self._places[index]))

    @property
    def definitions(self) -> Definitions:
        """The definitions and values that names of the file lead to in the checkout."""
        return self._fix_risks.definitions

    @cached_property
    def _fix_risks(self) -> FixRisks:
        return FixRisks(self._source, self._names)

    # --- writing ----------------------------------------------------------------------------

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that make the rewrites; see ``sites.Document``."""
        if not rewrites:
            # A file that could not be read has no source, and is never rewritten.
            return []
        edits: list[Edit] = []
        removed = []
        for index, after in sorted(rewrites.items()):
            if index >= len(self.sites):
                edits += self._fixes[index]
                continue
            if clears_scope(after) and not self._may_call_setters(index):
                raise CannotEditError(index, "no function of the project clears its old scope")
            rewriter = PythonSiteRewriter(index, self._places[index], self._source, self._names, self.setters)
            edits += rewriter.edits(self.sites[index].own, after)
            removed += rewriter.removed_statements
        edits += delete_statements(removed, self._source)
        if self.setters is not None:
            edits += import_edits_of(self._source, self.setters, edits)
        try:
            return edits + import_edits(self._source, self._names, edits)
        except (SyntaxError, OverlapError) as error:
            raise CannotEditError(min(rewrites), f"the result is not valid Python ({error})") from error

    def call_instead(self, index: int, modules: object) -> str:
        """Return the call of a setter that is written where a site gets modules and loses the old scope, if one is."""
        if self.setters is None or not self._may_call_setters(index):
            return ""
        target, _, value = self.spelled(index, MODULES, modules).partition(f".{MODULES} = ")
        return self.setters.call(target, value)

    def _may_call_setters(self, index: int) -> bool:
        is_assigned = self._places[index].form is SiteForm.ASSIGNMENTS
        return is_assigned and self.setters is not None and self.setters.may_be_named(self._names)

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        if edited == self._checked:
            return ""
        if self.setters is not None and any(map(clears_scope, rewrites.values())):
            return self._check_setters(edited, self.setters, rewrites)
        return self._check(edited, rewrites)

    def _check_setters(self, edited: str, setters: Setters, rewrites: Mapping[int, Settings]) -> str:
        """Check a text with calls of setters: with attributes instead of them it is right, and otherwise the same."""
        attributes = {index: without_cleared(settings) for index, settings in rewrites.items()}
        try:
            plain = apply(self.text, self.edits(attributes))
        except (CannotEditError, OverlapError) as error:
            return str(error)
        if reason := self._check(plain, attributes):
            return reason
        if not same_with_setters(edited, plain, setters):
            return "something else in the file would be read differently"
        self._checked = edited
        return ""

    def _check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        again = PythonDocument(edited, self.path, self.catalogue, _SITES)
        if again.problems and again.problems[0].kind in UNREADABLE:
            return f"it would no longer be read: {again.problems[0].message}"
        sites, sites_again = self.sites, again.sites
        fixes = [edit for index in rewrites if index >= len(self.sites) for edit in self._fixes[index]]
        if any(index in self._renamed for index in rewrites):
            sites = self._apart_from(self._spans_of_keys)
            sites_again = again._apart_from(
                [Span(moved(span.start, fixes), moved(span.end, fixes)) for span in self._spans_of_keys]
            )
        owns = self._owns_after(fixes)
        expected = ((site.path, rewrites.get(site.index, owns[site.index])) for site in sites)
        if _by_path(expected) != _by_path((site.path, site.own) for site in sites_again):
            return "a site would not have the settings that it should"
        before = PythonSource(apply(self.text, fixes), self.catalogue) if fixes else self._source
        if not same_apart_from_settings(before, again._source):
            return "something else in the file would be read differently"
        self._checked, self._again = edited, again
        return ""

    def _owns_after(self, fixes: Sequence[Edit]) -> list[Settings]:
        """Return the settings of all sites after fixes of problems, which may change how a value is computed."""
        owns: list[Settings] = [site.own for site in self.sites]
        if not fixes:
            return owns
        fixed = PythonDocument(apply(self.text, fixes), self.path, self.catalogue, _SITES)
        if [site.path for site in fixed.sites] != [site.path for site in self.sites]:
            return owns
        return [_with_computed(own, site.own) for own, site in zip(owns, fixed.sites, strict=True)]

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as it would be written at a site; see ``sites.Document``."""
        return spelled_at(self._places[site], name, value, self._source)


def _without(removed: Sequence[SiteNodes], places: Iterable[SiteNodes]) -> list[SiteNodes]:
    """Return places without some of them, to which the others lead no more."""
    gone = {id(place) for place in removed}
    kept = [place for place in places if id(place) not in gone]
    for place in kept if gone else ():
        place.links = [link for link in place.links if id(link) not in gone]
        place.inherits = None if id(place.inherits) in gone else place.inherits
    return kept


def is_written_in(site: Site, spans: Sequence[Span]) -> bool:
    """Return whether a setting of a site is in one of some spans."""
    starts = [site.span.start, *(written.span.start for written in site.written)]
    return any(one.start <= start < one.end for one in spans for start in starts)


def _is_undecided(own: Settings) -> bool:
    return any(isinstance(value, Undecided) for value in own.values())


def _with_computed(own: Settings, fixed: Settings) -> Settings:
    """Return settings with the values of others where both are computed when the code runs."""
    return {
        name: other if isinstance(value, Undecided) and isinstance(other := fixed.get(name), Undecided) else value
        for name, value in own.items()
    }


def _by_path(sites: Iterable[tuple[tuple[str, ...], Settings]]) -> dict[tuple[str, ...], list[dict[str, object]]]:
    """Return the settings of sites that have some, by path: of two objects, either may come first in the file."""
    settings: dict[tuple[str, ...], list[dict[str, object]]] = {}
    for path, own in sites:
        if own:
            settings.setdefault(path, []).append(dict(own))
    return settings


def _may_be_megatrons(text: str, path: str, catalogue: Catalogue) -> bool:
    """Return whether a text that is not valid Python may be about Megatron's settings.

    Other systems have a setting `enable_cuda_graph`, and the stubs of a package have any names.
    """
    if any(re.search(rf"\b{package}\b", text) for package in MEGATRON):
        return True
    spelled = rf"\b(?:{catalogue.alternatives()}|{catalogue.alternatives(flags=True).replace(re.escape('--'), '')})\b"
    names = {word.replace("-", "_") for word in re.findall(spelled, text)} - {ENABLE}
    return bool(names) and not path.endswith(".pyi")


def _syntax_error(text: str, error: Exception) -> Problem:
    line = getattr(error, "lineno", None) or 1
    lines = text.split("\n")
    start = sum(len(other) + 1 for other in lines[: line - 1])
    reason = getattr(error, "msg", None) or str(error) or type(error).__name__
    span = Span(min(start, len(text)), min(start + len(lines[min(line, len(lines)) - 1]), len(text)))
    return Problem(ProblemKind.INVALID_PYTHON, span, f"this is not valid Python: {reason}")
