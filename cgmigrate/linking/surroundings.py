"""What surrounds a site: the value of any setting of the catalogue in the configuration that the site belongs to.

A document answers for a path of keys. Which path that is depends on the owner: Megatron-Bridge's recipes have the
model, the data parallelism and the checks of the loss in mappings of their own. The owner says where its settings are
(``section`` of the ecosystem), and the catalogue where the others are (``keys`` of a setting).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.ecosystems import Ecosystem
from cgmigrate.linking.name_places import CODE
from cgmigrate.linking.owner_conditions import matches_any
from cgmigrate.linking.translations import Translation
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.layer_patterns import layer_pattern
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.setting import SettingKind
from cgmigrate.megatron.settings import IMPL, Missing, Settings, Undecided
from cgmigrate.project.paths import shown_path
from cgmigrate.text.files import read_bytes
from cgmigrate.text.remembered import remembered

if TYPE_CHECKING:
    from cgmigrate.megatron.catalogue import Setting

_IS_PYTHON = re.compile(r".*\.py$|python[0-9.]*$|torchrun$|deepspeed$|accelerate$").match
"""Whether a program is of Python, or starts a module of Python."""
_ASSIGNED = re.compile(r"\.(\w+)\s*=[^=]")


@dataclass(frozen=True)
class SiteSurroundings:
    """The surroundings of one site; ``settings`` are those in effect at it."""

    document: Document
    site: Site
    ecosystem: Ecosystem
    settings: Settings
    is_up_to: Callable[[str, Release], bool] = lambda _package, _release: False
    """Whether the project is known to have no release of a package that is newer than one."""

    def get(self, name: str, /) -> object:
        """Return the value of a setting: plain data, ``Undecided``, or why there is none (``Missing``)."""
        return self.settings[name] if name in self.settings else self._read(name)

    @remembered
    def _read(self, name: str) -> object:
        """Return the value of a setting that is not at the site; several rules test the same ones."""
        setting = self.document.catalogue.get(name)
        if setting is None:
            return Missing.UNKNOWN
        if setting.variables:
            return _together([self._variable(name) for name in setting.variables])
        if translation := self._translation(setting):
            return translation.value(name, setting.owner, self._at_path, self._is_up_to)
        keys = setting.keys.get(self.ecosystem.id, ())
        if self.site.flags:
            value = self._of_flag(setting)
            return Missing.UNKNOWN if value is Missing.ABSENT and self._may_get_more() else value
        if keys:
            return _switched([self._at(path.split(".")) for path in keys], setting.any_key)
        value = self._beside((name,))
        if value is Missing.ABSENT and setting.no_flag:
            value = self._off(setting.no_flag.lstrip("-").replace("-", "_"))
        # A setting of another class is written elsewhere, and where is not known.
        return value if value is not Missing.ABSENT or self._is_of_same_class(setting) else Missing.UNKNOWN

    def default(self, name: str, /) -> object:
        """Return the default of a setting that is not written, if nothing else can set it, else ``Missing.UNKNOWN``."""
        setting = self.document.catalogue.get(name)
        if setting is None:
            return Missing.UNKNOWN
        if self.document.path.endswith(CODE) and name in _assigned_attributes(self.document.text):
            # Code may set it on the object afterwards.
            return Missing.UNKNOWN
        # A package that makes a configuration of its own sets nothing else.
        return setting.default if self._translation(setting) or self._shows_all() else Missing.UNKNOWN

    def _shows_all(self) -> bool:
        """Return whether the configuration of the site shows all settings: what it does not write has its default."""
        site, where = self.site, self.ecosystem.defaults
        if not where or site.example is not None:
            return False
        if not site.flags:
            callee = site.origin.callee if site.constructs and site.origin and not site.overrides else ""
            return matches_any(callee, tuple(where.get("callee", ())))
        if self._is_kept_list():
            return False
        programs = site.programs or site.scripts
        patterns = tuple(where.get("program", ()))
        is_whole = self._has_path_of_all() or any(matches_any(program, patterns) for program in programs)
        return (
            is_whole
            and self._describes_a_model()
            and all(self._beside((flag,)) is Missing.ABSENT for flag in where.get("unless", ()))
        )

    def _is_kept_list(self) -> bool:
        """Return whether the words are a list that code keeps, and may add to: not one that a call gets at once."""
        if not self.document.path.endswith(CODE) or not self.site.written:
            return False
        before = self.document.text[: self.site.written[0].span.start].rpartition("[")[0]
        return not before.rstrip().endswith("(")

    def _has_path_of_all(self) -> bool:
        """Return whether the flags are at a path of a configuration that has all flags of a program."""
        is_data = self.site.programs is None and self.site.origin is None
        return is_data and ".".join(self.site.path) in self.ecosystem.defaults.get("path-is", ())

    def _describes_a_model(self) -> bool:
        """Return whether there are flags that each command line of a program has, and hardly a part of one."""
        return any(self._beside((flag,)) is not Missing.ABSENT for flag in self.ecosystem.defaults.get("beside", ()))

    def key(self, name: str, /) -> str:
        """Return how the configuration of the site spells a setting: as a site does, or from its top."""
        setting = self.document.catalogue.get(name)
        if setting is None or setting.subject:
            return self.site.written_as(name)
        if setting.variables:
            written = (name for name in setting.variables if self._variable(name) is not Missing.ABSENT)
            return next(written, setting.variables[0])
        if self.site.flags and setting.flag:
            return setting.flag
        if translation := self._translation(setting):
            path = translation.key(name, setting.owner, self._at_path, self._is_up_to)
            return self._shortened(path) if path else self.site.written_as(name)
        keys = setting.keys.get(self.ecosystem.id, ())
        return keys[0] if keys else self.site.written_as(name)

    def unread(self) -> frozenset[str]:
        """Return the settings of the site that the package which reads them ignores, in the project's release of it."""
        return frozenset(filter(self._is_unread, self.settings)) if self.ecosystem.translation else frozenset()

    def ignored(self) -> tuple[str, ...]:
        """Return the settings, of the site and beside it, that the package ignores; old names are read by none."""
        if self.ecosystem.translation is None:
            return ()
        unread = (name for name, one in self.document.catalogue.settings.items() if not one.deprecated)
        return tuple(name for name in unread if self._is_unread(name) and self._is_beside(name))

    def _is_unread(self, name: str) -> bool:
        setting = self.document.catalogue.get(name)
        translation = self._translation(setting) if setting is not None else None
        path = ".".join((*self.ecosystem.section, name))
        return translation is not None and not translation.reads(name, path, self._is_up_to)

    def _is_beside(self, name: str) -> bool:
        return name in self.settings or not isinstance(self._beside((name,)), Missing)

    def _translation(self, setting: Setting) -> Translation | None:
        """Return the translation that decides about a setting, None if there is none."""
        translation = self.ecosystem.translation
        if translation is None or self.site.flags or not translation.concerns(setting.name, setting.owner):
            return None
        return translation

    def _is_up_to(self, release: Release) -> bool:
        return self.is_up_to(self.ecosystem.package, release)

    def _shortened(self, path: str) -> str:
        """Return a path as it is written beside the site, if it is."""
        *section, name = path.split(".")
        return self.site.written_as(name) if tuple(section) == self.ecosystem.section else path

    def _at_path(self, path: str) -> object:
        return self._at(path.split("."))

    def _variable(self, name: str) -> object:
        """Return the value of a variable of the environment."""
        start = min((use.span.start for use in self.site.written), default=self.site.span.start)
        return self.document.variable_at(start, name)

    def _at(self, keys: Sequence[str]) -> object:
        """Return the value at a path from the top of the configuration."""
        section = self.ecosystem.section
        if section and tuple(keys[: len(section)]) == section:
            return self._beside(keys[len(section) :])
        return self.document.value_beside(self.site.index, section, keys)

    def _beside(self, keys: Sequence[str]) -> object:
        return self.document.value_beside(self.site.index, (), keys)

    def _of_flag(self, setting: Setting) -> object:
        if not setting.flag:
            return Missing.ABSENT
        value = self._beside((setting.flag,))
        if value is Missing.ABSENT and setting.no_flag:
            return self._off(setting.no_flag)
        return _truth(value) if setting.is_flag else _pattern(value) if setting.kind is SettingKind.PATTERN else value

    def _off(self, name: str) -> object:
        """Return the value of a setting that a flag turns off."""
        value = _truth(self._beside((name,)))
        return not value if isinstance(value, bool) else value

    def _may_get_more(self) -> bool:
        """Return whether other flags may be added: by a script that gets them, or to a list that shows no program."""
        if programs := self.site.programs or self.site.scripts:
            return not any(map(_IS_PYTHON, programs))
        return not (self._has_path_of_all() or self._describes_a_model())

    def _is_of_same_class(self, setting: Setting) -> bool:
        owners = {known.owner for name in self.site.own if (known := self.document.catalogue.get(name))}
        return setting.owner in owners


