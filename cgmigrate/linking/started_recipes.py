"""Command lines that override settings of a YAML file which they name: the file and the overrides are one object.

``python run.py --config examples/grpo.yaml ++policy.megatron_cfg.cuda_graph_scope=[attn]`` is an entry point: the
configuration of the file, with the override merged over it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from cgmigrate.documents.sites import Command, Document
from cgmigrate.linking.compositions import Composition
from cgmigrate.linking.file_references import has_suffix
from cgmigrate.linking.merged_files import (
    Assembly,
    CannotLinkError,
    Contribution,
    MergedEntry,
    MergedFiles,
    MergedSites,
)
from cgmigrate.linking.yaml_files import SUFFIXES
from cgmigrate.project.paths import is_below
from cgmigrate.text.spans import Span

_NAME = re.compile(r"--?config[-_]name(?:=(.*))?", re.DOTALL)
_FOLDER = re.compile(r"--?config[-_](?:path|dir)(?:=(.*))?", re.DOTALL)
_CHOICE = re.compile(r"\+{0,2}[\w/]+(?:@[\w.]+)?=.*", re.DOTALL)
"""A word that may choose another file of one of Hydra's groups."""
_VARIABLE = re.compile(r"\$(?:\{\w+\}|\w+|\([^()]*\))/")
"""The folder at the beginning of a path, if the shell computes it."""


@dataclass(frozen=True, slots=True)
class Started:
    """A command line of a file that starts a recipe; paths are real. ``with_settings`` are files of the recipe.

    ``is_further`` says that another command line above gets some of its overrides, too.
    """

    script: str
    command: Command
    composition: Composition
    with_settings: tuple[str, ...]
    spans: tuple[Span, ...] = ()
    """Where its overrides are, as far as no other command line gets them."""
    is_further: bool = False

    def has(self, offset: int) -> bool:
        """Return whether a place of its file is one of its overrides."""
        return any(span.start <= offset < span.end for span in self.spans)


