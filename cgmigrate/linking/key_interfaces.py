"""Key interfaces: mappings whose keys the project's code copies by name, with the YAML files that fill them.

The code is that of ``documents.python.key_copies``. A setting is *followed* if every place of the project that reads
it by name is such code; other code that reads it prevents that the files change together.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cgmigrate.documents.python.key_copies import copiers_in, key_types_in
from cgmigrate.documents.python.source import Source
from cgmigrate.linking.key_readers import files_that_may_read, readers_in
from cgmigrate.text.files import MAX_GENERATED

if TYPE_CHECKING:
    from cgmigrate.documents.python.key_copies import KeyCopier
    from cgmigrate.documents.sites import Site
    from cgmigrate.linking.yaml_files import YamlFiles
    from cgmigrate.megatron.catalogue import Catalogue

MOST_FILES = 2_000
"""YAML files that one interface may have."""


@dataclass(frozen=True, slots=True)
class Project:
    """The files of a project: ``top`` is its folder, None without a checkout; sources are those of the run."""

    top: str | None
    python: Mapping[str, bytes]
    yaml: Sequence[str]
    """The YAML files of the run, by their real paths."""
    catalogue: Catalogue


@dataclass(frozen=True, slots=True)
class KeyInterface:
    """The files of a key interface, by their real paths."""

    python: tuple[str, ...]
    yaml: tuple[str, ...]
    """The files that set a deprecated name."""
    followed: frozenset[str]
    """The deprecated names that no other code reads."""
    others: Mapping[str, str] = field(default_factory=dict)
    """New name → the place of a mapping in a file that sets no deprecated one; the code does not copy it yet."""
    set_by: str = ""
    """A place that sets such a setting by itself, empty if there is none."""


def key_interface_of(project: Project, files: YamlFiles) -> KeyInterface | None:
    """Return the key interface of a project, None if it has none that is followed."""
    copiers: dict[str, Sequence[KeyCopier]] = {}
    typed: list[str] = []
    not_followed: set[str] = set()
    catalogue = project.catalogue
    for path in files_that_may_read(project.top, project.python, catalogue):

        def known(source: Source, path: str = path) -> set[int]:
            fields = [field for one in key_types_in(source) for field in one.fields]
            copiers[path] = _without_shared(copiers_in(source), path, project)
            if fields:
                typed.append(path)
            return {*map(id, fields), *(id(node) for one in copiers[path] for node in one.nodes())}

        not_followed.update(name for name, _ in readers_in(path, project.python.get(path), catalogue, known))
        if not_followed >= catalogue.deprecated:
            return None
    every = [one for of_file in copiers.values() for one in of_file]
    followed = catalogue.deprecated - not_followed
    code = _Code({path for path, of_file in copiers.items() if of_file} | set(typed), copiers, followed)
    return _with_yaml(project, files, code) if any(followed & one.names for one in every) else None


def _without_shared(copiers: Sequence[KeyCopier], path: str, project: Project) -> list[KeyCopier]:
    """Return the copiers whose lists no other file imports."""
    constants = {one.constant for copier in copiers for one in copier.lists if one.constant}
    shared = {constant for constant in constants if _is_imported(constant, path, project)}
    return [copier for copier in copiers if not any(one.constant in shared for one in copier.lists)]


def _is_imported(name: str, path: str, project: Project) -> bool:
    """Return whether a Python file other than ``path`` may import a name."""
    from cgmigrate.project.checkout import tracked_python

    tracked = tracked_python(project.top, rf"(^|[^A-Za-z_0-9]){name}([^A-Za-z_0-9]|$)") if project.top else ()
    untracked = (other for other, data in project.python.items() if name.encode() in data)
    word = re.escape(name.encode())
    pattern = re.compile(rb"[.]%b\b|^\s*(?:from\b[^#]*)?import\b[^#]*\b%b\b|import [*]" % (word, word), re.MULTILINE)
    others = {other for other in (*tracked, *untracked) if os.path.realpath(other) != os.path.realpath(path)}
    return any(pattern.search(project.python.get(other) or _read(*os.path.split(other))) for other in others)


@dataclass(frozen=True, slots=True)
class _Code:
    """The files that copy keys or name them in a TypedDict, all their copiers, and the settings that are followed."""

    paths: Collection[str]
    by_path: Mapping[str, Sequence[KeyCopier]]
    followed: frozenset[str]

    @property
    def copiers(self) -> list[KeyCopier]:
        """The copiers of all files."""
        return [one for of_file in self.by_path.values() for one in of_file]


def _first_write(project: Project, code: _Code) -> str:
    """Return a place that sets by itself what code copies, empty if there is none."""
    from cgmigrate.linking.key_writes import Copiers, first_write, writes_pattern
    from cgmigrate.project.checkout import tracked_python

    tracked = tracked_python(project.top, writes_pattern(project.catalogue)) if project.top else ()
    copiers = Copiers({path: of_file for path, of_file in code.by_path.items() if of_file})
    return first_write({*tracked, *project.python}, project.python, project.catalogue, copiers)


def _with_yaml(project: Project, files: YamlFiles, code: _Code) -> KeyInterface | None:
    fillers: list[str] = []
    others: dict[str, str] = {}
    for path in sorted({*project.yaml, *_tracked_yaml(project)}):
        if (document := files.document(path)) is None:
            continue
        sites = [site for site in document.sites if any(fills(site, one) for one in code.copiers)]
        if any(project.catalogue.deprecated & site.own.keys() for site in sites):
            fillers.append(path)
            continue
        for site in sites:
            line = document.text.count("\n", 0, site.span.start) + 1
            for name in site.own:
                others.setdefault(name, f"{os.path.relpath(path)}:{line}")
    if not fillers or len(fillers) > MOST_FILES:
        return None
    python = tuple(sorted(map(os.path.realpath, code.paths)))
    set_by = _first_write(project, code)
    return KeyInterface(python, tuple(fillers), code.followed, others, set_by)


def fills(site: Site, copier: KeyCopier) -> bool:
    """Return whether the mapping of a site may be the one whose keys are copied."""
    if site.flags or any("." in written.key for written in site.written):
        return False
    count = len(copier.keys)
    paths = (site.path, *site.alias_paths)
    return not count or any(path[-count:] == copier.keys for path in paths)


def _tracked_yaml(project: Project) -> Iterable[str]:
    from cgmigrate.project.checkout import names_any

    if project.top is None:
        return ()
    names = names_any(project.top, sorted(project.catalogue.captures), "*.yaml", "*.yml")
    return (os.path.realpath(os.path.join(project.top, name)) for name in names)


def _read(folder: str, name: str) -> bytes:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            return file.read(MAX_GENERATED)
    except OSError:
        return b""
