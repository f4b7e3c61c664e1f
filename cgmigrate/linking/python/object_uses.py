"""What tests do with the objects on which they set entries of dictionaries: code that sees one whole sees the names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.bound_names import binders
from cgmigrate.linking.python.modules import Module, is_test
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.set_entries import OtherUseError, SetEntries, helper_of, parameter_of

_OF_ATTRIBUTES = frozenset(("getattr", "setattr", "hasattr", "isinstance", "id", "type"))
_SHOWING = ("dict", "yaml", "json", "text", "str", "repr", "dump", "save", "print", "log", "show", "diff", "hash", "eq")
"""Parts of the names of methods that may show all attributes of an object."""


@dataclass
class ObjectUses:
    """Follows the names of objects through functions of tests, up and down the calls.

    ``holders`` are the attributes and keys that lead to the objects. Other attributes of what has one are harmless.
    """

    references: References
    functions: dict[AnyFunction, Module]
    tests: frozenset[AnyFunction]
    holders: set[str] = field(default_factory=set)
    names: dict[AnyFunction, set[str]] = field(default_factory=dict)
    returning: set[AnyFunction] = field(default_factory=set)
    _parents: dict[AnyFunction, dict[ast.AST, ast.AST]] = field(default_factory=dict)

    def check(self, entries: SetEntries) -> None:
        """Raise OtherUseError if code may see such an object whole."""
        for function, owner in entries.objects:
            root, attributes = _chain(owner)
            self.holders.update(attributes)
            self._add(root, function)
        while True:
            before = {function: len(names) for function, names in self.names.items()}, len(self.returning)
            for function in list(self.names):
                self._spread(function)
            if before == ({function: len(names) for function, names in self.names.items()}, len(self.returning)):
                break
        for function in self.names:
            self._check_in(function)

    def _add(self, name: str, function: AnyFunction) -> None:
        known = binders(name, function)
        if name in ("self", "cls") or not known or (function in self.tests and function in known):
            # What an object, a module or a fixture keeps may be seen anywhere.
            raise OtherUseError
        self.names.setdefault(function, set()).add(name)

    # --- which names are objects ------------------------------------------------------------------

    def _spread(self, function: AnyFunction) -> None:
        """Add the names that have an object of a function as well, in this function and in those around the calls."""
        own, module = self.names[function], self.functions[function]
        for part in walk(function):
            match part:
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._spread_assigned(name, value, function)
                case ast.Return(value=ast.Name(id=name)) if name in own:
                    self.returning.add(function)
                case ast.Call(func=ast.Name() as called):
                    self._spread_down(part, called, function, module)
        for caller, its_module in list(self.functions.items()):
            for call in walk(caller):
                match call:
                    case ast.Call(func=ast.Name() as called):
                        helper = helper_of(called, caller, its_module, self.references)
                        if helper is not None and helper[0] is function:
                            self._spread_up(call, function, caller)

    def _spread_assigned(self, name: str, value: ast.expr, function: AnyFunction) -> None:
        own = self.names[function]
        root, _ = _chain(_object_of(value))
        if root in own or self._is_returned(value, function):
            self._add(name, function)
        elif name in own and root:
            self._add(root, function)

    def _is_returned(self, value: ast.expr, function: AnyFunction) -> bool:
        match value:
            case ast.Call(func=ast.Name() as called):
                helper = helper_of(called, function, self.functions[function], self.references)
                return helper is not None and helper[0] in self.returning
        return False

    def _spread_down(self, call: ast.Call, called: ast.Name, function: AnyFunction, module: Module) -> None:
        """Add the parameters of a function of tests that get an object."""
        for at, value in _arguments(call):
            root, attributes = _chain(value)
            if root in self.names[function] and self._is_object(attributes):
                helper = helper_of(called, function, module, self.references)
                if helper is not None and is_test(helper[1].path):
                    self.functions[helper[0]] = helper[1]
                    self._add(parameter_of(helper[0], at), helper[0])

    def _spread_up(self, call: ast.Call, function: AnyFunction, caller: AnyFunction) -> None:
        """Add the names that a function gives to the parameters of another one that are objects."""
        assert isinstance(function, ast.FunctionDef)
        for at, value in _arguments(call):
            if parameter_of(function, at) in self.names[function] and (root := _chain(value)[0]):
                self._add(root, caller)

    def _is_object(self, attributes: list[str]) -> bool:
        return not attributes or attributes[-1] in self.holders

    # --- what code does with them -----------------------------------------------------------------

    def _check_in(self, function: AnyFunction) -> None:
        """Raise OtherUseError if a function may show an object, or give it to code that is not known."""
        parents = {child: node for node in walk(function) for child in ast.iter_child_nodes(node)}
        for part in walk(function):
            if not isinstance(part, ast.Name) or part.id not in self.names[function]:
                continue
            node: ast.AST = part
            attributes = list[str]()
            while isinstance(above := parents[node], ast.Attribute):
                node = above
                attributes.append(above.attr)
            if not self._is_harmless(node, attributes, parents, function):
                raise OtherUseError

    def _is_harmless(
        self, node: ast.AST, attributes: list[str], parents: dict[ast.AST, ast.AST], function: AnyFunction
    ) -> bool:
        """Return whether a use of an object, or of an attribute of it, shows no names of its settings."""
        above = parents[node]
        if attributes and isinstance(above, ast.Call) and above.func is node:
            return isinstance(parents[above], ast.Expr) and not any(one in attributes[-1] for one in _SHOWING)
        if not self._is_object(attributes):
            return not attributes[-1].startswith("__")
        match parents[above] if isinstance(above, ast.keyword) else above:
            case ast.Call(func=ast.Name() as called) if called is not node:
                return self._is_known(called, function)
            case ast.FormattedValue() as shown:
                return _is_in_error(shown, parents)
            case other:
                return _keeps(other)

    def _is_known(self, called: ast.Name, function: AnyFunction) -> bool:
        """Return whether a call is of a builtin that uses one attribute, or of code of the checkout.

        That of the project is proved with each object, and that of tests is followed.
        """
        if called.id in _OF_ATTRIBUTES:
            return not binders(called.id, function)
        if binders(called.id, function):
            return self._is_imported(called, function)
        code = self.references.of(called, self.functions[function]).code
        helper = helper_of(called, function, self.functions[function], self.references)
        return helper is not None or (len(code) == 1 and not is_test(code[0][1].path))

    def _is_imported(self, called: ast.Name, function: AnyFunction) -> bool:
        """Return whether a name is only imported in a function, from code of the project."""
        modules = self.references.modules
        for one in walk(function):
            match one:
                case ast.ImportFrom(module=str() as name, level=0, names=names):
                    imported = modules.imported(name, self.functions[function])
                    if any((alias.asname or alias.name) == called.id for alias in names):
                        every = binders(called.id, function)
                        return len(every) == 1 and imported is not None and not is_test(imported.path)
        return False


def _keeps(node: ast.AST) -> bool:
    """Return whether code only binds an object to a name, returns it, or asks whether there is one."""
    match node:
        case ast.Assign(targets=[ast.Name() | ast.Attribute()]) | ast.Return() | ast.If() | ast.AnnAssign():
            return True
        case ast.Compare(ops=[ast.Is() | ast.IsNot()], comparators=[ast.Constant()]):
            return True
    return False


def _chain(node: ast.expr) -> tuple[str, list[str]]:
    """Return the name of which an expression is an attribute, also of one, with the attributes; else no name."""
    attributes = list[str]()
    while isinstance(node, ast.Attribute):
        attributes.insert(0, node.attr)
        node = node.value
    return (node.id, attributes) if isinstance(node, ast.Name) else ("", [])


def _object_of(value: ast.expr) -> ast.expr:
    """Return the object of which an expression gets an attribute by a name."""
    match value:
        case ast.Call(func=ast.Name(id="getattr"), args=[owner, *_]):
            return owner
    return value


def _arguments(call: ast.Call) -> Iterator[tuple[int | str, ast.expr]]:
    """Yield the arguments of a call, each with its position or name, up to those that are computed."""
    for at, one in enumerate(call.args):
        if isinstance(one, ast.Starred):
            return
        yield at, one
    yield from ((one.arg, one.value) for one in call.keywords if one.arg)


def _is_in_error(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    while (above := parents.get(node)) is not None:
        if isinstance(above, ast.Raise):
            return True
        node = above
    return False
