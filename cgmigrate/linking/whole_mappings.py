"""Code that loads a mapping and uses it as a whole: it counts, sorts, unpacks or computes with its entries.

What reads a key by its name is found by the name. What copies all entries, or passes them on as they are, sees nothing
of another name: `Class(**model)`, `setattr(config, key, value)`. All other uses may.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from cgmigrate.documents.python.name_resolution import names_of
from cgmigrate.documents.python.nodes import parents_in, parsed, walk
from cgmigrate.documents.python.scopes import returned_by
from cgmigrate.documents.python.source import dotted, last_name
from cgmigrate.linking.name_places import CODE
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.text_tools import TextPlace
from cgmigrate.megatron.source_trees import is_part_of_megatron

_COPIES = frozenset(("dict", "copy", "deepcopy", "to_container", "create", "OrderedDict", "DictConfig"))
_VIEWS = frozenset(("items", "values", "keys"))
_AROUND = frozenset(("list", "tuple", "sorted", "iter", "reversed", "enumerate", "set", "frozenset"))
"""Functions that go through what they get, and give it on."""
_LOOKING = _AROUND | {"len", "sum", "any", "all", "zip", "map", "filter", "min", "max", "next", "type", "bool"}
_CONVERTING = frozenset(("int", "float", "ord", "round", "abs", "hash"))
_GIVING_ON = (ast.Assign, ast.keyword, ast.Dict, ast.DictComp, ast.ListComp, ast.Tuple, ast.Return, ast.Yield, ast.Expr)
_BY_KEY = frozenset(("get", "pop", "setdefault", "__getitem__"))
_MAPPINGS = frozenset(("dict", "Mapping", "MutableMapping", "DictConfig", "collections", "abc"))
_FILES = (".yaml", ".yml", ".json")
_Bound = tuple[Collection[str], Collection[str]]
"""The variables of a loop that are keys, and those that are values."""


Passed = frozenset[tuple[str, int, int]]
"""Functions that get a part of a file: the name, the number of the argument, and how many keys lead to the part."""


def whole_uses_in(
    text: str, keys: Sequence[str], names: Collection[str], file: str, passed: Passed = frozenset()
) -> Iterator[tuple[int, str, str]]:
    """Yield the code that uses all of a mapping: of a file of this name, below some keys, of which names change.

    The file is loaded there, or functions get a part of it. With `Class(**model)` comes the package of the class.
    """
    tree = parsed(text)
    if tree is not None:
        code = _Code(tree, tuple(keys), frozenset(names), file, passed)
        for node, package in code.uses():
            yield node.lineno, ast.unparse(node)[:60], package


def passed_in(text: str, keys: Sequence[str], file: str) -> Passed:
    """Return the functions of other files to which code passes a part of the file that it loads."""
    tree = parsed(text)
    return frozenset(_Code(tree, tuple(keys), frozenset(), file).passes()) if tree is not None else frozenset()


@dataclass
class _Code:
    """The code of a file. ``depths`` has, for each variable, how many of the keys lead to what it is."""

    tree: ast.Module
    keys: tuple[str, ...]
    names: frozenset[str]
    file: str
    passed: Passed = frozenset()
    depths: dict[str, int] = field(default_factory=dict)
    _returned: dict[str, int | None] = field(default_factory=dict)
    """What the functions of the file return, as far as it is known; None while it is worked out."""

    def __post_init__(self) -> None:
        self.parents = parents_in(self.tree)
        self.functions = {one.name: one for one in walk(self.tree) if isinstance(one, ast.FunctionDef)}
        for name, number, depth in self.passed:
            parameters = self.functions[name].args.args if name in self.functions else []
            self.depths |= {one.arg: depth for one in parameters[number : number + 1]}
        before = -1
        while before != (before := len(self.depths)):
            self._returned.clear()
            for node in walk(self.tree):
                self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.NamedExpr(target=ast.Name(id=name), value=value)
            ):
                self._note(name, value)
            case ast.Call(func=ast.Name(id=name), args=args) if name in self.functions:
                for parameter, value in zip(self.functions[name].args.args, args, strict=False):
                    self._note(parameter.arg, value)

            case ast.For(target=target, iter=of) | ast.comprehension(target=target, iter=of) if (
                isinstance(of, ast.Call) and isinstance(view := of.func, ast.Attribute) and view.attr in _VIEWS
            ):
                # One of the values may be the next part.
                depth = self._depth(view.value)
                if depth is not None and depth < len(self.keys):
                    self.depths |= dict.fromkeys(_bound(target, view.attr)[1], depth + 1)

    def _note(self, name: str, value: ast.expr) -> None:
        depth = self._depth(value)
        if depth is not None:
            self.depths.setdefault(name, depth)

    def _depth(self, node: ast.expr) -> int | None:
        """Return how many of the keys lead to what an expression is; None if it is no part of the file."""
        match node:
            case ast.Name(id=name):
                return self.depths.get(name)
            case (
                ast.Subscript(value=of, slice=ast.Constant(value=str(key)))
                | ast.Attribute(value=of, attr=key)
                | ast.Call(func=ast.Attribute(value=of, attr="get" | "pop"), args=[ast.Constant(value=str(key)), *_])
            ):
                depth = self._depth(of)
                is_next = depth is not None and depth < len(self.keys) and self.keys[depth] == key
                return depth + 1 if depth is not None and is_next else None
            case ast.BoolOp(values=[first, *_]):
                return self._depth(first)
            case ast.Call(func=func, args=args):
                return self._depth_of_call(func, args, node)
        return None

    def _depth_of_call(self, func: ast.expr, args: list[ast.expr], node: ast.Call) -> int | None:
        name = last_name(func)
        if name in _COPIES:
            of = args[0] if args else func.value if isinstance(func, ast.Attribute) else None
            return self._depth(of) if of is not None else None
        if name in self.functions:
            if name not in self._returned:
                self._returned[name] = None
                depths = (self._depth(one) for one in returned_by(self.functions[name]))
                self._returned[name] = next((one for one in depths if one is not None), None)
            return self._returned[name]
        return 0 if "load" in name and self._may_load(node) else None

    def _may_load(self, call: ast.Call) -> bool:
        texts = [one.value for one in walk(call) if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        files = [one for one in texts if one.endswith(_FILES)]
        return not files or any(one.endswith(self.file) or "*" in one for one in files)

    # --- uses -------------------------------------------------------------------------------------

    def uses(self) -> Iterator[tuple[ast.expr, str]]:
        """Yield the uses of the mapping as a whole, and the package of what gets it as keywords."""
        for node in walk(self.tree):
            if not isinstance(node, ast.expr) or self._depth(node) != len(self.keys):
                continue
            match self.parents.get(node):
                case ast.keyword(arg=None) as unpacked if isinstance(call := self.parents[unpacked], ast.Call):
                    if package := names_of(self.tree, "").imported(dotted(call.func)).partition(".")[0]:
                        yield call, package
                case _:
                    if use := self._use(node):
                        yield use, ""

    def passes(self) -> Iterator[tuple[str, int, int]]:
        """Yield the functions of other files that get a part of the file."""
        for node in walk(self.tree):
            if isinstance(node, ast.Call) and (name := last_name(node.func)) not in self.functions:
                depths = enumerate(map(self._depth, node.args))
                yield from ((name, number, depth) for number, depth in depths if depth is not None)

    def _use(self, node: ast.expr) -> ast.expr | None:
        match self.parents.get(node):
            case ast.Attribute(attr=name) as method if isinstance(call := self.parents[method], ast.Call):
                if name in _VIEWS:
                    return self._use_of_view(call, name)
                is_made = name in _BY_KEY and call.args and self._is_made(call.args[0])
                return call if is_made or name == "popitem" else None
            case ast.Subscript(value=of, slice=key) as item if of is node:
                return item if self._is_made(key) else None
            case _:
                return self._use_of_view(node, "keys", is_mapping=True)

    def _use_of_view(self, node: ast.expr, view: str, *, is_mapping: bool = False) -> ast.expr | None:
        """Return what goes through entries, unless it treats all of them as they are."""
        match parent := self.parents.get(node):
            case ast.For(target=target, iter=iterated, body=body) if iterated is node:
                return self._looking(_bound(target, view), body, node)
            case ast.comprehension(target=target, iter=iterated, ifs=tests) if iterated is node:
                made = self.parents[parent]
                if self._joins(made):
                    return node
                parts = [one for one in ast.iter_child_nodes(made) if not isinstance(one, ast.comprehension)]
                return self._looking(_bound(target, view), [*parts, *tests], node)
            case ast.Call():
                return self._use_of_call(parent, node, view, is_mapping=is_mapping)
            case ast.Starred() | ast.Assign(targets=[ast.Tuple() | ast.List()]):
                return node
        return None if is_mapping and not _is_equality(parent) else _compared_or_cut(parent, node)

    def _use_of_call(self, call: ast.Call, node: ast.expr, view: str, *, is_mapping: bool) -> ast.expr | None:
        """Return a call that goes through the entries that it gets."""
        name = last_name(call.func)
        if name in _AROUND and isinstance(self.parents.get(call), (ast.For, ast.comprehension)):
            return self._use_of_view(call, view)
        is_passed = name in ("dict", "update", "print") or (is_mapping and name not in _LOOKING)
        return None if is_passed or any(one.value is node for one in call.keywords) else call

    def _looking(self, bound: _Bound, body: Sequence[ast.AST], node: ast.expr) -> ast.expr | None:
        """Return the loop if its code looks at keys or values, and does not only give them on."""
        names = (one for one in chain.from_iterable(map(walk, body)) if isinstance(one, ast.Name))
        for one in names:
            is_key, is_value = one.id in bound[0], one.id in bound[1]
            value = self._value_at(self.parents[one], one) if is_key else None
            used = value or one
            if (is_key or is_value) and not self._passes_on(self.parents[used], used, is_key=is_key and not value):
                return node
        return None

    def _value_at(self, above: ast.AST, key: ast.Name) -> ast.expr | None:
        """Return what code gets from the mapping by a key: `model[key]`."""
        if not isinstance(above, ast.Subscript) or above.slice is not key:
            return None
        return above if self._depth(above.value) == len(self.keys) else None

    def _passes_on(self, above: ast.AST, name: ast.expr, *, is_key: bool) -> bool:
        """Return whether code gives a key or a value on as it is, looks it up, or asks whether it is a mapping."""
        match above:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                return {dotted(one).rpartition(".")[2] for one in walk(kinds)} - {""} <= _MAPPINGS
            case ast.Call(func=func):
                function = last_name(func)
                return function not in _LOOKING | _CONVERTING and not function.startswith("assert")
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()], comparators=[other]):
                return (is_key and left is name) or (isinstance(other, ast.Constant) and other.value is None)
            case ast.FormattedValue():
                return "--" not in ast.unparse(self.parents[above])
            case ast.Attribute() | ast.Subscript():
                # A method or an item of a value is that of a mapping in it.
                return not is_key or getattr(above, "slice", None) is name
        return isinstance(above, _GIVING_ON)

    def _joins(self, made: ast.AST) -> bool:
        """Return whether code makes one text of all that an expression yields, and does not only print it."""
        match call := self.parents.get(made):
            case ast.Call(func=ast.Attribute(attr="join")):
                above = self.parents.get(call)
                return not (isinstance(above, ast.Call) and last_name(above.func) == "print")
        return False

    def _is_made(self, key: ast.expr) -> bool:
        """Return whether code makes a key, which may be one of the names that change."""
        is_made = not isinstance(key, (ast.Constant, ast.Name, ast.Attribute))
        return is_made and any(re.fullmatch(_pattern_of(key), name) for name in self.names)


def _is_equality(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Compare) and not isinstance(node.ops[0], (ast.In, ast.NotIn, ast.Is, ast.IsNot))


def _compared_or_cut(above: ast.AST | None, node: ast.expr) -> ast.expr | None:
    is_cut = isinstance(above, ast.Subscript) and above.value is node
    return node if is_cut or isinstance(above, ast.Compare) else None


def _pattern_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return re.escape(str(value))
        case ast.JoinedStr(values=parts):
            return "".join(map(_pattern_of, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern_of(left) + _pattern_of(right)
    return ".*"


def _bound(target: ast.expr, view: str) -> _Bound:
    names = [one.id for one in walk(target) if isinstance(one, ast.Name)]
    if view == "items" and len(names) > 1:
        return names[-2:-1], names[-1:]
    return ([], names[-1:]) if view == "values" else (names[-1:], [])


# --- sections of a configuration ------------------------------------------------------------------


def uses_of_sections(texts: ProjectTexts, sections: Collection[str]) -> Iterator[TextPlace]:
    """Yield the places of code with an attribute or a string that is the name of a section, but of no key in it."""
    names = "|".join(sorted(sections))
    whole = re.compile(rf"\.(?:{names})\b(?![.(=])|[\"'](?:{names})[\"'](?!\][\[.])")
    for path in texts.holding(sorted(sections)):
        text = texts.text(path) if path.endswith(CODE) and not is_part_of_megatron(path) else ""
        yield from ((path, text.count("\n", 0, match.start()) + 1, match.group()) for match in whole.finditer(text))
