"""Compositions: the files that a loader merges into one configuration, in order, each with the place of its content.

Two rules are known. Hydra composes a defaults list: groups with options, packages, overrides, ``_self_``. Other loaders
(OmegaConf in NeMo-RL, ``extends:`` and the like) merge the files of the paths, then the file itself. A file that both
could load has a composition for each; what follows must be right in all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.linking.file_references import DefaultsEntry, has_suffix, merge_keys
from cgmigrate.linking.yaml_files import SUFFIXES, YamlFiles

KeyPath = tuple[str, ...]

MOST_LAYERS = 200
"""Files of one composition; beyond this number it is not known."""
MOST_CHOICES = 1_000
"""Choices of the command line that are tried, one at a time; beyond this number it is not known what is merged."""
_WHOLE = re.compile(r"\$\{[^/]*\}(\.ya?ml)?")
"""Matches a word that is an interpolation as a whole, and so may be any file."""
_CHOICE = re.compile(r"\$\{([\w/@.-]+)\}")


@dataclass(frozen=True, slots=True)
class Layer:
    """A file of a composition, by its real path, and the keys under which its content goes."""

    path: str
    mount: KeyPath = ()
    lost: frozenset[str] = frozenset()
    """Top-level keys whose mappings a file replaces that is built on this one."""


@dataclass(frozen=True, slots=True)
class Unresolved:
    """An entry whose file is not known: as it is written, in which file, why, and which files with settings it may be.

    Without files it may be any file that is not in the checkout.
    """

    text: str
    place: str
    reason: str
    files: frozenset[str] = frozenset()
    is_harmless: bool = False
    """Whether all files that it may be are known, and none has settings."""


@dataclass(frozen=True, slots=True)
class Composition:
    """The layers of a file as an entry point, each merged over those before it."""

    entry: str
    layers: tuple[Layer, ...]
    unresolved: tuple[Unresolved, ...] = ()
    choice: str = ""
    """The choice of the command line that makes it, empty for the one without any."""
    is_certain: bool = True
    """Whether the loader surely merges the files in this order."""
    is_deep: bool = True
    """Whether the loader surely merges mappings key by key. One that reads ``extends:`` may replace a mapping."""
    is_flat: bool = True
    """Whether each layer is merged over all before it; otherwise some are merged with each other first."""

    @property
    def paths(self) -> list[str]:
        """The files of the composition."""
        return [layer.path for layer in self.layers]


class CompositionError(Exception):
    """A loader does not read a file in this way, or what it does is not known; the message says why."""


class NoEntryError(CompositionError):
    """The file is no entry point: its loader refuses it unless another file includes it."""


def compositions_of(path: str, files: YamlFiles) -> list[Composition]:
    """Return the compositions of a file as an entry point; ``path`` is real. Raises CompositionError."""
    references = files.references(path)
    if references.unclear:
        raise CompositionError(references.unclear)
    result: list[Composition] = []
    errors: list[CompositionError] = []
    # Without `defaults:` there is nothing that Hydra composes.
    loaders = (_composed_by_paths, _composed_by_hydra) if references.defaults else (_composed_by_paths,)
    for compose in loaders:
        try:
            for composition in compose(path, files):
                if all(composition.layers != known.layers for known in result):
                    result.append(composition)
        except CompositionError as error:
            errors.append(error)
    if not result:
        raise errors[-1]
    # A reading in which every file is known decides whether one with a missing file is possible at all.
    resolved = [composition for composition in result if not composition.unresolved]
    return resolved or result


# --- paths ----------------------------------------------------------------------------------------


def _composed_by_paths(path: str, files: YamlFiles) -> list[Composition]:
    """Return the composition of a file by a loader that reads paths. Raises CompositionError."""
    if _has_hydra_forms(path, files):
        raise CompositionError("`defaults:` uses Hydra syntax")
    forward = _PathLoader(files).compose(path)
    if not _PathLoader.has_order(path, files):
        backward = _PathLoader(files, is_reversed=True).compose(path)
        return [forward, replace(backward, is_certain=False)]
    return [forward]


@dataclass
class _PathLoader:
    """Merges the files of paths in order, then the file that names them."""

    files: YamlFiles
    is_reversed: bool = False
    unresolved: list[Unresolved] = field(default_factory=list)
    is_deep: bool = True
    has_groups: bool = False
    """Whether a file names several others, each of which is merged with its own files first."""

    def compose(self, path: str) -> Composition:
        layers = self._layers(path, ())
        return Composition(
            path, tuple(layers), tuple(self.unresolved), is_deep=self.is_deep, is_flat=not self.has_groups
        )

    @staticmethod
    def has_order(path: str, files: YamlFiles) -> bool:
        """Return whether the order of the files that one names is known."""
        keys = [(key, words) for key, words in files.references(path).others if _paths_of(key, words, path, files)]
        several = len(keys) + bool(files.references(path).defaults) > 1
        return not several and all(key in merge_keys() and len(words) == 1 for key, words in keys)

    def _layers(self, path: str, above: tuple[str, ...]) -> list[Layer]:
        if path in above or len(above) > MOST_LAYERS:
            raise CompositionError("a file includes itself" if path in above else "its `defaults:` chain is too long")
        if above and _has_hydra_forms(path, self.files):
            raise CompositionError(f"`defaults:` of {path} uses Hydra syntax")
        parents = self._parents(path)
        ordered = list(reversed(parents)) if self.is_reversed else parents
        layers: list[Layer] = []
        self.has_groups = self.has_groups or len(parents) > 1
        for parent in ordered:
            # What builds on nothing keeps its markers until it is merged with other files.
            marked = frozenset[str]() if self._parents(parent) else _marked(parent, self.files)
            layers = [*_without(layers, marked), *self._layers(parent, (*above, path))]
        layers = _without(layers, _marked(path, self.files))
        if len(layers) > MOST_LAYERS:
            raise CompositionError("its `defaults:` chain is too long")
        layers = _last_of_each([*layers, Layer(path)])
        known = all(key in merge_keys() for key, words in self._keys(path))
        return [layers[-1], *layers[:-1]] if self.is_reversed and not known else layers

    def _keys(self, path: str) -> list[tuple[str, list[str]]]:
        others = self.files.references(path).others
        return [(key, named) for key, words in others if (named := _paths_of(key, words, path, self.files))]

    def _parents(self, path: str) -> list[str]:
        references = self.files.references(path)
        if references.unclear:
            raise CompositionError(references.unclear)
        parents: list[str] = []
        for entry in references.defaults:
            parents += self._resolved(entry.names[0], entry.text, path)
        for key, words in references.others:
            named = _paths_of(key, words, path, self.files)
            self.is_deep = self.is_deep and not named
            parents += named
            if key in merge_keys():
                for word in words:
                    if ("${" in word or has_suffix(word)) and not self.files.named(word, os.path.dirname(path), True):
                        self._resolved(word, word, path)
        return parents

    def _resolved(self, word: str, text: str, path: str) -> list[str]:
        if "${" not in word:
            beside = os.path.join(os.path.dirname(path), word)
            for name in (beside, *(beside + suffix for suffix in SUFFIXES)):
                if has_suffix(name) and self.files.is_file(name):
                    return [os.path.realpath(name)]
        self.unresolved.append(_unresolved(word, text, path, self.files))
        return []


def _has_hydra_forms(path: str, files: YamlFiles) -> bool:
    return files.references(path).has_hydra_forms


def _paths_of(key: str, words: Sequence[str], path: str, files: YamlFiles) -> list[str]:
    """Return the files that the value of a key names."""
    plain = [word for word in words if "${" not in word]
    folder = os.path.dirname(path)
    every = [sorted(files.named(word, folder, key in merge_keys()) - {path}) for word in plain]
    return [other for one in every for other in one]


def _marked(path: str, files: YamlFiles) -> frozenset[str]:
    """Return the top-level keys whose mappings have the marker of NeMo-RL's loader. Raises CompositionError."""
    marked = files.marked(path)
    if marked is None:
        raise CompositionError("`_override_: true` is known in mappings at the top level only")
    return marked


