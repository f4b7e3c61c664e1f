"""Escapes: which code that a site's statements do not show can see the object of the site.

A fix of one site is right only if everything that sets or reads the same object is known. A helper that writes
``cuda_graph_scope = []`` and a recipe that then sets ``cuda_graph_modules`` make an object that megatron-core
refuses, although each statement is right by itself. Until objects are followed across files, a fix is safe only if

* the object is made where it is changed, by a class of Megatron that names no setting in this checkout;
* nothing else gets it: it is neither returned, nor stored, nor passed to a function that names a setting or whose
  body was not read. Megatron's own functions read the settings by the rules of their release;
* or megatron-core validates it in its constructor: the old names are moved to the new ones there, on 0.18 and later
  with the old text as well as with the new one, so that code that gets the object sees the same in both cases.

Everything else gets a reason, which makes the fix unsafe. Where this is in doubt, there is a reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from cgmigrate.documents.python.definitions import Definition, Module, definition_of
from cgmigrate.documents.python.name_resolution import MEGATRON
from cgmigrate.documents.python.places import FIELD_SET
from cgmigrate.documents.python.scopes import Binding, Function, Scope
from cgmigrate.documents.python.source import dotted

_DEPTH = 4
"""Functions and names that one object is followed through."""
_HARMLESS = frozenset(("print", "isinstance", "hasattr", "len", "type", "str", "repr", "id", "bool", "callable"))
_HAND_OVER = "its callers may set or read the settings under the old names"
Chain = tuple[str, ...]


@dataclass(slots=True)
class Escapes:
    """Follows the objects of one module; scopes and answers are kept."""

    module: Module
    here: bool = True
    _scopes: dict[int, Scope] = field(default_factory=dict)
    _answers: dict[tuple[int, str], str] = field(default_factory=dict)
    _passes: dict[tuple[int, str], str] = field(default_factory=dict)
    _again: dict[int, dict[str, Binding]] = field(default_factory=dict)
    _named: dict[int, str] = field(default_factory=dict)
    _others: dict[str, Escapes] = field(default_factory=dict)

    # --- an object that has a name ------------------------------------------------------------

    def of_object(self, path: str, node: ast.Module | Function) -> str:
        """Why the object at ``path`` cannot be followed in a function, empty when it can."""
        key = (id(node), path)
        if key not in self._answers:
            self._answers[key] = ""  # an object that leads back to itself
            scope = self.scope(node)
            root, *rest = path.split(".") if path else [""]
            # In this order, since only the last two read expressions and other files.
            why = self._handed_over(root, tuple(rest), scope) or self._made(root, tuple(rest), scope)
            self._answers[key] = why or self._kept(root, tuple(rest), scope)
        return self._answers[key]

    def scope(self, node: ast.Module | Function) -> Scope:
        """What a function does with its names."""
        if id(node) not in self._scopes:
            self._scopes[id(node)] = Scope.of(node)
        return self._scopes[id(node)]

    def _handed_over(self, root: str, chain: Chain, scope: Scope) -> str:
        """Why the callers of a function have the object."""
        if root in scope.parameters:
            return f"`{root}` is a parameter of `{scope.name}`: {_HAND_OVER}"
        for result in scope.returned:
            first, *rest = dotted(result).split(".")
            shared = min(len(rest), len(chain))
            if first == root and len(rest) <= len(chain) and tuple(rest[:shared]) == chain[:shared]:
                return f"`{scope.name}` returns `{root}`: {_HAND_OVER}"
        return ""

    def _made(self, root: str, chain: Chain, scope: Scope, depth: int = 0) -> str:
        """Why it is not known what made an object, empty where a constructor of Megatron did."""
        if root in scope.parameters:
            return f"`{root}` is a parameter of `{scope.name}`: {_HAND_OVER}"
        shown = ".".join((root, *chain))
        relevant = [
            (binding, tuple(binding.path.split(".")[1:]))
            for binding in scope.bindings.get(root, [])
            if binding.path.split(".")[1:] == list(chain[: binding.path.count(".")])
        ]
        if not any(not attributes for _, attributes in relevant):
            where = f"`{scope.name}` does not make" if scope.name else "this file does not make"
            return f"only its name shows that `{shown}` is Megatron's: {where} the object"
        for binding, attributes in relevant:
            if binding.value is None:
                return f"`{binding.path}` is bound on line {binding.line} in a way that is not followed"
            if why := self._value(binding.value, binding.path, chain[len(attributes) :], depth):
                return why
        return ""

    def _value(self, value: ast.expr, path: str, chain: Chain, depth: int) -> str:
        """Why a value may be an object that other code sees, for the part of it that ``chain`` reaches."""
        if isinstance(value, ast.Constant):
            return ""  # None for now; what replaces it is a binding of its own
        if isinstance(value, (ast.Name, ast.Attribute)):
            return f"`{path}` is another name of `{ast.unparse(value)[:60]}`"
        if not isinstance(value, ast.Call):
            return f"`{path}` is not made by a constructor (line {value.lineno})"
        name = dotted(value.func)
        if not name.rpartition(".")[2][:1].isupper():
            return self._returned(value.func, path, chain, depth)
        if why := self.of_class(name):
            return why
        if any(keyword.arg is None for keyword in value.keywords):
            return f"`{path}` gets settings that are computed elsewhere (`**`, line {value.lineno})"
        if chain:
            given = next((keyword.value for keyword in value.keywords if keyword.arg == chain[0]), None)
            return "" if given is None else self._value(given, f"{path}.{chain[0]}", chain[1:], depth)
        set_here = next((keyword.arg for keyword in value.keywords if keyword.arg in FIELD_SET), "")
        return f"the constructor of `{path}` sets `{set_here}` as well (line {value.lineno})" if set_here else ""

    def _returned(self, func: ast.expr, path: str, chain: Chain, depth: int) -> str:
        """Why the result of a function may be known to others, empty where its body only makes it."""
        told = f"`{path}` is returned by `{ast.unparse(func)[:60]}`"
        definition = self._definition(dotted(func))
        if definition is None or isinstance(definition.node, ast.ClassDef):
            return f"{told}, whose body was not read"
        if named := self._names_setting(definition):
            return f"{told}, which {named}"
        node = definition.node
        if node.decorator_list or isinstance(node, ast.AsyncFunctionDef) or depth >= _DEPTH:
            return f"{told}, which is not followed"
        inside = self._escapes_in(definition)
        scope = inside.scope(node)
        for result in scope.returned:
            if isinstance(result, ast.Name):
                why = inside._made(result.id, chain, scope, depth + 1)
                why = why or inside._kept(result.id, chain, scope, depth + 1, returned=True)
            else:
                why = inside._value(result, "the result", chain, depth + 1)
            if why:
                return f"{told}, where {why}"
        return ""

    def of_class(self, name: str) -> str:
        """Why objects of a class are not only what Megatron makes of them, empty when they are."""
        module, here, seen = self.module, self.here, 0
        while not _is_core(name, module) and (definition := definition_of(name, module, here)) and seen < _DEPTH:
            if not isinstance(definition.node, ast.ClassDef):
                return f"`{name}` is a function, and its result is not followed"
            if named := self._names_setting(definition):
                return f"the class `{definition.node.name}` {named}, so other settings may go with this one"
            bases = [base for base in map(dotted, definition.node.bases) if base]
            if not bases:
                return f"the class `{definition.node.name}` is not Megatron's"
            module, here, name, seen = definition.module, definition.here, bases[0], seen + 1
        known = module.names.resolve(name).partition(".")[0] in MEGATRON
        known = known and name.partition(".")[0] not in module.names.shadowed
        return "" if known else f"`{name}` is not known as a class of Megatron"

    def _names_setting(self, definition: Definition) -> str:
        key = id(definition.node)
        if key not in self._named:
            self._named[key] = definition.names_setting()
        return self._named[key]

    def _escapes_in(self, definition: Definition) -> Escapes:
        """What follows objects in the module of a definition."""
        if definition.module is self.module:
            return self
        if definition.module.path not in self._others:
            self._others[definition.module.path] = Escapes(definition.module, here=False, _others=self._others)
        return self._others[definition.module.path]

    def _definition(self, name: str) -> Definition | None:
        if not name or _is_core(name, self.module):
            return None
        return definition_of(name, self.module, self.here)

    # --- what is done with an object ------------------------------------------------------------

    def _kept(self, root: str, chain: Chain, scope: Scope, depth: int = 0, *, returned: bool = False) -> str:
        """Why an object gets out of a function (other than ``returned``), empty when all that gets it is known."""
        if root in scope.inner:
            return f"the code on line {scope.inner[root]} uses `{root}` as well, at another time"
        if isinstance(scope.node, ast.Module) and not self._only_when_run(root, scope):
            return f"`{root}` is a name of the module, which other files can import"
        for use in scope.uses.get(root, []):
            if returned and isinstance(scope.parent(use), ast.Return):
                continue
            if why := self._use(use, chain, scope, depth):
                return why
        return ""

    @staticmethod
    def _only_when_run(root: str, scope: Scope) -> bool:
        """Whether a name of a module is bound under ``if __name__ == "__main__"`` only."""
        blocks = [node for node in scope.node.body if isinstance(node, ast.If) and _asks_for_main(node.test)]
        lines = [(block.lineno, block.end_lineno or block.lineno) for block in blocks]
        bound = scope.bindings.get(root, [])
        return bool(bound) and all(any(first <= b.line <= last for first, last in lines) for b in bound)

    def _use(self, use: ast.Name, chain: Chain, scope: Scope, depth: int) -> str:
        """Why one appearance of a name lets the object out, empty when it does not."""
        node: ast.expr = use
        reached: list[str] = []
        while isinstance(above := scope.parent(node), ast.Attribute):
            node = above
            reached.append(above.attr)
        shared = min(len(chain), len(reached))
        if tuple(reached[:shared]) != chain[:shared]:
            return ""  # another part of the object
        if "__dict__" in reached:
            return f"`{ast.unparse(node)[:60]}` may set or read a setting by its name"
        if len(reached) > len(chain) and not _is_called(node, scope):
            return ""  # a value of the object, or a setting: what reads or sets it is told by itself
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            return ""  # bound anew, which `_made` looks at
        return self._goes_to(node, use, scope, depth)

    def _goes_to(self, node: ast.expr, use: ast.Name, scope: Scope, depth: int) -> str:
        above = scope.parent(node)
        shown = ast.unparse(node)[:60]
        match above:
            case ast.Call(func=func) if func is node:
                return ""  # a method of an object that Megatron's class made
            case ast.Call():
                return self._passed(above, node, shown, scope, depth)
            case ast.keyword():
                call = scope.parent(above)
                known = isinstance(call, ast.Call) and above.arg is not None
                return self._passed(call, above, shown, scope, depth) if known else f"`{shown}` is unpacked"  # type: ignore[arg-type]
            case ast.Compare() | ast.FormattedValue() | ast.If() | ast.While() | ast.Expr() | ast.Assert():
                return ""
            case ast.UnaryOp(op=ast.Not()):
                return ""
            case ast.Return() | ast.Yield():
                return f"`{scope.name}` returns `{use.id}`: {_HAND_OVER}"
        return f"`{shown}` gets another name or holder on line {use.lineno}"

    def _passed(self, call: ast.Call, given: ast.expr | ast.keyword, shown: str, scope: Scope, depth: int) -> str:
        """Why a call may do something with the settings of its argument."""
        name = dotted(call.func)
        told = f"`{shown}` is passed to `{ast.unparse(call.func)[:60]}` on line {call.lineno}"
        definition = self._definition(name)
        if definition is None and name in _HARMLESS:
            return ""
        if definition is None and name in ("getattr", "setattr"):
            key = call.args[1] if len(call.args) > 1 else None
            plain = isinstance(key, ast.Constant) and (name == "setattr" or key.value not in FIELD_SET)
            return "" if plain else f"{told}, which may use a setting by its name"
        if definition is not None:
            why = self._reads(definition, call, given, depth)
            return f"{told}, {why}" if why else ""
        full = self.module.names.resolve(name) if name else ""
        if full.partition(".")[0] not in MEGATRON:
            return f"{told}, whose body was not read"
        if full.rpartition(".")[2][:1].isupper():
            # A holder (ConfigContainer(model=provider)): whatever gets the holder gets the object.
            return self.of_result(call, (given.arg or "",) if isinstance(given, ast.keyword) else (), scope)
        return ""

    def _reads(self, definition: Definition, call: ast.Call, given: ast.expr | ast.keyword, depth: int) -> str:
        """What a function of the checkout does with an argument, empty when it leaves the settings alone."""
        if named := self._names_setting(definition):
            return f"which {named}"
        node = definition.node
        if isinstance(node, ast.ClassDef) or node.decorator_list or depth >= _DEPTH:
            return "whose body was not read"
        named_parameter = _parameter(node, call, given)
        if not named_parameter:
            return "whose body was not read"
        return self._escapes_in(definition)._does(node, named_parameter, depth + 1)

    def _does(self, node: Function, parameter: str, depth: int) -> str:
        """What a function does with a parameter that lets its object out; kept, since many calls ask."""
        key = (id(node), parameter)
        if key not in self._passes:
            self._passes[key] = "which calls itself"
            scope = self.scope(node)
            rebound = any("." not in binding.path for binding in scope.bindings.get(parameter, []))
            why = f"`{parameter}` is bound again" if rebound else self._kept(parameter, (), scope, depth)
            self._passes[key] = f"where {why}" if why else ""
        return self._passes[key]

    # --- an object that a call makes --------------------------------------------------------------

    def of_result(self, call: ast.AST, chain: Chain, scope: Scope) -> str:
        """Why what a call makes gets out, ``chain`` being where it is in the result; empty when it does not."""
        above = scope.parent(call)
        match above:
            case ast.Expr() | ast.Attribute():
                return ""
            case ast.Assign(targets=[target]) if path := dotted(target):
                return self._assigned(path, chain, call, scope)
            case ast.Return() | ast.Yield():
                return f"`{scope.name}` returns the object: {_HAND_OVER}"
            case ast.keyword(arg=str() as name):
                outer = scope.parent(above)
                if isinstance(outer, ast.Call):
                    return self._argument(outer, (name, *chain), scope)
            case ast.Call() if above.func is not call:
                return self._argument(above, (), scope)
        return f"the object goes to code that is not followed (line {getattr(call, 'lineno', 0)})"

    def _argument(self, call: ast.Call, chain: Chain, scope: Scope) -> str:
        full = self.module.names.resolve(dotted(call.func))
        told = f"the object is passed to `{ast.unparse(call.func)[:60]}` on line {call.lineno}"
        definition = self._definition(dotted(call.func))
        if definition is not None:
            return f"{told}, which {self._names_setting(definition) or 'is not followed'}"
        if full.partition(".")[0] not in MEGATRON:
            return f"{told}, whose body was not read"
        return self.of_result(call, chain, scope) if full.rpartition(".")[2][:1].isupper() else ""

    def _assigned(self, path: str, chain: Chain, call: ast.AST, scope: Scope) -> str:
        root, *rest = path.split(".")
        where = (*rest, *chain)
        if again := self._set_again(scope).get(".".join((root, *where))):
            return f"`{again.path}` is set again on line {again.line}"
        if rest and (why := self._made(root, tuple(rest[:-1]), scope)):
            return why
        key = (id(scope.node), "." + ".".join((root, *where)))
        if key not in self._answers:
            self._answers[key] = self._kept(root, where, scope)
        return self._answers[key]

    def _set_again(self, scope: Scope) -> dict[str, Binding]:
        """The statements of a function that set a setting, by the object."""
        if id(scope.node) not in self._again:
            every = (binding for bindings in scope.bindings.values() for binding in bindings)
            found = [binding for binding in every if binding.path.rpartition(".")[2] in FIELD_SET]
            self._again[id(scope.node)] = {binding.path.rpartition(".")[0]: binding for binding in found}
        return self._again[id(scope.node)]


def _is_core(name: str, module: Module) -> bool:
    """Whether a name is imported from Megatron's own packages, which read the settings by their release's rules."""
    first, dot, rest = name.partition(".")
    full = module.names.full.get(first, "") + dot + rest
    return full.startswith(("megatron.core.", "megatron.training.")) and first not in module.names.shadowed


def _is_called(node: ast.expr, scope: Scope) -> bool:
    above = scope.parent(node)
    return isinstance(above, ast.Call) and above.func is node


def _parameter(node: Function, call: ast.Call, given: ast.expr | ast.keyword) -> str:
    """The parameter that gets an argument, empty when a star leaves that open."""
    if isinstance(given, ast.keyword):
        return given.arg or ""
    names = [arg.arg for arg in [*node.args.posonlyargs, *node.args.args]]
    at = next((at for at, value in enumerate(call.args) if value is given), len(names))
    starred = any(isinstance(value, ast.Starred) for value in call.args[:at])
    return names[at] if at < len(names) and not starred else ""


def _asks_for_main(test: ast.expr) -> bool:
    return isinstance(test, ast.Compare) and dotted(test.left) == "__name__"


def function_above(ancestors: Iterator[ast.AST]) -> ast.Module | Function | None:
    """The function or module that a node runs in; None inside a class body or a lambda."""
    for above in ancestors:
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
            return above
        if isinstance(above, (ast.ClassDef, ast.Lambda)):
            return None
    return None