@dataclass
class StartedRecipes:
    """The command lines of a project that override settings of recipes; each file is read once."""

    merged: MergedFiles
    top: str | None
    """The root of the project: no other file is named by a command line."""
    paths: Iterable[str]
    """The files that may have such command lines, by their real paths."""
    document_of: Callable[[str], Document | None]
    files_named: Callable[[str], Sequence[str]]
    """Lists the files of the project that have a name."""
    _by_name: dict[str, list[str]] = field(default_factory=dict)

    def of_script(self, path: str) -> Sequence[Started]:
        """Return the command lines of a file, by its real path."""
        return self._by_script.get(path, ())

    def of_recipes(self, paths: Collection[str]) -> list[Started]:
        """Return the command lines of the files whose recipes are all made of some files with settings, if any are."""
        known = set(paths)
        return [
            one
            for lines in self._by_script.values()
            if any(line.with_settings for line in lines) and all(known.issuperset(line.with_settings) for line in lines)
            for one in lines
        ]

    def related(self, paths: Collection[str]) -> set[str]:
        """Return the files with settings of all recipes that a file starts which starts a recipe made of some."""
        return {
            path
            for lines in self._by_script.values()
            if any(not set(line.with_settings).isdisjoint(paths) for line in lines)
            for line in lines
            for path in line.with_settings
        }

    @cached_property
    def _by_script(self) -> Mapping[str, Sequence[Started]]:
        every = {path: lines for path in sorted(set(self.paths)) if (lines := self._lines(path))}
        # A file that starts others and is started itself has two roles, which are not followed.
        recipes = {path for lines in every.values() for line in lines for path in line.composition.paths}
        return {path: lines for path, lines in every.items() if path not in recipes}

    def _lines(self, path: str) -> list[Started]:
        """Return the command lines of a file; none if the recipe of one of them is not known."""
        document = self.document_of(path)
        sites = [site for site in document.sites if site.elsewhere] if document else []
        commands = dict.fromkeys(command for site in sites for command in site.commands)
        further = {command for site in sites for command in site.commands[1:]}
        lines = [(command, self._started(path, command)) for command in commands]
        known = {command for command, line in lines if line is not None}
        spans = {
            command: tuple(
                use.span
                for site in sites
                if command in site.commands and known.issuperset(site.commands)
                for use in site.written
            )
            for command in commands
        }
        return [
            replace(line, spans=spans[command], is_further=command in further)
            for command, line in lines
            if line is not None
        ]

    def _started(self, script: str, command: Command) -> Started | None:
        recipe = self._recipe(script, command.words)
        if recipe is None:
            return None
        try:
            composition = self.merged.composition(recipe)
        except CannotLinkError:
            return None
        is_known = composition.is_certain and composition.is_deep and composition.is_flat
        if not is_known or any(not one.is_harmless for one in composition.unresolved):
            return None
        if self.merged.files.references(recipe).has_hydra_forms and any(map(_CHOICE.fullmatch, command.words)):
            return None
        return Started(script, command, composition, tuple(self.merged.with_settings(composition)))

    # --- the recipe that words name -----------------------------------------------------------------

    def _recipe(self, script: str, words: Sequence[str]) -> str | None:
        """Return the one YAML file that some words name, None if there is none, or if there are several."""
        named = set(chain.from_iterable(self._named(word, script) for word in words))
        name, folder = _option(_NAME, words), _option(_FOLDER, words)
        if name:
            named |= self._in_folder(name, folder or "", script)
        return named.pop() if len(named) == 1 else None

    def _named(self, word: str, script: str) -> Iterator[str]:
        """Yield the YAML files that a word, or the value of an option, names by its path."""
        path = word.rpartition("=")[2].strip("\"'")
        if not has_suffix(path):
            return
        if (match := _VARIABLE.match(path)) is not None:
            # The folder is computed, so the rest of the path has to be unambiguous.
            rest = os.path.normpath(path[match.end() :])
            yield from self._ending(rest.removeprefix("../")) if "$" not in rest and "/" in rest else ()
        elif "$" not in path:
            yield from self._existing(path, script)

    def _in_folder(self, name: str, folder: str, script: str) -> set[str]:
        """Return the files that Hydra's options name: the folder is relative to the program."""
        whole = os.path.join(folder, name)
        names = [whole] if has_suffix(whole) else [whole + suffix for suffix in SUFFIXES]
        if any("$" in one for one in names):
            return set()
        existing = set(chain.from_iterable(self._existing(one, script) for one in names))
        return existing or set(chain.from_iterable(self._ending(os.path.normpath(one).lstrip("./")) for one in names))

    def _existing(self, path: str, script: str) -> Iterator[str]:
        """Yield the files of a path, which is relative to the folder of the script or one above it."""
        folder = os.path.dirname(script)
        while True:
            real = os.path.realpath(os.path.join(folder, path))
            if os.path.isfile(real) and is_below(real, self.top or folder):
                yield real
            if self.top is None or folder == self.top or os.path.dirname(folder) == folder:
                return
            folder = os.path.dirname(folder)

    def _ending(self, tail: str) -> list[str]:
        """Return the YAML files of the project whose paths end in some way."""
        name = os.path.basename(tail)
        if name not in self._by_name:
            self._by_name[name] = list(self.files_named(name))
        return [path for path in self._by_name[name] if path.endswith(f"/{tail}")]


def _option(pattern: re.Pattern[str], words: Sequence[str]) -> str:
    """Return the value of an option among some words, empty without one."""
    for word, behind in zip(words, [*words[1:], ""], strict=False):
        if match := pattern.fullmatch(word):
            return (behind if match[1] is None else match[1]).strip("\"'")
    return ""


# --- what is merged -----------------------------------------------------------------------------------


def with_command_lines(
    paths: Sequence[str], merge: MergedSites, lines: Sequence[Started], merged: MergedFiles
) -> tuple[list[str], MergedSites]:
    """Return files with those of some command lines, and how all of them are merged. Raises CannotLinkError."""
    every = list(dict.fromkeys([*paths, *(line.script for line in lines)]))
    numbers = {path: number for number, path in enumerate(every)}
    of_recipes = {path: number for path, number in numbers.items() if path in paths}
    assembly = Assembly(merged.files, list(paths))
    entries = list(merge.entries)
    for line in lines:
        number = numbers[line.script]
        below = assembly.contributions(line.composition, of_recipes)
        own = Contribution(number, (), command=line.command)
        entries.append(MergedEntry(line.script, (*below, own), number, is_own=not line.is_further))
    return every, replace(merge, entries=entries)


def known_overrides(document: Document, commands: Collection[Command]) -> frozenset[int]:
    """Return the sites of which each command line is among some, by index."""
    return frozenset(
        site.index for site in document.sites if site.commands and all(one in commands for one in site.commands)
    )
