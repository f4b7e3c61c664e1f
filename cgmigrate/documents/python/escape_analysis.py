"""Escape analysis: which code that a site does not show can see the object of the site.

A fix of one site is right only if everything that sets or reads the same object is known. A helper that writes
``cuda_graph_scope = []`` and a recipe that then sets ``cuda_graph_modules`` make an object that megatron-core
refuses, although each statement is right by itself. Until objects are followed across files, a fix is safe only if

* the object is made where it is changed, by a class of Megatron that names no setting in this checkout;
* nothing else gets it: it is neither returned, nor stored, nor passed to a function that names a setting or whose
  body was not read. Megatron's own functions read the settings by the rules of their release;
* or megatron-core validates it in its constructor, where it replaces the deprecated names. On 0.18 and later it does
  so with the old text as well as with the new one, so code that gets the object sees the same in both cases.

In all other cases, and in doubt, there is a reason, which makes the fix unsafe.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from cgmigrate.documents.python.definitions import Definition, Definitions
from cgmigrate.documents.python.name_resolution import MEGATRON
from cgmigrate.documents.python.scopes import Function, Scope
from cgmigrate.documents.python.source import dotted
from cgmigrate.megatron.catalogue import Catalogue

_DEPTH = 4
"""Functions and names that one object is followed through."""
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
    _parameters: dict[tuple[int, str], str] = field(default_factory=dict)
    _others: dict[str, Escapes] = field(default_factory=dict)

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

    def _of_unknown_origin(self, root: str, chain: Chain, scope: Scope, depth: int = 0) -> str:
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
            if why := self._value(binding.value, binding.path, chain[len(attributes) :], depth):
                return why
        return ""

    def _value(self, value: ast.expr, path: str, chain: Chain, depth: int) -> str:
        """Return why a value may be an object that other code sees, for the part of it that ``chain`` reaches."""
        match value:
            case ast.Constant():
                return ""  # None at first; what replaces it is a binding of its own
            case ast.Name() | ast.Attribute():
                return f"`{path}` is another name of `{ast.unparse(value)[:60]}`"
            case ast.Call(func=func):
                if not dotted(func).rpartition(".")[2][:1].isupper():
                    return self._result_of_function(func, path, chain, depth)
                return self.definitions.why_not_megatrons(dotted(func)) or self._constructed(value, path, chain, depth)
        return f"`{path}` is not made by a constructor (line {value.lineno})"

    def _constructed(self, call: ast.Call, path: str, chain: Chain, depth: int) -> str:
        """Return why the arguments of a constructor let other code see the object or set a setting."""
        if any(keyword.arg is None for keyword in call.keywords):
            return f"`{path}` gets settings that are computed elsewhere (`**`, line {call.lineno})"
        if chain:
            part = next((keyword.value for keyword in call.keywords if keyword.arg == chain[0]), None)
            return "" if part is None else self._value(part, f"{path}.{chain[0]}", chain[1:], depth)
        setting = next((keyword.arg for keyword in call.keywords if keyword.arg in self.catalogue.name_set), "")
        return f"the constructor of `{path}` sets `{setting}` as well (line {call.lineno})" if setting else ""

    def _result_of_function(self, func: ast.expr, path: str, chain: Chain, depth: int) -> str:
        """Return why the result of a function may be known to others, empty if its body only makes it."""
        subject = f"`{path}` is returned by `{ast.unparse(func)[:60]}`"
        definition = self.definitions.of(dotted(func))
        if definition is None or isinstance(definition.node, ast.ClassDef):
            return f"{subject}, whose body was not read"
        if setting := self.definitions.setting_in(definition):
            return f"{subject}, which {setting}"
        node = definition.node
        if node.decorator_list or isinstance(node, ast.AsyncFunctionDef) or depth >= _DEPTH:
            return f"{subject}, which is not followed"
        inside = self._escapes_in(definition)
        scope = inside.scope(node)
        for result in scope.returned:
            if isinstance(result, ast.Name):
                why = inside._of_unknown_origin(result.id, chain, scope, depth + 1)
                why = why or inside._used(result.id, chain, scope, depth + 1, returned=True)
            else:
                why = inside._value(result, "the result", chain, depth + 1)
            if why:
                return f"{subject}, where {why}"
        return ""

    def _escapes_in(self, definition: Definition) -> Escapes:
        """Return what follows objects in the module of a definition."""
        module = definition.module
        if module is self.definitions.module:
            return self
        if module.path not in self._others:
            self._others[module.path] = Escapes(Definitions(module, examined=False), _others=self._others)
        return self._others[module.path]

    # --- what is done with an object ------------------------------------------------------------

    def _used(self, root: str, chain: Chain, scope: Scope, depth: int = 0, *, returned: bool = False) -> str:
        """Return why uses of an object (other than ``returned``) let it escape, empty when they do not."""
        if root in scope.inner:
            return f"the code on line {scope.inner[root]} uses `{root}` as well, at another time"
        if isinstance(scope.node, ast.Module) and not scope.binds_only_as_main(root):
            return f"`{root}` is a name of the module, which other files can import"
        for use in scope.uses.get(root, []):
            if returned and isinstance(scope.parent(use), ast.Return):
                continue
            if why := self._use(use, chain, scope, depth):
                return why
        return ""

    def _use(self, use: ast.Name, chain: Chain, scope: Scope, depth: int) -> str:
        """Return why one use of a name lets the object escape, empty when it does not."""
        node, attributes = _attribute_of(use, scope)
        shared = min(len(chain), len(attributes))
        if attributes[:shared] != chain[:shared]:
            return ""  # another part of the object
        if "__dict__" in attributes:
            return f"`{ast.unparse(node)[:60]}` may set or read a setting by its name"
        is_value = len(attributes) > len(chain) and not scope.is_called(node)
        is_bound = isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)
        if is_value or is_bound:
            # Code that reads or sets a setting is reported by itself, and the origin of the object covers bindings.
            return ""
        return self._receiver(node, use, scope, depth)

    def _receiver(self, node: ast.expr, use: ast.Name, scope: Scope, depth: int) -> str:
        """Return why the code around an object lets it escape."""
        above = scope.parent(node)
        shown = ast.unparse(node)[:60]
        match above:
            case ast.Call() if above.func is not node:
                return self._passed(above, node, shown, scope, depth)
            case ast.keyword():
                call = scope.parent(above)
                if isinstance(call, ast.Call) and above.arg is not None:
                    return self._passed(call, above, shown, scope, depth)
                return f"`{shown}` is unpacked"
            case ast.Return() | ast.Yield():
                return f"`{scope.name}` returns `{use.id}`: {_CALLERS_SEE_IT}"
            case ast.Call() | ast.UnaryOp(op=ast.Not()):
                return ""  # a method that Megatron's class has, or a condition
        return "" if isinstance(above, _ONLY_READ) else f"`{shown}` gets another name or holder on line {use.lineno}"

    def _passed(self, call: ast.Call, argument: ast.expr | ast.keyword, shown: str, scope: Scope, depth: int) -> str:
        """Return why a call may set or read the settings of its argument."""
        name = dotted(call.func)
        subject = f"`{shown}` is passed to `{ast.unparse(call.func)[:60]}` on line {call.lineno}"
        full = self.definitions.module.names.resolve(name) if name else ""
        why = ""
        if (definition := self.definitions.of(name)) is not None:
            why = self._called(definition, call, argument, depth)
        elif name in ("getattr", "setattr"):
            why = "" if _uses_another_name(call, name, self.catalogue) else "which may use a setting by its name"
        elif name not in _HARMLESS and full.partition(".")[0] not in MEGATRON:
            why = "whose body was not read"
        elif full.rpartition(".")[2][:1].isupper():
            # A container (ConfigContainer(model=provider)): code that gets the container gets the object.
            return self.of_result(call, (argument.arg or "",) if isinstance(argument, ast.keyword) else (), scope)
        return f"{subject}, {why}" if why else ""

    def _called(self, definition: Definition, call: ast.Call, argument: ast.expr | ast.keyword, depth: int) -> str:
        """Return what a function of the checkout does with an argument that lets it escape."""
        if setting := self.definitions.setting_in(definition):
            return f"which {setting}"
        node = definition.node
        if isinstance(node, ast.ClassDef) or node.decorator_list or depth >= _DEPTH:
            return "whose body was not read"
        parameter = _parameter(node, call, argument)
        if not parameter:
            return "whose body was not read"
        return self._escapes_in(definition)._parameter_used(node, parameter, depth + 1)

    def _parameter_used(self, node: Function, parameter: str, depth: int) -> str:
        """Return what a function does with a parameter that lets its object escape; cached for all calls."""
        key = (id(node), parameter)
        if key not in self._parameters:
            self._parameters[key] = "which calls itself"
            scope = self.scope(node)
            rebound = any("." not in binding.path for binding in scope.bindings.get(parameter, []))
            why = f"`{parameter}` is bound again" if rebound else self._used(parameter, (), scope, depth)
            self._parameters[key] = f"where {why}" if why else ""
        return self._parameters[key]

    # --- an object that a call makes --------------------------------------------------------------

    def of_result(self, call: ast.AST, chain: Chain, scope: Scope) -> str:
        """Return why the result of a call escapes; ``chain`` leads from the result to the object."""
        above = scope.parent(call)
        match above:
            case ast.Expr() | ast.Attribute():
                return ""
            case ast.Assign(targets=[target]) if path := dotted(target):
                return self._assigned(path, chain, scope)
            case ast.Return() | ast.Yield():
                return f"`{scope.name}` returns the object: {_CALLERS_SEE_IT}"
            case ast.keyword(arg=str() as name):
                outer = scope.parent(above)
                if isinstance(outer, ast.Call):
                    return self._argument(outer, (name, *chain), scope)
            case ast.Call() if above.func is not call:
                return self._argument(above, (), scope)
        return f"the object goes to code that is not followed (line {getattr(call, 'lineno', 0)})"

    def _argument(self, call: ast.Call, chain: Chain, scope: Scope) -> str:
        name = dotted(call.func)
        subject = f"the object is passed to `{ast.unparse(call.func)[:60]}` on line {call.lineno}"
        definition = self.definitions.of(name)
        if definition is not None:
            return f"{subject}, which {self.definitions.setting_in(definition) or 'is not followed'}"
        full = self.definitions.module.names.resolve(name)
        if full.partition(".")[0] not in MEGATRON:
            return f"{subject}, whose body was not read"
        return self.of_result(call, chain, scope) if full.rpartition(".")[2][:1].isupper() else ""

    def _assigned(self, path: str, chain: Chain, scope: Scope) -> str:
        root, *rest = path.split(".")
        attributes = (*rest, *chain)
        if again := scope.settings_bound().get(".".join((root, *attributes))):
            return f"`{again.path}` is set again on line {again.line}"
        if rest and (why := self._of_unknown_origin(root, tuple(rest[:-1]), scope)):
            return why
        key = (id(scope.node), "." + ".".join((root, *attributes)))
        if key not in self._reasons:
            self._reasons[key] = self._used(root, attributes, scope)
        return self._reasons[key]


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


def _uses_another_name(call: ast.Call, function: str, catalogue: Catalogue) -> bool:
    """Whether a ``getattr`` or ``setattr`` surely reads no setting by its name; bindings are looked at elsewhere."""
    key = call.args[1] if len(call.args) > 1 else None
    return isinstance(key, ast.Constant) and (function == "setattr" or key.value not in catalogue.name_set)


def _parameter(node: Function, call: ast.Call, argument: ast.expr | ast.keyword) -> str:
    """Return the parameter that gets an argument, empty when a star leaves that open."""
    if isinstance(argument, ast.keyword):
        return argument.arg or ""
    names = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args]]
    at = next((at for at, value in enumerate(call.args) if value is argument), len(names))
    starred = any(isinstance(value, ast.Starred) for value in call.args[:at])
    return names[at] if at < len(names) and not starred else ""
