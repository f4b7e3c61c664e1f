"""Code that a release of Megatron-LM no longer takes: imports of names that are gone, and calls that do not fit.

What is written for several releases is skipped: see ``unguarded_code``.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from cgmigrate.documents.dotted_names import PATH, is_of_megatron
from cgmigrate.documents.python.gpt_recipes import about_recipe
from cgmigrate.documents.python.name_resolution import Names
from cgmigrate.documents.python.read_messages import HolderKind, kind_of
from cgmigrate.documents.python.scopes import bound_by
from cgmigrate.documents.python.source import PythonSource, dotted, last_name
from cgmigrate.documents.python.unguarded_code import Placed, unguarded
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.megatron.code import CallShape, GoneName, Parameters, load
from cgmigrate.megatron.hybrid_models import about_class
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.retyped import Listed, became_lists
from cgmigrate.megatron.tables import release_of
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.python.definitions import Definitions

# --- arguments that became lists ------------------------------------------------------------------

_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_LISTS = (ast.List, ast.Tuple, ast.ListComp)


class RetypedArguments:
    """Finds the comparisons of a file that a list changes."""

    def __init__(self, source: PythonSource, names: Names) -> None:
        self._source = source
        self._is_own = any(module.startswith("megatron.") for module in names.modules)

    def problems(self, node: ast.Compare) -> Iterator[Problem]:
        """Yield the problem of a comparison with one operator, unless the file handles a list as well."""
        if not self._is_own or len(node.ops) != 1:
            return
        for read, other in ((node.left, node.comparators[0]), (node.comparators[0], node.left)):
            name, kind = _attribute(read)
            listed = became_lists().get(name)
            is_of_config = kind is not HolderKind.ARGS
            if listed is None or name in self._handled or (is_of_config and not listed.is_of_config):
                continue
            if effect := _effect(node.ops[0], other, listed, is_left=read is node.left):
                where = "is a list where its flag is written"
                where = "of a configuration is a list where it comes from a flag" if is_of_config else where
                message = f"since megatron-core {listed.since}, `{name}` {where}: {effect}"
                yield Problem(ProblemKind.CHANGED_TYPE, self._source.span(node), message, since=listed.since)

    @cached_property
    def _handled(self) -> frozenset[str]:
        """The attributes that the file tests for a list, goes through, takes items of, or sets itself."""
        names: set[str] = set()
        for node in ast.walk(self._source.tree):
            match node:
                case ast.Call(func=ast.Name(id="isinstance" | "type" | "len" | "list"), args=[first, *_]):
                    names.add(_attribute(first)[0])
                case ast.Subscript(value=value) | ast.For(iter=value) | ast.comprehension(iter=value):
                    names.add(_attribute(value)[0])
                case ast.Assign(targets=targets):
                    names.update(_attribute(target)[0] for target in targets)
        return frozenset(names)


def _attribute(node: ast.expr) -> tuple[str, HolderKind]:
    """Return which attribute of the arguments or of a configuration an expression is, an empty name for any other."""
    match node:
        case ast.Attribute(value=value, attr=name):
            pass
        case ast.Call(func=ast.Name(id="getattr"), args=[value, ast.Constant(value=str() as name), *_]):
            pass
        case _:
            return "", HolderKind.UNKNOWN
    kind = kind_of(value)
    is_known = kind is HolderKind.ARGS or last_name(value).lower().endswith("config")
    return (name, kind) if is_known else ("", HolderKind.UNKNOWN)


def _effect(operator: ast.cmpop, other: ast.expr, listed: Listed, *, is_left: bool) -> str:
    """Return what a comparison does with a list, empty if that is not known; ``is_left`` is where the attribute is."""
    is_one = isinstance(other, ast.Constant) and other.value is not None
    match operator:
        case ast.Eq() | ast.NotEq() if is_one:
            return f"this is {'false' if isinstance(operator, ast.Eq) else 'true'} then, whatever it has"
        case ast.In() | ast.NotIn() if is_left and isinstance(other, (*_LISTS, ast.Set)):
            return f"this is {'false' if isinstance(operator, ast.In) else 'true'} then, whatever it has"
        case ast.In() | ast.NotIn() if not is_left and isinstance(other, ast.Constant):
            is_part = any(str(other.value) in one and other.value != one for one in listed.choices)
            return "`in` compares whole names then, and no longer a part of one" if is_part else ""
    return "this is a TypeError then" if isinstance(operator, _ORDERED) and not isinstance(other, _LISTS) else ""


# --- megatron code ------------------------------------------------------------

_OF_NO_OBJECT = {"staticmethod", "classmethod", "property"}
_WORD = re.compile(r"\w+")
_SAME_TEXT = "its definition has the same text there, and what that calls may be different"


def code_problems(
    source: PythonSource, names: Names, first_index: int, definitions: Callable[[], Definitions]
) -> Iterator[Problem]:
    """Yield a problem for each import, name and call that some release does not take; ``since`` is the first one.

    The replacement of an import is another module, where all that it imports is there.
    """
    reader = _CodeReader(source, names, definitions)
    for index, problem in enumerate(reader.problems(), first_index):
        yield problem.at(index)


class _CodeReader:
    def __init__(self, source: PythonSource, names: Names, definitions: Callable[[], Definitions]) -> None:
        self._source, self._names, self._table = source, names, load()
        self._definitions = definitions
        self._retyped = RetypedArguments(source, names)

    def problems(self) -> Iterator[Problem]:
        for place in unguarded(self._source.tree, self._source):
            for problem in self._of(place):
                # The error of an import that is caught has no fix: the code goes on without it.
                yield replace(problem, replacement="", risk="") if place.is_caught else problem

    def _of(self, place: Placed) -> Iterator[Problem]:
        match place.node:
            case ast.ImportFrom(level=0, module=str() as module) as node if self._is_of_megatron(module):
                yield from self._of_import(node, module)
            case ast.Import() as node:
                for one in node.names:
                    yield from self._of_module(node, one.name)
            case ast.Attribute(ctx=ast.Load()) as node:
                path = self._resolved(node, place)
                yield from self._of_path(node, path) if path else self._of_weights(node, node.attr)
            case ast.Call() as node:
                yield from self._of_call(node, place)
                yield from self._of_names_in(node)
                yield from self._of_recipe(node, place)
            case ast.ClassDef() as node:
                for base in self._bases(node, place, frozenset()):
                    yield from self._of_overrides(node, base)
            case ast.Compare() as node:
                yield from self._retyped.problems(node)
            case ast.Constant(value=str() as text) as node:
                yield from self._of_weights(node, text)

    def _of_recipe(self, call: ast.Call, place: Placed) -> Iterator[Problem]:
        scopes = [one for one in (place.function, self._source.tree) if one is not None]
        if message := about_recipe(call, scopes, lambda one: self._resolved(one, place)):
            yield Problem(ProblemKind.GPT_RECIPE, self._source.span(call.func), message)

    def _is_of_megatron(self, module: str) -> bool:
        return is_of_megatron(module, self._names.path)

    def _of_import(self, node: ast.ImportFrom, module: str) -> Iterator[Problem]:
        for message in filter(None, (about_class(f"{module}.{one.name}") for one in node.names)):
            yield Problem(ProblemKind.GPT_CLASS, self._source.span(node), message)
        gone = {one.name: known for one in node.names if (known := self._gone(module, one.name))}
        for since in sorted({one.since for one in gone.values()}):
            names = {name: one for name, one in gone.items() if one.since == since}
            problem = self._problem(node, since, self._table.gone_names(module, names, since))
            places, same = {one.module for one in names.values()}, {one.is_same for one in names.values()}
            span = self._span_of_module(node, module)
            if len(names) == len(node.names) and len(places) == 1 and None not in same and span is not None:
                risk = _SAME_TEXT if False in same else ""
                full = tuple(f"{module}.{one.name}" for one in node.names)
                problem = replace(problem, span=span, replacement=places.pop(), risk=risk, replaced_names=full)
            yield problem

    def _gone(self, module: str, name: str) -> GoneName | None:
        """Return what became of a name of a module, which can be a module itself."""
        return self._table.gone_name(module, name) or self._table.gone_name(f"{module}.{name}", "")

    def _span_of_module(self, node: ast.ImportFrom, module: str) -> Span | None:
        """Return where an import names its module; None where that is not one word."""
        span = self._source.span(node)
        start = self._source.text.find(module, span.start, span.end)
        return Span(start, start + len(module)) if start >= 0 else None

    def _of_module(self, node: ast.Import | ast.Constant, module: str) -> Iterator[Problem]:
        gone = self._table.gone_name(module, "") if self._is_of_megatron(module) else None
        if gone is not None:
            yield self._problem(node, gone.since, self._table.gone_module(module, gone.since))

    def _of_names_in(self, call: ast.Call) -> Iterator[Problem]:
        """Yield the problems of paths that a call gets as texts, as `mock.patch` and `import_module` do."""
        for node in (*call.args, *(one.value for one in call.keywords)):
            match node:
                case ast.Constant(value=str() as text) if PATH.match(text):
                    yield from self._of_path(node, text)
                    yield from self._of_module(node, text)

    def _bases(self, node: ast.ClassDef, place: Placed, seen: frozenset[str]) -> Iterator[str]:
        """Yield the classes of Megatron from which a class inherits, through others of the file as well."""
        for base in node.bases:
            function, name = self._resolved(base, place), dotted(base)
            if self._is_of_megatron(function):
                yield function
            elif (own := self._classes.get(name)) is not None and name not in seen:
                yield from self._bases(own, place, seen | {name})

    @cached_property
    def _classes(self) -> dict[str, ast.ClassDef]:
        return {node.name: node for node in self._source.tree.body if isinstance(node, ast.ClassDef)}

    def _of_overrides(self, node: ast.ClassDef, base: str) -> Iterator[Problem]:
        """Yield the methods of a class that do not take what those of its base do, which they replace."""
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and not {*map(dotted, method.decorator_list)} & _OF_NO_OBJECT:
                taken = Parameters.of(method.args, is_method=True)
                for since, names in self._table.added(base, method.name, taken):
                    original = f"`{base.rpartition('.')[2]}.{method.name}` of {self._table.release_words(base, since)}"
                    start = self._source.text.index(method.name, self._source.span(method).start)
                    span = Span(start, start + len(method.name))
                    message = f"{original} also takes `{names}`, and the method that replaces it does not"
                    yield Problem(ProblemKind.OUTGROWN_METHOD, span, message, since=since)

    def _of_weights(self, node: ast.expr, text: str) -> Iterator[Problem]:
        """Yield the parts of names of weights that a release calls otherwise; a text with both names is for both."""
        words = _words_of(text)
        for name, (above, first, now) in self._table.weights.items():
            if name in words and above in self._words and now not in self._words:
                message = (
                    f"weights below `{above}` of megatron-core {first} have `{now}` in their names, and no `{name}`"
                )
                yield self._problem(node, release_of(first), message)

    @cached_property
    def _words(self) -> frozenset[str]:
        """The words of all texts of the file that are values, and its attributes."""
        nodes = list(ast.walk(self._source.tree))
        attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
        return frozenset(attributes.union(*(_words_of(node.value) for node in nodes if isinstance(node, ast.Constant))))

    def _of_path(self, node: ast.Attribute | ast.Constant, path: str) -> Iterator[Problem]:
        if message := about_class(path):
            yield Problem(ProblemKind.GPT_CLASS, self._source.span(node), message)
        module, _, name = path.rpartition(".")
        gone = self._table.gone_name(module, name) if self._is_of_megatron(module) else None
        # Of a module that is gone, the import is reported.
        if gone is not None and self._table.is_row(module, name):
            yield self._problem(node, gone.since, self._table.gone_names(module, {name: gone}, gone.since))

    def _of_call(self, call: ast.Call, place: Placed) -> Iterator[Problem]:
        function, arguments, is_part = self._called(call, place)
        if not self._is_of_megatron(function):
            return
        stars = [number for number, one in enumerate(arguments) if isinstance(one, ast.Starred)]
        keywords = [one.arg for one in call.keywords]
        named = frozenset(name for name in keywords if name is not None)
        is_open = is_part or bool(stars) or None in keywords
        shape = CallShape(min([*stars, len(arguments)]), named, is_open=is_open)
        for one in (*self._table.mismatches(function, shape), *self._table.refused_fields(function, named)):
            kind = ProblemKind.MOVED_ARGUMENT if one.is_silent else ProblemKind.CHANGED_CALL
            release = self._table.release_words(function, one.since)
            message = f"`{function.rpartition('.')[2]}` of {release} {one.why}"
            yield Problem(kind, self._source.span(call.func), message, since=one.since, until=one.until)
        passed = [*enumerate(arguments[: shape.positional]), *((one.arg, one.value) for one in call.keywords)]
        for argument, value in passed if not is_part else ():
            if argument is not None:
                # Of several functions that may be passed on, the first that does not fit is enough.
                every = (self._of_callback(function, argument, value, one) for one in self._parameters_of(value))
                yield from next(filter(None, map(list, every)), [])

    def _of_callback(
        self, function: str, argument: str | int, passed: ast.expr, taken: Parameters
    ) -> Iterator[Problem]:
        """Yield the releases that call what is passed on, a function of the file, with what it does not take."""
        name = function.rpartition(".")[2]
        for since, why in self._table.refused_callbacks(function, argument, taken):
            release = self._table.release_words(function, since)
            message = f"`{name}` of {release} calls `{ast.unparse(passed)}` with other arguments: it {why}"
            yield Problem(ProblemKind.CHANGED_CALL, self._source.span(passed), message, since=since)

    def _parameters_of(self, passed: ast.expr) -> Iterator[Parameters]:
        """Yield the parameters of a function that is passed on: one of the file, by itself or with its first arguments,
        or one that a function of the checkout defines and returns.
        """
        match passed:
            case ast.Name(id=name) if name in self._functions:
                yield self._functions[name]
            case ast.Call(func=func, args=[ast.Name(id=name), *first]) if last_name(func) == "partial":
                taken = self._functions.get(name)
                is_shown = not any(isinstance(one, ast.Starred) for one in first)
                named = [one.arg for one in passed.keywords]
                if taken is not None and is_shown and None not in named:
                    yield taken.without(len(first), frozenset(filter(None, named)))
            case ast.Call(func=func):
                definition = self._definitions().of(dotted(func))
                yield from _returned(definition.node) if definition is not None else ()

    @cached_property
    def _functions(self) -> dict[str, Parameters]:
        """The parameters of the functions at the top of the file whose names nothing else in it binds."""
        bound = Counter(name for node in ast.walk(self._source.tree) for name in bound_by(node))
        return {
            node.name: Parameters.of(node.args)
            for node in self._source.tree.body
            if isinstance(node, ast.FunctionDef) and bound[node.name] == 1 and not node.decorator_list
        }

    def _called(self, call: ast.Call, place: Placed) -> tuple[str, list[ast.expr], bool]:
        """Return the function that a call runs, its arguments, and whether there will be more of them."""
        match call:
            case ast.Call(func=ast.Attribute(value=ast.Call(func=ast.Name(id="super"), args=[]), attr="__init__")):
                return self._resolved(place.base, place) if place.base is not None else "", call.args, False
            case ast.Call(func=func, args=[first, *rest]) if last_name(func) == "partial":
                return self._resolved(first, place), rest, True
        return self._resolved(call.func, place), call.args, False

    def _resolved(self, node: ast.expr, place: Placed) -> str:
        """Return the full name of an imported name; empty for one that the file also defines."""
        name = dotted(node)
        return "" if name.partition(".")[0] in place.hidden else self._names.imported(name)

    def _problem(self, node: ast.stmt | ast.expr, since: Release, message: str) -> Problem:
        return Problem(ProblemKind.GONE_NAME, self._source.span(node), message, since=since)


def _words_of(value: object) -> set[str]:
    """Return the words of a text that is no prose, and no path of a module."""
    text = str(value)
    return set() if " " in text or PATH.match(text) else set(_WORD.findall(text))


def _returned(maker: ast.stmt) -> Iterator[Parameters]:
    """Yield the parameters of the functions that a function defines and returns by their names."""
    own = [node for node in ast.walk(maker) if isinstance(node, ast.FunctionDef) and node is not maker]
    inside = {id(part) for one in own for part in ast.walk(one)}
    names = [
        node.value.id
        for node in ast.walk(maker)
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Name) and id(node) not in inside
    ]
    for one in own:
        if one.name in names and not one.decorator_list and [other.name for other in own].count(one.name) == 1:
            yield Parameters.of(one.args)