def _without(layers: Sequence[Layer], lost: frozenset[str]) -> list[Layer]:
    """Return layers whose mappings of some keys are replaced."""
    return [replace(layer, lost=layer.lost | lost) for layer in layers] if lost else list(layers)


def _last_of_each(layers: Sequence[Layer]) -> list[Layer]:
    """Return layers without those that are merged again later on: what is merged last is in effect."""
    return list(reversed(list(dict.fromkeys(reversed(layers)))))


def _unresolved(word: str, text: str, path: str, files: YamlFiles) -> Unresolved:
    """Return what is known about a word that names no existing file."""
    every = files.matching(word) - {path}
    if "${" not in word:
        return Unresolved(text, path, "no such file is in the checkout", frozenset(every))
    folder = os.path.dirname(os.path.join(os.path.dirname(path), word))
    is_listed = "${" not in folder and bool(files.in_folder(os.path.realpath(folder)))
    is_any = _WHOLE.fullmatch(word) is not None
    near = frozenset(files.matching(word, os.path.dirname(path))) - {path}
    reason = "which file is read depends on a value set at run time"
    return Unresolved(text, path, reason, near, not every and (is_listed or is_any))


# --- Hydra ----------------------------------------------------------------------------------------


def _composed_by_hydra(path: str, files: YamlFiles) -> list[Composition]:
    """Return the compositions of a file by Hydra: that of the file, and one for each other choice of a group.

    Raises CompositionError.
    """
    root = _root_of(path, files)
    loader = _Hydra(files, root)
    # To Hydra, other keys that name files are values like any other; another loader may read them.
    has_others = any(_paths_of(key, words, path, files) for key, words in files.references(path).others)
    first = replace(loader.compose(path), is_certain=not has_others)
    result = [first]
    for other, choice, chosen in _choices(path, loader, first.paths):
        try:
            result.append(replace(chosen.compose(path), choice=choice, is_certain=False))
        except CompositionError:
            # Hydra refuses this choice.
            continue
        if len(result) > MOST_CHOICES:
            raise CompositionError(f"there are too many choices, such as {os.path.basename(other)}")
    return result


