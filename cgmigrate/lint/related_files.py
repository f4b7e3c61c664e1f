"""Other files that the settings of a YAML file concern: those it is merged with, and code that reads its keys."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from cgmigrate.documents.syntax import Syntax
from cgmigrate.megatron.settings import INFERENCE, MODULES, SCOPE
from cgmigrate.project.inputs import InputFile
from cgmigrate.project.paths import shown_path
from cgmigrate.project.seeds import SeedsOf
from cgmigrate.text.remembered import remembered

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.linking.command_files import CommandFiles
    from cgmigrate.linking.key_groups import KeyGroup
    from cgmigrate.linking.merged_files import Members, MergedFiles, UnknownMerge
    from cgmigrate.linking.open_places import OpenPlaces
    from cgmigrate.linking.own_options import OwnOptions
    from cgmigrate.linking.surroundings import Override, Overrides
    from cgmigrate.lint.relations import Relations
    from cgmigrate.megatron.catalogue import Catalogue
    from cgmigrate.project.file_search import FileSearch

_CODE = (".py", ".sh", ".bash", ".slurm", ".sbatch")
"""How the names of files end that may define options."""


def _with_unknown(relations: Relations, merge: UnknownMerge, path: str) -> Relations:
    """Return relations with what is not known about the merge of a file, by its real path."""
    if merge.entry == path:
        return replace(relations, builds_on=merge.named, merge_reason=merge.reason)
    return replace(relations, merged_into=shown_path(merge.entry), merge_reason=f"{merge.reason} ({merge.named})")


def _is_below(path: str, top: str | None) -> bool:
    return top is None or path.startswith(top + os.sep)


@dataclass
class RelatedFiles:
    """The related files of a run's files, looked for only if a file is to be rewritten."""

    sources: Sequence[InputFile]
    """All files of the run that contain a seed word."""
    seeds: SeedsOf
    listed: Callable[[], Iterable[str]]
    """Lists the files that the run searched."""
    catalogue_of: Callable[[str], Catalogue]
    """Returns the settings that a file may have."""
    rule_folders_of: Callable[[str], Sequence[str]]
    """Returns the folders of the rules for a file."""
    _key_groups: dict[tuple[str | None, Catalogue], KeyGroup | None] = field(default_factory=dict)
    _projects: dict[str, str] = field(default_factory=dict)
    """By folder."""
    _shims: dict[str | None, str] = field(default_factory=dict)
    _merged: MergedFiles | None = None
    """By checkout."""
    _own_options: dict[tuple[str | None, Catalogue], OwnOptions] = field(default_factory=dict)
    _command_files: dict[tuple[str | None, Catalogue], CommandFiles] = field(default_factory=dict)

    _open_places: dict[tuple[str, Catalogue], OpenPlaces] = field(default_factory=dict)

    def of(self, path: str, document: Document) -> Relations:
        """Return the relations of a YAML file."""
        from cgmigrate.linking.merged_files import CannotLinkError

        try:
            self.members(path, document)
        except CannotLinkError as error:
            return _with_unknown(self.overriding(path), error.merge, os.path.realpath(path))
        return self.overriding(path)

    def parsed(self, source: InputFile) -> Document | None:
        """Return the document of a file that is parsed already, since others are merged with it."""
        if self._merged is None or source.syntax is not Syntax.YAML:
            return None
        return self._merged.files.known_document(os.path.realpath(source.path))

    def overriding(self, path: str) -> Relations:
        """Return what overrides the keys of a YAML file."""
        from cgmigrate.lint.relations import Relations

        return Relations(overrides=tuple(self._overrides_of(path, self.catalogue_of(path))))

    def _overrides_of(self, path: str, catalogue: Catalogue) -> list[Override]:
        """Return the overrides on command lines that may start a recipe with a file."""
        real = os.path.realpath(path)
        users = [real, *self.merged.files.builders_of(real)]
        overrides = self._all_overrides(self._project_of(path), catalogue)
        return overrides.concerning(os.path.basename(one).rpartition(".")[0] for one in users)

    @remembered
    def _all_overrides(self, top: str | None, catalogue: Catalogue) -> Overrides:
        """Return the overrides on command lines of a project."""
        from cgmigrate.linking.surroundings import PATTERNS, Overrides, is_searched

        # The names of the settings are seed words: no other file of the run has an override.
        paths = {os.path.realpath(item.path) for item in self.sources if is_searched(item.path)}
        below = {one for one in paths if top is None or one.startswith(top + os.sep)}
        tracked = self.search(top).tracked(sorted(catalogue.captures), *PATTERNS) if top else []
        return Overrides(catalogue, {*below, *map(os.path.realpath, tracked)})

    def members(self, path: str, document: Document) -> Members:
        """Return the files with settings that a YAML file is merged with, itself included.

        Raises CannotLinkError, after which it is not known.
        """
        real = os.path.realpath(path)
        self.merged.files.add(real, document)
        return self.merged.members(real)

    def inherits_settings(self, path: str, document: Document) -> bool:
        """Return whether a file that a YAML file is merged over has settings."""
        real = os.path.realpath(path)
        self.merged.files.add(real, document)
        return self.merged.inherits_settings(real)

    def key_group(self, path: str, read: Callable[[str], Document | None]) -> KeyGroup | None:
        """Return the key group that a file belongs to, None if there is none; ``read`` returns a document."""
        catalogue, top = self.catalogue_of(path), self._project_of(path)
        if (top, catalogue) not in self._key_groups:
            from cgmigrate.linking.key_groups import key_group_of

            names = sorted(catalogue.captures | catalogue.deprecated)
            every = {os.path.realpath(item.path) for item in self.sources if item.syntax in (Syntax.YAML, Syntax.SHELL)}
            data = [one for one in {*every, *self._tracked(top, names, "*.yaml", "*.yml")} if _is_below(one, top)]
            code = [os.path.realpath(one) for one, _ in self._python_below(top)]
            code = sorted({*code, *self._tracked(top, names, "*.py")})
            naming = partial(self._code_with, top, suffixes=(".py",))
            self._key_groups[top, catalogue] = key_group_of(data, code, read, naming, catalogue)
        group = self._key_groups[top, catalogue]
        return group if group and os.path.realpath(path) in group.members else None

    def _tracked(self, top: str, words: Sequence[str], *patterns: str) -> list[str]:
        return list(map(os.path.realpath, self.search(top).tracked(words, *patterns)))

    def no_key_group(self, path: str) -> None:
        """Record that the members of the key group of a file cannot move together."""
        self._key_groups[self._project_of(path), self.catalogue_of(path)] = None

    def refuse(self, members: Members, path: str, reason: str) -> None:
        """Record that it is not known how some files change together with one."""
        from cgmigrate.linking.merged_files import UnknownMerge

        others = [other for other in members.paths if other != os.path.realpath(path)]
        self.merged.refuse(members, UnknownMerge(os.path.realpath(path), ", ".join(map(shown_path, others)), reason))

    @property
    def merged(self) -> MergedFiles:
        """The sets of YAML files that are merged."""
        if self._merged is None:
            from cgmigrate.linking.merged_files import MergedFiles
            from cgmigrate.linking.yaml_files import Sources, YamlFiles

            data = {os.path.realpath(item.path): item.data for item in self.sources if item.syntax is Syntax.YAML}
            sources = Sources(data, self._builders, self._with_seeds, self.catalogue_of, self.seeds)
            self._merged = MergedFiles(YamlFiles(sources))
        return self._merged

    def _builders(self) -> Iterator[str]:
        """Yield YAML files that the run searched, and those of its checkouts, that may build on others."""
        from cgmigrate.documents.syntax import syntax_of
        from cgmigrate.linking.yaml_files import building_words

        yield from (path for path in self.listed() if syntax_of(path) is Syntax.YAML)
        yield from self._tracked_yaml(building_words())

    def _with_seeds(self) -> list[str]:
        """Return the YAML files of the checkouts that contain a seed word."""
        yaml = [item.path for item in self.sources if item.syntax is Syntax.YAML]
        return self._tracked_yaml(dict.fromkeys(core for path in yaml for core in self.seeds(path).cores))

    def _tracked_yaml(self, words: Iterable[str]) -> list[str]:
        """Return the YAML files, of the projects around those of the run, that contain one of some words."""
        from cgmigrate.project.checkout import project_of

        folders = {os.path.dirname(item.path) for item in self.sources if item.syntax is Syntax.YAML}
        tops, words = sorted({project_of(os.path.realpath(folder)) for folder in folders}), list(words)
        return [path for top in tops for path in self.search(top).tracked(words, "*.yaml", "*.yml")]

    @remembered
    def search(self, top: str) -> FileSearch:
        """Return the search in the files of a project."""
        from cgmigrate.project.file_search import FileSearch

        return FileSearch(top)

    def release_shim(self, path: str) -> str:
        """Return the place of code, in the project around a file, that is written for several releases."""
        from cgmigrate.linking.release_shims import release_shim

        top = self._project_of(path)
        if top not in self._shims:
            self._shims[top] = release_shim(self.search(top), self._python_below(top), self.catalogue_of(path))
        return self._shims[top]

    def own_options(self, path: str) -> OwnOptions:
        """Return the options that programs of the checkout around a file define under names of settings."""
        from cgmigrate.linking.own_options import OwnOptions
        from cgmigrate.project.checkout import checkout_of

        catalogue, top = self.catalogue_of(path), checkout_of(os.path.realpath(os.path.dirname(path)))
        if (top, catalogue) not in self._own_options:
            options = [flag for name, flag in catalogue.flags.items() if name in catalogue.deprecated]
            self._own_options[top, catalogue] = OwnOptions(partial(self._code_with, top), options, shown_path)
        return self._own_options[top, catalogue]

    def caller_with_old_object(self, function: str, path: str) -> str:
        """Return the first file that uses a function of another one and has the old scope, but not what it became.

        What such a file gives the function may be an object of its own, as tests have, without the new settings.
        """
        from cgmigrate.linking.program_files import ProgramFiles, text_of_code
        from cgmigrate.project.checkout import checkout_of

        own = os.path.realpath(path)
        code = partial(self._code_with, checkout_of(os.path.dirname(own)), suffixes=(".py",))
        programs = ProgramFiles(partial(code, ("import ", "def ", "class ")), text_of_code)
        texts = ((one, text_of_code(one)) for one in code([function]) if one != own)
        old = (one for one, text in texts if SCOPE in text and not (MODULES in text and INFERENCE in text))
        return next((one for one in old if own in programs.imported(one)), "")

    def open_places(self, path: str) -> OpenPlaces:
        """Return the appearances of names, in the project around a file, that nothing accounts for."""
        from cgmigrate.linking.open_places import OpenPlaces
        from cgmigrate.project.checkout import project_of

        catalogue, top = self.catalogue_of(path), project_of(os.path.realpath(os.path.dirname(path)))
        if (top, catalogue) not in self._open_places:
            self._open_places[top, catalogue] = OpenPlaces(top, self.search(top), catalogue, self.rule_folders_of(path))
        return self._open_places[top, catalogue]

    def lines_of(self, path: str) -> int:
        """Return the number of lines of a file of the checkout, 0 if there is none."""
        return len(self.open_places(path).texts.text(os.path.realpath(path)).split("\n"))

    def command_files(self, path: str) -> CommandFiles:
        """Return the files of the checkout around a file that may have a part in its command lines."""
        from cgmigrate.linking.command_files import CommandFiles
        from cgmigrate.project.checkout import checkout_of

        catalogue, top = self.catalogue_of(path), checkout_of(os.path.realpath(os.path.dirname(path)))
        if (top, catalogue) not in self._command_files:
            files = partial(self._code_with, top, suffixes=())
            named = self.search(top or os.path.realpath(os.path.dirname(path))).named
            self._command_files[top, catalogue] = CommandFiles(files, named, catalogue, shown_path)
        return self._command_files[top, catalogue]

    def _code_with(self, top: str | None, words: Collection[str], suffixes: tuple[str, ...] = _CODE) -> list[str]:
        """Return the files of the run and a checkout, with some suffixes, that contain one of some words."""
        named = [word.encode() for word in words]
        own = [
            item.path
            for item in self.sources
            if item.path.endswith(suffixes or "") and any(word in item.data for word in named)
        ]
        of_checkout = self.search(top).holding(words, *(f"*{suffix}" for suffix in suffixes)) if top else []
        return sorted({*map(os.path.realpath, own), *of_checkout})  # git searches no links

    def _project_of(self, path: str) -> str:
        """Return the folder of the project around a file."""
        from pathlib import Path

        from cgmigrate.project.checkout import project_of
        from cgmigrate.project.pins.search import pinned_folder

        folder = os.path.realpath(os.path.dirname(path))
        if folder not in self._projects:
            pinned = pinned_folder(Path(folder))
            self._projects[folder] = str(pinned) if pinned else project_of(folder)
        return self._projects[folder]

    def _python_below(self, top: str | None) -> list[tuple[str, bytes]]:
        """Return the Python files of the run in a project, each with its bytes."""
        sources = [(item.path, item.data) for item in self.sources if item.syntax is Syntax.PYTHON]
        return [item for item in sources if top is None or os.path.realpath(item[0]).startswith(top + os.sep)]
