"""Fixes of Python code whose object other code may set or read: which of them are proved for all of that code."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from operator import itemgetter

from cgmigrate.documents.nesting import outer_of
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.python.setters import Setters
from cgmigrate.documents.sites import CannotEditError, Document, Role, Site
from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.lint.edit_sets import EditSet, FileGroup, edit_sets_of, may_be_proved, proposals_of
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.lint.kept_proofs import Proved
from cgmigrate.lint.rows_of_tests import rows_of, use_not_followed, with_rows
from cgmigrate.megatron.releases import SPLIT_IN
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, INFERENCE, MODULES, SCOPE, Settings, Undecided, names_in
from cgmigrate.megatron.types import Reader
from cgmigrate.project.paths import is_test, shown_path
from cgmigrate.proof.flow.changes import Change, Releases
from cgmigrate.proof.flow.layers import is_shim
from cgmigrate.proof.flow.modules import Modules
from cgmigrate.proof.flow.proofs import Proofs
from cgmigrate.proof.flow.run import Name
from cgmigrate.proof.flow.setters import setters_of
from cgmigrate.proof.flow.words import Words
from cgmigrate.text.edits import OverlapError, apply
from cgmigrate.text.spans import Span

_OLD_SCOPE = re.compile(rf"\.{SCOPE}\b")
_COPY = re.compile(r"(?P<object>[A-Za-z_][\w.]*)\.(?P<name>\w+)")


def proof_rewrites(file: ExaminedFile) -> dict[int, Settings]:
    """Return the settings of the sites of a file that only a proof makes possible, by their index."""
    result = {}
    for index, case in file.cases.items():
        site = file.document.sites[index]
        if case.reader is not Reader.BRIDGE or site.blocked_by:
            continue
        settings = _renamed(site)
        if settings is not None:
            result[index] = settings
    return result


def _renamed(site: Site) -> Settings | None:
    """Return the settings of a site with computed ones under the new names, None for any other site."""
    own = site.own
    scope = own.get(SCOPE)
    if (owner := _copied_from(scope, SCOPE)) and owner == _copied_from(own.get(MODULES), MODULES):
        # Copied with the modules: no code sets it once these are renamed.
        return {name: value for name, value in own.items() if name != SCOPE}
    if not isinstance(scope, Undecided) or any(name in own for name in (ENABLE, EXTERNAL, MODULES, INFERENCE)):
        return None
    others = {name: value for name, value in own.items() if name != SCOPE}
    if isinstance(value := others.get(IMPL), Undecided):
        others[IMPL] = _following(value)
    return {**others, MODULES: _following(scope)}


def _following(value: Undecided) -> Undecided:
    """Return what code computes from the modules of an object instead of its scope."""
    return replace(value, text=_OLD_SCOPE.sub(f".{MODULES}", value.text))


def _copied_from(value: object, *names: str) -> str:
    """Return the object from which a setting with one of some names is copied, empty if it is none."""
    match = _COPY.fullmatch(value.text) if isinstance(value, Undecided) else None
    return match["object"] if match and match["name"] in names else ""


@dataclass(frozen=True, slots=True)
class ProvedSites:
    """What is proved for the sites of one file.

    ``groups`` are the sites whose fixes are proved, each with the number of those that are written together;
    ``reasons`` say why others are not. ``files`` are all files that have to be planned together with this one.
    """

    groups: Mapping[int, int] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    rewrites: Mapping[int, Settings] = field(default_factory=dict)
    """The settings of sites that are written in another form."""
    setters: Setters | None = None
    """The functions of the project that clear the old scope."""
    accounted: frozenset[tuple[str, int]] = frozenset()
    """The lines of the project's code whose use of settings is known."""
    makers: Mapping[int, frozenset[str]] = field(default_factory=dict)
    """Site → the functions and modules through which other code gets its object."""

    def added_to(self, examined: ExaminedFile, *, is_guarded: bool = False) -> ExaminedFile:
        """Return the file with what is proved for it; ``is_guarded`` says that no place is open for that."""
        examined = with_rows(examined, rows_of(examined) & self.groups.keys())
        relations = replace(
            examined.relations,
            proved=self.groups,
            guarded=frozenset(self.groups) if is_guarded else frozenset(),
            accounted=self.accounted,
            makers=self.makers,
            not_proved=self.reasons,
            proved_rewrites=self.rewrites,
        )
        return replace(examined, relations=relations)

    def use_setters(self, document: Document) -> None:
        """Have a document write calls of the functions of the project, if there are some."""
        outer = outer_of(document)
        if isinstance(outer, PythonDocument):
            outer.setters = self.setters


