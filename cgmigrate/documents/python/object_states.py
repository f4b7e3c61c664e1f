"""What is known of the objects that statements set: the latest site of each, and what made the object."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cgmigrate.documents.python.class_origins import other_class
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.site_nodes import Place
from cgmigrate.documents.python.source import dotted

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

    place: Place | None
    open: bool = False
    unsure: frozenset[str] = frozenset()
    links: tuple[Place, ...] = ()
    finished: bool = False


States = dict[str, ObjectState]
"""By the path of the object (``cfg.model``)."""


def closed(states: States) -> States:
    """Return a copy for a branch: statements in the branch begin sites of their own."""
    return {path: replace(state, open=False) for path, state in states.items()}


def forget(known: dict[str, ObjectState] | dict[str, str], path: str) -> None:
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
    links: list[Place] = []
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
    callees: dict[str, str] = field(default_factory=dict)
    """The full name of what was called to make an object, by its path."""
    annotations: dict[str, str] = field(default_factory=dict)
    """The full name of the class of parameters and variables whose annotation names a class that is not Megatron's."""

    def copy(self) -> ObjectClasses:
        """Return a copy for a branch or a function."""
        return ObjectClasses(self.names, dict(self.callees), dict(self.annotations))

    def assign(self, path: str, value: ast.expr | None) -> None:
        """Note what is called to make an object."""
        if path and isinstance(value, ast.Call):
            self.callees[path] = self.names.resolve(dotted(value.func))

    def annotate(self, path: str, annotation: ast.expr | None) -> None:
        """Note the class in an annotation."""
        classes = [other_class(self.names, self.names.resolve(name)) for name in _classes_in(annotation)]
        if path and classes and all(classes):
            self.annotations[path] = classes[0]

    def forget(self, path: str) -> None:
        """Remove what is known of an object that is bound anew."""
        forget(self.callees, path)
        self.annotations.pop(path, None)

    def describe(self, place: Place, path: str, self_class: str) -> None:
        """Set whose object a place sets; ``self_class`` is the class around the code."""
        made_by = self.callees.get(path, "")
        place.built = made_by.startswith("megatron.core.") and "Config" in made_by
        place.built = place.built or made_by.endswith("core_transformer_config_from_args")
        if made_by and not made_by.startswith(("megatron.", "nemo.")):
            place.callee = made_by
        if foreign := other_class(self.names, made_by) or self.annotations.get(path, ""):
            place.callee, place.foreign = foreign, True
        if path in ("self", "cls") and self_class:
            place.callee = self.names.resolve(self_class)


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
