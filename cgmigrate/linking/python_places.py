"""The places of Python code that have the name of a setting, or a part of it.

Names of variables are none: to get to an object they need an attribute, a keyword or a text.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.documents.python.source import dotted, last_name
from cgmigrate.linking.name_appearances import SoughtNames, appearances_in
from cgmigrate.linking.name_places import DOCTEST, FLAG, OpenPlace, PlaceKind
from cgmigrate.linking.text_tools import searches_in
from cgmigrate.project.paths import is_test

SHOWING = frozenset(("print", "log", "debug", "info", "warning", "warn", "error", "exception", "critical"))
"""Functions that show a text to people."""
_FILLED = re.compile(r"%\(|\{\w|\$\w|^\w+$")
"""A text that is filled in before, or that is a name alone."""


def python_places_in(path: str, text: str, sought: SoughtNames) -> Iterator[OpenPlace]:
    """Yield the places in a Python file; in one that cannot be parsed, each appearance."""
    if next(appearances_in(text, sought), None) is None:
        return
    tree = parsed(text)
    if tree is None:
        for one in appearances_in(text, sought):
            yield OpenPlace(path, text.count("\n", 0, one.start) + 1, one.text, PlaceKind.CODE, one.names)
        return
    code = _Code(path, tree, sought)
    for node in walk(tree):
        yield from code.identifiers_in(node)
        if isinstance(node, ast.Constant) and isinstance(node.value, (str, bytes)):
            yield from code.texts_in(node, node.value)


class _Code:
    """A parsed file, with what has to be known of it as a whole."""

    def __init__(self, path: str, tree: ast.Module, sought: SoughtNames) -> None:
        self.path, self.sought, self.catalogue = path, sought, sought.catalogue
        self._keywords, self._parsed = _keywords_of_megatron(tree), _parsed_arguments(tree)
        self._is_test = is_test(path)
        self._others = frozenset[int]() if self._is_test else _keywords_of_others(tree)
        self._tables = _keys_of_dicts(tree) if self._is_test else frozenset()
        self._shown, self._compared = _shown_texts(tree), _compared_texts(tree)

    def identifiers_in(self, node: ast.AST) -> Iterator[OpenPlace]:
        """Yield the places of the identifiers of one node."""
        match node:
            case ast.Attribute(value=of, attr=name, ctx=context):
                # Validation writes the new names from the old ones: a read sees what it saw.
                is_same = name in self.catalogue.new_names and isinstance(context, ast.Load)
                is_own = self._is_test and isinstance(context, ast.Store)
                if is_own and isinstance(of, ast.Name) and of.id == "self":
                    # A class of tests, which stands for another one.
                    return
                if not is_same and dotted(of) not in self._parsed:
                    yield from self._named(node.lineno, name, PlaceKind.OWN if is_own else PlaceKind.CODE)
            case ast.arg(arg=name):
                yield from self._named(node.lineno, name, PlaceKind.PARAMETER)
            case ast.keyword(arg=str(name)):
                kind = PlaceKind.CODE if id(node) in self._others else PlaceKind.PARAMETER
                yield from self._named(node.lineno, name, PlaceKind.KEYWORD if id(node) in self._keywords else kind)
            case ast.MatchClass(kwd_attrs=names):
                for name in names:
                    yield from self._named(node.lineno, name)
            case ast.ClassDef(body=body):
                for target in _fields_in(body):
                    yield from self._named(target.lineno, target.id)

    def _named(self, line: int, name: str, kind: PlaceKind = PlaceKind.CODE) -> Iterator[OpenPlace]:
        for one in appearances_in(name, self.sought):
            if one.end - one.start == len(name):
                yield OpenPlace(self.path, line, name, kind, one.names)

    def texts_in(self, node: ast.Constant, value: str | bytes) -> Iterator[OpenPlace]:
        """Yield the places in a text of the code: not in one for people, but for its doctests."""
        text = value if isinstance(value, str) else value.decode("latin-1")
        for one in appearances_in(text, self.sought):
            if " " in one.text and one.text.replace(" ", "").isalnum():
                continue  # words for people
            before = text[text.rfind("\n", 0, one.start) + 1 : one.start]
            # A doctest is no code that is followed.
            kind = PlaceKind.TEXT if DOCTEST.match(before) else PlaceKind.CODE
            if kind is PlaceKind.CODE and id(node) in self._shown:
                continue
            if id(node) in self._tables and text == one.text:
                kind = PlaceKind.OWN
            if FLAG.search(before) and "_" not in one.text and id(node) not in self._compared:
                kind = PlaceKind.FLAG
            # A line break that is written as an escape is none of the file.
            line = min(node.lineno + text.count("\n", 0, one.start), node.end_lineno or node.lineno)
            yield OpenPlace(self.path, line, one.text, kind, one.names, is_in_group=one.is_in_group)


def _keywords_of_megatron(tree: ast.Module) -> set[int]:
    """Return the keywords of calls that make an object of a class that is imported from Megatron, of them alone."""
    imported: set[str] = set()
    for node in walk(tree):
        match node:
            case ast.ImportFrom(module=str(module), names=names) if module.partition(".")[0] == "megatron":
                imported.update(one.asname or one.name for one in names)
            case ast.Import(names=names):
                every = (one for one in names if one.name.partition(".")[0] == "megatron")
                imported.update(one.asname or "megatron" for one in every)
    keywords: set[int] = set()
    for node in walk(tree):
        # Beside the keys of a mapping (`**config`), a keyword may be given twice.
        if isinstance(node, ast.Call) and all(one.arg for one in node.keywords):
            callee = dotted(node.func)
            if callee.partition(".")[0] in imported and callee.rpartition(".")[2][:1].isupper():
                keywords.update(map(id, node.keywords))
    return keywords


def _keywords_of_others(tree: ast.Module) -> frozenset[int]:
    """Return the keywords of calls that may set them on something: of no class, no parameter of the file."""
    functions = [one for one in walk(tree) if isinstance(one, ast.FunctionDef)]
    known = {(one.name, part.arg) for one in functions for part in walk(one.args) if isinstance(part, ast.arg)}
    calls = [(last_name(one.func), one) for one in walk(tree) if isinstance(one, ast.Call)]
    return frozenset(
        id(one)
        for name, call in calls
        for one in call.keywords
        if not name[:1].isupper() and (name, one.arg) not in known
    )


def _parsed_arguments(tree: ast.Module) -> set[str]:
    """Return the names of variables and parameters that are the parsed arguments of a program."""
    names: set[str] = set()
    for node in walk(tree):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as annotation):
                if dotted(annotation).rpartition(".")[2] == "Namespace":
                    names.add(name)
            case ast.Assign(targets=[target], value=ast.Call(func=ast.Attribute(attr="parse_args"))):
                names.add(dotted(target))
    return names - {""}


def _shown_texts(tree: ast.Module) -> set[int]:
    """Return the texts for people: docstrings, messages of errors that are raised, and what is printed as it is."""
    shown: set[int] = set()
    for node in walk(tree):
        match node:
            case ast.Expr(value=value):
                shown.add(id(value))
            case ast.Raise(exc=ast.Call(args=args)):
                shown.update(id(part) for one in args for part in (one, *getattr(one, "values", ())))
            case ast.Call(func=func, args=args) if dotted(func).rpartition(".")[2] in SHOWING | {"fail", "skip"}:
                shown.update(
                    id(one) for one in args if isinstance(one, ast.Constant) and not _FILLED.search(str(one.value))
                )
            case ast.Assert(msg=ast.expr() as message):
                shown.update(id(part) for part in (message, *getattr(message, "values", ())))
    return shown


def _compared_texts(tree: ast.Module) -> set[int]:
    """Return the texts that code compares with others, or looks for in them."""
    result = {id(one) for one, _ in searches_in(tree)}
    for node in walk(tree):
        match node:
            case ast.Compare(left=left, comparators=others):
                result.update(id(part) for one in (left, *others) for part in walk(one))
            case ast.Subscript(value=value):
                result.add(id(value))
    return result


def _keys_of_dicts(tree: ast.Module) -> frozenset[int]:
    return frozenset(id(key) for node in walk(tree) if isinstance(node, ast.Dict) for key in node.keys)


def _fields_in(body: list[ast.stmt]) -> Iterator[ast.Name]:
    for one in body:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        yield from (target for target in targets if isinstance(target, ast.Name))
