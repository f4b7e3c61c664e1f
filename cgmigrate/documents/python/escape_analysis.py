"""Escape analysis: which code that a site does not show can see the object of the site.

A fix of one site is right only if everything that sets or reads the same object is known. A helper that writes
``cuda_graph_scope = []`` and a recipe that then sets ``cuda_graph_modules`` make an object that megatron-core
refuses, although each statement is right by itself. Until objects are followed across files, a fix is safe only if

* the object is made where it is changed, by a class of Megatron that names no setting in this checkout;
* nothing else gets it: it is neither returned, nor stored, nor passed to a function other than Megatron's own, which
  read the settings by the rules of their release;
* or megatron-core validates it in its constructor, where it replaces the deprecated names. On 0.18 and later it does
  so with the old text as well as with the new one, so code that gets the object sees the same in both cases.

In all other cases, and in doubt, there is a reason, which makes the fix unsafe.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from cgmigrate.documents.python.definitions import Definitions
from cgmigrate.documents.python.name_resolution import MEGATRON
from cgmigrate.documents.python.scopes import Function, Scope
from cgmigrate.documents.python.source import dotted
from cgmigrate.megatron.catalogue import Catalogue

_HARMLESS = frozenset(("print", "isinstance", "hasattr", "len", "type", "str", "repr", "id", "bool", "callable"))
_ONLY_READ = (ast.Compare, ast.FormattedValue, ast.If, ast.While, ast.Expr, ast.Assert)
"""Nodes that read an object without giving it to other code."""
_CALLERS_SEE_IT = "its callers may set or read the settings under the old names"
Chain = tuple[str, ...]
"""The attributes that lead from an object with a name to the one that is followed."""


@dataclass(slots=True)
class Escapes:
    """Follows the objects of one module. Each method returns why an object escapes, empty if it does not."""

    definitions: Definitions
    _scopes: dict[int, Scope] = field(default_factory=dict)
    _reasons: dict[tuple[int, str], str] = field(default_factory=dict)

    @property
    def catalogue(self) -> Catalogue:
        """The settings that code may name."""
        return self.definitions.module.names.catalogue

    # --- an object that has a name ------------------------------------------------------------

    def of_object(self, path: str, node: ast.Module | Function) -> str:
        """Return why the object at ``path`` cannot be followed in a function, empty when it can."""
        key = (id(node), path)
        if key not in self._reasons:
            self._reasons[key] = ""  # an object that leads back to itself
            scope = self.scope(node)
            root, *rest = path.split(".") if path else [""]
            # In this order, since only the last two read expressions and other files.
            why = _seen_by_callers(root, tuple(rest), scope) or self._of_unknown_origin(root, tuple(rest), scope)
            self._reasons[key] = why or self._used(root, tuple(rest), scope)
        return self._reasons[key]

    def scope(self, node: ast.Module | Function) -> Scope:
        """Return what a function does with its names."""
        if id(node) not in self._scopes:
            self._scopes[id(node)] = Scope.of(node, self.catalogue)
        return self._scopes[id(node)]

    # --- what made an object ------------------------------------------------------------------

    def _of_unknown_origin(self, root: str, chain: Chain, scope: Scope) -> str:
        """Return why it is not known what made an object, empty if a constructor of Megatron did."""
        if root in scope.parameters:
            return f"`{root}` is a parameter of `{scope.name}`: {_CALLERS_SEE_IT}"
        relevant = [
            (binding, tuple(binding.path.split(".")[1:]))
            for binding in scope.bindings.get(root, [])
            if binding.path.split(".")[1:] == list(chain[: binding.path.count(".")])
        ]
        if not any(not attributes for _, attributes in relevant):
            where = f"`{scope.name}` does not make" if scope.name else "this file does not make"
            return f"only its name shows that `{'.'.join((root, *chain))}` is Megatron's: {where} the object"
        for binding, attributes in relevant:
            if binding.value is None:
                return f"`{binding.path}` is bound on line {binding.line} in a way that is not followed"
            if why := self._value(binding.value, binding.path, chain[len(attributes) :]):
                return why
        return ""

    def _value(self, value: ast.expr, path: str, chain: Chain) -> str:
        """Return why a value may be an object that other code sees, for the part of it that ``chain`` reaches."""
        match value:
            case ast.Constant():
                return ""  # None at first; what replaces it is a binding of its own
            case ast.Name() | ast.Attribute():
                return f"`{path}` is another name of `{ast.unparse(value)[:60]}`"
            case ast.Call(func=func):
                if not dotted(func).rpartition(".")[2][:1].isupper():
                    return self._result_of_function(func, path)
                return self.definitions.why_not_megatrons(dotted(func)) or self._constructed(value, path, chain)
        return f"`{path}` is not made by a constructor (line {value.lineno})"

    def _constructed(self, call: ast.Call, path: str, chain: Chain) -> str:
        """Return why the arguments of a constructor let other code see the object or set a setting."""
        if any(keyword.arg is None for keyword in call.keywords):
            return f"`{path}` gets settings that are computed elsewhere (`**`, line {call.lineno})"
        if chain:
            part = next((keyword.value for keyword in call.keywords if keyword.arg == chain[0]), None)
            return "" if part is None else self._value(part, f"{path}.{chain[0]}", chain[1:])
        setting = next((keyword.arg for keyword in call.keywords if keyword.arg in self.catalogue.name_set), "")
        return f"the constructor of `{path}` sets `{setting}` as well (line {call.lineno})" if setting else ""

    def _result_of_function(self, func: ast.expr, path: str) -> str:
        """Return why the result of a function may be known to others."""
        subject = f"`{path}` is returned by `{ast.unparse(func)[:60]}`"
        definition = self.definitions.of(dotted(func))
        if definition is None or isinstance(definition.node, ast.ClassDef):
            return f"{subject}, whose body was not read"
        return f"{subject}, which {self.definitions.setting_in(definition) or 'is not followed'}"

    # --- what is done with an object ------------------------------------------------------------

    def _used(self, root: str, chain: Chain, scope: Scope) -> str:
        """Return why uses of an object let it escape, empty when they do not."""
        if root in scope.inner:
            return f"the code on line {scope.inner[root]} uses `{root}` as well, at another time"
        if isinstance(scope.node, ast.Module) and not scope.binds_only_as_main(root):
            return f"`{root}` is a name of the module, which other files can import"
        return next(filter(None, (self._use(use, chain, scope) for use in scope.uses.get(root, []))), "")

    def _use(self, use: ast.Name, chain: Chain, scope: Scope) -> str:
        """Return why one use of a name lets the object escape, empty when it does not."""
        node, attributes = _attribute_of(use, scope)
        shared = min(len(chain), len(attributes))
        if attributes[:shared] != chain[:shared]:
            return ""  # another part of the object
        if "__dict__" in attributes:
            return f"`{ast.unparse(node)[:60]}` may set or read a setting by its name"
        is_value = len(attributes) > len(chain) and not scope.is_called(node)
        is_bound = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        # Code that reads or sets a setting is reported by itself, and the origin of the object covers bindings.
        return "" if is_value or is_bound else self._receiver(node, scope)

    def _receiver(self, node: ast.expr, scope: Scope) -> str:
        """Return why the code around an object lets it escape."""
        above = scope.parent(node)
        call = scope.parent(above) if isinstance(above, ast.keyword) and above.arg is not None else above
        is_method = isinstance(above, ast.Call) and above.func is node
        is_not = isinstance(above, ast.UnaryOp) and isinstance(above.op, ast.Not)
        if is_method or is_not or isinstance(above, _ONLY_READ) or (isinstance(call, ast.Call) and self._keeps(call)):
            return ""
        return f"`{ast.unparse(node)[:60]}` goes to code on line {node.lineno} that is not followed"

    def _keeps(self, call: ast.Call) -> bool:
        """Return whether a call leaves the settings of its arguments as they are: Python's own, or Megatron's."""
        name = dotted(call.func)
        full = self.definitions.module.names.resolve(name) if name else ""
        is_megatrons = full.partition(".")[0] in MEGATRON and not full.rpartition(".")[2][:1].isupper()
        return name in _HARMLESS or (is_megatrons and self.definitions.of(name) is None)


def _seen_by_callers(root: str, chain: Chain, scope: Scope) -> str:
    """Return why the callers of a function have the object."""
    if root in scope.parameters:
        return f"`{root}` is a parameter of `{scope.name}`: {_CALLERS_SEE_IT}"
    for result in scope.returned:
        first, *rest = dotted(result).split(".")
        if first == root and len(rest) <= len(chain) and tuple(rest) == chain[: len(rest)]:
            return f"`{scope.name}` returns `{root}`: {_CALLERS_SEE_IT}"
    return ""


def _attribute_of(use: ast.Name, scope: Scope) -> tuple[ast.expr, Chain]:
    """Return the longest attribute that a name begins (``cfg.model.x``), and its parts behind the name."""
    node: ast.expr = use
    attributes: list[str] = []
    while isinstance(above := scope.parent(node), ast.Attribute):
        node = above
        attributes.append(above.attr)
    return node, tuple(attributes)
