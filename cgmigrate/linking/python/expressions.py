"""Evaluation of expressions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence

from cgmigrate.documents.python.nodes import walk
from cgmigrate.linking.python.arguments import note_choice
from cgmigrate.linking.python.compared_objects import check_likeness, filtered
from cgmigrate.linking.python.evaluation import Frame, RaisedError, ReadsSettingsError, Run, cannot_follow
from cgmigrate.linking.python.lookup import value_of_name
from cgmigrate.linking.python.objects import attribute, check_members, has_settings, uses_settings
from cgmigrate.linking.python.values import (
    MOST_COMPUTED,
    TEXT_OF_SETTINGS,
    CannotFollowError,
    Class,
    Function,
    Member,
    Namespace,
    Object,
    Outside,
    Partial,
    has_rest,
    has_text_of_its_own,
    is_plain,
    is_small,
    key_of,
    may_be_part_of,
)
from cgmigrate.proof.flow.world import SETTINGS, is_enumeration

_MOST_ITEMS = 1024
_MOST_CHOICES = 4
"""The items of which each may be in the result or not, in paths of their own."""
_TEXTS = ("f", "str", "repr")
"""Operations that make a text of each attribute of an object."""
_BINARY: dict[type[ast.operator], Callable[[object, object], object]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
}
_COMPARED: dict[type[ast.cmpop], Callable[[object, object], object]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,  # type: ignore[dict-item]
    ast.LtE: operator.le,  # type: ignore[dict-item]
    ast.Gt: operator.gt,  # type: ignore[dict-item]
    ast.GtE: operator.ge,  # type: ignore[dict-item]
    ast.In: lambda one, many: one in many,  # type: ignore[operator]
    ast.NotIn: lambda one, many: one not in many,  # type: ignore[operator]
}


def evaluate(node: ast.expr, frame: Frame, run: Run) -> object:
    """Return the value of an expression. Raises CannotFollowError."""
    handler = _HANDLERS.get(type(node))
    if handler is None:
        raise cannot_follow(f"`{type(node).__name__.lower()}` is not followed", node, frame)
    return handler(node, frame, run)


def truth(value: object) -> bool | None:
    """Return the truth of a value, None if it is not known."""
    match value:
        case Object(is_false=is_false):
            return False if is_false else None
        case Function() | Class() | Namespace() | Partial() | Member():
            return True
        case Outside():
            return None
    return None if has_rest(value) else bool(value)


def derived(operation: str, values: Sequence[object], run: Run) -> Object:
    """Return what is made of values that are not all known: equal operations on equal values have equal keys.

    Raises CannotFollowError for all attributes of an object, which a fix changes.
    """
    del run
    if any(isinstance(one, Object) and one.is_view for one in values):
        raise CannotFollowError(f"`{operation}` gets all attributes of an object")
    is_text = operation in _TEXTS or operation.endswith(".format")
    kind = f"{TEXT_OF_SETTINGS} " if is_text and any(map(has_settings, values)) else ""
    return Object(f"{kind}{operation}({', '.join(map(key_of, values))})", may_be_other=may_be_part_of(values))


def _constant(node: ast.Constant, frame: Frame, run: Run) -> object:
    del frame, run
    return node.value


def _attribute(node: ast.Attribute, frame: Frame, run: Run) -> object:
    return attribute(evaluate(node.value, frame, run), node.attr, (node, frame, run))


def _list(node: ast.List | ast.Tuple | ast.Set, frame: Frame, run: Run) -> object:
    values: list[object] = []
    for element in node.elts:
        if not isinstance(element, ast.Starred):
            values.append(evaluate(element, frame, run))
            continue
        part = evaluate(element.value, frame, run)
        check_members(part, (element, frame, run))
        if not isinstance(part, (list, tuple)):
            return derived("*", [*values, part], run)
        values += part
    if isinstance(node, ast.Tuple):
        return tuple(values)
    if isinstance(node, ast.Set):
        return set(values) if all(map(_is_hashable, values)) else derived("set", values, run)
    return values


def _is_hashable(value: object) -> bool:
    return isinstance(value, (str, int, float, bool, Member)) or value is None


def _dict(node: ast.Dict, frame: Frame, run: Run) -> object:
    result: dict[object, object] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        part = evaluate(value, frame, run)
        if key is None:
            check_members(part, (value, frame, run))
            if not isinstance(part, dict):
                return derived("**", [result, part, *_rest(node, value, frame, run)], run)
            result |= part
            continue
        name = evaluate(key, frame, run)
        if not is_plain(name) or isinstance(name, (list, set, dict)):
            raise cannot_follow("a key of a dict is not followed", node, frame)
        if name in SETTINGS:
            # What gets the dict may give the setting to an object.
            run.use_lines(key, frame.module)
            run.use_lines(value, frame.module)
        result[name] = part
    return result


def _rest(node: ast.Dict, after: ast.expr, frame: Frame, run: Run) -> list[object]:
    at = node.values.index(after) + 1
    keys = [key.value if isinstance(key, ast.Constant) else "?" for key in node.keys[at:]]
    return [keys, *(evaluate(value, frame, run) for value in node.values[at:])]


_BY_STR = -1
"""How ``ast`` says that a value in an f-string is converted by ``str``."""


def _joined(node: ast.JoinedStr, frame: Frame, run: Run) -> object:
    parts: list[object] = []
    texts: list[object] = []
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            value = evaluate(part.value, frame, run)
            spec = [] if part.format_spec is None else [evaluate(part.format_spec, frame, run)]
            parts += [part.conversion, value, *spec]
            texts.append(value if part.conversion == _BY_STR and not spec else None)
        else:
            parts.append(evaluate(part, frame, run))
            texts.append(parts[-1])
    if is_small(texts) and all(type(one) in (str, int) for one in texts):
        return "".join(map(str, texts))
    return derived("f", parts, run)


# --- operators ------------------------------------------------------------------------------------


def _binary(node: ast.BinOp, frame: Frame, run: Run) -> object:
    left, right = evaluate(node.left, frame, run), evaluate(node.right, frame, run)
    _check_operands([left, right], node, frame)
    operation = _BINARY.get(type(node.op))
    is_list = isinstance(left, list) and isinstance(right, list) and isinstance(node.op, ast.Add)
    if isinstance(left, str) and has_text_of_its_own(right):
        return derived(type(node.op).__name__, [left, right], run)
    if operation and (is_list or (is_plain(left) and is_plain(right))):
        if not is_small(left) or not is_small(right) or _makes_large(node.op, left, right):
            raise cannot_follow("a value is too large to be computed", node, frame)
        return _computed(operation, left, right)
    return derived(type(node.op).__name__, [left, right], run)


def _check_operands(values: Sequence[object], node: ast.AST, frame: Frame) -> None:
    """Check that no operator gets an object with settings: a method of its class may read or set them.

    Raises CannotFollowError.
    """
    if any(map(uses_settings, values)):
        raise cannot_follow("an operator gets an object with settings", node, frame, ReadsSettingsError)


def _makes_large(operation: ast.operator, left: object, right: object) -> bool:
    """Return whether an operation on two small values may have a large result: a padded text, or a repeated value."""
    if isinstance(operation, ast.Mod) and isinstance(left, str):
        return any(char.isdigit() or char == "*" for char in left)
    if not isinstance(operation, ast.Mult):
        return False
    times = next((one for one in (left, right) if isinstance(one, int)), 0)
    repeated = right if times is left else left
    return isinstance(repeated, (str, list, tuple)) and len(repeated) * times > MOST_COMPUTED


def _computed(operation: Callable[[object, object], object], left: object, right: object) -> object:
    try:
        value = operation(left, right)
    except (TypeError, ValueError, ArithmeticError, KeyError, IndexError) as error:
        raise RaisedError(type(error).__name__) from error
    return value


def _bool(node: ast.BoolOp, frame: Frame, run: Run) -> object:
    stops_at = isinstance(node.op, ast.Or)
    value: object = None
    for at, part in enumerate(node.values):
        value = evaluate(part, frame, run)
        if at == len(node.values) - 1:
            break
        known = truth(value)
        if (run.choose(key_of(value)) if known is None else known) is stops_at:
            if known is None and not stops_at:
                # It is false, whatever it is.
                return Object(f"false {key_of(value)}", is_false=True)
            return value
    return value


def _not(node: ast.UnaryOp, frame: Frame, run: Run) -> object:
    value = evaluate(node.operand, frame, run)
    if isinstance(node.op, ast.Not):
        known = truth(value)
        return _condition("not", [value], run) if known is None else not known
    if isinstance(node.op, ast.USub) and isinstance(value, (int, float)):
        return -value
    _check_operands([value], node, frame)
    return derived(type(node.op).__name__, [value], run)


def _compare(node: ast.Compare, frame: Frame, run: Run) -> object:
    left = evaluate(node.left, frame, run)
    results: list[object] = []
    for operation, right_node in zip(node.ops, node.comparators, strict=True):
        right = evaluate(right_node, frame, run)
        if isinstance(operation, (ast.Eq, ast.NotEq)):
            check_likeness(left, right, (node, frame, run))
        elif not isinstance(operation, (ast.Is, ast.IsNot)):
            _check_operands([left, right], node, frame)
        results.append(_compared(operation, left, right, run))
        if results[-1] is False:
            return False
        left = right
    unknown = [result for result in results if truth(result) is None]
    if len(unknown) < 2:
        return unknown[0] if unknown else True
    return _condition("and", unknown, run)


def _condition(operation: str, values: Sequence[object], run: Run) -> Object:
    made = derived(operation, values, run)
    made.is_condition = True
    return made


def _compared(operation: ast.cmpop, left: object, right: object, run: Run) -> object:
    if isinstance(operation, (ast.Is, ast.IsNot)):
        same = _is_same(left, right)
        if same is not None:
            return same is isinstance(operation, ast.Is)
    elif is_plain(left) and is_plain(right):
        return bool(_computed(_COMPARED[type(operation)], left, right))
    elif isinstance(operation, (ast.In, ast.NotIn)) and isinstance(right, (list, tuple, dict, set)) and not right:
        return isinstance(operation, ast.NotIn)
    of_views = [one.key if isinstance(one, Object) and one.is_view else one for one in (left, right)]
    return _condition(type(operation).__name__, of_views, run)


def _is_same(left: object, right: object) -> bool | None:
    """Return whether two values are one object, None if that is not known."""
    if right is None or left is None:
        other = left if right is None else right
        if isinstance(other, Object):
            return False if other.is_instance else None
        if isinstance(other, Outside):
            return False if is_enumeration(other.name) else None
        return other is None
    if isinstance(left, Object) and isinstance(right, Object):
        return True if left is right else None
    plain = (bool, Member)
    return left == right if isinstance(left, plain) and isinstance(right, plain) else None


def _conditional(node: ast.IfExp, frame: Frame, run: Run) -> object:
    test = evaluate(node.test, frame, run)
    known = truth(test)
    return evaluate(node.body if (run.choose(key_of(test)) if known is None else known) else node.orelse, frame, run)


def _subscript(node: ast.Subscript, frame: Frame, run: Run) -> object:
    value, key = evaluate(node.value, frame, run), evaluate(node.slice, frame, run)
    _check_operands([key], node, frame)
    if isinstance(value, Outside):
        name = value.name.rpartition(".")[2]
        if isinstance(attribute(value, "name", (node, frame, run)), Member) and isinstance(key, str):
            return Member(name, key)
        return Outside(f"{value.name}[{key_of(key)}]")
    if isinstance(value, Object) and value.is_view:
        raise cannot_follow("an attribute by its name is not followed", node, frame)
    if isinstance(value, Object):
        name = f"[{key_of(key)}]"
        known = value.attributes.get(name)
        if known is None:
            note_choice(value, [key], run)
        others = value.may_be_other or any(key.startswith("[") for key in value.attributes)
        made = Object(f"{value.key}{name}", may_be_other=others, through=value.through)
        return value.first.setdefault(name, made) if known is None else known
    if isinstance(value, (list, tuple, str, dict)) and is_plain(key):
        if not (isinstance(value, dict) and _is_hashable(key) and key in value):
            check_members(value, (node, frame, run))
        return _computed(operator.getitem, value, key)  # type: ignore[arg-type]
    return derived("[]", [value, key], run)


def _slice(node: ast.Slice, frame: Frame, run: Run) -> object:
    parts = [None if part is None else evaluate(part, frame, run) for part in (node.lower, node.upper, node.step)]
    return derived("slice", parts, run)


# --- comprehensions -------------------------------------------------------------------------------


def _comprehension(node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame, run: Run) -> object:
    if any(isinstance(part, ast.Lambda) for part in walk(node)):
        # It would use the names of the last round, and those of the function as they are when it is called.
        raise cannot_follow("a function in a comprehension is not followed", node, frame)
    values: list[object] = []
    rest = _each(node, list(node.generators), Frame(frame.function, dict(frame.names), frame.depth), (values, run))
    if rest is not None:
        return derived(f"each {ast.unparse(node)}", [*values, *rest], run)
    if isinstance(node, ast.SetComp):
        return set(values) if all(map(_is_hashable, values)) else derived("set", values, run)
    return values


def _dict_comprehension(node: ast.DictComp, frame: Frame, run: Run) -> object:
    return filtered(node, evaluate(node.generators[0].iter, frame, run), frame, run)


def _each(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp,
    generators: list[ast.comprehension],
    frame: Frame,
    into: tuple[list[object], Run],
) -> list[object] | None:
    """Add the values of a comprehension; return what it depends on if it iterates over something that is not known."""
    values, run = into
    if not generators:
        run.step(node.elt, frame)
        values.append(evaluate(node.elt, frame, run))
        return None
    first, *others = generators
    items = evaluate(first.iter, frame, run)
    check_members(items, (first.iter, frame, run))
    items = sorted(items, key=key_of) if isinstance(items, set) else items
    if not isinstance(items, (list, tuple, str, dict, range)) or len(items) > _MOST_ITEMS:
        names = {part.id for part in walk(node) if isinstance(part, ast.Name)} & frame.names.keys()
        calls = any(isinstance(part, ast.Call) and not _is_harmless(part) for part in walk(node))
        if calls and run.relevance.is_relevant(node):
            raise cannot_follow("a comprehension over values that are not known calls code", node, frame)
        return [items, *(frame.names[name] for name in sorted(names))]
    for item in list(items):
        run.handlers.store(first.target, item, frame, run)
        tests = [evaluate(test, frame, run) for test in first.ifs]
        if any(truth(test) is None for test in tests):
            if len(items) > _MOST_CHOICES:
                return [items, *tests]
            tests = [run.choose(key_of(test)) if truth(test) is None else test for test in tests]
        if all(map(truth, tests)) and (rest := _each(node, others, frame, into)) is not None:
            return rest
    return None


def _is_harmless(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id in ("getattr", "isinstance", "str", "hasattr", "len")


def _call(node: ast.Call, frame: Frame, run: Run) -> object:
    return run.handlers.value_of_call(node, frame, run)


def _lambda(node: ast.Lambda, frame: Frame, run: Run) -> object:
    del run
    return Function(node, frame.module, frame.around)


_HANDLERS: dict[type[ast.expr], Callable[..., object]] = {
    ast.Constant: _constant,
    ast.Name: value_of_name,
    ast.Attribute: _attribute,
    ast.List: _list,
    ast.Tuple: _list,
    ast.Set: _list,
    ast.Dict: _dict,
    ast.JoinedStr: _joined,
    ast.BinOp: _binary,
    ast.BoolOp: _bool,
    ast.UnaryOp: _not,
    ast.Compare: _compare,
    ast.IfExp: _conditional,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.ListComp: _comprehension,
    ast.SetComp: _comprehension,
    ast.GeneratorExp: _comprehension,
    ast.DictComp: _dict_comprehension,
    ast.Call: _call,
    ast.Lambda: _lambda,
}