@dataclass(slots=True)
class _File:
    """A file with fixes that other code may prevent: by their numbers, what each rewrites."""

    examined: ExaminedFile
    sets: dict[Name, EditSet]
    forms: dict[Name, tuple[EditSet, ...]] = field(default_factory=dict)
    """The forms in which a fix can be written, if there are several."""
    texts: dict[tuple[tuple[Name, int], ...], str] = field(default_factory=dict)
    """The texts with some fixes applied."""
    rows: frozenset[int] = frozenset()
    """The dicts of a test of which only a proof shows that they are settings."""

    def form(self, name: Name, number: int) -> EditSet:
        """Return a fix in one of its forms."""
        return self.forms[name][number] if name in self.forms else self.sets[name]

    def edited(self, fixes: Iterable[tuple[Name, int]]) -> str:
        """Return the text with some fixes applied, each in one of its forms."""
        rewrites: dict[int, Settings] = {}
        for name, number in fixes:
            rewrites |= self.form(name, number).in_file(0)
        document = self.examined.document
        try:
            return apply(document.text, document.edits(rewrites))
        except (CannotEditError, OverlapError):
            # An empty module has no function: nothing is proved that needs it.
            return ""


@dataclass(frozen=True, slots=True)
class FixStyle:
    """How fixes are written. ``setters`` are the functions that they may call; None for those that the code imports."""

    is_explicit: bool = False
    """Whether fixes write settings that no code needs."""
    setters: Sequence[str] | None = None


PLAIN = FixStyle()


@dataclass(frozen=True, slots=True)
class Checkout:
    """The Python files of a checkout: ``seeds`` are those with settings, by their real paths.

    ``list_code`` returns those with code.
    """

    seeds: Sequence[str]
    list_code: Callable[[], Iterable[str]]
    guard: Callable[[Sequence[ExaminedFile]], Iterable[ExaminedFile]] = tuple
    """Adds to files that are planned together the places that may use what their fixes change."""
    kept: Callable[[Callable[[], Proved]], Proved] = lambda prove: prove()
    """Returns what an earlier command proved of the same files, or else what a function does."""


def proved_sites(
    files: Mapping[str, ExaminedFile], checkout: Checkout, outer_writer: str = "", style: FixStyle = PLAIN
) -> dict[str, ProvedSites]:
    """Return what is proved for files of a project that have the same releases, by their real paths.

    ``outer_writer`` says what else sets settings of its objects, which prevents a proof. Nothing is proved for files
    alone that import nothing of Megatron: they only work with what others give them.
    """
    rows = {path: rows_of(file) for path, file in files.items()}
    files = {path: with_rows(file, rows[path]) for path, file in files.items()}
    candidates = {path: one for path, file in files.items() if (one := _candidates(path, file)).sets}
    if not any(
        file.examined.cases.keys() & {index for one in file.sets.values() for _, index in one.members}
        for file in candidates.values()
        if not _works_with(file)
    ):
        return {}
    if outer_writer:
        return _withheld(candidates, f"{outer_writer} may set its deprecated name")
    texts = {path: file.document.text for path, file in files.items()}
    listed = lru_cache(maxsize=1)(lambda: tuple(checkout.list_code()))
    words = Words(listed)
    modules = Modules(texts, partial(_tree_of, files), listed)
    for path, file in candidates.items():
        file.rows = rows[path]
        if (module := modules.read(path)) is not None and is_shim(module):
            file.sets = {name: one for name, one in file.sets.items() if one.because}
    context = next(iter(candidates.values())).examined.context
    setters = setters_of(modules, checkout.seeds, context.target, style.setters)
    for file in candidates.values():
        _add_forms(file, setters, is_explicit=style.is_explicit)

    def edited(names: Mapping[Name, int]) -> Modules:
        return modules.with_texts(_edited(candidates, names))

    def trees_with(name: str) -> list[tuple[str, ast.AST]]:
        read = ((path, modules.read(path)) for path in words.files_with([name]))
        return [(path, module.tree) for path, module in read if module is not None]

    def met(proved: Proved) -> dict[Name, str]:
        sites = _by_file(candidates, proved, setters)
        return _met(candidates, sites, checkout.guard) | _escaping(candidates, sites, trees_with)

    def prove() -> Proved:
        changes = [_change(name, file) for file in candidates.values() for name in file.sets]
        releases = Releases(context.source, context.target)
        return _proved(Proofs(modules, checkout.seeds, changes, releases, edited, words.files_with), met)

    return _by_file(candidates, checkout.kept(prove), setters)


