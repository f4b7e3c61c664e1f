"""Changes of a project's code that are to be proved."""

from __future__ import annotations

from dataclasses import dataclass

from cgmigrate.megatron.releases import Release
from cgmigrate.proof.flow.run import Line, Name


@dataclass(frozen=True, slots=True)
class Change:
    """A set of edits of one file; ``places`` are the lines of the statements that it changes.

    ``forms`` is in how many forms it can be written; each is right for more objects than the one before.
    """

    name: Name
    path: str
    places: frozenset[Line]
    forms: int = 1
    reads: bool = False
    """Whether it changes how code reads settings."""
    needs_owner: bool = False
    """Whether its file does not show that the object is Megatron's: code that gives it one has to."""


@dataclass(frozen=True, slots=True)
class Releases:
    """The releases that read the old texts and the edited ones."""

    source: Release
    target: Release
