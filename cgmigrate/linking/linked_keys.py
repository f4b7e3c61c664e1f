"""Lists of keys and classes with keys as fields, with what all files of a project do with them."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.python.key_copies import KeyCopier
from cgmigrate.documents.python.key_uses import KeyUse, uses_of
from cgmigrate.documents.python.linked_keys import LinkedKeys
from cgmigrate.documents.python.source import Source
from cgmigrate.linking.key_code import KeyCode
from cgmigrate.linking.key_readers import ProjectCode
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import MAX_GENERATED, read_bytes


@dataclass(frozen=True, slots=True)
class ProjectKeys:
    """The lists and classes of a project, by the path of their file and their name."""

    uses: Mapping[str, Mapping[str, Sequence[KeyUse]]]
    """What other files do with a list, and all files with a class."""
    unknown: Mapping[str, Collection[str]]
    """Lists that a file uses in a way that is not known."""
    classes: frozenset[str]
    """The classes that mappings fill, and nothing else sets."""

    def copiers_of(self, code: KeyCode) -> list[KeyCopier]:
        """Return what copies keys by the code of a file, also in other files that use its lists and classes."""
        unknown, uses = self.unknown.get(code.path, ()), self.uses.get(code.path, {})
        copiers = [
            one
            for one in code.copiers
            if not any(of_list.constant in unknown for of_list in one.lists)
            and (not one.of_class or one.of_class in self.classes)
        ]
        for of_list in code.constants:
            of_name = uses.get(of_list.constant, ())
            copiers += [KeyCopier(use.keys, use.mapping, use.target, lists=[of_list]) for use in of_name]
        for of_type in code.types:
            of_name = uses.get(of_type.name, ())
            copiers += [KeyCopier(use.keys, use.mapping, use.target, types=[of_type]) for use in of_name]
        return copiers

    def by_path(self, paths: Collection[str]) -> dict[str, LinkedKeys]:
        """Return the uses of each file, by its real path."""
        return {os.path.realpath(path): LinkedKeys(self.uses.get(path, {}), self.classes) for path in paths}


def linked_keys(project: ProjectCode) -> ProjectKeys:
    """Return the lists and classes of a project with their uses."""
    uses: dict[str, dict[str, Sequence[KeyUse]]] = {}
    unknown: dict[str, set[str]] = {}
    classes: set[str] = set()
    for code in project:
        for name in dict.fromkeys(one.constant for one in code.constants):
            of_list = _uses_elsewhere(name, code.path, project, is_class=False)
            if of_list is None:
                unknown.setdefault(code.path, set()).add(name)
            elif of_list:
                uses.setdefault(code.path, {})[name] = of_list
        for name, own in code.own_uses.items():
            others = None if own is None else _uses_elsewhere(name, code.path, project, is_class=True)
            if own is not None and others is not None and (every := [*own, *others]):
                uses.setdefault(code.path, {})[name] = every
                classes.add(name)
    return ProjectKeys(uses, unknown, frozenset(classes))


def _uses_elsewhere(name: str, path: str, project: ProjectCode, *, is_class: bool) -> list[KeyUse] | None:
    """Return what other files do with a name that a file defines, None if that is not known."""
    uses: list[KeyUse] = []
    for data in _importers(name, path, project):
        try:
            source = Source(decode(data)[0], project.catalogue)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return None
        of_file = uses_of(name, source, is_class=is_class, is_own=False)
        if of_file is None:
            return None
        uses += of_file
    return uses


def _importers(name: str, path: str, project: ProjectCode) -> Iterator[bytes]:
    """Yield the Python files other than ``path`` that may import a name."""
    from cgmigrate.project.checkout import tracked_files

    tracked = tracked_files(project.top, [name], "*.py") if project.top else ()
    untracked = (other for other, data in project.texts.items() if name.encode() in data)
    word = re.escape(name.encode())
    pattern = re.compile(rb"[.]%b\b|^\s*(?:from\b[^#]*)?import\b[^#]*\b%b\b|import [*]" % (word, word), re.MULTILINE)
    for other in dict.fromkeys(map(os.path.realpath, (*tracked, *untracked))):
        if other != os.path.realpath(path):
            try:
                data = project.texts.get(other) or read_bytes(other, MAX_GENERATED)
            except OSError:
                data = b"from unreadable import *"
            if pattern.search(data):
                yield data