def _proved(proofs: Proofs, met: Callable[[Proved], Mapping[Name, str]]) -> Proved:
    """Return what is proved; ``met`` returns what may meet proved changes, the others are proved without these."""
    while True:
        components = proofs.components()
        proved = Proved(components, proofs.failed, proofs.forms, proofs.accounted(), proofs.makers())
        if not (others := met(proved)):
            return proved
        proofs.failed |= others


def _met(
    candidates: Mapping[str, _File],
    proved: Mapping[str, ProvedSites],
    guard: Callable[[Sequence[ExaminedFile]], Iterable[ExaminedFile]],
) -> dict[Name, str]:
    """Return the proved changes that something outside of the proofs may meet, each with the reason."""
    met: dict[Name, str] = {}
    for paths in {one.files for one in proved.values()}:
        every = [proved[path].added_to(candidates[path].examined) for path in paths if path in proved]
        for path, examined in zip((path for path in paths if path in proved), guard(every), strict=True):
            reasons, groups = examined.relations.open_places, proved[path].groups
            for name, one in candidates[path].sets.items():
                places = [reasons[index] for _, index in one.members if index in reasons and index in groups]
                met |= {name: places[0]} if places else {}
    return met


def _escaping(
    candidates: Mapping[str, _File],
    proved: Mapping[str, ProvedSites],
    trees_with: Callable[[str], list[tuple[str, ast.AST]]],
) -> dict[Name, str]:
    """Return the proved rows of tests whose table other code uses, each with the reason."""
    met: dict[Name, str] = {}
    for path, one in proved.items():
        file = candidates[path]
        for name, edit_set in file.sets.items():
            for index in {index for _, index in edit_set.members} & one.groups.keys() & file.rows:
                if reason := use_not_followed(file.examined, index, one.accounted, trees_with):
                    met[name] = reason
    return met


def _tree_of(files: Mapping[str, ExaminedFile], path: str, text: str) -> ast.Module | None:
    """Return the tree of a file that was parsed already, None for others."""
    document = outer_of(files[path].document) if path in files else None
    return document.tree if isinstance(document, PythonDocument) and document.text == text else None


def _withheld(candidates: Mapping[str, _File], reason: str) -> dict[str, ProvedSites]:
    """Return that no fix of some files is proved."""
    return {
        path: ProvedSites(
            reasons={index: reason for one in file.sets.values() for _, index in one.members}, files=(path,)
        )
        for path, file in candidates.items()
    }


def _candidates(path: str, file: ExaminedFile) -> _File:
    """Return the fixes of a file that only other code prevents from being safe."""
    document, group = outer_of(file.document), FileGroup.of([file])
    if not isinstance(document, PythonDocument) or not file.context.source < SPLIT_IN <= file.context.target:
        return _File(file, {})
    sets, cases = edit_sets_of(group, *proposals_of(group))
    alone = {problem.index for problem, _ in file.problems if problem.may_be_proved}
    known = {index for one in sets for _, index in one.members}
    sets += [_unsafe_set(index, {}) for index in sorted(alone - known)]
    computed = proof_rewrites(file)
    sets += [_unsafe_set(index, settings) for index, settings in computed.items() if index not in known]
    alone |= computed.keys() - known
    return _File(
        file,
        {
            (path, number): one
            for number, one in enumerate(sets)
            if (may_be_proved(one, cases) or alone.issuperset(index for _, index in one.members))
            and not any(_is_guarded(document, index) for _, index in one.members)
            and _is_writable(file, one)
        },
    )


def _unsafe_set(index: int, settings: Settings) -> EditSet:
    return EditSet({(0, index): settings}, ((0, index),), Applicability.UNSAFE)


def _is_guarded(document: PythonDocument, index: int) -> bool:
    """Return whether a site is in code for several releases. A problem there has no fix."""
    return index < len(document.sites) and document.is_guarded(index)


def _is_writable(file: ExaminedFile, one: EditSet) -> bool:
    try:
        file.document.edits(one.in_file(0))
    except CannotEditError:
        return False
    return True


