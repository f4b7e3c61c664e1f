"""Places: the nodes and spans of a site. Modules that look for sites return them, ``site_rewriter`` edits them."""

from __future__ import annotations

import ast
import dataclasses
from dataclasses import dataclass
from enum import Enum

from cgmigrate.text.spans import Span

_NOWHERE = Span(0, 0)


class SiteForm(Enum):
    """How a site's settings are written."""

    CALL = "keyword arguments of one call"
    DICT = "entries of one dict literal"
    ASSIGNMENTS = "statements that set attributes of one object"
    FLAGS = "words of one list of command-line arguments"
    OVERRIDES = "override strings (`model.cuda_graph_scope=[]`) of one list"


@dataclass(slots=True)
class Item:
    """One setting in the text.

    ``name`` is the span of its bare name, ``whole`` the span to delete with it, ``span`` what a diagnostic underlines.
    ``values`` are the nodes of its value (several words of a list of flags, none of a boolean flag).
    ``suite`` is the list of statements that an assignment belongs to.
    """

    field: str
    name: Span
    values: list[ast.expr]
    whole: Span
    node: ast.AST
    suite: list[ast.stmt] = dataclasses.field(default_factory=list)
    value: object = None
    span: Span = _NOWHERE


@dataclass(slots=True)
class SiteNodes:
    """All settings of one site; the fields that ``Site`` has, too, mean the same.

    ``elements`` are the spans of all elements of the call, dict or list, in order.
    ``prefix`` is that of dotted override strings, with its final dot.
    """

    form: SiteForm
    items: list[Item]
    elements: list[Span] = dataclasses.field(default_factory=list)
    owner: str = ""
    """The object or callee as written."""
    callee: str = ""
    object: str = ""
    meant: str = ""
    """The attribute that the object is, if it has another name: ``cfg.model`` for ``m = cfg.model``."""
    class_name: str = ""
    """The class of the object, as the file writes it."""
    foreign: bool = False
    """Whether ``callee`` is a class that is not Megatron's, which counts more than the object's name."""
    overrides: bool = False
    constructs: bool = False
    merged: bool = False
    """Whether the class gets the settings through other code: a dict, or a function that passes keywords on."""
    through: str = ""
    """The name of this function, empty for a dict."""
    built: bool = False
    of_built_model: bool = False
    expects_error: bool = False
    blocked_by: str = ""
    """Why the text cannot be edited, empty when it can."""
    inherits: SiteNodes | None = None
    links: list[SiteNodes] = dataclasses.field(default_factory=list)
    """Places that may have set the same object before: they are rewritten together or not at all."""
    uncertain: bool = False
    """Whether branches or a loop leave open what the object holds when this place is reached."""
    prefix: str = ""
    words: tuple[str, ...] = ()
    """The other words of a list of arguments with overrides."""
    scripts: tuple[str, ...] = ()
    """The programs in a list of arguments."""
    starts_megatron: bool = False
    """Whether a list of arguments names a program of Megatron, or no program in a file that names one."""

    def item(self, name: str) -> Item:
        """Return the item of a setting; the last one counts."""
        return next(item for item in reversed(self.items) if item.field == name)
