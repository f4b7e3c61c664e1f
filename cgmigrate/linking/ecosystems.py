"""Ecosystems: the systems that have settings of these names, and how each is recognised.

The same spelling has at least five owners, so a name alone decides nothing. What identifies an owner (the place in
the file, the neighbours, the spelling of keys) is data: ``rules/ecosystems/*.yaml``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from cgmigrate.linking.translations import Translation, release_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import load_yaml, rules_folder
from cgmigrate.megatron.types import Reader

_READERS = {
    "config": Reader.CONFIG,
    "command-line": Reader.COMMAND_LINE,
    "bridge": Reader.BRIDGE,
    "nemo-rl": Reader.NEMO_RL,
}


@dataclass(frozen=True, slots=True)
class Ecosystem:
    """One owner of the names. Without a reader it is another system, whose settings are skipped.

    ``owns`` are the conditions of its settings in configurations and on command lines, ``code`` those in code, where a
    setting has a callee or an object instead of a path. ``overrides_parent`` says that the settings override those of
    the mapping around them. ``section`` is where the settings are in a configuration: keys from its top. ``id`` is the
    name of the file.
    """

    name: str
    rank: int
    reader: Reader | None
    owns: tuple[Mapping[str, Any], ...]
    overrides_parent: bool = False
    code: tuple[Mapping[str, Any], ...] = ()
    section: tuple[str, ...] = ()
    id: str = ""
    by_name: bool = False
    """Whether the settings of the catalogue that no other system has are its own, but for those in other sections."""
    other_sections: Mapping[str, str] = field(default_factory=dict)
    """Section of a configuration → the class of its settings."""
    package: str = ""
    """The package that reads the settings by their names, empty if that is megatron-core itself."""
    unread_up_to: Release | None = None
    """The newest release of the package that does not read the new names, None if every release reads them."""
    not_rewritten: str = ""
    """Why its settings are never rewritten where they are, empty if they are."""
    translation: Translation | None = None
    """How the package makes the settings of its configuration, None if they are read by their names."""
    defaults: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Where a configuration shows all of its settings; empty if nowhere."""

    container: str = ""
    """The class with a field for each section of a configuration, empty if that is not known."""
    of_container: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    """What identifies a configuration whose sections have settings, in files (``owns``) and in ``code``."""

    def with_sections(self, names: Sequence[str]) -> Ecosystem:
        """Return the ecosystem as the owner of settings in sections, too."""
        owns, code = ([{**one, "writes": names} for one in self.of_container.get(key, ())] for key in ("owns", "code"))
        return replace(self, owns=(*self.owns, *owns), code=(*self.code, *code))

    def conditions(self, in_code: bool) -> Sequence[Mapping[str, Any]]:
        """Return the alternatives of which one identifies the owner; each is test → expected value."""
        return self.code if in_code else self.owns


@cache
def load() -> tuple[Ecosystem, ...]:
    """Return the ecosystems in the order of precedence; read once, whatever the releases of a run."""
    ecosystems = [_read(path) for path in (rules_folder() / "ecosystems").glob("*.yaml")]
    return tuple(sorted(ecosystems, key=lambda ecosystem: (ecosystem.rank, ecosystem.name)))


def with_settings(ecosystems: Sequence[Ecosystem], catalogue: Catalogue) -> tuple[Ecosystem, ...]:
    """Return the ecosystems for files that may have other settings than those of the capture model.

    Other systems have settings with the names of the capture model; the others belong to the ecosystem that owns
    settings by their names, also as arguments of the class that the catalogue names. In a section of another class
    (`checkpoint:`), a setting of that name is another one.
    """
    every = [catalogue[name] for name in catalogue.names if name not in catalogue.captures]
    if not every:
        return tuple(ecosystems)
    others = [setting for setting in every if not setting.section]
    by_class: dict[str, list[str]] = {}
    for setting in others:
        by_class.setdefault(setting.owner, []).append(setting.name)
    classes = [name for owner in by_class for name in (owner, f"*.{owner}")]
    code = {"callee": classes, "writes": [setting.name for setting in others]}
    in_scripts = {"command-line": True, "writes": code["writes"]}

    def extended(one: Ecosystem) -> Ecosystem:
        if one.container:
            names = [setting.name for setting in every if setting.section and setting.owner == one.container]
            return one.with_sections(names) if names else one
        if one.by_name:
            return replace(one, owns=(*one.owns, *_by_names(one, by_class)), code=(*one.code, code))
        return replace(one, owns=(*one.owns, in_scripts)) if one.reader is Reader.COMMAND_LINE else one

    return tuple(map(extended, ecosystems))


def _by_names(ecosystem: Ecosystem, by_class: Mapping[str, Sequence[str]]) -> list[Mapping[str, Any]]:
    """Return the conditions by which an ecosystem owns settings, by the class that has them, outside other sections."""
    return [
        {
            "writes": names,
            "command-line": False,
            "path-has-none": [
                section for section, of in ecosystem.other_sections.items() if of != owner.rpartition(".")[2]
            ],
        }
        for owner, names in by_class.items()
    ]


def only(name: str) -> tuple[Ecosystem, ...]:
    """Return one ecosystem, by the name of its file, as the owner of all settings."""
    return (replace(_read(rules_folder() / "ecosystems" / f"{name}.yaml"), owns=({},), code=({},)),)


def _read(path: Path) -> Ecosystem:
    data = load_yaml(path.read_text(encoding="utf-8"), str(path))
    return Ecosystem(
        name=data["name"],
        rank=data["rank"],
        reader=_READERS[data["reader"]] if "reader" in data else None,
        owns=tuple(data["owns"]),
        overrides_parent=data.get("overrides-parent", False),
        code=tuple(data.get("code", ())),
        by_name=data.get("by-name", False),
        other_sections=data.get("other-sections", {}),
        section=tuple(filter(None, data.get("section", "").split("."))),
        id=path.stem,
        package=data.get("package", ""),
        unread_up_to=release_of(data.get("unread-up-to")),
        not_rewritten=data.get("not-rewritten", ""),
        translation=Translation.of(data["translation"]) if "translation" in data else None,
        defaults=data.get("defaults", {}),
        container=data.get("container", {}).get("class", ""),
        of_container=data.get("container", {}),
    )