def _add_forms(file: _File, setters: Setters | None, *, is_explicit: bool) -> None:
    """Add the forms of fixes: the one that is best to read first, and those that are right for more objects after it.

    A scope that captures nothing is deleted, or cleared where an object needs that. Where the project has functions
    that set the modules and clear the old scope, code that is no test uses them.
    """
    ProvedSites(setters=setters).use_setters(file.examined.document)
    for name, one in file.sets.items():
        forms = _with_statements(file.examined, _forms(name, one, file.examined, has_setters=setters is not None))
        if (forms := forms[1:] if is_explicit and _deletes(forms) else forms) != (one,):
            file.forms[name] = forms


def _forms(name: Name, one: EditSet, file: ExaminedFile, *, has_setters: bool) -> tuple[EditSet, ...]:
    clearing = _cleared(file, one) if has_setters else None
    cleared = (clearing,) if clearing is not None and _is_writable(file, clearing) else ()
    if not any(MODULES in settings for settings in one.rewrites.values()):
        return (one, *_turned_off(file, one), *_with_modules(file, one), *cleared)
    if is_test(name[0]):
        return (one, *_turned_off(file, one), *cleared)
    deleted = _without_modules(file, one)
    turned_off = (off for form in deleted for off in _turned_off(file, form))
    return (*deleted, *turned_off, *cleared, one, *_turned_off(file, one), *_with_texts(file, one))


def _with_statements(file: ExaminedFile, forms: tuple[EditSet, ...]) -> tuple[EditSet, ...]:
    """Return the forms of a fix, those that delete all of a block last: it can be said there what is off."""
    pairs = [(_empties_block(file, one), one) for one in forms]
    if not any(empties for empties, _ in pairs):
        return forms
    pairs += [(_empties_block(file, one), one) for one in _turned_off(file, forms[0], everywhere=True)]
    return tuple(one for _, one in sorted(pairs, key=itemgetter(0)))


def _empties_block(file: ExaminedFile, one: EditSet) -> bool:
    return any(edit.text == "pass" for edit in file.document.edits(one.in_file(0)))


def _turned_off(file: ExaminedFile, one: EditSet, *, everywhere: bool = False) -> tuple[EditSet, ...]:
    """Return a fix that sets no implementation where flags are deleted that are off. Empty if there are none."""
    sites = file.document.sites
    off = {
        place: {**settings, IMPL: "none"}
        for place, settings in one.rewrites.items()
        if place[1] < len(sites) and IMPL not in settings and _turns_off(sites[place[1]], everywhere=everywhere)
    }
    fix = replace(one, rewrites={**one.rewrites, **off})
    return (fix,) if off and _is_writable(file, fix) else ()


def _turns_off(site: Site, *, everywhere: bool) -> bool:
    """Return whether a site turns graphs off that an object may have: `cfg.model.external_cuda_graph = False`."""
    is_off = any(use.setting in (ENABLE, EXTERNAL) and use.value is False for use in site.written)
    return is_off and (site.overrides or everywhere)


def _deletes(forms: Sequence[EditSet]) -> bool:
    """Return whether the first form writes fewer settings than the last one."""
    first, last = forms[0], forms[-1]
    return any(len(first.rewrites[place]) < len(settings) for place, settings in last.rewrites.items())


def _without_modules(file: ExaminedFile, one: EditSet) -> tuple[EditSet, ...]:
    """Return a fix that deletes a scope without a word on modules. Empty if there are some, or if that is no fix."""
    sites = file.document.sites
    if any(index >= len(sites) or sites[index].origin is None for _, index in one.rewrites):
        return ()
    if any(settings.get(MODULES) for settings in one.rewrites.values()):
        return ()
    deleted = {
        place: {name: value for name, value in settings.items() if name != MODULES}
        for place, settings in one.rewrites.items()
    }
    fix = replace(one, rewrites=deleted)
    return (fix,) if _is_writable(file, fix) else ()


def _with_modules(file: ExaminedFile, one: EditSet) -> tuple[EditSet, ...]:
    """Return a fix that says that no modules are captured, which is the default. Empty if it cannot be written."""
    explicit = replace(one, rewrites={place: {**settings, MODULES: []} for place, settings in one.rewrites.items()})
    return (explicit,) if _is_writable(file, explicit) else ()


