"""What tests do with the objects on which they set entries of dictionaries: code that sees one whole sees the names.

Only the simplest tests are known: a function makes an object, sets attributes of its parts, and gives it to code of the
project whose result it does not use.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from cgmigrate.documents.python.nodes import class_of, parents_in, walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.bound_names import binders
from cgmigrate.linking.python.modules import Module, is_test
from cgmigrate.linking.python.pieces import AnyFunction
from cgmigrate.linking.python.references import References
from cgmigrate.linking.python.set_entries import OtherUseError
from cgmigrate.linking.python.world import SETTINGS

_VALIDATING = ("finalize", "validate")
"""Methods that every configuration has, and that show nothing."""
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
_Parents = dict[ast.AST, ast.AST]


@dataclass(frozen=True, slots=True)
class ObjectUses:
    """Checks the uses of an object in the function that sets entries on it.

    ``holders`` are the attributes that lead to its settings.
    """

    function: AnyFunction
    module: Module
    references: References
    holders: frozenset[str]
    _parents: _Parents = field(default_factory=dict)

    def check(self, owner: ast.expr) -> None:
        """Raise OtherUseError if the function may do more with an object than to set its attributes."""
        self._parents.update(parents_in(self.function))
        root, *attributes = dotted(owner).split(".")
        match self._maker(root):
            case ast.Call(func=ast.Name(id="getattr"), args=[ast.Name(id=name), ast.Name()], keywords=[]) if (
                not attributes and isinstance(self._maker(name), ast.Call)
            ):
                self._check_uses(root, is_part=True)
                self._check_uses(name, is_part=False)
            case ast.Call(func=made) if len(attributes) <= 1 and self._is_made(made):
                self._check_uses(root, is_part=False)
            case _:
                raise OtherUseError

    def _maker(self, name: str) -> ast.expr | None:
        """Return the value of a name that the function binds once, by an assignment; None for another name."""
        match [self._parents.get(one) for one in binders(name, self.function)]:
            case [ast.Assign(targets=[ast.Name()], value=value)]:
                return value
            case [ast.AnnAssign(target=ast.Name(), value=ast.expr() as value)]:
                return value
        return None

    def _is_made(self, made: ast.expr) -> bool:
        """Return whether a function that is called makes an object: one that has a name, or a method of the test."""
        match made:
            case ast.Name():
                return True
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                own = class_of(self.function, self.module.tree)
                methods = [one for one in own.body if _is_method(one, name)] if own is not None else []
                return len(methods) == 1 and _only_returns(methods[0])
        return False

    def _check_uses(self, name: str, *, is_part: bool) -> None:
        for node in walk(self.function):
            is_use = isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)
            if is_use and (self._is_inner(node) or not self._is_known(node, is_part=is_part)):
                raise OtherUseError

    def _is_inner(self, node: ast.AST) -> bool:
        """Return whether a function in the function uses a name: it may be called anywhere."""
        while (node := self._parents[node]) is not self.function:
            if isinstance(node, _INNER):
                return True
        return False

    def _is_known(self, name: ast.AST, *, is_part: bool) -> bool:
        node = name
        attributes = list[str]()
        while isinstance(above := self._parents[node], ast.Attribute):
            node = above
            attributes.append(above.attr)
        if self._is_of_attribute(above, node):
            return True
        if is_part or not attributes:
            return not attributes and not is_part and self._is_passed_on(above, node)
        if not SETTINGS.isdisjoint(attributes) or any(one.startswith("__") for one in attributes):
            return False
        if attributes[0] not in self.holders:
            # `config.train.train_iters`: another part.
            return len(attributes) > 1 or _is_stored(node)
        if attributes[1:] and attributes[1] in _VALIDATING and len(attributes) == 2:
            return isinstance(above, ast.Call) and not (above.args or above.keywords) and self._is_unused(above)
        return len(attributes) > 1 and _is_stored(node)

    def _is_of_attribute(self, above: ast.AST, node: ast.AST) -> bool:
        """Return whether code asks for one attribute of an object, or sets one, or shows it in an error."""
        match above:
            case ast.Call(func=ast.Name(id="setattr" | "hasattr"), args=[owner, *_], keywords=[]):
                return owner is node
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Name()], keywords=[]):
                # The part of a dictionary that has others.
                return owner is node and isinstance(self._parents[above], ast.Assign)
            case ast.FormattedValue():
                return self._is_in_error(above)
        return False

    def _is_in_error(self, node: ast.AST) -> bool:
        while (above := self._parents.get(node)) is not None:
            if isinstance(above, ast.Raise):
                return True
            node = above
        return False

    def _is_passed_on(self, above: ast.AST, node: ast.AST) -> bool:
        """Return whether code of the project gets an object, and the function does not use what it returns."""
        match above:
            case ast.Call(func=ast.Name() as called, args=arguments) if node in arguments and self._is_unused(above):
                return self._is_of_project(called)
            case ast.Call(func=ast.Attribute(value=ast.Name() as owner, attr=name)) if owner is node:
                return name in _VALIDATING and not (above.args or above.keywords) and self._is_unused(above)
        return False

    def _is_unused(self, call: ast.AST) -> bool:
        return isinstance(self._parents[call], ast.Expr)

    def _is_of_project(self, called: ast.Name) -> bool:
        """Return whether a name is a function of the project: the proof gives it each object."""
        own = binders(called.id, self.function)
        if not own:
            code = self.references.of(called, self.module).code
            return len(code) == 1 and isinstance(code[0][0], ast.FunctionDef) and not is_test(code[0][1].path)
        match [self._parents.get(one) for one in own]:
            case [ast.ImportFrom(module=str() as name, level=0, names=names)]:
                module = self.references.modules.imported(name, self.module)
                original = next((one.name for one in names if (one.asname or one.name) == called.id), "")
                is_function = module is not None and isinstance(module.bindings.get(original), ast.FunctionDef)
                return module is not None and is_function and not is_test(module.path)
        return False


def _is_method(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name == name and not node.decorator_list


def _only_returns(method: ast.stmt) -> bool:
    """Return whether a method only sets attributes of parts of the object that it returns, and keeps it nowhere."""
    parents = parents_in(method)
    returned = {
        node.value.id for node in walk(method) if isinstance(node, ast.Return) and isinstance(node.value, ast.Name)
    }
    for node in walk(method):
        if isinstance(node, (ast.Global, ast.Nonlocal, *_INNER)) and node is not method:
            return False
        if isinstance(node, ast.Return) and not isinstance(node.value, ast.Name):
            return False
        if isinstance(node, ast.Name) and node.id in returned and isinstance(node.ctx, ast.Load):
            above = parents[node]
            is_deep = isinstance(above, ast.Attribute) and isinstance(parents[above], ast.Attribute)
            if not (is_deep or isinstance(above, ast.Return)):
                return False
    return True


def _is_stored(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
