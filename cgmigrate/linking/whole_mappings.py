"""Code that loads a mapping and uses it as a whole: it counts, sorts, unpacks or computes with its entries.

What reads a key by its name is found by the name. What copies all entries, or passes them on as they are, sees nothing
of another name: `Class(**model)`, `setattr(config, key, value)`. All other uses may.
"""

from __future__ import annotations

import ast
import os
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from cgmigrate.documents.python.name_resolution import names_of
from cgmigrate.documents.python.nodes import parents_in, parsed, walk
from cgmigrate.documents.python.scopes import bound_by, returned_by
from cgmigrate.documents.python.source import dotted, last_name
from cgmigrate.linking.name_places import CODE
from cgmigrate.linking.project_texts import ProjectTexts
from cgmigrate.linking.python_places import SHOWING
from cgmigrate.linking.text_tools import TextPlace
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.text.remembered import remembered

_COPIES = frozenset(
    ("dict", "copy", "deepcopy", "to_container", "create", "OrderedDict", "DictConfig", "merge", "ChainMap")
)
_VIEWS = frozenset(("items", "values", "keys"))
_AROUND = frozenset(("list", "tuple", "sorted", "iter", "reversed", "enumerate", "set", "frozenset"))
"""Functions that go through what they get, and give it on."""
_LOOKING = _AROUND | {"len", "sum", "any", "all", "zip", "map", "filter", "min", "max", "next", "type", "bool"}
_CONVERTING = frozenset(("int", "float", "ord", "round", "abs", "hash"))
_TEXTS = frozenset(("str", "repr"))
_GIVING_ON = (ast.Assign, ast.keyword, ast.Dict, ast.DictComp, ast.ListComp, ast.Tuple, ast.Return, ast.Yield, ast.Expr)
_ITERATED_OR_CHOSEN = ("iter", "body", "orelse")
_BY_KEY = frozenset(("get", "pop", "setdefault", "__getitem__"))
_TYPES = frozenset(("dict", "Mapping", "MutableMapping", "DictConfig", "collections", "abc", "list", "tuple", "set"))
_TYPES |= {"ListConfig", "bool", "str", "float"}
"""Types of which no value of another one is."""
_OF_OTHERS = frozenset(("json", "torch", "np", "numpy", "pickle", "datasets", "tomllib", "importlib"))
"""Packages that load other data."""
_FILES = (".yaml", ".yml", ".json")
_BINDING = (ast.Assign, ast.NamedExpr, ast.For, ast.comprehension)
_PARTS = (ast.Name, ast.Subscript, ast.Attribute, ast.Call, ast.BoolOp, ast.IfExp)
"""What may be a part of the file."""
_KEY = -1
_ANY = object()
"""The name of a key that code makes."""
_IN = object()
"""Instead of a key, for a collection: it is seen as its values."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Parts = frozenset[int]
"""What an expression may be: the numbers of the keys that lead to it, one more for a value of the mapping, _KEY."""
_NONE: _Parts = frozenset()


@dataclass(frozen=True)
class ChangedMapping:
    """A mapping of a file of this name, below some keys, of which some names change."""

    file: str
    keys: tuple[str, ...]
    names: frozenset[str]
    types: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())
    """The types of the values that go, and of those that come."""


def whole_uses_in(
    texts: Mapping[str, str], mapping: ChangedMapping, holding: Callable[[Iterable[str]], Mapping[str, str]]
) -> Iterator[tuple[str, int, str, str]]:
    """Yield the code that uses all of a mapping.

    The file is loaded in some texts; ``holding`` returns those with one of some words, which pass a part of it or get
    one. With `Class(**model)` comes the package of the class.
    """
    program = _Program(mapping)
    while new := texts.keys() - program.files.keys():
        program.add({path: texts[path] for path in sorted(new)})
        texts = holding(sorted(program.words))
    for path, code in program.files.items():
        yield from ((path, node.lineno, ast.unparse(node)[:60], package) for node, package in code.uses())


class _Read:
    """A file as it is read, once for all keys."""

    def __init__(self, text: str) -> None:
        self.tree = parsed(text) or ast.Module([], [])
        self.parents, self.names = parents_in(self.tree), names_of(self.tree, "")
        nodes = list(walk(self.tree))
        self.functions = defaultdict[str, list[_Function]](list)
        for one in nodes:
            match one:
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as function):
                    self.functions[name].append(function)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    made = self.parents[one] if name == "__init__" else None
                    self.functions[made.name if isinstance(made, ast.ClassDef) else name].append(one)
        every = self.functions.items()
        inside = ((name, one) for name, functions in every for one in chain.from_iterable(map(walk, functions)))
        self.own_calls = {one for name, one in inside if isinstance(one, ast.Call) and last_name(one.func) == name}
        calls = (one for one in nodes if isinstance(one, ast.Call))
        own = (one for one in calls if last_name(one.func) in self.functions or self.module_of(one.func))
        self.binding = [*own, *(one for one in nodes if isinstance(one, _BINDING))]
        self.parts = [
            one for one in nodes if isinstance(one, _PARTS) and isinstance(getattr(one, "ctx", None), ast.Load | None)
        ]

    def module_of(self, func: ast.expr) -> frozenset[str]:
        """Return the last names of what a call is imported from, or of what it is a method of."""
        while not isinstance(func, ast.Name):
            func = getattr(func, "value", None) or getattr(func, "func", None) or ast.Name("")
        return frozenset(self.names.imported(func.id).split(".")[-2:]) - {""}

    @remembered
    def variable(self, node: ast.AST, name: str) -> tuple[ast.AST, str]:
        """Return the scope of a variable, and its name."""
        while not isinstance(node, ast.Module) and not (isinstance(node, _Function) and name in self._bound_in(node)):
            node = self.parents.get(node, self.tree)
        return node, name

    @remembered
    def _bound_in(self, function: _Function) -> frozenset[str]:
        return frozenset(chain.from_iterable(map(bound_by, walk(function))))


_read = lru_cache(maxsize=1024)(_Read)


class _Program:
    """The files of a program by their paths, and what their variables may be."""

    def __init__(self, mapping: ChangedMapping) -> None:
        self.mapping = mapping
        self.files: dict[str, _Code] = {}
        self.functions = defaultdict[str, list[tuple[_Code, _Function]]](list)
        self.values = defaultdict[tuple[ast.AST, str], _Parts](frozenset)
        self.results: dict[_Function, _Parts] = {}
        """What functions return, as far as it is known; nothing while it is worked out."""
        self.words: set[str] = set()
        """What code has that defines functions which get a part of the file, or that calls those which return one."""

    def add(self, texts: Mapping[str, str]) -> None:
        for path, text in texts.items():
            self.files[path] = code = _Code(self, _read(text), frozenset(os.path.splitext(path)[0].split(os.sep)[-2:]))
            for name, functions in code.read.functions.items():
                self.functions[name] += ((code, one) for one in functions)
        before = -1
        while before != (before := sum(map(len, self.values.values()))):
            self.results.clear()
            for code in self.files.values():
                code.bind()
        every = self.functions.items()
        self.words |= {f"{name}(" for name, functions in every if any(code.results_of(one) for code, one in functions)}


class _Code:
    """The code of a file of a program."""

    def __init__(self, program: _Program, read: _Read, module: frozenset[str]) -> None:
        self.program, self.read, self.module = program, read, module
        self.keys, self.parents, self.last = program.mapping.keys, read.parents, len(program.mapping.keys)

    def bind(self) -> None:
        """Note what the variables of the file may be, and the parameters of what it calls."""
        for node in self.read.binding:
            match node:
                case ast.Assign(targets=[target], value=value) | ast.NamedExpr(target=target, value=value):
                    self._note(target, self._parts(value))
                case ast.Call(func=func):
                    if not any(map(self._parts, (*node.args, *(one.value for one in node.keywords)))):
                        continue
                    for code, function in self._functions(func):
                        code.bind_parameters(function, node, self)
                    if self.read.module_of(func):
                        name = last_name(func)
                        self.program.words |= {f"def {name}(", f"class {name}(", f"class {name}:", f"{name} = lambda"}
                case ast.For(target=target, iter=of) | ast.comprehension(target=target, iter=of):
                    self._bind_loop(target, of)

    def bind_parameters(self, function: _Function, call: ast.Call, caller: _Code) -> None:
        """Note what the parameters of a function of the file get from a call."""
        own = function.args
        names = [one.arg for one in (*own.posonlyargs, *own.args) if one.arg not in ("self", "cls")]
        rest = own.kwarg.arg if own.kwarg else ""
        every = [*zip(names, call.args, strict=False), *((one.arg or rest, one.value) for one in call.keywords)]
        for name, value in every:
            parts = caller._parts(value) - {_KEY}
            # What goes through mappings in mappings may get a value.
            self.program.values[function, name] |= parts if call in self.read.own_calls else parts - {self.last + 1}

    def _bind_loop(self, target: ast.expr, of: ast.expr) -> None:
        names = [one for one in walk(target) if isinstance(one, ast.Name)]
        while isinstance(of, ast.Call) and last_name(of.func) in _AROUND and of.args:
            names, of = names[-1:] if last_name(of.func) == "enumerate" and names else names, of.args[0]
        match of:
            case ast.Call(func=ast.Attribute(attr="items", value=mapping)) if len(names) > 1:
                self._note(names[-2], self._key_of(mapping))
                self._note(names[-1], self._below(mapping))
            case _:
                for name in names:
                    self._note(name, self._elements(of))

    def _note(self, target: ast.expr, parts: _Parts) -> None:
        if name := _variable(target):
            self.program.values[self.read.variable(target, name)] |= parts

    def _functions(self, func: ast.expr) -> Iterator[tuple[_Code, _Function]]:
        """Yield the functions that a call may be of: those of the file, or of one that it imports."""
        name = last_name(func)
        is_own, every = name in self.read.functions, self.program.functions.get(name, ())
        module = self.read.module_of(func) if every and not is_own else frozenset()
        return ((code, one) for code, one in every if (code is self if is_own else module & code.module))

    # --- what an expression may be ------------------------------------------------------------------

    def _parts(self, node: ast.expr) -> _Parts:
        """Return what an expression may be; nothing if it is no part of the file."""
        if name := _variable(node):
            return self.program.values.get(self.read.variable(node, name), _NONE)
        match node:
            case ast.Attribute(value=of, attr=key):
                return self._part(of, ast.Constant(key))
            case (
                ast.Subscript(value=of, slice=made)
                | ast.Call(func=ast.Attribute(value=of, attr="get" | "pop"), args=[made, *_])
            ):
                return self._part(of, made)
            case ast.Call(func=func, args=args):
                if results := [code.results_of(one) for code, one in self._functions(func)]:
                    return _NONE.union(*results) if self._is_of_file(args) else _NONE
                is_loaded = "load" in last_name(func) and dotted(func).partition(".")[0] not in _OF_OTHERS
                if is_loaded and self._is_of_file(walk(node)):
                    return frozenset((0,))
        return _NONE.union(*(self._above(one, name) for name, one in _made_of(node)))

    def _any(self, nodes: Iterable[ast.expr]) -> _Parts:
        return _NONE.union(*map(self._parts, nodes))

    def _part(self, of: ast.expr, key: ast.expr) -> _Parts:
        """Return what a mapping has under a key: where that is made, one may be the next part."""
        below, name = self._below(of), _name_of(key)
        if name is not _ANY:
            return frozenset(one for one in below if (*self.keys, None)[one - 1] == name)
        return below if _KEY in self._parts(key) else below - {self.last + 1}

    def _below(self, node: ast.expr) -> _Parts:
        """Return what a value of an expression may be."""
        return frozenset(one + 1 for one in self._parts(node) if 0 <= one <= self.last)

    def _above(self, node: ast.expr, name: object) -> _Parts:
        """Return what a mapping may be that has an expression under a name; all that it has without one."""
        parts = self._parts(node)
        if name is _IN:
            return parts - {*range(self.last + 1)}
        every = (one for one in parts if one > 0 and (name is _ANY or (*self.keys, None)[one - 1] == name))
        return parts if name is None else frozenset(one - 1 for one in every)

    def _key_of(self, node: ast.expr) -> _Parts:
        return frozenset((_KEY,)) if self.last in self._parts(node) else _NONE

    def _elements(self, node: ast.expr) -> _Parts:
        """Return what code may get that goes through an expression."""
        match node:
            case ast.Call(func=ast.Attribute(attr="values", value=of), args=[]):
                return self._below(of)
            case ast.Call(func=ast.Attribute(attr="keys" | "items", value=of), args=[]):
                return self._key_of(of)
            case ast.Call(func=func):
                return self._key_of(node).union(*(code.results_of(one) for code, one in self._functions(func)))
            case ast.List(elts=every) | ast.Tuple(elts=every):
                return self._any(every)
        return self._key_of(node) | self._above(node, _IN)

    def results_of(self, function: _Function) -> _Parts:
        """Return what a function of the file returns or yields."""
        known = self.program.results
        if function not in known:
            known[function] = _NONE
            yields = (one.value for one in walk(function) if isinstance(one, ast.Yield | ast.YieldFrom) and one.value)
            returned = [function.body] if isinstance(function, ast.Lambda) else returned_by(function)
            parts = chain(returned, *(one.elts if isinstance(one, ast.Tuple) else [one] for one in yields))
            known[function] = self._any(parts)
        return known[function]

    def _is_of_file(self, nodes: Iterable[ast.AST]) -> bool:
        """Return whether code names the file, or no file."""
        texts = [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
        files = [one for one in texts if one.endswith(_FILES)]
        return not files or any(one.endswith(self.program.mapping.file) or "*" in one for one in files)

    # --- uses -------------------------------------------------------------------------------------

    def uses(self) -> Iterator[tuple[ast.expr, str]]:
        """Yield the uses of the mapping as a whole, and the package of what gets it as keywords."""
        for node in self.read.parts:
            parts, above = self._parts(node), self.parents[node]
            if self.last in parts:
                if isinstance(above, ast.keyword) and isinstance(call := self.parents[above], ast.Call):
                    if above.arg is None and (package := self.read.names.imported(dotted(call.func)).partition(".")[0]):
                        yield call, package
                elif use := self._use(node, above):
                    yield use, ""
            kinds = [one == _KEY for one in (_KEY, self.last + 1) if one in parts]
            if not all(self._passes_on(above, node, is_key=one) for one in kinds):
                yield node, ""

    def _use(self, node: ast.expr, above: ast.AST) -> ast.expr | None:
        match above:
            case ast.Attribute(attr=name) as method if isinstance(call := self.parents[method], ast.Call):
                if name in _VIEWS:
                    return self._use_of_view(call)
                is_made = name in _BY_KEY and call.args and self._is_made(call.args[0])
                return call if is_made or name == "popitem" else None
            case ast.Subscript(value=of, slice=key) as item if of is node:
                return item if self._is_made(key) else None
        return self._use_of_view(node, is_mapping=True)

    def _use_of_view(self, node: ast.expr, *, is_mapping: bool = False) -> ast.expr | None:
        """Return what goes through entries, unless it treats all of them as they are."""
        match above := self.parents[node]:
            case ast.comprehension():
                return node if self._joins(self.parents[above]) else None
            case ast.Call():
                return self._use_of_call(above, node, is_mapping=is_mapping)
            case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]) if is_mapping:
                return None
            case ast.Starred() | ast.Assign(targets=[ast.Tuple() | ast.List()]) | ast.Compare():
                return node
        return node if isinstance(above, ast.Subscript) and above.value is node and not is_mapping else None

    def _use_of_call(self, call: ast.Call, node: ast.expr, *, is_mapping: bool) -> ast.expr | None:
        """Return a call that goes through the entries that it gets."""
        name, above = last_name(call.func), self.parents[call]
        if name in _AROUND and isinstance(above, (ast.For, ast.comprehension)):
            return self._use_of_view(call)
        if name == "dumps":
            return None if _is_shown(above) else call
        is_passed = name in ("dict", "update", "print") or (is_mapping and name not in _LOOKING | _CONVERTING)
        return None if is_passed or any(one.value is node for one in call.keywords) else call

    def _passes_on(self, above: ast.AST, name: ast.expr, *, is_key: bool) -> bool:
        """Return whether code gives a key or a value on as it is, looks it up, or asks whether it is a mapping."""
        match above:
            case ast.Call(func=ast.Name(id="isinstance"), args=[_, kinds]):
                every = {dotted(one).rpartition(".")[2] for one in walk(kinds)} - {""}
                old, new = (not every.isdisjoint(one) for one in self.program.mapping.types)
                return old == new and every <= _TYPES
            case ast.Call(func=func):
                function, made = last_name(func), self.parents[above]
                is_other = is_key and isinstance(made, ast.DictComp) and made.key is above and function not in _TEXTS
                # What code goes through is a mapping, or a list.
                is_looking = function in _LOOKING | _CONVERTING and not isinstance(made, (ast.For, ast.comprehension))
                return not (is_other or is_looking or function.startswith("assert"))
            case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()], comparators=[other]):
                return (is_key and left is name) or (isinstance(other, ast.Constant) and other.value is None)
            case ast.FormattedValue():
                text = self.parents[above]
                return "--" not in ast.unparse(text) and not (is_key and self._is_part_of_name(text, above))
            case ast.Attribute() | ast.Subscript():
                # A method or an item of a value is that of a mapping in it.
                return not is_key or getattr(above, "slice", None) is name
        return isinstance(above, _GIVING_ON) or name in [getattr(above, part, None) for part in _ITERATED_OR_CHOSEN]

    def _is_part_of_name(self, text: ast.AST, part: ast.FormattedValue) -> bool:
        """Return whether a text has something before a key that may be a part of the same name."""
        parts = list(ast.iter_child_nodes(text))
        before = parts[: parts.index(part)][-1:]
        is_joined = any(not isinstance(one, ast.Constant) or re.search(r"[\w-]$", str(one.value)) for one in before)
        return is_joined and not _is_shown(self.parents[text])

    def _joins(self, made: ast.AST) -> bool:
        """Return whether code makes one text of all that an expression yields, and does not only print it."""
        call = self.parents[made]
        is_joined = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "join"
        return is_joined and not _is_shown(self.parents[call])

    def _is_made(self, key: ast.expr) -> bool:
        """Return whether code makes a key, which may be one of the names that change."""
        is_made = not isinstance(key, (ast.Constant, ast.Name, ast.Attribute))
        return is_made and any(re.fullmatch(_pattern_of(key), name) for name in self.program.mapping.names)


def _variable(node: ast.expr) -> str:
    """Return the name of a variable, or of an attribute of a method's own object; empty for other expressions."""
    is_own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"
    return dotted(node) if is_own or isinstance(node, ast.Name) else ""