def _choices(path: str, loader: _Hydra, known: Sequence[str]) -> Iterator[tuple[str, str, _Hydra]]:
    """Yield each file with settings that the command line can choose: the file, the choice, and how it is composed.

    It can choose another name of a group, or append a group that no defaults list names.
    """
    files, root = loader.files, loader.root
    seen = set(known)
    for key, group in loader.groups.items():
        folder = os.path.realpath(os.path.join(root, group))
        beside = files.in_folder(folder)
        seen.update(path for path in beside if files.has_settings(path))
        for other in (*beside, *files.options_below(folder)):
            if other not in known and files.has_settings(other):
                name = os.path.relpath(other, folder).rpartition(".")[0]
                yield other, f"{key}={name}", _Hydra(files, root, {key: (name,)})
    if os.path.dirname(path) != root:
        return
    for other in files.options_below(root):
        if other not in seen:
            group, name = os.path.split(os.path.relpath(other, root).rpartition(".")[0])
            yield other, f"+{group}={name}", _Hydra(files, root, appended=(DefaultsEntry("", f"/{group}", (name,)),))


def _root_of(path: str, files: YamlFiles) -> str:
    """Return the folder from which groups are named: the nearest one that has those of the file from the root."""
    groups = [
        (entry.group or entry.names[0]).lstrip("/")
        for entry in files.references(path).defaults
        if (entry.group or entry.names[0]).startswith("/") and not entry.group.startswith("/hydra/")
    ]
    nearest = folder = os.path.dirname(path)
    while groups:
        names = [os.path.join(folder, group) for group in groups]
        if all(os.path.isdir(name) or any(os.path.isfile(name + suffix) for suffix in SUFFIXES) for name in names):
            return folder
        if os.path.lexists(os.path.join(folder, ".git")) or os.path.dirname(folder) == folder:
            break
        folder = os.path.dirname(folder)
    return nearest


