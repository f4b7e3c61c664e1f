"""Key interfaces: mappings whose keys the project's code copies by name, with the YAML files that fill them.

The code is that of ``documents.python.key_copies``. A setting is *followed* if every place of the project that reads
it by name is such code; other code that reads it prevents that the files change together.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cgmigrate.documents.python.key_copies import KeyCopier
    from cgmigrate.documents.sites import Site
    from cgmigrate.linking.key_code import KeyCode
    from cgmigrate.linking.key_readers import ProjectCode
    from cgmigrate.linking.yaml_files import YamlFiles

MOST_FILES = 2_000
"""YAML files that one interface may have."""


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


def key_interface_of(project: ProjectCode, yaml: Iterable[str], files: YamlFiles) -> KeyInterface | None:
    """Return the key interface of a project, None if it has none that is followed.

    ``yaml`` are the YAML files of the run in the project, by their real paths.
    """
    copiers: dict[str, Sequence[KeyCopier]] = {}
    typed: list[str] = []
    not_followed: set[str] = set()
    deprecated = project.catalogue.deprecated
    for code in project:
        copiers[code.path] = _own_copiers(code)
        typed += [code.path] if code.typed_dicts else []
        not_followed |= code.names_read(copiers[code.path])
        if not_followed >= deprecated:
            return None
    every = [one for of_file in copiers.values() for one in of_file]
    followed = deprecated - not_followed
    paths = {path for path, of_file in copiers.items() if of_file} | set(typed)
    copying = _Code(paths, copiers, followed)
    return _with_yaml(project, yaml, files, copying) if any(followed & one.names for one in every) else None


def _own_copiers(code: KeyCode) -> list[KeyCopier]:
    """Return what copies keys by the code of a file, without lists at its top, which other files may import."""
    return [one for one in code.copiers if not any(of_list.at_top for of_list in one.lists)]


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


def _with_yaml(project: ProjectCode, yaml: Iterable[str], files: YamlFiles, code: _Code) -> KeyInterface | None:
    fillers: list[str] = []
    others: dict[str, str] = {}
    for path in sorted({*yaml, *_tracked(project)}):
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
    return KeyInterface(python, tuple(fillers), code.followed, others)


def fills(site: Site, copier: KeyCopier) -> bool:
    """Return whether the mapping of a site may be the one whose keys are copied."""
    is_override = bool(site.commands)
    if site.flags or (not is_override and any("." in written.key for written in site.written)):
        return False
    count = len(copier.keys)
    paths = (site.path, *site.alias_paths)
    return not count or any(path[-count:] == copier.keys for path in paths)


def _tracked(project: ProjectCode) -> Iterable[str]:
    """Return the real paths of the tracked YAML files of a project that name a captured setting."""
    from cgmigrate.project.checkout import tracked_files

    names = sorted(project.catalogue.captures)
    return map(os.path.realpath, tracked_files(project.top, names, "*.yaml", "*.yml")) if project.top else ()
