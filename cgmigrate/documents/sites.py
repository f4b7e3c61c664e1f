"""Documents: one file, read by the module for its syntax, as sites that can be edited.

A *site* is the settings that configure one model at one place: one mapping, one call, one
command line. Documents find sites and turn wanted settings into edits of the text; they know
nothing of rules. Every offset is in code points of the decoded text, marks of order excluded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cgmigrate.megatron.settings import Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

PROSE = "a comment, docstring or message"
"""Owner of a name in text for people; said with ``--verbose`` only."""


UNKNOWN_OWNER = "an owner that is not known"


FOLLOWS_USES = "an import, which follows what the file uses"
"""Owner of a name that needs no word of its own: it changes with what is written below it."""


@dataclass(frozen=True, slots=True)
class Written:
    """One setting as it stands in the text.

    ``key`` is the name as spelled (``--cuda-graph-scope``, ``model.cuda_graph_scope``);
    ``span`` covers what a diagnostic underlines: key and value.
    """

    field: str
    key: str
    value: object
    span: Span


@dataclass(frozen=True, slots=True)
class Origin:
    """What code says about whose settings a site's are.

    ``callee`` is the full name of what gets them as keyword arguments, ``object`` the expression whose
    attributes they are; ``imports`` are the modules that the file imports. ``foreign`` says that the callee is
    a class that is not Megatron's, so that the object's name shows nothing.
    """

    callee: str = ""
    object: str = ""
    imports: tuple[str, ...] = ()
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class Site:
    """The settings that configure one model at one place.

    ``path`` names what encloses them (keys of mappings, a prefix of dotted keys), ``written``
    are the site's own settings in the order of the text, ``inherits`` the sites merged into
    it, nearest first. ``alias_paths`` are further paths at which the same text is used (aliases).
    ``neighbours`` holds the other plain values beside the settings. ``blocked_by`` says why
    the document cannot edit the site, empty when it can.

    In code, ``origin`` says whose they are; ``overrides``, that they change an object that has settings
    already, so that one left out is not its default; ``built``, that the object was validated before;
    ``of_built_model``, that it is the configuration of a model that is built;
    ``linked`` are further sites that may have set the same object, and ``uncertain`` says that branches
    leave open which of them did.
    """

    index: int
    path: tuple[str, ...]
    span: Span
    written: tuple[Written, ...]
    flags: bool = False
    inherits: tuple[int, ...] = ()
    alias_paths: tuple[tuple[str, ...], ...] = ()
    neighbours: Mapping[str, object] = field(default_factory=dict)
    blocked_by: str = ""
    origin: Origin | None = None
    overrides: bool = False
    built: bool = False
    of_built_model: bool = False
    linked: tuple[int, ...] = ()
    uncertain: bool = False

    @property
    def own(self) -> dict[str, object]:
        """The site's own settings; the last one counts where a name stands twice."""
        return {written.field: written.value for written in self.written}

    def written_as(self, name: str) -> str:
        """How this site spells a setting: its own key, or a key in the style of its others."""
        for written in self.written:
            if written.field == name:
                return written.key
        if self.flags:
            return "--" + name.replace("_", "-")
        return name


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in the text beside the sites that is to be told; ``rule`` explains it.

    ``replacement`` is what to write instead, where that is known: the document writes it when ``index`` (which
    continues those of the sites) is among the rewrites. ``risk`` says why that may change what the code does,
    ``blocked_by`` what prevents a fix, ``advice`` what to write by hand. ``fix`` is the fix in short where it does
    not write ``replacement``.
    """

    rule: str
    span: Span
    message: str
    index: int = -1
    replacement: str = ""
    advice: str = ""
    risk: str = ""
    blocked_by: str = ""
    fix: str = ""


class Document(Protocol):
    """One file, read."""

    text: str

    @property
    def sites(self) -> Sequence[Site]:
        """The sites, each at the position of its index."""

    @property
    def problems(self) -> Sequence[Problem]:
        """What could not be read."""

    @property
    def top_level(self) -> Sequence[str]:
        """Names at the top of the file, which tell its kind."""

    @property
    def skipped(self) -> Sequence[tuple[Written, str]]:
        """Names that are no settings or not Megatron's, each with its owner."""

    builds_on: str
    """Other files that this one is merged into (``defaults:``), as written; empty when none."""

    def risk(self, index: int) -> str:
        """Why code that is not followed may see the object of a site or of a problem, empty when none does.

        The fix of such an object is not safe: other places may set or read it under the old names.
        """

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that give each site (by index) the rewrites own settings.

        Raises CannotEditError when the text at a site cannot be changed without touching others.
        """

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text again; return what differs beyond ``rewrites``, empty when nothing."""

    def quotes(self, rewrites: Mapping[int, Settings]) -> Mapping[int, Mapping[str, str]]:
        """How the settings of these sites (by index and field) read in the text that was checked last."""

    def spelled(self, site: int, name: str, value: object) -> str:
        """A setting as it would be written at a site, in the syntax of the file."""


class CannotEditError(Exception):
    """A site whose text cannot be changed; the message says why, ``site`` which."""

    def __init__(self, site: int, reason: str) -> None:
        super().__init__(reason)
        self.site = site


def spans_of(document: Document, indices: Sequence[int]) -> frozenset[Span]:
    """Return the spans of the settings of some sites and of some problems, both by index."""
    chosen = frozenset(indices)
    sites = [written.span for site in document.sites if site.index in chosen for written in site.written]
    return frozenset([*sites, *(problem.span for problem in document.problems if problem.index in chosen)])
