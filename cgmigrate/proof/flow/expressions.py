"""The values of expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

from cgmigrate.megatron.settings import LAYER_MODULES
from cgmigrate.proof.flow import attributes
from cgmigrate.proof.flow.limits import MOST_ITEMS, check_size, is_large, makes_large
from cgmigrate.proof.flow.modules import Module
from cgmigrate.proof.flow.names import enumeration, global_name
from cgmigrate.proof.flow.run import FlowRun, RaisedError
from cgmigrate.proof.flow.values import (
    MORE,
    NAMED,
    Attribute,
    Bound,
    External,
    Function,
    Member,
    Object,
    Scope,
    Unknown,
    is_plain,
    shown,
)
from cgmigrate.proof.flow.world import value_of_member

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


class Evaluator:
    """Evaluates code of one module in a scope."""

    __slots__ = ("module", "run", "scope")

    def __init__(self, run: FlowRun, module: Module, scope: Scope) -> None:
        self.run, self.module, self.scope = run, module, scope

    def value(self, node: ast.expr) -> object:
        """Return the value of an expression."""
        method = _METHODS.get(type(node))
        if method is None:
            return Unknown(ast.unparse(node))
        value = method(self, node)
        settle = _SETTLED.get(type(value))
        return value if settle is None else settle(self.run, value)

    def truth(self, value: object) -> bool:
        """Return whether a value is true; what is not known is decided."""
        if isinstance(value, bool):
            return value
        value = self.run.resolved(value)
        if isinstance(value, (Unknown, External)) or (isinstance(value, Object) and value.is_part):
            return bool(self.run.choose(f"truth of {shown(value)}", 2))
        if isinstance(value, (Object, Member, Bound, *NAMED)):
            return True
        return bool(value)

    def items(self, value: object) -> list[object] | None:
        """Return the items of a value, None if they are not known."""
        if isinstance(value, dict):
            return list(value)
        if isinstance(value, (list, tuple, str)):
            return list(value)
        if isinstance(value, (set, frozenset)):
            return sorted(value, key=shown)
        if isinstance(value, range):
            return list(value) if not value[MOST_ITEMS:] else None
        if of := enumeration(value):
            return [Member(of, name) for name in LAYER_MODULES]
        return None

    def _name(self, node: ast.Name) -> object:
        name = node.id
        scope: Scope | None = self.scope
        while scope is not None:
            if name in scope.names:
                return scope.names[name]
            scope = scope.outer
        return global_name(self.run, self.module, name)

    def _attribute(self, node: ast.Attribute) -> object:
        owner = self.value(node.value)
        if isinstance(owner, Attribute) and owner.name == "super":
            return attributes.read_above(self.run, owner.owner, node.attr)
        return attributes.read(self.run, owner, node.attr)

    def _elements(self, nodes: Iterable[ast.expr]) -> list[object]:
        result: list[object] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.value(node.value)
                result += self.items(value) or (
                    [] if isinstance(value, (list, tuple, dict, set)) else [Unknown(f"*{shown(value)}")]
                )
            else:
                result.append(self.value(node))
        return result

    def _as_set(self, values: list[object]) -> object:
        try:
            return set(values)
        except TypeError:
            return Unknown(shown(values))

    def _dict(self, node: ast.Dict) -> object:
        result: dict[object, object] = {}
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.value(part)
            if key is None:
                result.update(value if isinstance(value, dict) else {})
            else:
                with suppress(TypeError):
                    result[self.value(key)] = value
        return result

    def _named(self, node: ast.NamedExpr) -> object:
        value = self.scope.names[node.target.id] = self.value(node.value)
        return value

    def _unary(self, node: ast.UnaryOp) -> object:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return not self.truth(value)
        if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
            return -value
        return Unknown(f"{type(node.op).__name__}({shown(value)})")

    def _boolean(self, node: ast.BoolOp) -> object:
        value: object = None
        for one in node.values:
            value = self.value(one)
            if one is not node.values[-1] and self.truth(value) != isinstance(node.op, ast.And):
                return value
        return value

    def _compare(self, node: ast.Compare) -> object:
        left = self.value(node.left)
        result: object = True
        for op, one in zip(node.ops, node.comparators, strict=True):
            right = self.value(one)
            result = self.compared(left, op, right)
            if len(node.ops) > 1 and not self.truth(result):
                return False
            left = right
        return result

    def compared(self, left: object, op: ast.cmpop, right: object) -> object:
        """Return the outcome of a comparison."""
        if isinstance(op, (ast.Is, ast.IsNot)):
            same = _is_same(left, right)
            return same if isinstance(same, Unknown) else same == isinstance(op, ast.Is)
        if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right, (dict, set)) and is_plain(left):
            known = all(map(is_plain, right))
        else:
            known = is_plain(left) and is_plain(right)
        known = known or (isinstance(left, NAMED) and isinstance(right, NAMED))
        if not known:
            return self._decided_in(left, op, right)
        try:
            return _COMPARED[type(op)](left, right)
        except TypeError:
            raise RaisedError("TypeError") from None

    def _decided_in(self, left: object, op: ast.cmpop, right: object) -> object:
        """Return whether a value is among others of which some are not known."""
        known = list(filter(is_plain, right)) if isinstance(right, (list, tuple)) and is_plain(left) else []
        is_in = isinstance(op, (ast.In, ast.NotIn)) and left in known
        if is_in:
            return isinstance(op, ast.In)
        return Unknown(f"{shown(left)} {type(op).__name__} {shown(right)}")

    def _binary(self, node: ast.BinOp) -> object:
        left, right = self.value(node.left), self.value(node.right)
        is_list = isinstance(left, (list, tuple)) and isinstance(right, (list, tuple))
        is_list = is_list or (isinstance(left, dict) and isinstance(right, dict))
        is_known = (is_list or (is_plain(left) and is_plain(right))) and type(node.op) in _BINARY
        if is_known and not makes_large(type(node.op).__name__, left, right):
            try:
                return _BINARY[type(node.op)](left, right)
            except (TypeError, ValueError, ArithmeticError):
                raise RaisedError("TypeError") from None
        return Unknown(f"{shown(left)} {type(node.op).__name__} {shown(right)}")

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> object:
        values = [inner.value(node.elt) for inner in self._bindings(node.generators)] if self._is_finite(node) else None
        if values is None:
            return Unknown(f"{ast.unparse(node)} of {shown(self.value(node.generators[0].iter))}")
        return self._as_set(values) if isinstance(node, ast.SetComp) else values

    def _dict_comprehension(self, node: ast.DictComp) -> object:
        if not self._is_finite(node):
            return Unknown(f"{ast.unparse(node)} of {shown(self.value(node.generators[0].iter))}")
        return {inner.value(node.key): inner.value(node.value) for inner in self._bindings(node.generators)}

    def _is_finite(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> bool:
        return self.items(self.value(node.generators[0].iter)) is not None

    def _bindings(self, generators: list[ast.comprehension]) -> Iterator[Evaluator]:
        first, rest = generators[0], generators[1:]
        for item in self.items(self.value(first.iter)) or []:
            self.run.step()
            inner = Evaluator(self.run, self.module, Scope({}, self.scope))
            inner.bind(first.target, item)
            if all(inner.truth(inner.value(one)) for one in first.ifs):
                yield from inner._bindings(rest) if rest else (inner,)

    def _subscript(self, node: ast.Subscript) -> object:
        owner = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            return self._slice(owner, node.slice)
        key = self.value(node.slice)
        if of := enumeration(owner):
            return self._member(of, key)
        if isinstance(owner, (list, tuple, dict, str)) and (is_plain(key) or isinstance(key, NAMED)):
            return self._item(owner, key)
        if isinstance(owner, dict) and owner:
            values = list(owner.values())
            return values[self.run.choose(f"{shown(key)} of {len(values)}", len(values))]
        return self._of_unknown(owner, key)

    def _of_unknown(self, owner: object, key: object) -> object:
        self._look_up(owner, key)
        if isinstance(owner, Object):
            return attributes.read(self.run, owner, f"[{shown(key)}]")
        return owner if isinstance(owner, (External, *NAMED)) else Unknown(f"{shown(owner)}[{shown(key)}]")

    def _look_up(self, owner: object, key: object) -> None:
        """Note a key in a table that is not known: the table may lack it."""
        if self.run.is_reading and isinstance(key, str):
            self.run.event("looks up", owner, key)

    def _item(self, owner: list[object] | tuple[object, ...] | dict[object, object] | str, key: object) -> object:
        try:
            return owner[key]  # type: ignore[call-overload,index]
        except (KeyError, IndexError, TypeError) as error:
            if not isinstance(owner, dict) or MORE not in owner:
                raise RaisedError(type(error).__name__) from None
        self._look_up(owner, key)
        owner[key] = Object(f"{shown(owner)}[{shown(key)}]", is_argument=True, is_part=True)
        return owner[key]

    def _member(self, of: str, key: object) -> object:
        if not isinstance(key, str):
            return Unknown(f"{of}[{shown(key)}]")
        if value_of_member(of, key) is None:
            raise RaisedError("KeyError")
        return Member(of, key)

    def _slice(self, owner: object, node: ast.Slice) -> object:
        bounds = [self.value(one) if one is not None else None for one in (node.lower, node.upper, node.step)]
        known = [one for one in bounds if one is None or isinstance(one, int)]
        if isinstance(owner, (list, tuple, str)) and len(known) == len(bounds):
            return owner[slice(*known)]
        return Unknown(f"{shown(owner)}[{shown(bounds)}]")

    def _text(self, node: ast.JoinedStr) -> object:
        parts = []
        for one in node.values:
            value = self.value(one.value if isinstance(one, ast.FormattedValue) else one)
            is_simple = not isinstance(one, ast.FormattedValue) or (one.conversion < 0 and one.format_spec is None)
            parts.append(value if is_simple else Unknown(f"{ast.unparse(one)} {shown(value)}"))
        if all(isinstance(one, (str, int, bool)) or one is None for one in parts):
            return "".join(map(str, parts))
        return Unknown(f"text of {shown(parts)}")

    def _yield(self, node: ast.Yield) -> object:
        self.run.yielded.append(self.value(node.value) if node.value is not None else None)
        return Unknown("what is sent")

    def _call(self, node: ast.Call) -> object:
        if isinstance(node.func, ast.Name) and node.func.id in ("super", "locals"):
            if node.func.id == "locals":
                return self.scope.names
            if not node.args:
                return self._super()
        function = self.value(node.func)
        positional = self._elements(node.args)
        named: dict[str, object] = {}
        for word in node.keywords:
            value = self.value(word.value)
            if word.arg is not None:
                named[word.arg] = value
            elif isinstance(value, dict):
                named |= {key: part for key, part in value.items() if isinstance(key, str)}
            else:
                named["**"] = value
        return self.run.call(function, positional, named)

    def _super(self) -> object:
        scope = self.scope.find("__class__")
        if scope is None:
            return Unknown("super()")
        return Attribute((scope.names["__class__"], scope.names["__self__"]), "super")

    def bind(self, target: ast.expr, value: object) -> None:
        """Assign a value to a target."""
        match target:
            case ast.Name(id=name):
                self.scope.names[name] = value
            case ast.Attribute(value=owner, attr=name):
                attributes.write(self.run, self.value(owner), name, value)
            case ast.Tuple(elts=targets) | ast.List(elts=targets):
                self._unpack(targets, value)
            case ast.Subscript(value=owner, slice=key):
                self._set_item(self.value(owner), self.value(key), value)
            case ast.Starred(value=inner):
                self.bind(inner, value)

    def _unpack(self, targets: list[ast.expr], value: object) -> None:
        values = self.items(value)
        star = next((at for at, one in enumerate(targets) if isinstance(one, ast.Starred)), None)
        if values is not None and star is not None:
            end = len(values) - (len(targets) - star - 1)
            values = [*values[:star], values[star:end], *values[end:]]
        if values is None or len(values) != len(targets):
            values = [Unknown(f"{shown(value)}[{at}]") for at in range(len(targets))]
        for target, one in zip(targets, values, strict=True):
            self.bind(target, one)

    def _set_item(self, owner: object, key: object, value: object) -> None:
        if isinstance(owner, dict):
            if not is_plain(key):
                self.run.event("sets item", owner, key, value)
            with suppress(TypeError):
                owner[key] = value
        elif isinstance(owner, list) and isinstance(key, int):
            with suppress(IndexError):
                owner[key] = value
        elif isinstance(owner, Object):
            attributes.write(self.run, owner, f"[{shown(key)}]", value)
        elif isinstance(owner, External):
            # Such as `os.environ`.
            self.run.event("sets item", owner, key, value)


def _is_same(left: object, right: object) -> bool | Unknown:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return Unknown(f"{shown(left)} is {shown(right)}")
    for one, other in ((left, right), (right, left)):
        if isinstance(one, Object) and one.is_part and other is not left:
            return Unknown(f"{shown(one)} is {shown(other)}")
    if isinstance(left, (Object, *NAMED)) or isinstance(right, (Object, *NAMED)):
        return left is right or (isinstance(left, External) and left == right)
    return left is right or (type(left) is type(right) and left == right and not isinstance(left, (list, dict, set)))


def _of_property(run: FlowRun, value: Attribute) -> object:
    if value.name != "property" or not isinstance(value.owner, Bound):
        return value
    own = run.call(value.owner, [], {})
    settle = _SETTLED.get(type(own))
    return own if settle is None else settle(run, own)


def _sized(_run: FlowRun, value: object) -> object:
    return Unknown(shown(value)) if is_large(value) else value


def _checked(_run: FlowRun, value: object) -> object:
    check_size(value)
    return value


_SETTLED: dict[type, Callable[[FlowRun, Any], object]] = {
    **dict.fromkeys((Unknown, Object), FlowRun.resolved),
    **dict.fromkeys((str, bytes, int), _sized),
    **dict.fromkeys((dict, list, tuple, set, frozenset), _checked),
    Attribute: _of_property,
}
"""What is done with a value of an expression: others are known, and never too large."""


def evaluate_global(run: FlowRun, module: Module, node: ast.expr) -> object:
    """Return the value of an expression at the top of a module."""
    return Evaluator(run, module, Scope()).value(node)


_METHODS: dict[type[ast.expr], Callable[[Evaluator, Any], object]] = {
    ast.Constant: lambda _own, node: node.value,
    ast.Name: Evaluator._name,
    ast.Attribute: Evaluator._attribute,
    ast.List: lambda own, node: own._elements(node.elts),
    ast.Tuple: lambda own, node: tuple(own._elements(node.elts)),
    ast.Set: lambda own, node: own._as_set(own._elements(node.elts)),
    ast.Dict: Evaluator._dict,
    ast.IfExp: lambda own, node: own.value(node.body if own.truth(own.value(node.test)) else node.orelse),
    ast.NamedExpr: Evaluator._named,
    ast.UnaryOp: Evaluator._unary,
    ast.BoolOp: Evaluator._boolean,
    ast.Compare: Evaluator._compare,
    ast.BinOp: Evaluator._binary,
    ast.ListComp: Evaluator._comprehension,
    ast.SetComp: Evaluator._comprehension,
    ast.GeneratorExp: Evaluator._comprehension,
    ast.DictComp: Evaluator._dict_comprehension,
    ast.Subscript: Evaluator._subscript,
    ast.Lambda: lambda own, node: Function(own.module, node, own.scope),
    ast.JoinedStr: Evaluator._text,
    ast.Await: lambda own, node: own.value(node.value),
    ast.Starred: lambda own, node: own.value(node.value),
    ast.Yield: Evaluator._yield,
    ast.Call: Evaluator._call,
}