@lru_cache(maxsize=64)
def _assigned_attributes(text: str) -> frozenset[str]:
    """Return the names of the attributes that code assigns."""
    return frozenset(_ASSIGNED.findall(text))


def _truth(value: object) -> object:
    """Return the value of a flag: one without a value (null in YAML) is true."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    return True if value is None else value


def _pattern(value: object) -> object:
    """Return the pattern of layers that a command line gives as text."""
    if not isinstance(value, str):
        return value
    pattern = layer_pattern(value)
    return Undecided(value, "no list expression of numbers") if pattern is None else pattern


def _switched(values: Sequence[object], any_key: bool) -> object:
    """Return the one value of a setting that may be written at several places, of which the first one decides.

    Code that turns it on there need not show that the others are not written. With ``any_key``, each of them decides.
    """
    if any_key and any(value is True for value in values):
        return True
    is_on = values[0] is True and all(value is True or isinstance(value, Missing) for value in values)
    return True if is_on else _together(values)


def _together(values: Sequence[object]) -> object:
    """Return the one value of a setting that may be written at several places."""
    unknown = next((value for value in values if value is Missing.UNKNOWN or isinstance(value, Undecided)), None)
    if unknown is not None:
        return unknown
    written = [value for value in values if value is not Missing.ABSENT]
    if any(type(value) is not type(written[0]) or value != written[0] for value in written):
        return Missing.UNKNOWN
    return written[0] if written else Missing.ABSENT


_PAGES = (".md", ".rst")
_SUFFIXES = (".sh", ".bash", ".slurm", ".sbatch", ".sub", ".py", ".yaml", ".yml", ".txt", ".mk", ".dockerfile", *_PAGES)
PATTERNS = (*(f"*{suffix}" for suffix in _SUFFIXES), "*Dockerfile*", "*Makefile", "*makefile")
"""Names of the files that are searched. Scripts without a suffix are searched if they are files of the run."""
_MOST_BYTES = 1024 * 1024
_RECIPE = re.compile(r"(?<![\w.-])([\w.-]+)\.ya?ml\b|config[-_]name[\"']?[= ,]+[\"']?([\w./-]+)")


@dataclass(frozen=True, slots=True)
class Override:
    """A setting on a command line, and its keys.

    ``recipes`` are the names, without suffix, of the files that its file names; ``shown`` is the value in a page.
    """

    place: str
    keys: tuple[str, ...]
    setting: str
    recipes: frozenset[str] = frozenset()
    shown: str | None = None

    def __str__(self) -> str:
        return f"`{'.'.join((*self.keys, self.setting))}` ({self.place})"

    def concerns(self, path: tuple[str, ...], own: Settings) -> bool:
        """Return whether it may set a mapping at a path of a file, which may be merged under further keys.

        Of pages only what turns graphs on counts: then a scope that ``own`` has beside none takes effect.
        """
        turns_on = self.setting == IMPL and self.shown not in (None, "", "none") and own.get(IMPL) == "none"
        return (self.shown is None or turns_on) and (not path or self.keys[-len(path) :] == path)


@dataclass
class Overrides:
    """The overrides in the files of some folders, read once."""

    catalogue: Catalogue
    paths: Iterable[str]
    """The files to search, and those of other syntaxes."""

    def concerning(self, names: Iterable[str]) -> list[Override]:
        """Return the overrides that belong to files of some names, or to all files."""
        known = frozenset(names)
        return [one for one in self.every() if not one.recipes or one.recipes & known]

    @remembered
    def every(self) -> list[Override]:
        """Return all overrides."""
        return [one for path in sorted(set(self.paths)) for one in _overrides_in(path, self.catalogue)]


def is_searched(path: str) -> bool:
    """Return whether a file of the run is searched."""
    name = os.path.basename(path)
    return "." not in name or name.endswith(_SUFFIXES) or name.startswith("Dockerfile")


def _overrides_in(path: str, catalogue: Catalogue) -> Iterator[Override]:
    try:
        data = read_bytes(path)
    except OSError:
        return
    names = "|".join(sorted(catalogue.captures))
    if len(data) > _MOST_BYTES or not any(name.encode() in data for name in catalogue.captures):
        return
    text = data.decode("utf-8", "replace")
    # In code, an assignment without blanks looks the same outside of a string.
    before = r"(?<=[\"'])" if path.endswith(".py") else r"(?<![\w.$}])"
    pattern = re.compile(
        rf"{before}(?P<sign>[+~]{{0,2}})(?P<keys>(?:[\w-]+\.)+)(?P<name>{names})"
        r"(?:=(?!=)(?P<value>\[[^\]\n]*\]|[^\s\"',;\\)]*)|(?<=\w)(?=[\s\"']))"
    )
    matches = [match for match in pattern.finditer(text) if match["value"] is not None or match["sign"] == "~"]
    recipes = _recipes_in(text) - {os.path.basename(path).rpartition(".")[0]} if matches else frozenset()
    for match in matches:
        line = text.count("\n", 0, match.start()) + 1
        keys = tuple(match["keys"].rstrip(".").split("."))
        place = f"{shown_path(path)}:{line}"
        yield Override(place, keys, match["name"], recipes, match["value"] if path.endswith(_PAGES) else None)


def _recipes_in(text: str) -> frozenset[str]:
    """Return the names, without suffix, of the configurations that a text names."""
    names = (match[1] or match[2] for match in _RECIPE.finditer(text))
    return frozenset(os.path.basename(name) for name in names if name)