@dataclass
class _Config:
    """A configuration in the tree of Hydra's defaults, by its path from the root, and where its content goes."""

    path: str
    group: str
    """The group as its parent names it, from which its default package follows."""
    parent_package: str
    package: str | None = None
    header: str | None = None
    is_optional: bool = False
    chosen_of: str | None = None
    """The group, from the root, of which it is an option."""

    @property
    def base(self) -> str:
        """The folder from which its entries are named: its group, also if the option is in a folder below it."""
        return os.path.dirname(self.path) if self.chosen_of is None else self.chosen_of

    def set_header(self, package: str | None) -> None:
        """Set the package of the file's header, None without one. Raises CompositionError if there is no package."""
        if package not in (None, "_group_"):
            self.header = package if f"{package}.".startswith("_global_.") else f"_global_.{package}"
        elif self.package is None and ".." in self.group.split("/"):
            raise CompositionError(f"`{self.group}` has no package in Hydra")

    def final_package(self) -> str:
        """Return where the content goes, with dots."""
        package = self.package
        if package is None:
            package = self.header if self.header is not None else self.group.replace("/", ".")
        whole = ".".join(filter(None, (self.parent_package, package)))
        _, marker, behind = whole.rpartition("_global_")
        return behind.lstrip(".") if marker else whole