def _name_of(key: ast.expr | None) -> object:
    """Return the name of a key, _ANY if code makes it."""
    return key.value if isinstance(key, ast.Constant) else key and _ANY


def _made_of(node: ast.expr) -> Iterator[tuple[object, ast.expr]]:
    """Yield what an expression may be, or is made of: with the name of its key, or None for a mapping or a text."""
    match node:
        case ast.Dict(keys=keys, values=values):
            yield from zip(map(_name_of, keys), values, strict=True)
        case ast.ListComp(elt=one) | ast.GeneratorExp(elt=one) | ast.SetComp(elt=one):
            yield _IN, one
        case ast.List(elts=every) | ast.Tuple(elts=every) | ast.Set(elts=every):
            yield from ((_IN, one) for one in every)
        case ast.BoolOp(values=values):
            yield from ((None, one) for one in values)
        case ast.IfExp(body=first, orelse=second) | ast.BinOp(left=first, op=ast.BitOr(), right=second):
            yield from ((None, first), (None, second))
        case ast.Call(func=ast.Attribute(value=of, attr="copy"), args=[]):
            yield None, of
        case ast.Call(func=func, args=args, keywords=keywords) if last_name(func) in _COPIES | _TEXTS:
            yield from ((None, one) for one in args)
            yield from ((one.arg, one.value) for one in keywords)


def _is_shown(above: ast.AST) -> bool:
    return isinstance(above, ast.Call) and last_name(above.func) in SHOWING


def _pattern_of(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=value):
            return re.escape(str(value))
        case ast.JoinedStr(values=parts):
            return "".join(map(_pattern_of, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _pattern_of(left) + _pattern_of(right)
    return ".*"


# --- sections of a configuration ------------------------------------------------------------------


def uses_of_sections(texts: ProjectTexts, sections: Collection[str]) -> Iterator[TextPlace]:
    """Yield the places of code with an attribute or a string that is the name of a section, but of no key in it."""
    names = "|".join(sorted(sections))
    whole = re.compile(rf"\.(?:{names})\b(?![.(=])|[\"'](?:{names})[\"'](?!\][\[.])")
    for path in texts.holding(sorted(sections)):
        text = texts.text(path) if path.endswith(CODE) and not is_part_of_megatron(path) else ""
        yield from ((path, text.count("\n", 0, match.start()) + 1, match.group()) for match in whole.finditer(text))
