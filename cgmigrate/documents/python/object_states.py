"""What is known of the objects that statements set: the latest site of each, and what made the object."""

from __future__ import annotations

import ast
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from cgmigrate.documents.python.class_origins import other_class
from cgmigrate.documents.python.made_objects import class_made_by, class_of_megatron
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.site_nodes import SiteNodes
from cgmigrate.documents.python.source import dotted

if TYPE_CHECKING:
    from cgmigrate.documents.python.definitions import Definitions

_EVERY = "*"
"""In ``unsure``: every setting."""
_LONGEST_ANNOTATION = 200
"""Characters of an annotation in quotes; a longer one names no class that is worth its parsing."""


@dataclass(frozen=True, slots=True)
class ObjectState:
    """What is known of one object at one statement.

    ``place`` is the latest site that set it, and ``open`` says that further statements belong to that site.
    ``unsure`` are settings whose value depends on a branch, ``links`` sites in branches that may have set the object.
    ``finished`` says that the object was built or validated.
    """

    place: SiteNodes | None
    open: bool = False
    unsure: frozenset[str] = frozenset()
    links: tuple[SiteNodes, ...] = ()
    finished: bool = False


States = dict[str, ObjectState]
"""By the path of the object (``cfg.model``)."""


def closed(states: States) -> States:
    """Return a copy for a branch: statements in the branch begin sites of their own."""
    return {path: replace(state, open=False) for path, state in states.items()}


def forget(known: MutableMapping[str, Any], path: str) -> None:
    """Remove what is known of an object that is bound anew, and of what is reached through it."""
    for other in [other for other in known if other == path or other.startswith(path + ".")]:
        del known[other]


def join(states: States, ends: Sequence[States]) -> None:
    """Update ``states`` for the code behind branches, each of which ends in one of ``ends``."""
    for path in {path for end in ends for path in end} | set(states):
        joined = _joined(states.get(path), [end.get(path) for end in ends])
        if joined is not None:
            states[path] = joined


def _joined(before: ObjectState | None, ends: Sequence[ObjectState | None]) -> ObjectState | None:
    """Return the state of one object behind branches; None if they change nothing."""
    unsure: set[str] = set()
    links: list[SiteNodes] = []
    for after in ends:
        if after is None:
            unsure |= {_EVERY} if before is not None else set()
            continue
        unsure |= after.unsure
        links += after.links
        place = after.place
        while place is not None and (before is None or place is not before.place):
            unsure |= {item.field for item in place.items}
            links.append(place)
            place = place.inherits
    finished = any(after.finished for after in ends if after is not None)
    if before is None:
        return ObjectState(None, False, frozenset(unsure), tuple(links), finished)
    if (_EVERY not in before.unsure and unsure - before.unsure) or finished:
        return ObjectState(before.place, False, frozenset(unsure) | before.unsure, (*links, *before.links), finished)
    return None


@dataclass(slots=True)
class ObjectClasses:
    """What made the objects of one function, as far as its assignments and annotations show."""

    names: Names
    definitions: Callable[[], Definitions]
    """Returns what names of the file lead to in the checkout."""
    values: dict[str, ast.Call | ast.Attribute] = field(default_factory=dict)
    """The call that made an object, or the attribute that it is, by the path of the object."""
    annotations: dict[str, str] = field(default_factory=dict)
    """The full name of the class of parameters and variables whose annotation names a class that is not Megatron's."""
    own_annotations: dict[str, str] = field(default_factory=dict)
    """That of those whose annotation names a class of Megatron."""
    class_names: dict[str, str] = field(default_factory=dict)
    """The class that makes an object, or that its annotation names, as the file writes it."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is known of any object."""
        return not (self.values or self.annotations or self.own_annotations)

    def copy(self) -> ObjectClasses:
        """Return a copy for a branch or a function."""
        return replace(
            self,
            values=dict(self.values),
            annotations=dict(self.annotations),
            own_annotations=dict(self.own_annotations),
            class_names=dict(self.class_names),
        )

    def assign(self, path: str, value: ast.expr | None) -> None:
        """Note what is called to make an object, or of which other one it is an attribute."""
        if path and isinstance(value, (ast.Call, ast.Attribute)):
            self.values[path] = value
        if path and isinstance(value, ast.Call):
            self.class_names[path] = dotted(value.func)

    def annotate(self, path: str, annotation: ast.expr | None) -> None:
        """Note the class in an annotation."""
        named = _classes_in(annotation)
        classes = [other_class(self.names, self.names.resolve(name)) for name in named]
        if path and classes and all(classes):
            self.annotations[path] = classes[0]
        own = [class_of_megatron(self.names, name) for name in named]
        if path and len(own) == 1 and own[0]:
            self.own_annotations[path] = own[0]
        if path and len(named) == 1:
            self.class_names[path] = named[0]

    def forget(self, path: str) -> None:
        """Remove what is known of an object that is bound anew."""
        forget(self.values, path)
        forget(self.class_names, path)
        self.annotations.pop(path, None)
        self.own_annotations.pop(path, None)

    def describe(self, place: SiteNodes, path: str, self_class: str) -> None:
        """Set whose object a place sets; ``self_class`` is the class around the code."""
        value = self.values.get(path)
        place.class_name = self_class if path in ("self", "cls") else self.class_names.get(path, "")
        made_by = self.names.resolve(dotted(value.func)) if isinstance(value, ast.Call) else ""
        place.built = made_by.startswith("megatron.core.") and "Config" in made_by
        place.built = place.built or made_by.endswith("core_transformer_config_from_args")
        if made_by and not made_by.startswith(("megatron.", "nemo.")):
            place.callee = made_by
        if foreign := other_class(self.names, made_by) or self.annotations.get(path, ""):
            place.callee, place.foreign = foreign, True
        elif own := self._class_of(path):
            place.callee = own
        elif isinstance(value, ast.Attribute):
            place.meant = dotted(value) or f"?.{value.attr}"
        if path in ("self", "cls") and self_class:
            place.callee = self.names.resolve(self_class)

    def _class_of(self, path: str) -> str:
        """Return the class of Megatron that an object has, empty if that is not known."""
        value = self.values.get(path)
        if original := _original(value):
            return self._class_of(original) if original != path else ""
        made_by = class_made_by(value, self.definitions()) if isinstance(value, ast.Call) else ""
        return made_by or self.own_annotations.get(path, "")


def _original(value: ast.expr | None) -> str:
    """Return the path of the object that a value is, or a copy of which it is; empty for any other value."""
    match value:
        case ast.Attribute():
            return dotted(value)
        case ast.Call(func=ast.Name(id="deepcopy" | "copy") | ast.Attribute(attr="deepcopy" | "copy"), args=[one]):
            return dotted(one)
    return ""


def _classes_in(annotation: ast.expr | None) -> list[str]:
    """Return the classes that an annotation names: `C`, `"C"`, `Optional[C]`, `A | B`; none of it is evaluated."""
    match annotation:
        case ast.Name() | ast.Attribute():
            return [dotted(annotation)]
        case ast.Constant(value=str() as text):
            try:
                parsed = ast.parse(text, mode="eval").body if len(text) < _LONGEST_ANNOTATION else None
            except (SyntaxError, ValueError):
                parsed = None
            return _classes_in(parsed)
        case ast.Subscript(value=ast.Name(id="Optional" | "Union") | ast.Attribute(attr="Optional" | "Union")):
            inner = annotation.slice
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return [name for part in parts for name in _classes_in(part)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_classes_in(left), *_classes_in(right)]
    return []