@dataclass
class _Hydra:
    """Composes a defaults list as Hydra does: the order, the packages and the choices of groups."""

    files: YamlFiles
    root: str
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The choices of the command line, by the key of the group."""
    appended: tuple[DefaultsEntry, ...] = ()
    """The groups that the command line appends to the defaults list of the primary configuration."""
    overrides: dict[str, tuple[str, ...]] = field(default_factory=dict)
    choices: dict[str, str] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    """The folder of each group, from the root, by its key."""
    unresolved: list[Unresolved] = field(default_factory=list)
    used: set[str] = field(default_factory=set)
    size: int = 0

    def compose(self, path: str) -> Composition:
        """Return the composition of a file as the primary configuration. Raises CompositionError."""
        self.overrides |= self.chosen
        name = os.path.relpath(path, self.root)
        layers = self._layers(_Config(name, os.path.dirname(name), ""), path, ())
        if unused := [key for key in self.overrides if key not in self.used and not key.startswith("hydra/")]:
            raise NoEntryError(f"`override {unused[0]}` has no match in the defaults list")
        return Composition(path, tuple(layers), tuple(self.unresolved))

    def _layers(self, config: _Config, named_by: str, above: tuple[str, ...]) -> list[Layer]:
        path = self._file(config)
        if path is None:
            if not config.is_optional:
                self.unresolved.append(self._missing(config, named_by))
            return []
        self.size += 1
        if path in above or self.size > MOST_LAYERS:
            raise CompositionError("a file includes itself" if path in above else "its `defaults:` chain is too long")
        if _marked(path, self.files):
            raise CompositionError("`_override_` is a marker of NeMo-RL's loader")
        references = self.files.references(path)
        if references.unclear or not references.is_list:
            raise CompositionError(references.unclear or "`defaults:` is no list")
        config.set_header(references.package)
        own = [Layer(path, _keys(config.final_package()))]
        appended = () if above else self.appended
        if not references.defaults and not appended:
            return own
        entries = [entry for entry in references.defaults if not entry.is_override]
        for entry in references.defaults:
            if entry.is_override:
                self.overrides.setdefault(self._key(entry, config), entry.names)
        if not any(entry.is_self for entry in entries):
            entries.append(DefaultsEntry("_self_", names=("_self_",)))
        return self._merged(config, [*entries, *appended], own, (*above, path))

    def _merged(
        self, config: _Config, entries: Sequence[DefaultsEntry], own: list[Layer], above: tuple[str, ...]
    ) -> list[Layer]:
        """Return the layers of the entries of a file. The last one is resolved first, and choices of choices last."""
        merged: dict[int, list[Layer]] = {}
        waiting: list[int] = []
        for position in reversed(range(len(entries))):
            entry = entries[position]
            if entry.is_self:
                merged[position] = own
            elif any("${" in name for name in self._names(entry, config)):
                waiting.append(position)
            else:
                merged[position] = self._of_entry(entry, config, self._names(entry, config), above)
        for position in waiting:
            names = [self._interpolated(name) for name in self._names(entries[position], config)]
            merged[position] = self._of_entry(entries[position], config, names, above)
        return [layer for position in range(len(entries)) for layer in merged[position]]

    def _names(self, entry: DefaultsEntry, config: _Config) -> tuple[str, ...]:
        if not entry.group:
            return entry.names
        key = self._key(entry, config)
        if key in self.overrides:
            self.used.add(key)
        return self.overrides.get(key, entry.names)

    def _of_entry(
        self, entry: DefaultsEntry, config: _Config, names: Sequence[str], above: tuple[str, ...]
    ) -> list[Layer]:
        if entry.group.lstrip("/").startswith("hydra/"):
            # Hydra's own configuration: it is about the run.
            return []
        if entry.group:
            key = self._key(entry, config)
            self.groups[key] = self._path(entry.group, config)
            self.choices[key] = names[0] if len(names) == 1 else ""
        layers: list[Layer] = []
        is_option = entry.group and len(names) < 2 and not (entry.is_list and names is entry.names)
        for name in names:
            if name == "???":
                continue
            word = f"{entry.group}/{name}" if entry.group else name
            child = _Config(
                self._path(word, config),
                (entry.group if is_option else os.path.dirname(word)).lstrip("/"),
                config.final_package(),
                self._package(entry, config),
                is_optional=entry.is_optional,
                chosen_of=self._path(entry.group, config) if is_option else None,
            )
            layers += self._layers(child, above[-1], above)
        return layers

    def _path(self, word: str, config: _Config) -> str:
        """Return the path from the root of what an entry of a configuration names."""
        return os.path.normpath(word[1:] if word.startswith("/") else os.path.join(config.base, word))

    def _package(self, entry: DefaultsEntry, config: _Config) -> str | None:
        if entry.package is None:
            return None
        if "_group_" in entry.package:
            group = self._path(entry.group or os.path.dirname(entry.names[0]) or ".", config).replace("/", ".")
            return "_global_." + entry.package.replace("_group_", group)
        return "" if entry.package == "_here_" else entry.package

    def _key(self, entry: DefaultsEntry, config: _Config) -> str:
        """Return what names a group in overrides: its path from the root, and its package if it is not the default."""
        group = self._path(entry.group, config)
        final = _Config(
            group, entry.group.lstrip("/"), config.final_package(), self._package(entry, config)
        ).final_package()
        return group if final == group.replace("/", ".") else f"{group}@{final or '_global_'}"

    def _interpolated(self, name: str) -> str:
        return _CHOICE.sub(lambda match: self.choices.get(match[1], "") or match[0], name)

    def _file(self, config: _Config) -> str | None:
        """Return the file of a configuration, None if there is none."""
        if "${" in config.path:
            return None
        whole = os.path.join(self.root, config.path)
        names = [whole] if has_suffix(whole) else [whole + suffix for suffix in SUFFIXES]
        return next((os.path.realpath(name) for name in names if self.files.is_file(name)), None)

    def _missing(self, config: _Config, named_by: str) -> Unresolved:
        word = os.path.relpath(os.path.join(self.root, config.path), os.path.dirname(named_by))
        missing = _unresolved(word, config.path, named_by, self.files)
        folder = os.path.realpath(os.path.join(self.root, config.base))
        options = self.files.in_folder(folder) if "${" in config.path and config.base else []
        if not options:
            return missing
        possible = frozenset(path for path in options if self.files.has_settings(path))
        return replace(missing, files=possible, is_harmless=not possible)


def _keys(package: str) -> KeyPath:
    return tuple(filter(None, package.split(".")))
