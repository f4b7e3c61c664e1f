"""Sites that are assignments to attributes of one object: ``cfg.model.cuda_graph_scope = …``.

Statements of one suite that set the same object are one site, whatever is between them, until the object
is bound anew. A branch, a loop body or a handler is a site of its own that inherits from what surely ran
before it. Behind a branch it is not known which settings the object has, so a later statement begins a new
site that inherits nothing uncertain.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.object_states import ObjectClasses, ObjectState, States, closed, forget, join
from cgmigrate.documents.python.release_checks import caught_for_releases, release_check_of
from cgmigrate.documents.python.site_nodes import Item, SiteForm, SiteNodes
from cgmigrate.documents.python.source import PythonSource, dotted
from cgmigrate.documents.python.values import value_of
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.python.definitions import Definitions

_FINISH = frozenset(("finalize", "__post_init__", "validate"))
"""Methods after which settings have taken effect."""
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)
_COMPOUND = (
    *_LEAVES,
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.If, ast.For, ast.AsyncFor, ast.While),
    *(ast.Try, ast.With, ast.AsyncWith, ast.Match),
)


class Assignments:
    """Collects the sites of a file into ``places``; ``seen`` are the ids of their statements."""

    def __init__(self, source: PythonSource, names: Names, definitions: Callable[[], Definitions]) -> None:
        self.source, self.names = source, names
        self.places: list[SiteNodes] = []
        self.seen: set[int] = set()
        self.later: dict[ast.AST | None, dict[str, object]] = {}
        """What is set of objects, by the calls that make these."""
        self._self_class = ""
        self._classes = ObjectClasses(names, definitions)

    def collect(self) -> None:
        """Walk the file's statements."""
        self._suite(self.source.tree.body, {}, "")

    # --- statements -------------------------------------------------------------------------

    def _suite(self, body: list[ast.stmt], states: States, guard: str) -> bool:
        """Read a list of statements; return whether control surely leaves it before its end.

        ``guard`` says why the statements are for some releases only, empty when they are not.
        """
        for statement in body:
            nothing_known = not states and not self._classes.values
            if nothing_known and not self.source.names_setting(statement) and not _may_bind_object(statement):
                continue
            if not isinstance(statement, _COMPOUND):
                self._simple(statement, body, states, guard)
            elif self._compound(statement, states, guard):
                return True
        return False

    def _compound(self, statement: ast.stmt, states: States, guard: str) -> bool:
        """Read a statement that holds others or leaves the suite; return whether control surely leaves it."""
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                self._definition(statement, states)
            case ast.If(test=test):
                self._branches([statement.body, statement.orelse], states, guard or self._release_check(test))
            case ast.For() | ast.AsyncFor():
                self._bind(statement.target, states)
                self._loop(statement, states, guard)
            case ast.While(test=test):
                self._loop(statement, states, guard or self._release_check(test))
            case ast.Try():
                self._try(statement, states, guard)
            case ast.With() | ast.AsyncWith():
                return self._with(statement, states, guard)
            case ast.Match():
                self._branches([case.body for case in statement.cases], states, guard)
        return isinstance(statement, _LEAVES)

    def _release_check(self, test: ast.expr) -> str:
        return release_check_of(test, self.source)

    def _definition(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, states: States) -> None:
        """Read a body that runs later, or in a namespace of its own: it inherits nothing."""
        self._forget(node.name, states)
        if not self.source.names_setting(node):
            return
        classes, outer_class = self._classes.copy(), self._self_class
        if isinstance(node, ast.ClassDef):
            self._self_class = node.name
        else:
            for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                self._classes.forget(arg.arg)
                self._classes.annotate(arg.arg, arg.annotation)
        self._suite(node.body, {}, "")
        self._classes, self._self_class = classes, outer_class

    def _branches(self, bodies: Iterable[list[ast.stmt]], states: States, guard: str) -> None:
        ends: list[States] = []
        for body in filter(None, bodies):
            inner = closed(states)
            values = dict(self._classes.values)
            if not self._suite(body, inner, guard):
                ends.append(inner)
            self._classes.values = values
        for path, state in states.items():
            # A site that a branch inherits from must not grow: the branch did not see what comes behind it.
            if state.open and any(place.inherits is state.place for place in self.places):
                states[path] = replace(state, open=False)
        join(states, ends)

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, states: States, guard: str) -> None:
        """Read a loop, whose body sees from the second time on what it has set before."""
        first = len(self.places)
        self._branches([node.body, node.orelse], states, guard)
        for place in self.places[first:]:
            place.uncertain = True

    def _try(self, node: ast.Try, states: States, guard: str) -> None:
        inner = guard or caught_for_releases(node, self.source.catalogue)
        if not node.handlers:
            self._suite(node.body, states, inner)
        else:
            bodies = [node.body, *(handler.body for handler in node.handlers), node.orelse]
            self._branches(bodies, states, inner)
        self._suite(node.finalbody, states, guard)

    def _with(self, node: ast.With | ast.AsyncWith, states: States, guard: str) -> bool:
        for item in node.items:
            if item.optional_vars is not None:
                self._bind(item.optional_vars, states)
        return self._suite(node.body, states, guard)

    # --- simple statements ------------------------------------------------------------------

    def _simple(self, statement: ast.stmt, body: list[ast.stmt], states: States, guard: str) -> None:
        if self.source.names_setting(statement) and (setting := self._setting(statement, body)):
            self._add(*setting, states, guard)
            return
        for target in _targets(statement):
            self._bind(target, states)
            if isinstance(statement, ast.AnnAssign):
                self._classes.annotate(dotted(target), statement.annotation)
            if isinstance(statement, (ast.Assign, ast.AnnAssign)):
                self._classes.assign(dotted(target), statement.value)
        match statement:
            case ast.Import() | ast.ImportFrom():
                for alias in statement.names:
                    self._forget(alias.asname or alias.name.partition(".")[0], states)
            case ast.Expr(value=ast.Call(func=ast.Attribute(value=owner, attr=attr))) if attr in _FINISH:
                _finish(dotted(owner), states)

    def _setting(self, statement: ast.stmt, body: list[ast.stmt]) -> tuple[ast.expr, Item] | None:
        """Return the object and setting of ``object.name = value`` or ``setattr(object, "name", value)``."""
        source, names = self.source, self.source.catalogue.name_set
        match statement:
            case ast.Assign(
                targets=[ast.Attribute(value=ast.Attribute(value=base, attr=section), attr=key) as target], value=value
            ) if attr := source.catalogue.in_sections.get(section, {}).get(key):
                end = source.span(target).end
                name = Span(end - len(attr), end)
                if source.text[name.start : name.end] != attr:
                    return None
            case ast.Assign(targets=[ast.Attribute(value=base, attr=attr) as target], value=value) if attr in names:
                end = source.span(target).end
                name = Span(end - len(attr), end)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Name(id="setattr"),
                    args=[base, ast.Constant(value=str() as attr) as key, value],
                    keywords=[],
                )
            ) if attr in names and source.of(key)[1:-1] == attr:
                span = source.span(key)
                name = Span(span.start + 1, span.end - 1)
            case _:
                return None
        whole = source.span(statement)
        plain = value_of(source.catalogue[attr], value, self.names)
        item = Item(attr, name, [value], whole, statement, body, plain, whole)
        return base, item

    def _add(self, base: ast.expr, item: Item, states: States, guard: str) -> None:
        """Add a setting to the open site of its object, or begin a new one."""
        path = dotted(base)
        if isinstance(made := self._classes.values.get(path), ast.Call):
            self.later.setdefault(made, {})[item.field] = item.value
        state = states.get(path) if path else None
        self.seen.add(id(item.node))
        if state is not None and state.open and state.place is not None and state.place.blocked_by in ("", guard):
            if any(other.field == item.field for other in state.place.items):
                state.place.blocked_by = f"`{path}.{item.field}` is assigned twice"
            state.place.items.append(item)
            return
        written = ast.unparse(base)
        place = SiteNodes(
            SiteForm.ASSIGNMENTS, [item], owner=written, object=path or written, overrides=True, blocked_by=guard
        )
        self._classes.describe(place, path, self._self_class)
        if state is not None:
            place.built = place.built or state.finished
            place.links = [*state.links, *([state.place] if state.place else [])]
            place.uncertain = bool(state.unsure)
            if state.place is not None and not state.unsure:
                place.inherits = state.place
        self.places.append(place)
        if path:
            states[path] = ObjectState(place, open=True)

    # --- what ends a site -------------------------------------------------------------------

    def _bind(self, target: ast.expr, states: States) -> None:
        """Forget the objects that a target of an assignment names."""
        if not states and self._classes.is_empty:
            return
        match target:
            case ast.Tuple(elts=elts) | ast.List(elts=elts):
                for element in elts:
                    self._bind(element, states)
            case ast.Starred(value=value):
                self._bind(value, states)
            case ast.Name() | ast.Attribute():
                if path := dotted(target):
                    self._forget(path, states)

    def _forget(self, path: str, states: States) -> None:
        forget(states, path)
        self._classes.forget(path)


def _finish(path: str, states: States) -> None:
    """Close the sites of an object that is finished: settings take effect there, and later ones are another site."""
    for other, state in list(states.items()):
        if other == path or other.startswith(path + "."):
            states[other] = replace(state, open=False, finished=True)


def _targets(statement: ast.stmt) -> list[ast.expr]:
    match statement:
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            return targets
        case ast.AnnAssign(target=target) | ast.AugAssign(target=target):
            return [target]
    return []


def _may_bind_object(statement: ast.stmt) -> bool:
    """Whether a statement may show what makes an object, or that it is a part of another one."""
    return isinstance(statement, ast.AnnAssign) or (
        isinstance(statement, ast.Assign) and isinstance(statement.value, (ast.Call, ast.Attribute))
    )
