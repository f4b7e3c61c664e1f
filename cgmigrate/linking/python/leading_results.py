"""Whether a function that is not followed may return an object of code that changes.

It may do so by tables of functions (`RECIPES[name]()`), also of other modules and those that decorators fill, and by
modules that it imports by names which it computes.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.callers import FilesWith
from cgmigrate.linking.python.leading_code import facts_of, returns_value
from cgmigrate.proof.flow.modules import LOOKUPS, Module, is_test
from cgmigrate.linking.python.references import Code, References

_DEFINING = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)


@dataclass(frozen=True, slots=True)
class LeadingResults:
    """Decides for functions of the project: ``leading`` are those that change."""

    references: References
    leading: set[ast.AST]
    """With the tables that get some of them."""
    files_with: FilesWith
    _known: dict[ast.AST, bool] = field(default_factory=dict)
    _methods: dict[str, bool] = field(default_factory=dict)

    def add_tables(self, modules: Iterable[Module]) -> None:
        """Note the tables that get leading functions in some modules: by a statement, a call or a decorator."""
        for module in modules:
            for node in walk(module.tree):
                match node:
                    case ast.FunctionDef(decorator_list=[_, *_] as decorators) if self._leads(node, module):
                        self._add_tables(decorators, module)
                    case ast.Call(func=function, args=arguments, keywords=keywords):
                        values = [*arguments, *(one.value for one in keywords)]
                        self._add_filled(function, values, module)
                    case ast.Assign(targets=[target], value=value) if not isinstance(target, ast.Name):
                        self._add_filled(target, [value], module)

    def _add_filled(self, target: ast.expr, values: Iterable[ast.expr], module: Module) -> None:
        """Note the tables of a target, or of the function that is called, if it gets a leading function."""
        named = (one for one in values if isinstance(one, (ast.Name, ast.Attribute)))
        if any(self._leads(*used) for one in named for used in self.references.of(one, module).code):
            self._add_tables([target], module)

    def _leads(self, node: ast.AST, module: Module) -> bool:
        return isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and self.may_return(node, module)

    def _add_tables(self, nodes: Iterable[ast.AST], module: Module) -> None:
        for node in nodes:
            for used, its_module in self.references.of(node, module).code:
                if isinstance(used, ast.expr):
                    self.leading.add(used)
                elif used not in self.leading:
                    # A decorator, or a function that gets one: the tables that it may fill.
                    inner = self.references.of(used, its_module).code
                    self.leading.update(one for one, _ in inner if isinstance(one, ast.expr))

    def may_return(self, node: ast.AST, module: Module) -> bool:
        """Return whether the result of a function may be an object of code that changes.

        A value that a class keeps is followed by the functions that it names alone: providers are among them.
        """
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not returns_value(node):
            return False
        if node not in self._known:
            is_value = isinstance(node, ast.expr)
            self._known[node] = any(
                one in self.leading or (not is_value and self._looks_up(one, its_module))
                for one, its_module in self._pieces(node, module, by_class=is_value)
            )
        return self._known[node]

    def _looks_up(self, node: ast.AST, module: Module) -> bool:
        return any(map(_is_lookup, walk(node))) or self.references.looks_up(node, module)

    def method_may_return(self, name: str) -> bool:
        """Return whether a method of the project that has a name may return such an object."""
        if name not in self._methods:
            self._methods[name] = any(
                self._method_may_return(one.node, module)
                for path in self.files_with([name])
                if not is_test(path) and (module := self.references.modules.read(path)) is not None
                for one in facts_of(module)
                if one.inside is not None and one.node.name == name
            )
        return self._methods[name]

    def _method_may_return(self, node: ast.AST, module: Module) -> bool:
        """Return whether a method may do so, by the functions that it names or looks up in the modules it imports.

        What other modules look up may be in libraries: ``safe_import(name)``.
        """
        return returns_value(node) and any(
            one in self.leading or (its_module is module and self.references.looks_up(one, its_module))
            for one, its_module in self._pieces(node, module, by_class=True)
        )

    def _pieces(self, node: ast.AST, module: Module, *, by_class: bool) -> Iterator[Code]:
        """Yield the code that a function uses, and the statements at the top of a module that use the same names."""
        waiting: list[tuple[Code, bool]] = [((node, module), by_class)]
        known = set[ast.AST]()
        while waiting:
            (piece, its_module), by_class = waiting.pop()
            if piece in known:
                continue
            known.add(piece)
            yield piece, its_module
            used = self.references.of(piece, its_module).code
            by_class = by_class or isinstance(piece, ast.ClassDef)
            # The classes that methods name say little of what calls of them return.
            used = [one for one in used if not (by_class and isinstance(one[0], ast.ClassDef))]
            names = {one.id for one in walk(piece) if isinstance(one, ast.Name)} & its_module.bindings.keys()
            used += ((one, its_module) for one in statements_with(names, its_module))
            waiting += ((one, by_class) for one in used)


def statements_with(names: Collection[str], module: Module) -> Iterator[ast.stmt]:
    """Yield the statements at the top of a module that use one of some names, other than definitions and imports."""
    for one in module.tree.body if names else ():
        if not isinstance(one, _DEFINING) and any(
            isinstance(part, ast.Name) and part.id in names for part in walk(one)
        ):
            yield one


def _is_lookup(node: ast.AST) -> bool:
    """Return whether code gets a module by a name that it computes."""
    match node:
        case ast.Call(func=function, args=[name, *_]):
            return dotted(function).rpartition(".")[2] in LOOKUPS and not isinstance(name, ast.Constant)
    return False
