"""Fixes of Python code whose object other code may set or read: which of them are proved for all of that code."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cgmigrate.documents.nesting import outer_of
from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.linking.python.definitions import Definition
from cgmigrate.linking.python.modules import Modules
from cgmigrate.linking.python.proofs import Change, Proofs, Releases
from cgmigrate.linking.python.universe import TooManyError, graph_of
from cgmigrate.linking.python.world import SETTINGS
from cgmigrate.lint.edit_sets import EditSet, Group, edit_sets_of, proposals_of
from cgmigrate.lint.examination import ExaminedFile
from cgmigrate.megatron.releases import SPLIT_IN
from cgmigrate.megatron.types import Reader
from cgmigrate.project.paths import shown_path
from cgmigrate.text.edits import OverlapError, apply

if TYPE_CHECKING:
    from cgmigrate.megatron.settings import Settings

Name = tuple[str, int]
"""The file of a change, by its real path, and its number there."""


@dataclass(frozen=True, slots=True)
class ProvedSites:
    """What is proved for the sites of one file.

    ``groups`` are the sites whose fixes are proved, each with the number of those that are written together;
    ``reasons`` say why others are not. ``files`` are all files that have to be planned together with this one.
    """

    groups: Mapping[int, int] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass(slots=True)
class _File:
    """A file with fixes that other code may prevent: by their numbers, what each rewrites."""

    examined: ExaminedFile
    sets: dict[Name, EditSet]


def proved_sites(
    files: Mapping[str, ExaminedFile],
    seeds: Collection[str],
    files_with: Callable[[Collection[str]], Iterable[str]],
) -> dict[str, ProvedSites]:
    """Return what is proved for files of a project that have the same releases, by their real paths.

    ``seeds`` are all files of the project with settings. ``files_with`` returns its files that contain one of some
    words.
    """
    candidates = {path: one for path, file in files.items() if (one := _candidates(path, file)).sets}
    if not candidates:
        return {}
    changes = [_change(name, one) for file in candidates.values() for name, one in _named(file)]
    trees = {path: file.document for path, file in files.items()}

    def tree_of(path: str, text: str) -> ast.Module | None:
        document = outer_of(trees[path]) if path in trees else None
        return document.tree if isinstance(document, PythonDocument) and document.text == text else None

    texts = {path: file.document.text for path, file in files.items()}
    modules = Modules(texts, tree_of)
    lines = {place for one in changes for place in one.places}
    try:
        graph = graph_of(modules, seeds, lambda one: _has_site(one, lines), files_with)
    except TooManyError:
        return {}

    def edited(names: Collection[Name]) -> Modules:
        return modules.with_texts(_edited(candidates, names))

    context = next(iter(candidates.values())).examined.context
    proofs = Proofs(modules, graph, changes, Releases(context.source, context.target), edited)
    return _by_file(candidates, proofs)


def _has_site(definition: Definition, lines: Collection[tuple[str, int]]) -> bool:
    first, last = definition.lines
    return any(path == definition.module.path and first <= line <= last for path, line in lines)


def _candidates(path: str, file: ExaminedFile) -> _File:
    """Return the fixes of a file that only other code prevents from being safe."""
    document, group = outer_of(file.document), Group.of([file])
    if not isinstance(document, PythonDocument) or not file.context.source < SPLIT_IN <= file.context.target:
        return _File(file, {})
    sets, cases = edit_sets_of(group, *proposals_of(group))
    return _File(
        file,
        {
            (path, number): one
            for number, one in enumerate(sets)
            if one.because
            and all(place in cases and cases[place].may_be_proved for place in one.members)
            and all(cases[place].reader is Reader.BRIDGE for place in one.members)
            and not any(document.is_guarded(index) for _, index in one.members)
            and all(SETTINGS.issuperset(cases[place].before) for place in one.members)
            and _is_writable(file, one)
        },
    )


def _is_writable(file: ExaminedFile, one: EditSet) -> bool:
    try:
        file.document.edits(one.in_file(0))
    except CannotEditError:
        return False
    return True


def _named(file: _File) -> Iterable[tuple[Name, tuple[_File, EditSet]]]:
    return [(name, (file, one)) for name, one in file.sets.items()]


def _change(name: Name, of_file: tuple[_File, EditSet]) -> Change:
    file, one = of_file
    document = file.examined.document
    lines = set[int]()
    for _, index in one.members:
        span = document.sites[index].span
        first = document.text.count("\n", 0, span.start) + 1
        lines.update(range(first, first + document.text.count("\n", span.start, span.end) + 1))
    reader = file.examined.cases[one.members[0][1]].reader
    return Change(name, name[0], frozenset((name[0], line) for line in lines), reader)


def _edited(candidates: Mapping[str, _File], names: Collection[Name]) -> dict[str, str]:
    """Return the texts of files with some fixes applied, by real path."""
    texts = {}
    for path, file in candidates.items():
        rewrites: dict[int, Settings] = {}
        for name, one in file.sets.items():
            if name in names:
                rewrites |= one.in_file(0)
        if rewrites:
            document = file.examined.document
            try:
                texts[path] = apply(document.text, document.edits(rewrites))
            except (CannotEditError, OverlapError):
                # An empty module has no function: nothing is proved that needs it.
                texts[path] = ""
    return texts


def _by_file(candidates: Mapping[str, _File], proofs: Proofs) -> dict[str, ProvedSites]:
    components = proofs.components()
    number = {name: at for at, component in enumerate(components) for name in component}
    clusters = _clusters([{path for path, _ in component} for component in components])
    result = {}
    for path, file in candidates.items():
        groups: dict[int, int] = {}
        reasons: dict[int, str] = {}
        for name, one in file.sets.items():
            indices = [index for _, index in one.members]
            if name in number:
                groups |= dict.fromkeys(indices, number[name])
            elif name in proofs.failed:
                reasons |= dict.fromkeys(indices, _shown(proofs.failed[name]))
        together = next((cluster for cluster in clusters if path in cluster), {path})
        result[path] = ProvedSites(groups, reasons, tuple(sorted(together)))
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
