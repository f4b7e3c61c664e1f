"""The YAML files that a run may need: their documents, what they build on, and which files build on them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from cgmigrate.linking.file_references import DefaultsEntry, FileReferences, has_suffix, merge_keys, references_of
from cgmigrate.project.paths import is_below
from cgmigrate.text.encoding import decode
from cgmigrate.text.files import read_bytes
from cgmigrate.text.remembered import remembered

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.documents.yaml import YamlDocument
    from cgmigrate.megatron.catalogue import Catalogue
    from cgmigrate.project.seeds import SeedsOf

SUFFIXES = (".yaml", ".yml")
_BARE = re.compile(r"[\w./-]{1,200}")
_MAY_BUILD = re.compile(
    rb"defaults|\.ya?ml\b|^[\"'_]*(?:extends?|inherits?|includes?|imports?|parents?|bases?)\w*[\"']?[ \t]*:",
    re.MULTILINE,
)
"""Matches every file that builds on others, so that most files need not be read by their pairs."""
_MARKER = b"_override_"
_MARKER_KEY = re.compile(r"(?<!\w)_override_(?=[\"']?\s*:)")
_INTERPOLATION = re.compile(r"\$\{(?:[^{}]|\{[^{}]*\})*\}")


def building_words() -> list[str]:
    """Return words of which every file that builds on others has one."""
    return ["defaults", *SUFFIXES, *sorted(merge_keys())]


@dataclass(frozen=True, slots=True)
class Sources:
    """Where YAML files come from."""

    data: Mapping[str, bytes]
    """The files of the run that have settings, by their real paths."""
    builders: Callable[[], Iterable[str]]
    """Lists further files that may build on others, in the run and in its checkouts."""
    with_seeds: Callable[[], Iterable[str]]
    """Lists the files of the checkouts that contain a seed word."""
    catalogue_of: Callable[[str], Catalogue]
    """Returns the settings that a file may have."""
    seeds: SeedsOf


@dataclass
class YamlFiles:
    """YAML files, each read and parsed once; paths are real."""

    sources: Sources
    _documents: dict[str, YamlDocument | None] = field(default_factory=dict)
    """The documents of files without their parts in other syntaxes."""
    _whole: dict[str, Document] = field(default_factory=dict)

    # --- one file ---------------------------------------------------------------------------------

    def document(self, path: str) -> YamlDocument | None:
        """Return the document of a file, None if it cannot be read."""
        if path not in self._documents:
            from cgmigrate.documents.nesting import outer_of
            from cgmigrate.documents.syntax import Syntax, document_of
            from cgmigrate.documents.yaml import YamlDocument

            try:
                text = decode(self._data(path))[0]
                document = document_of(path, text, Syntax.YAML, self.sources.catalogue_of(path))
                outer = outer_of(document)
                self._whole[path] = document
                self._documents[path] = outer if isinstance(outer, YamlDocument) else None
            except (OSError, UnicodeDecodeError, RecursionError, MemoryError):
                self._documents[path] = None
        return self._documents[path]

    def add(self, path: str, document: Document) -> None:
        """Add the document of a file that is parsed already."""
        from cgmigrate.documents.nesting import outer_of
        from cgmigrate.documents.yaml import YamlDocument

        outer = outer_of(document)
        if isinstance(outer, YamlDocument):
            self._documents[path] = outer
            self._whole[path] = document

    def known_document(self, path: str) -> Document | None:
        """Return the document of a file, with its parts in other syntaxes, if it is parsed already."""
        return self._whole.get(path)

    @remembered
    def references(self, path: str) -> FileReferences:
        """Return what a file says about the files that it builds on."""
        try:
            data = self._data(path)
            text = decode(data)[0] if _MAY_BUILD.search(data) or data.lstrip()[:1] == b"#" else ""
        except (OSError, UnicodeDecodeError):
            text = ""
        return references_of(text)

    @remembered
    def has_settings(self, path: str) -> bool:
        """Return whether a file has settings. One that cannot be read has none."""
        try:
            is_seed = path in self.sources.data or self.sources.seeds(path).in_file(self._data(path))
        except OSError:
            is_seed = False
        document = self.document(path) if is_seed else None
        return document is not None and any(site.written for site in document.sites)

    def setting_read_in(self, path: str) -> str:
        """Return the first interpolation of a file that names a setting, empty if there is none."""
        try:
            if path not in self.sources.data and not self.sources.seeds(path).in_file(self._data(path)):
                return ""
        except OSError:
            return ""
        document = self.document(path)
        for match in _INTERPOLATION.finditer(document.text) if document else ():
            if document is not None and document.catalogue.is_in(match.group()):
                return match.group()
        return ""

    @remembered
    def marked(self, path: str) -> frozenset[str] | None:
        """Return the top-level keys whose mappings have NeMo-RL's ``_override_: true``, None if it is elsewhere."""
        try:
            is_possible = _MARKER in self._data(path)
        except OSError:
            is_possible = False
        document = self.document(path) if is_possible else None
        return _marked_keys(document) if document else frozenset()

    def is_file(self, path: str) -> bool:
        """Return whether a file of a path exists."""
        return path in self.sources.data or os.path.isfile(path)

    @remembered
    def in_folder(self, folder: str) -> list[str]:
        """Return the real paths of the YAML files of a folder."""
        try:
            names = sorted(name for name in os.listdir(folder) if name.endswith(SUFFIXES))
        except OSError:
            names = []
        return [os.path.realpath(os.path.join(folder, name)) for name in names]

    def _data(self, path: str) -> bytes:
        return self.sources.data[path] if path in self.sources.data else read_bytes(path)

    # --- files that build on others ---------------------------------------------------------------

    def builders_of(self, path: str) -> list[str]:
        """Return the files that may be built on one, directly or through others, in order of path."""
        builders: set[str] = set()
        waiting = [path]
        while waiting:
            new = [one for one in self._builders.get(waiting.pop(), ()) if one not in builders]
            builders.update(new)
            waiting += new
        return sorted(builders - {path})

    @cached_property
    def _builders(self) -> dict[str, list[str]]:
        """File → the files that may directly build on it."""
        result: dict[str, list[str]] = {}
        for path in sorted({*self.sources.data, *map(os.path.realpath, self.sources.builders())}):
            for other in sorted(self.may_name(path)):
                result.setdefault(other, []).append(path)
        return result

    def may_name(self, path: str) -> set[str]:
        """Return the files that one may directly build on, whoever reads it."""
        references, folder = self.references(path), os.path.dirname(path)
        result: set[str] = set()
        for entry in references.defaults:
            if not entry.is_self:
                result |= self._named_by(entry, folder)
        for key, words in references.others:
            for word in words:
                result |= self.named(word, folder, is_bare=key in merge_keys())
        if references.has_hydra_forms:
            result.update(self.options_below(folder))
        return result - {path}

    def options_below(self, root: str) -> list[str]:
        """Return the files with settings in the folders below one: Hydra can append each of them as an option."""
        below = (path for path in self._seeded if is_below(os.path.dirname(os.path.dirname(path)), root))
        return [path for path in below if self.has_settings(path)]

    def _named_by(self, entry: DefaultsEntry, folder: str) -> set[str]:
        """Return the files that an entry of ``defaults:`` may name: by a path, or by a group and a name."""
        result: set[str] = set()
        places = [os.path.join(folder, entry.group)]
        if entry.group.startswith("/") or (not entry.group and entry.names[0].startswith("/")):
            places = [os.path.join(above, entry.group.lstrip("/")) for above in _folders_above(folder)]
        for place in places:
            for name in entry.names:
                result |= self.named(name.lstrip("/") if len(places) > 1 else name, place, True)
            if entry.group:
                # The command line may choose another name of the group.
                result.update(path for path in self.in_folder(os.path.realpath(place)) if self.has_settings(path))
        return result or self.tails(entry)

    def named(self, word: str, folder: str, is_bare: bool) -> set[str]:
        """Return the files that a word may name; ``is_bare`` says that it needs no suffix."""
        if "${" in word:
            return self.matching(word, folder) if is_bare or has_suffix(word) else set()
        if not (has_suffix(word) or (_BARE.fullmatch(word) and not word.replace(".", "").isdigit())):
            return set()
        beside = os.path.join(folder, word)
        names = [beside + suffix for suffix in ("", *SUFFIXES)]
        return {os.path.realpath(name) for name in names if has_suffix(name) and self.is_file(name)}

    def tails(self, entry: DefaultsEntry) -> set[str]:
        """Return the files with settings whose paths end as an entry does, for one that names no existing file."""
        return set().union(
            *(self.matching(os.path.join(entry.group, name)) for name in entry.names if name != "_self_")
        )

    def matching(self, word: str, folder: str = "") -> set[str]:
        """Return the files with settings whose paths end in a word in which interpolations may be anything.

        ``folder`` is where the word is written: then only those below the folder that the word begins with.
        """
        beginning = os.path.dirname(word.partition("${")[0])
        below = os.path.realpath(os.path.join(folder, beginning)) if folder else ""
        parts = [part for part in re.sub(r"\.ya?ml$", "", word).split("/") if part not in ("", ".", "..")]
        plain = "/".join(parts)
        pattern = "".join(
            ".*" if _INTERPOLATION.fullmatch(part) else re.escape(part)
            for part in re.split(f"({_INTERPOLATION.pattern})", plain)
        )
        tail = re.compile(rf"(?:.*/)?{pattern}\.ya?ml")
        matches = (path for path in self._seeded if is_below(path, below) and tail.fullmatch(path))
        return {path for path in matches if self.has_settings(path)}

    @cached_property
    def _seeded(self) -> list[str]:
        """The files of the run and of its checkouts that may have settings."""
        return sorted({*self.sources.data, *map(os.path.realpath, self.sources.with_seeds())})


def _folders_above(folder: str) -> list[str]:
    """Return a folder and those above it, up to the root of its checkout."""
    result = [folder]
    while not os.path.lexists(os.path.join(folder, ".git")) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
        result.append(folder)
    return result


def _marked_keys(document: YamlDocument) -> frozenset[str] | None:
    """Return the top-level keys whose mappings have NeMo-RL's marker, None if it is written in another way."""
    pairs = [pair for root in document.roots if root.kind == "map" for pair in root.pairs()]
    marked = [
        (key.value, marker.target.value.lower() == "true")
        for key, value in pairs
        for name, marker in (value.pairs() if value.kind == "map" else ())
        if name.kind == "scalar" and name.value == _MARKER.decode()
    ]
    is_known = all(is_true for _, is_true in marked) and len(marked) == len(_MARKER_KEY.findall(document.text))
    return frozenset(key for key, _ in marked) if is_known else None
