"""YAML files that are planned together, with the command lines that override their settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cgmigrate.linking.merged_files import CannotLinkError, MergedSites
from cgmigrate.linking.started_recipes import StartedRecipes, known_overrides, with_command_lines
from cgmigrate.lint.relations import Relations

if TYPE_CHECKING:
    from cgmigrate.documents.sites import Document
    from cgmigrate.linking.merged_files import Members, MergedFiles
    from cgmigrate.linking.overrides import Override
    from cgmigrate.linking.started_recipes import Started


@dataclass(frozen=True, slots=True)
class RecipeSet:
    """Files that are planned together, by their real paths, and how they are merged."""

    paths: Sequence[str]
    merge: MergedSites
    lines: Sequence[Started] = ()
    """The command lines among them."""

    @property
    def scripts(self) -> frozenset[str]:
        """The files with the command lines."""
        return frozenset(line.script for line in self.lines)

    def with_command_lines(self, started: StartedRecipes, may_join: Callable[[str], bool]) -> RecipeSet:
        """Return it with the command lines that override its settings; ``may_join`` says which files can be planned."""
        lines = [line for line in started.of_recipes(self.paths) if may_join(line.script)]
        try:
            return self.with_lines(lines, started.merged) if lines else self
        except CannotLinkError:
            return self

    def with_lines(self, lines: Sequence[Started], merged: MergedFiles) -> RecipeSet:
        """Return it with some command lines. Raises CannotLinkError."""
        paths, merge = with_command_lines(self.paths, self.merge, lines, merged)
        return RecipeSet(paths, merge, lines)

    def relations(self, path: str, document: Document, relations: Relations) -> Relations:
        """Return the relations of one of the files: what is known in the set needs no other proof."""
        commands = [line.command for line in self.lines if line.script == path]
        started = known_overrides(document, commands) if commands else frozenset()
        overrides = tuple(one for one in relations.overrides if not self._has(one))
        return replace(relations, started=started, overrides=overrides)

    def _has(self, override: Override) -> bool:
        """Return whether an override on a command line is part of the set."""
        return any(line.script == override.file and line.has(override.start) for line in self.lines)


def recipe_set(members: Members, members_of: Callable[[str], Members], started: StartedRecipes) -> RecipeSet:
    """Return the files of a set, with the other sets that a file starts which starts one of it."""
    paths, entries, deep = list(members.paths), list(members.merge.entries), members.merge.deep
    while new := sorted(started.related(paths) - set(paths)):
        try:
            other = members_of(new[0])
        except CannotLinkError:
            return RecipeSet(members.paths, members.merge)
        entries += other.merge.shifted(len(paths))
        paths += other.paths
        deep = deep and other.merge.deep
    return RecipeSet(paths, replace(members.merge, entries=entries, deep=deep))
