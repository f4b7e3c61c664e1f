"""Names of settings that code has as data, where other code may use attributes by names that it computes.

``OVERRIDES = {"cuda_graph_scope": ["attn"]}`` sets nothing by itself. Code that gets the table may:
``setattr(cfg.model, name, value)``, ``replace(cfg.model, **overrides)``. Which object that is may be hidden, so such a
table prevents each proof. Code may get it that is in its module, or in one that imports it, and what such code uses.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.proof.flow.modules import Module, Modules, is_test
from cgmigrate.linking.python.name_texts import ACCESSES, last_name, texts_in
from cgmigrate.linking.python.references import Code, References
from cgmigrate.linking.python.relevance import computed_name
from cgmigrate.linking.python.rounds import Place
from cgmigrate.proof.flow.words import ANY_SPELLING
from cgmigrate.proof.flow.world import SETTINGS

_MOST_IMPORTS = 3
_MOST_STEPS = 4
"""How far the code that a table may reach is followed."""
_COPIES = frozenset(("replace", "_replace", "__init__", "model_copy", "evolve", "__replace__"))
"""Functions that make an object of another one, with other values for some attributes."""
_LOOKS = frozenset(("get", "pop", "startswith", "endswith", "removeprefix", "removesuffix", "index", "count"))
"""Methods that look for a name in what code has."""
_CLASS = re.compile(r"_?[A-Z]\w*[a-z]\w*$")


@dataclass
class DataNames:
    """Finds the tables of a project with names of settings that code may use attributes by.

    ``files_with`` returns the files of code that contain one of some words. ``followed`` are the lines of tables of
    which it is known that their entries only become keyword arguments of a class.
    """

    references: References
    files_with: FilesWith
    followed: frozenset[Place] = frozenset()
    _using: dict[ast.AST, bool] = field(default_factory=dict)

    def find(self) -> str:
        """Return the place of the first such table; empty if there is none."""
        for path in sorted(self.files_with([ANY_SPELLING])):
            module = None if is_test(path) else self._modules.read(path)
            every = lines_of_data(module) if module is not None else ()
            lines = [line for line in every if (path, line) not in self.followed]
            if module is not None and lines and any(self._uses_names(*one) for one in self._related(module)):
                return f"{path}:{lines[0]}"
        return ""

    @property
    def _modules(self) -> Modules:
        return self.references.modules

    def _related(self, module: Module) -> Iterator[Code]:
        """Yield the code of a module and of those that import it, and what that code uses, also through other code."""
        code: list[Code] = [(one.tree, one) for one in (module, *self._importing(module))]
        known = {node for node, _ in code}
        for _ in range(_MOST_STEPS):
            yield from code
            used = (other for one in code for other in self.references.of(*one).code)
            code = [one for one in dict.fromkeys(used) if one[0] not in known]
            known.update(node for node, _ in code)

    def _importing(self, module: Module) -> Iterator[Module]:
        """Yield the modules that import a module, or one that does so, up to a distance."""
        known, waiting = {module.path}, [module.path]
        for _ in range(_MOST_IMPORTS):
            new = dict.fromkeys(other for one in waiting for other in self._importers(one) if other not in known)
            known.update(new)
            waiting = list(new)
            yield from filter(None, map(self._modules.read, waiting))

    def _importers(self, path: str) -> Iterator[str]:
        folder, name = os.path.split(path)
        word = os.path.basename(folder) if name == "__init__.py" else name.removesuffix(".py")
        for other in self.files_with([word]):
            module = None if is_test(other) else self._modules.read(other)
            if module is not None and path in self._modules.all_imported(module):
                yield other

    def _uses_names(self, node: ast.AST, module: Module) -> bool:
        if node not in self._using:
            of_modules = {id(one) for part in walk(node) for one in self._read_of_modules(part, node, module)}
            self._using[node] = any(uses_any_name(one) and id(one) not in of_modules for one in walk(node))
        return self._using[node]

    def _read_of_modules(self, part: ast.AST, node: ast.AST, module: Module) -> Iterator[ast.AST]:
        """Yield calls that look up what a module has, or read a field of an object by the name that its class gives."""
        match part:
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Attribute(attr="name"), *_]):
                yield part
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), *_]):
                if self.references.is_module(name, node, module):
                    yield part


def uses_any_name(node: ast.AST) -> bool:
    """Return whether code may use attributes by names that it computes, or make an object with such names."""
    match node:
        case ast.Call(func=function, keywords=keywords) if any(
            one.arg is None and not isinstance(one.value, ast.Dict) for one in keywords
        ):
            name = last_name(function)
            return name in _COPIES or _CLASS.match(name) is not None
        case ast.Call(func=ast.Attribute(attr="model_copy"), keywords=[_, *_]):
            return True
        case ast.Call(args=arguments) if any(isinstance(one, ast.Name) and one.id in ACCESSES for one in arguments):
            # `reduce(getattr, path.split("."), cfg)`
            return True
    return computed_name(node)


def lines_of_data(module: Module) -> list[int]:
    """Return the lines at which a module has the name of a setting, or a part of one, as data."""
    known = set(map(id, _looked_for(module.tree)))
    texts = {part.lineno for part, _ in texts_in(module.tree) if id(part) not in known}
    return sorted(texts | {line for node in walk(module.tree) for line in _lines_of_attributes(node)})


def _lines_of_attributes(node: ast.AST) -> Iterator[int]:
    """Yield the lines at which a class has an attribute with the name of a setting: code may copy all that it has."""
    for one in node.body if isinstance(node, ast.ClassDef) else ():
        match one:
            case ast.Assign(targets=[ast.Name(id=name)]) if any(setting in name for setting in SETTINGS):
                yield one.lineno


def _looked_for(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the texts that code looks for in what it has, or of which a loop reads the attributes."""
    for node in walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in _LOOKS:
                yield from (inner for one in arguments[:1] for inner in walk(one))
            case ast.Call(func=function, args=[_, name, *_]) if last_name(function) in ACCESSES and _is_written(name):
                yield from walk(name)
            case ast.Compare():
                yield from walk(node)
            case ast.Subscript(slice=key, ctx=ast.Load()):
                yield from walk(key)
            case ast.MatchValue(value=value):
                yield value
            case ast.JoinedStr(values=values) if any(_is_shown(one) for one in values):
                yield from values
            case ast.For(
                target=ast.Name(id=name) | ast.Tuple(elts=[ast.Name(id=name), *_]),
                iter=ast.Tuple() | ast.List() | ast.Set() as names,
                body=body,
            ) if all(_only_names_attributes(one, name) for one in body):
                yield from walk(names)


def _is_written(node: ast.AST) -> bool:
    """Return whether a text is all in the code, perhaps in parts."""
    return all(isinstance(one, (ast.Constant, ast.BinOp, ast.operator)) for one in walk(node))


def _is_shown(node: ast.expr) -> bool:
    """Return whether a part of a text is a value as `repr` writes it: for people."""
    return isinstance(node, ast.FormattedValue) and node.conversion == ord("r")


def _only_names_attributes(node: ast.AST, variable: str) -> bool:
    """Return whether code uses a variable only as the name of an attribute that it reads or sets."""
    allowed = {
        id(one.args[1])
        for one in walk(node)
        if isinstance(one, ast.Call) and last_name(one.func) in ACCESSES and len(one.args) > 1
    }
    uses = (one for one in walk(node) if isinstance(one, ast.Name) and one.id == variable)
    return all(id(one) in allowed for one in uses)