def _with_texts(file: ExaminedFile, one: EditSet) -> tuple[EditSet, ...]:
    """Return a fix that writes modules as the text that the scope was: code may show it. Empty if there is none."""
    sites = file.document.sites
    texts = {
        place: {**settings, MODULES: scope}
        for place, settings in one.rewrites.items()
        if place[1] < len(sites)
        and SCOPE in sites[place[1]].own
        and settings.get(MODULES) == names_in(scope := sites[place[1]].own[SCOPE])
        and (scope is None or isinstance(scope, str))
    }
    fix = replace(one, rewrites={**one.rewrites, **texts})
    return (fix,) if texts and _is_writable(file, fix) else ()


def _cleared(file: ExaminedFile, one: EditSet) -> EditSet | None:
    """Return a fix that clears the old scope of each object, None for one that does more than rewrite sites."""
    if not all(index < len(file.document.sites) for _, index in one.rewrites):
        return None
    rewrites = {
        place: {**settings, MODULES: settings.get(MODULES, []), SCOPE: None} for place, settings in one.rewrites.items()
    }
    return replace(one, rewrites=rewrites)


def _change(name: Name, file: _File) -> Change:
    document = file.examined.document
    lines = set[int]()
    for _, index in file.sets[name].members:
        lines.update(_span_of(document, index).lines(document.text))
    reads = any(index >= len(document.sites) for _, index in file.sets[name].members)
    forms = len(file.forms.get(name, (None,)))
    places = frozenset((name[0], line) for line in lines)
    return Change(name, name[0], places, forms, reads, _needs_owner(file))


def _works_with(file: _File) -> str:
    """Return the package whose objects other code gives to a file that does not import it; empty for other files."""
    document = outer_of(file.examined.document)
    return document.works_with if isinstance(document, PythonDocument) else ""


def _needs_owner(file: _File) -> bool:
    """Return whether only an object that reaches a file shows that its settings are Megatron's.

    Other systems have an ``enable_cuda_graph``, too, and no other deprecated setting of the capture model.
    """
    names = (use.setting for use in file.examined.document.uses if use.role in (Role.READ, Role.WRITE))
    return bool(_works_with(file)) and not {SCOPE, EXTERNAL}.intersection(names)


def _span_of(document: Document, index: int) -> Span:
    """Return the span of a site or problem, by its index."""
    if index < len(document.sites):
        return document.sites[index].span
    return next(problem.span for problem in document.problems if problem.index == index)


def _edited(candidates: Mapping[str, _File], names: Mapping[Name, int]) -> dict[str, str]:
    """Return the texts of files with some fixes applied, each in one of its forms, by real path."""
    texts = {}
    for path, file in candidates.items():
        if forms := tuple((name, names[name]) for name in file.sets if name in names):
            if forms not in file.texts:
                file.texts[forms] = file.edited(forms)
            texts[path] = file.texts[forms]
    return texts


def _by_file(candidates: Mapping[str, _File], proved: Proved, setters: Setters | None) -> dict[str, ProvedSites]:
    number = {name: at for at, component in enumerate(proved.components) for name in component}
    clusters = _clusters([{path for path, _ in component} for component in proved.components])
    result = {}
    for path, file in candidates.items():
        groups: dict[int, int] = {}
        reasons: dict[int, str] = {}
        rewrites: dict[int, Settings] = {}
        makers: dict[int, frozenset[str]] = {}
        for name, one in file.sets.items():
            indices = [index for _, index in one.members]
            if name in number:
                groups |= dict.fromkeys(indices, number[name])
                rewrites |= file.form(name, proved.forms.get(name, 0)).in_file(0)
                makers |= dict.fromkeys(indices, proved.makers[name])
            elif name in proved.failed:
                reasons |= dict.fromkeys(indices, _shown(proved.failed[name]))
        if _works_with(file) and not groups:
            # Nothing shows that it works with Megatron.
            continue
        together = next((cluster for cluster in clusters if path in cluster), {path})
        result[path] = ProvedSites(
            groups, reasons, tuple(sorted(together)), rewrites, setters, proved.accounted, makers
        )
    return result


def _clusters(groups: Iterable[set[str]]) -> list[set[str]]:
    """Return the files that have an element of a group in common, directly or through others."""
    clusters: list[set[str]] = []
    for group in groups:
        touching = [cluster for cluster in clusters if cluster & group]
        clusters = [cluster for cluster in clusters if not cluster & group]
        clusters.append(group.union(*touching))
    return clusters


def _shown(reason: str) -> str:
    """Return a reason with paths as people see them."""
    words = (word.partition(os.sep) for word in reason.split(" "))
    return " ".join(
        before + shown_path(sep + path) if before in ("", "(") and sep else before + sep + path
        for before, sep, path in words
    )
