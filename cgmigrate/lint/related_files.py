"""Other files that the settings of a YAML file concern: those it is merged with, and code that reads its keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cgmigrate.documents.syntax import Syntax
from cgmigrate.project.inputs import Source
from cgmigrate.project.seeds import SeedsOf

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.linking.key_interfaces import KeyInterface
    from cgmigrate.linking.key_readers import KeyReader
    from cgmigrate.linking.merged_files import Members, YamlFiles
    from cgmigrate.lint.relations import Relations
    from cgmigrate.megatron.catalogue import Catalogue


@dataclass(slots=True)
class RelatedFiles:
    """The related files of a run's files, looked for only if a file is to be rewritten."""

    sources: Sequence[Source]
    """All files of the run that contain a seed word."""
    seeds: SeedsOf
    listed: Callable[[], Iterable[str]]
    """Lists the files that the run searched."""
    catalogue_of: Callable[[str], Catalogue]
    """Returns the settings that a file may have."""
    _yaml: YamlFiles | None = None
    _merged_into: dict[str, str] | None = None
    _interfaces: dict[tuple[str | None, Catalogue], KeyInterface | None] = field(default_factory=dict)
    _projects: dict[str, str | None] = field(default_factory=dict)
    """By folder."""
    _shims: dict[str | None, str] = field(default_factory=dict)
    _key_readers: dict[tuple[str | None, Catalogue], Mapping[str, KeyReader]] = field(default_factory=dict)

    def of(self, path: str, document: Document) -> Relations:
        """Return the relations of a YAML file."""
        from cgmigrate.documents.yaml import YamlDocument
        from cgmigrate.linking.chains import files_named
        from cgmigrate.lint.relations import Relations

        assert isinstance(document, YamlDocument)
        if self.yaml.group_of(os.path.realpath(path)) is not None:
            return self.readers(path)
        named = files_named(path, document.top_level_words)
        return Relations(
            builds_on=document.builds_on or ", ".join(f"{key}: {word}" for key, word in named),
            merged_into=self._all_merged_into().get(path, "") or self._merged_over(path),
            key_readers=self._readers_of_keys(path, document.catalogue),
        )

    def parsed(self, source: Source) -> Document | None:
        """Return the document of a file if it is parsed already, since another file is merged with it."""
        if self._yaml is None or source.syntax is not Syntax.YAML:
            return None
        return self._yaml.known_document(os.path.realpath(source.path))

    def readers(self, path: str) -> Relations:
        """Return what reads the keys of a YAML file, whose merges are known: code, and its own interpolations."""
        from cgmigrate.linking.key_readers import interpolations_of
        from cgmigrate.lint.relations import Relations

        catalogue = self.catalogue_of(path)
        document = self.yaml.known_document(os.path.realpath(path))
        own = interpolations_of(path, document.text, catalogue) if document else {}
        return Relations(key_readers={**self._readers_of_keys(path, catalogue), **own})

    def members(self, path: str, document: Document) -> Members | None:
        """Return the files with settings that a YAML file is merged with, itself included; None if that is not known.

        Raises CannotLinkError, after which it is not known.
        """
        from cgmigrate.linking.merged_files import CannotLinkError, members_of

        real = os.path.realpath(path)
        self.yaml.add(real, document)
        group = self.yaml.group_of(real)
        if group is None:
            return None
        try:
            return members_of(group, self.yaml, real)
        except CannotLinkError:
            self.not_known(path)
            raise

    def inherits_settings(self, path: str, document: Document) -> bool:
        """Return whether a file that a YAML file is merged over has settings."""
        from cgmigrate.linking.merged_files import inherits_settings

        real = os.path.realpath(path)
        self.yaml.add(real, document)
        return inherits_settings(real, self.yaml)

    def key_interface(self, path: str) -> KeyInterface | None:
        """Return the key interface that a file belongs to, None if there is none."""
        catalogue = self.catalogue_of(path)
        top = self._project_of(path)
        if (top, catalogue) not in self._interfaces:
            from cgmigrate.linking.key_interfaces import Project, key_interface_of

            yaml = [path for path in self.yaml.data if top is None or path.startswith(top + os.sep)]
            project = Project(top, dict(self._python_below(top)), yaml, catalogue)
            self._interfaces[top, catalogue] = key_interface_of(project, self.yaml)
        interface, real = self._interfaces[top, catalogue], os.path.realpath(path)
        return interface if interface and real in (*interface.python, *interface.yaml) else None

    def no_interface(self, path: str) -> None:
        """Record that it is not known how the files of a key interface change together."""
        self._interfaces[self._project_of(path), self.catalogue_of(path)] = None

    def not_known(self, path: str) -> None:
        """Record that it is not known how the files that a file is merged with change together."""
        self.yaml.forget_group(os.path.realpath(path))

    @property
    def yaml(self) -> YamlFiles:
        """The YAML files of the run, each parsed once."""
        if self._yaml is None:
            from cgmigrate.linking.merged_files import YamlFiles

            data = {os.path.realpath(item.path): item.data for item in self.sources if item.syntax is Syntax.YAML}
            self._yaml = YamlFiles(data, self._other_yaml, self.catalogue_of)
        return self._yaml

    def _other_yaml(self) -> Iterator[str]:
        """Yield YAML files that the run searched, and those of its checkouts, that may build on others."""
        from cgmigrate.documents.syntax import syntax_of
        from cgmigrate.linking.merged_files import BUILDING_WORDS
        from cgmigrate.project.checkout import tracked_yaml

        yield from (path for path in self.listed() if syntax_of(path) is Syntax.YAML)
        yield from tracked_yaml({os.path.dirname(path) for path in self.yaml.data}, BUILDING_WORDS)

    def _merged_over(self, path: str) -> str:
        """Return a file of a group whose merge is not known that is merged over a file, empty if there is none."""
        from cgmigrate.project.paths import openable_path

        child = self.yaml.merged_over.get(os.path.realpath(path))
        return openable_path(child, os.getcwd()) if child else ""

    def _all_merged_into(self) -> dict[str, str]:
        """Return path → the file that is merged over it, for files of this run."""
        if self._merged_into is None:
            from cgmigrate.linking.chains import children_around, merged_into

            builds_on = self.yaml.builds_on

            yaml = [source for source in self.sources if source.syntax is Syntax.YAML]
            children = {source.path: builds_on(source.path, source.data) for source in yaml}
            around = children_around(children, self.seeds, builds_on)
            children |= {path: names for path, names in around.items() if path not in children}
            with_parents = {path: names for path, names in children.items() if names}
            self._merged_into = merged_into(with_parents, [source.path for source in self.sources], builds_on)
        return self._merged_into

    def release_shim(self, path: str) -> str:
        """Return the place of code, in the project around a file, that is written for several releases."""
        from cgmigrate.linking.release_shims import release_shim

        top = self._project_of(path)
        if top not in self._shims:
            self._shims[top] = release_shim(top, self._python_below(top), self.catalogue_of(path))
        return self._shims[top]

    def _readers_of_keys(self, path: str, catalogue: Catalogue) -> Mapping[str, KeyReader]:
        """Return old name → code that reads it by name, in the project around a file.

        That is the folder that pins megatron-core for the file, or else the checkout: a folder with a pin of its own
        (one benchmark of many, a set of examples) runs apart from the rest of the checkout.
        """
        from cgmigrate.linking.key_readers import readers_of_keys

        top = self._project_of(path)
        if (top, catalogue) not in self._key_readers:
            self._key_readers[top, catalogue] = readers_of_keys(top, self._python_below(top), catalogue)
        return self._key_readers[top, catalogue]

    def _project_of(self, path: str) -> str | None:
        """Return the folder of the project around a file, None if nothing shows it."""
        from pathlib import Path

        from cgmigrate.project.checkout import checkout_of
        from cgmigrate.project.pins.search import pinned_folder

        folder = os.path.realpath(os.path.dirname(path))
        if folder not in self._projects:
            pinned = pinned_folder(Path(folder))
            self._projects[folder] = str(pinned) if pinned else checkout_of(folder)
        return self._projects[folder]

    def _python_below(self, top: str | None) -> list[tuple[str, bytes]]:
        """Return the Python files of the run in a project, each with its bytes."""
        sources = [(item.path, item.data) for item in self.sources if item.syntax is Syntax.PYTHON]
        return [item for item in sources if top is None or os.path.realpath(item[0]).startswith(top + os.sep)]
