"""What surrounds a site: the value of any setting of the catalogue in the configuration that the site belongs to.

A document answers for a path of keys. Which path that is depends on the owner: Megatron-Bridge's recipes have the
model, the data parallelism and the checks of the loss in mappings of their own. The owner says where its settings are
(``section`` of the ecosystem), and the catalogue where the others are (``keys`` of a setting).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from cgmigrate.documents.sites import Document, Site
from cgmigrate.linking.ecosystems import Ecosystem
from cgmigrate.linking.name_places import CODE
from cgmigrate.linking.owner_conditions import matches_any
from cgmigrate.linking.translations import Translation
from cgmigrate.megatron.layer_patterns import layer_pattern
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.setting import SettingKind
from cgmigrate.megatron.settings import Missing, Settings, Undecided
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
