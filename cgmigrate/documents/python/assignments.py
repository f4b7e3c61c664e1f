"""Runs of assignments to attributes of one object: ``cfg.model.cuda_graph_scope = …``.

Statements of one suite that set the same object are one site, whatever stands between, until the object
is bound anew. A branch, a loop body or a handler is a site of its own that builds on what surely ran
before it. After a branch nobody knows which settings hold, so a later statement begins a new site that
builds on nothing uncertain.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from cgmigrate.documents.python.class_origins import other_class
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.places import FIELD_SET, Form, Item, Place, catches_missing, guard_of
from cgmigrate.documents.python.source import Source, dotted
from cgmigrate.documents.python.values import value_of
from cgmigrate.megatron.settings import FIELDS
from cgmigrate.text.spans import Span

_ALL = frozenset(FIELDS)
_LONG = 200
"""Characters of an annotation in quotes; a longer one names no class that is worth its parsing."""
_FINISH = frozenset(("finalize", "__post_init__", "validate"))


@dataclass(frozen=True, slots=True)
class _Slot:
    """What is known of an object: the latest site that set it, whether that can still grow, what is unsure.

    ``links`` are sites that may have set it before, in branches.
    """

    place: Place | None
    open: bool = False
    unsure: frozenset[str] = frozenset()
    links: tuple[Place, ...] = ()
    finished: bool = False


@dataclass(slots=True)
class Runs:
    """Collects the runs of a file into ``places``; ``bound`` tells what an object was made by."""

    source: Source
    names: Names
    places: list[Place] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    """Ids of the statements that belong to a run."""
    self_class: str = ""
    _bound: dict[str, str] = field(default_factory=dict)
    _annotated: dict[str, str] = field(default_factory=dict)
    """Parameters and variables whose annotation is a class that is not Megatron's: its full name."""

    def collect(self) -> None:
        """Walk the file's statements."""
        self._suite(self.source.tree.body, {}, "")

    # --- statements -------------------------------------------------------------------------

    def _suite(self, body: list[ast.stmt], slots: dict[str, _Slot], guard: str) -> bool:
        """Read a list of statements; return whether control surely leaves it before its end."""
        for statement in body:
            if not slots and not self._bound and not self.source.has_hit(statement) and not _binds_calls(statement):
                continue
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._definition(statement, slots)
                case ast.If(test=test):
                    inner = guard or guard_of(test)
                    self._branches([statement.body, statement.orelse], slots, inner)
                case ast.For() | ast.AsyncFor():
                    self._forget(statement.target, slots)
                    self._loop(statement, slots, guard)
                case ast.While(test=test):
                    self._loop(statement, slots, guard or guard_of(test))
                case ast.Try():
                    self._try(statement, slots, guard)
                case ast.With() | ast.AsyncWith():
                    for item in statement.items:
                        if item.optional_vars is not None:
                            self._forget(item.optional_vars, slots)
                    if self._suite(statement.body, slots, guard):
                        return True
                case ast.Match():
                    self._branches([case.body for case in statement.cases], slots, guard)
                case ast.Return() | ast.Raise() | ast.Continue() | ast.Break():
                    return True
                case _:
                    self._simple(statement, body, slots, guard)
        return False

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, slots: dict[str, _Slot]) -> None:
        """A body that runs later, or in a namespace of its own: it builds on nothing."""
        self._forget_name(node.name, slots)
        if not self.source.has_hit(node):
            return
        bound, annotated, outer_class = dict(self._bound), dict(self._annotated), self.self_class
        if isinstance(node, ast.ClassDef):
            self.self_class = node.name
        else:
            given = node.args
            for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs):
                self._forget_name(arg.arg, slots={})
                self._annotate(arg.arg, arg.annotation)
        self._suite(node.body, {}, "")
        self._bound, self._annotated, self.self_class = bound, annotated, outer_class

    def _branches(self, bodies: Iterable[list[ast.stmt]], slots: dict[str, _Slot], guard: str) -> None:
        ends: list[dict[str, _Slot]] = []
        for body in bodies:
            if not body:
                continue
            inner = {path: replace(slot, open=False) for path, slot in slots.items()}
            bound = dict(self._bound)
            if not self._suite(body, inner, guard):
                ends.append(inner)
            self._bound = bound
        for path, slot in slots.items():
            # What a branch has built on must not grow: the branch did not see what comes behind it.
            if slot.open and any(place.inherits is slot.place for place in self.places):
                slots[path] = replace(slot, open=False)
        self._join(slots, ends)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, slots: dict[str, _Slot], guard: str) -> None:
        """The second time round, a body sees what it has set the first time."""
        first = len(self.places)
        self._branches([node.body, node.orelse], slots, guard)
        for place in self.places[first:]:
            place.uncertain = True

    def _try(self, node: ast.Try, slots: dict[str, _Slot], guard: str) -> None:
        inner = guard or catches_missing(node)
        if not node.handlers:
            self._suite(node.body, slots, inner)
        else:
            bodies = [node.body, *(handler.body for handler in node.handlers), node.orelse]
            self._branches(bodies, slots, inner)
        self._suite(node.finalbody, slots, guard)

    @staticmethod
    def _join(slots: dict[str, _Slot], ends: list[dict[str, _Slot]]) -> None:
        """What is known behind branches: only what none of them touched."""
        for path in {path for end in ends for path in end} | set(slots):
            before = slots.get(path)
            unsure: set[str] = set()
            links: list[Place] = []
            for end in ends:
                after = end.get(path)
                if after is None:
                    if before is not None:
                        unsure |= _ALL
                    continue
                unsure |= after.unsure
                links += after.links
                place = after.place
                while place is not None and (before is None or place is not before.place):
                    unsure |= {item.field for item in place.items}
                    links.append(place)
                    place = place.inherits
            finished = any(end[path].finished for end in ends if path in end)
            if before is None:
                slots[path] = _Slot(None, False, frozenset(unsure), tuple(links), finished)
            elif unsure - before.unsure or finished:
                links += before.links
                slots[path] = _Slot(before.place, False, frozenset(unsure) | before.unsure, tuple(links), finished)

    # --- simple statements ------------------------------------------------------------------

    def _simple(self, statement: ast.stmt, body: list[ast.stmt], slots: dict[str, _Slot], guard: str) -> None:
        found = self._setting(statement, body) if self.source.has_hit(statement) else None
        if found is not None:
            base, item = found
            self._add(base, item, slots, guard)
            return
        match statement:
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self._forget(target, slots)
                    if isinstance(value, ast.Call) and (path := dotted(target)):
                        self._bound[path] = self.names.resolve(dotted(value.func))
            case ast.AnnAssign(target=target, annotation=annotation):
                self._forget(target, slots)
                self._annotate(dotted(target), annotation)
                if isinstance(statement.value, ast.Call) and (path := dotted(target)):
                    self._bound[path] = self.names.resolve(dotted(statement.value.func))
            case ast.AugAssign(target=target):
                self._forget(target, slots)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._forget(target, slots)
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    self._forget_name(alias.asname or alias.name.partition(".")[0], slots)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr))) if attr in _FINISH:
                self._finish(dotted(owner), slots)

    def _setting(self, statement: ast.stmt, body: list[ast.stmt]) -> tuple[ast.expr, Item] | None:
        """The object and setting of ``object.name = value`` or ``setattr(object, "name", value)``."""
        source = self.source
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=base, attr=attr) as target], value=value) if attr in FIELD_SET:
                end = source.span(target).end
                name = Span(end - len(attr), end)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="setattr"),
                    args=[base, ast.Constant(value=str() as attr) as key, value],
                    keywords=[],
                )
            ) if attr in FIELD_SET and source.of(key)[1:-1] == attr:
                span = source.span(key)
                name = Span(span.start + 1, span.end - 1)
            case _:
                return None
        whole = source.span(statement)
        item = Item(attr, name, [value], whole, statement, body, value_of(attr, value, self.names), whole)
        return base, item

    def _add(self, base: ast.expr, item: Item, slots: dict[str, _Slot], guard: str) -> None:
        path = dotted(base)
        slot = slots.get(path) if path else None
        self.seen.add(id(item.node))
        if slot is not None and slot.open and slot.place is not None and slot.place.fixed in ("", guard):
            if any(other.field == item.field for other in slot.place.items):
                slot.place.fixed = f"`{path}.{item.field}` is assigned twice"
            slot.place.items.append(item)
            return
        place = Place(Form.RUN, [item], owner=ast.unparse(base), object=path or ast.unparse(base), overrides=True)
        place.fixed = guard
        made_by = self._made_by(path)
        place.built = made_by.startswith("megatron.core.") and "Config" in made_by
        place.built = place.built or made_by.endswith("core_transformer_config_from_args")
        if made_by and not made_by.startswith(("megatron.", "nemo.")):
            place.callee = made_by
        if foreign := other_class(self.names, made_by) or self._annotated.get(path, ""):
            place.callee, place.foreign = foreign, True
        if path in ("self", "cls") and self.self_class:
            place.callee = self.names.resolve(self.self_class)
        if slot is not None:
            place.built = place.built or slot.finished
            place.links = [*slot.links, *([slot.place] if slot.place else [])]
            place.uncertain = bool(slot.unsure)
            if slot.place is not None and not slot.unsure:
                place.inherits = slot.place
        self.places.append(place)
        if path:
            slots[path] = _Slot(place, True)

    def _made_by(self, path: str) -> str:
        """The full name of what was called to make an object, as far as the lines above tell."""
        return self._bound.get(path, "")

    def _annotate(self, path: str, annotation: ast.expr | None) -> None:
        classes = [other_class(self.names, self.names.resolve(name)) for name in _classes_in(annotation)]
        if path and classes and all(classes):
            self._annotated[path] = classes[0]

    # --- what ends a run --------------------------------------------------------------------

    def _forget(self, target: ast.expr, slots: dict[str, _Slot]) -> None:
        """The target is bound anew: nothing is known of it, nor of what is reached through it."""
        if not slots and not self._bound and not self._annotated:
            return
        match target:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                for element in elts:
                    self._forget(element, slots)
            case ast.Starred(value=value):
                self._forget(value, slots)
            case ast.Name() | ast.Attribute():
                if path := dotted(target):
                    self._forget_name(path, slots)
            case _:
                pass

    def _forget_name(self, path: str, slots: dict[str, _Slot]) -> None:
        for known in [known for known in slots if known == path or known.startswith(path + ".")]:
            del slots[known]
        for known in [known for known in self._bound if known == path or known.startswith(path + ".")]:
            del self._bound[known]
        self._annotated.pop(path, None)

    def _finish(self, path: str, slots: dict[str, _Slot]) -> None:
        """Settings take effect where an object is finished; what comes behind is another site."""
        for known, slot in list(slots.items()):
            if known == path or known.startswith(path + "."):
                slots[known] = replace(slot, open=False, finished=True)


def _binds_calls(statement: ast.stmt) -> bool:
    """Whether a statement may say what an object is made by."""
    return isinstance(statement, ast.AnnAssign) or (
        isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)
    )


def _classes_in(annotation: ast.expr | None) -> list[str]:
    """The classes that an annotation names: `C`, `"C"`, `Optional[C]`, `A | B`; none of it is evaluated."""
    match annotation:
        case ast.Name() | ast.Attribute():
            return [dotted(annotation)]
        case ast.Constant(value=str() as text):
            try:
                return _classes_in(ast.parse(text, mode="eval").body) if len(text) < _LONG else []
            except (SyntaxError, ValueError):
                return []
        case ast.Subscript(value=ast.Name(id="Optional" | "Union") | ast.Attribute(attr="Optional" | "Union")):
            inner = annotation.slice
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return [name for part in parts for name in _classes_in(part)]
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_classes_in(left), *_classes_in(right)]
    return []
