"""Calls: functions and classes of the checkout, builtins, and what other packages have."""

from __future__ import annotations

import ast
import builtins
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache, partial
from typing import Any

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python_places import SHOWING
from cgmigrate.megatron.settings import DEPRECATED
from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow import attributes
from cgmigrate.proof.flow.expressions import Evaluator, evaluate_global
from cgmigrate.proof.flow.limits import MOST_PARTS, NotComputedError, NotFollowedError, check_size, has_width, is_large
from cgmigrate.proof.flow.modules import Import
from cgmigrate.proof.flow.names import bases_of, enumeration, imported, is_foreign, is_record, member_named, members_of
from cgmigrate.proof.flow.replacements import PATCHES, replacement, replaces
from cgmigrate.proof.flow.run import KEPT_STATE, FlowRun, Handlers, RaisedError, add_lines, bits, state_of
from cgmigrate.proof.flow.slices import COLLECTING, Kept
from cgmigrate.proof.flow.statements import ReturnedError, decorated, execute
from cgmigrate.proof.flow.values import (
    MORE,
    NAMED,
    Attribute,
    Bound,
    Builtin,
    Class,
    External,
    Function,
    Member,
    Object,
    Scope,
    Unknown,
    is_plain,
    shown,
)

_OLD_NAMES = frozenset(DEPRECATED)
_WORD = re.compile(r"\w+")
_COMPUTED = frozenset(
    ("bool", "len", "int", "str", "float", "max", "min", "any", "all", "sorted", "abs", "sum", "repr", "range")
)
_TRAINING = os.path.join("megatron", "bridge", "training", "pretrain.py")
"""Where Megatron-Bridge trains with a configuration."""
_PASSING = ("lru_cache", "cache", "contextmanager", "fixture", "total_ordering", "deprecated", "overload")
_ASSERTIONS: dict[str, ast.cmpop] = {
    "assertEqual": ast.Eq(),
    "assertListEqual": ast.Eq(),
    "assertNotEqual": ast.NotEq(),
    "assertIn": ast.In(),
    "assertNotIn": ast.NotIn(),
    "assertIs": ast.Is(),
}


def call(run: FlowRun, function: object, positional: list[object], named: dict[str, object]) -> object:
    """Return the value of a call."""
    while isinstance(function, Bound):
        positional, named = [*function.positional, *positional], {**function.named, **named}
        function = function.function
    if (method := _CALLS.get(type(function))) is not None:
        return method(run, function, positional, named)
    return _unknown(run, shown(function), positional, named)


# --- functions ------------------------------------------------------------------------------------


def call_function(run: FlowRun, function: Function, positional: list[object], named: dict[str, object]) -> object:
    """Return the value of a call of a function of the checkout."""
    node, module = function.node, function.module
    if run.is_test and module.path.endswith(_TRAINING):
        # It is an entry point itself. For other projects it is the package's, and followed as little.
        return _unknown(run, function.name, positional, named, is_external=True)
    _note_test(run, function)
    if not isinstance(node, ast.Lambda) and function.scope is None and node.decorator_list:
        wrapped = _decorated(run, function)
        if wrapped is not function:
            return call(run, wrapped, positional, named)
    values = (*positional, *named.values())
    has_any = _gets_any(function, values, named)
    is_whole = function.scope is None and (has_any or any(map(_names_setting, values)))
    if not isinstance(node, ast.Lambda) and function.scope is None and not run.side.slice.follows(node, module):
        is_whole = has_any or any(map(_needs_whole, values)) or (run.is_test and not KEPT_STATE.isdisjoint(named))
        is_whole = is_whole or _changes(function, positional, named)
        if not is_whole:
            return _without_settings(run, function, positional, named)
    return _evaluated(run, function, positional, named, is_whole=is_whole)


def _without_settings(run: FlowRun, function: Function, positional: list[object], named: dict[str, object]) -> object:
    """Return the value of a call of a function that does not touch settings, if known values decide it."""
    values = [*positional, *named.values()]
    if not (values and all(map(is_plain, values))):
        return _not_followed(run, function, positional, named)
    outer, run.is_computing = run.is_computing, run.is_computing or not run.is_reading
    try:
        return _evaluated(run, function, positional, named, is_whole=True)
    except NotComputedError:
        is_external = not _returns_unknown(function.node)
        key = run.number(f"{function.name}({shown(values)})")
        return Object(key, is_part=True, is_argument=not is_external, is_foreign=is_external)
    finally:
        run.is_computing = outer


def _evaluated(
    run: FlowRun, function: Function, positional: list[object], named: dict[str, object], *, is_whole: bool
) -> object:
    node, module = function.node, function.module
    scope = Scope(arguments_of(run, function, positional, named), function.scope)
    if function.owner is not None and positional:
        scope.names |= {"__class__": function.owner, "__self__": positional[0]}
    own = Evaluator(run, module, scope)
    if isinstance(node, ast.Lambda):
        return own.value(node.body)
    if is_whole or (run.is_test and is_test(module.path) and replaces(node, run.side.slice.defined)):
        kept = run.side.slice.whole(node)
    elif function.scope is not None and function.scope.names:
        kept = run.side.slice.inner(node, module)
    else:
        kept = run.side.slice.kept(node, module)
    return _body(run, own, node, kept)


def _gets_any(function: Function, values: Iterable[object], named: Collection[str]) -> bool:
    """Return whether a function gets settings as any keywords. A context manager takes back what it sets."""
    has_any = function.node.args.kwarg is not None and not KEPT_STATE.isdisjoint(named)
    if has_any and any(isinstance(one, ast.Yield) for one in walk(function.node)):
        _check_passed(function.name, values)
    return has_any


def _changes(function: Function, positional: Iterable[object], named: Mapping[str, object]) -> bool:
    """Return whether a function changes a collection that it gets."""
    own = function.node.args
    values = {**dict(zip([one.arg for one in (*own.posonlyargs, *own.args)], positional, strict=False)), **named}
    return any(isinstance(values[name], (list, dict)) for name in _changed_by(function.node) & values.keys())


@lru_cache(maxsize=65536)
def _changed_by(node: ast.AST) -> frozenset[str]:
    """Return the variables of which code changes items."""
    owners: list[ast.expr] = []
    for one in walk(node):
        match one:
            case ast.Call(func=ast.Attribute(value=owner, attr=name)) if name in COLLECTING:
                owners.append(owner)
            case ast.Subscript(value=owner, ctx=ast.Store() | ast.Del()):
                owners.append(owner)
    return frozenset(one.id for one in owners if isinstance(one, ast.Name))


def _note_test(run: FlowRun, function: Function) -> None:
    """Note the lines of a function of tests: what one does not reach is known as well if it is withheld."""
    node, path = function.node, function.module.path
    if run.is_test and run.side.changes and is_test(path):
        add_lines(run.lines, {path: bits(node.lineno, node.end_lineno or node.lineno)})


def _needs_whole(value: object) -> bool:
    """Return whether a function has to be followed that gets a value: names of settings, or what it may call."""
    if isinstance(value, (list, tuple, set)):
        return any(map(_needs_whole, value))
    if isinstance(value, dict):
        return any(_needs_whole(key) or _needs_whole(part) for key, part in value.items())
    if isinstance(value, str):
        return not KEPT_STATE.isdisjoint(_words(value))
    return isinstance(value, (Function, Bound))


def _names_setting(value: object, names: frozenset[str] = KEPT_STATE) -> bool:
    """Return whether a value has a text with the name of a setting."""
    if isinstance(value, str):
        return not names.isdisjoint(_words(value))
    if isinstance(value, (list, tuple, set)):
        return any(_names_setting(one, names) for one in value)
    if isinstance(value, dict):
        return any(_names_setting(key, names) or _names_setting(part, names) for key, part in value.items())
    return False


@lru_cache(maxsize=8192)
def _words(text: str) -> Sequence[str]:
    return _WORD.findall(text)


def _not_followed(run: FlowRun, function: Function, positional: list[object], named: dict[str, object]) -> object:
    """Return the value of a call of a function that does not touch settings: what it gets, or a part, if it is that."""
    node = function.node
    last = node.body[-1] if not isinstance(node, ast.Lambda) else None
    if isinstance(last, ast.Return) and last.value is not None and (first := dotted(last.value).partition(".")[0]):
        names = [one.arg for one in (*node.args.posonlyargs, *node.args.args)]
        values = {**dict(zip(names, positional, strict=False)), **named}
        if first in values:
            return Evaluator(run, function.module, Scope(values)).value(last.value)
    return _unknown(run, function.name, positional, named, is_external=not _returns_unknown(node))


@lru_cache(maxsize=65536)
def _returns_unknown(node: ast.AST) -> bool:
    """Return whether a function returns what a function gives that it finds in a collection."""
    return any(
        isinstance(one, ast.Return)
        and isinstance(one.value, ast.Call)
        and isinstance(one.value.func, (ast.Subscript, ast.Call))
        for one in walk(node)
    )


def _body(run: FlowRun, own: Evaluator, node: ast.FunctionDef | ast.AsyncFunctionDef, kept: Kept) -> object:
    run.enter()
    outer, run.yielded = run.yielded, []
    try:
        execute(own, node.body, kept)
    except ReturnedError as returned:
        if not run.yielded:
            return returned.value
    finally:
        run.depth -= 1
        values, run.yielded = run.yielded, outer
    if kept.has_results and not values:
        return Object(run.number(f"{node.name}()"), is_part=True)
    return values or None


def _decorated(run: FlowRun, function: Function) -> object:
    """Return what the decorators of a function at the top of a module return for it."""
    assert not isinstance(function.node, ast.Lambda)
    own = Evaluator(run, function.module, Scope())
    plain = Function(function.module, function.node, Scope(), function.owner)
    if function.owner is not None:
        return function
    value = decorated(own, function.node, plain)
    return function if value is plain else value


@lru_cache(maxsize=65536)
def _parameters(own: ast.arguments) -> tuple[Sequence[str], Collection[str]]:
    """Return the parameters that may be positional, and all that have names, in their order."""
    names = [one.arg for one in (*own.posonlyargs, *own.args)]
    return names, dict.fromkeys([*names, *(one.arg for one in own.kwonlyargs)])


@lru_cache(maxsize=65536)
def defaults_of(own: ast.arguments) -> dict[str, ast.expr]:
    """Return the defaults of parameters by their names."""
    names = [one.arg for one in (*own.posonlyargs, *own.args)]
    defaults = dict(zip(names[len(names) - len(own.defaults) :], own.defaults, strict=True))
    pairs = zip(own.kwonlyargs, own.kw_defaults, strict=True)
    return defaults | {one.arg: value for one, value in pairs if value is not None}


def arguments_of(
    run: FlowRun, function: Function, positional: list[object], named: dict[str, object]
) -> dict[str, object]:
    """Return the parameters of a function by their names."""
    own = function.node.args
    names, every = _parameters(own)
    outer = Evaluator(run, function.module, function.scope or Scope())
    values: dict[str, object] = {}
    defaults, first = defaults_of(own), dict(zip(names, positional, strict=False))
    for name in every:
        if name not in named and name not in first:
            values[name] = outer.value(defaults[name]) if name in defaults else Unknown(f"parameter {name}")
            if name in defaults:
                run.note(function.module, defaults[name])
    values |= first
    rest = {key: value for key, value in named.items() if key not in every}
    values |= {key: value for key, value in named.items() if key in every}
    if own.kwarg is not None:
        values[own.kwarg.arg] = {key: value for key, value in rest.items() if key != "**"}
    elif rest and "**" not in rest:
        raise RaisedError("TypeError")
    if own.vararg is not None:
        values[own.vararg.arg] = list(positional[len(names) :])
    return values


# --- classes --------------------------------------------------------------------------------------


def construct(run: FlowRun, of: Class, positional: list[object], named: dict[str, object]) -> object:
    """Return a new object of a class of the checkout."""
    every = bases_of(run, of)
    bases = [one for one in every if isinstance(one, Class)]
    if any(isinstance(one, External) and one.name.startswith("enum.") for one in every):
        # It may lack the value; where it has it, another value is another member.
        run.event("looks up", of, positional)
        return Unknown(f"{of.node.name}({shown(positional)})")
    made = run.make(run.number(of.node.name), is_bare=is_record(run, of))
    made.of = of
    made.is_foreign = any(isinstance(one, External) and is_foreign(one.name) for one in every)
    _set_class_settings(run, made, bases)
    maker = _method_named(bases, "__init__")
    if maker is not None:
        call_function(run, maker, [made, *positional], named)
        return made
    fields = (name for base in reversed(bases) for name in _fields_of(base.node)) if positional else ()
    for name, value in {**dict(zip(dict.fromkeys(fields), positional, strict=False)), **named}.items():
        attributes.write(run, made, name, value)
    after = _method_named(bases, "__post_init__")
    if after is not None:
        call_function(run, after, [made], {})
    return made


def _set_class_settings(run: FlowRun, made: Object, bases: list[Class]) -> None:
    """Give an object the settings that are in the bodies of its classes."""
    for base in reversed(bases):
        for name, statement, value in _settings_of(base.node):
            run.note(base.module, statement)
            default = attributes.field_default(run, base, value)
            if default is not attributes.MISSING:
                attributes.write(run, made, name, default)


@lru_cache(maxsize=65536)
def _settings_of(node: ast.ClassDef) -> list[tuple[str, ast.stmt, ast.expr]]:
    return [(name, st, value) for name, st, value in members_of(node) if value is not None and name in KEPT_STATE]


@lru_cache(maxsize=65536)
def _fields_of(node: ast.ClassDef) -> list[str]:
    return [name for name, statement, _ in members_of(node) if isinstance(statement, ast.AnnAssign)]


def _method_named(bases: list[Class], name: str) -> Function | None:
    for base in bases:
        statement, _ = member_named(base.node, name) or (None, None)
        if isinstance(statement, ast.FunctionDef):
            return Function(base.module, statement, base.scope, base)
    return None


# --- what is not in the checkout --------------------------------------------------------------------


def _external(run: FlowRun, name: str, positional: list[object], named: dict[str, object]) -> object:
    last = name.rpartition(".")[2]
    if name in PATCHES and (stand_in := replacement(run, positional, named)) is not None:
        return stand_in
    if last in _EXTERNAL and positional:
        return _EXTERNAL[last](run, positional, named)
    if run.is_reading and last in SHOWING:
        run.event("calls", name, positional, named)
    if last in _PASSING or last in SHOWING:
        return positional[0] if positional and isinstance(positional[0], (Function, Bound)) else External(name)
    if enumeration(External(name)):
        return positional[0] if positional else Unknown(name)
    return Unknown(name) if name.startswith("super().") else _made_outside(run, name, positional, named)


def _made_outside(run: FlowRun, name: str, positional: list[object], named: dict[str, object]) -> object:
    """Return what another package makes: an object of a class, or what is not known."""
    last = name.rpartition(".")[2]
    is_class = last[:1].isupper() and not last.isupper()
    if _names_setting(positional, _OLD_NAMES):
        raise NotFollowedError(f"it passes a string with a setting's name to `{last}`")
    if not is_class and not KEPT_STATE & named.keys():
        return _unknown(run, name, positional, named, is_external=True)
    if not is_class or last == "Made":
        _check_passed(name, (*positional, *named.values()))
    made = run.make(run.number(last), is_bare=last == "SimpleNamespace")
    if made.is_bare:
        made.fields |= named
        return made
    made.of, made.is_foreign = External(name), is_foreign(name)
    for word, value in named.items():
        attributes.write(run, made, word, value)
    return made


def _unknown(
    run: FlowRun, name: str, positional: list[object], named: dict[str, object], *, is_external: bool = False
) -> object:
    """Return the value of a call that is not followed; other code sees what it gets.

    Code of the project may return an object that other code of it has made.
    """
    if run.is_test and _names_setting(positional, _OLD_NAMES) and not is_plain(positional):
        raise NotFollowedError("it passes a setting's name and an unknown value to code that cgmigrate does not follow")
    if run.is_reading:
        run.event("calls", name, positional, named)
    if KEPT_STATE & named.keys():
        return _external(run, f"{name}.Made", positional, named)
    for one in (*positional, *named.values()) if not is_external else ():
        _fill(one)
    return Object(run.number(f"{name}()"), is_part=True, is_argument=not is_external, is_foreign=is_external)


def _check_passed(name: str, values: Iterable[object]) -> None:
    """Raise NotFollowedError if code that is not followed gets an object with settings, and others as keywords."""
    objects = [one for one in values if isinstance(one, Object)]
    if any(state_of(one) for own in objects for one in (own, *own.fields.values()) if isinstance(one, Object)):
        raise NotFollowedError(f"it passes an object and settings to `{name}`, which may set them")


def _fill(value: object) -> None:
    """Note that code which is not followed may have added to a collection."""
    if isinstance(value, dict):
        value.setdefault(MORE, None)


def _object(run: FlowRun, function: Object, positional: list[object], named: dict[str, object]) -> object:
    if function.key == "monkeypatch.setattr" and (stand_in := replacement(run, positional, named)) is not None:
        stand_in.enter(run)
        return None
    if isinstance(function.of, Class):
        method = attributes.read(run, function, "__call__", Builtin("none"))
        if isinstance(method, Bound):
            return call(run, method, positional, named)
    last = function.key.rpartition(".")[2]
    _assert(run, last, positional)
    if any(isinstance(one, str) and one in _OLD_NAMES for one in positional):
        raise NotFollowedError(f"it passes the name of a setting to `{last}`")
    return _unknown(run, function.key, positional, named, is_external=True)


def _assert(run: FlowRun, name: str, positional: list[object]) -> None:
    """Compare what a test gives to an assertion of `unittest`. Raises RaisedError if the test fails."""
    if run.is_test and run.has_read and name in _ASSERTIONS and len(positional) > 1:
        own = Evaluator(run, run.module, Scope())
        if own.compared(positional[0], _ASSERTIONS[name], positional[1]) is False:
            raise RaisedError("AssertionError")


def _copied(run: FlowRun, positional: list[object], named: dict[str, object], *, is_deep: bool = True) -> object:
    value = _copy(run, positional[0], {}, is_deep=is_deep)
    for name, part in named.items() if isinstance(value, Object) else ():
        attributes.write(run, value, name, part)
    return value


def _copy(run: FlowRun, value: object, seen: dict[int, object], *, is_deep: bool) -> object:
    if id(value) in seen:
        return seen[id(value)]
    if isinstance(value, Object):
        if value.is_argument and not value.is_bare and not value.is_part:
            run.hold(value)
        made = seen[id(value)] = Object(
            run.number(f"copy of {value.key}"),
            {},
            value.of,
            value.is_argument,
            value.is_bare,
            value.is_part,
            value.is_foreign,
            value.is_holder,
        )
        run.objects[made.key] = made
        made.fields = {
            key: _copy(run, part, seen, is_deep=True) if is_deep else part for key, part in value.fields.items()
        }
        return made
    if isinstance(value, dict):
        return {key: _copy(run, part, seen, is_deep=is_deep) if is_deep else part for key, part in value.items()}
    if isinstance(value, (list, tuple, set)):
        return type(value)(_copy(run, one, seen, is_deep=is_deep) if is_deep else one for one in value)
    return value


def _imported(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    name = positional[0]
    return imported(run, run.module, Import(name)) if isinstance(name, str) else Unknown(f"module {shown(name)}")


_EXTERNAL: dict[str, Callable[[FlowRun, list[object], dict[str, object]], object]] = {
    "deepcopy": _copied,
    "copy": partial(_copied, is_deep=False),
    "replace": partial(_copied, is_deep=False),
    "partial": lambda _run, positional, named: Bound(positional[0], tuple(positional[1:]), named),
    "import_module": _imported,
    "param": lambda _run, positional, _named: positional[0] if len(positional) == 1 else tuple(positional),
}


# --- builtins and methods of plain values -----------------------------------------------------------


def _builtin(run: FlowRun, name: str, positional: list[object], named: dict[str, object]) -> object:
    if name in _BUILTINS:
        return _BUILTINS[name](run, positional, named)
    if name in ("list", "tuple", "set", "dict", "frozenset"):
        return _collection(run, name, positional, named)
    if name in SHOWING:
        return _external(run, name, positional, named)
    if name in ("staticmethod", "classmethod") and positional:
        return positional[0]
    if name in ("exec", "eval") and any(map(_needs_whole, positional)):
        raise NotFollowedError("it executes a string that has a setting's name")
    if name[:1].isupper() and name.endswith(("Error", "Exception", "Warning")):
        return External(name)
    return _computed(run, name, positional, named)


def _computed(run: FlowRun, name: str, positional: list[object], named: dict[str, object]) -> object:
    known = (is_plain(one) or (isinstance(one, range) and not one[MOST_PARTS:]) for one in positional)
    if name in _COMPUTED and positional and all(known):
        with suppress(Exception):
            return getattr(builtins, name)(*positional, **{k: v for k, v in named.items() if is_plain(v)})
    if name in ("any", "all") and positional and isinstance(positional[0], list):
        own = Evaluator(run, run.module, Scope())
        return getattr(builtins, name)(own.truth(one) for one in positional[0])
    # A text of an object has its settings.
    states = [state_of(one) for one in positional if isinstance(one, Object) and one.is_holder]
    return Unknown(f"{name}({shown(positional)[1:-1]})" + "".join(map(repr, states)))


def _collection(run: FlowRun, name: str, positional: list[object], named: dict[str, object]) -> object:
    if name == "dict":
        first = positional[0] if positional else {}
        pairs = first if isinstance(first, dict) else dict(_pairs(first))
        return {**pairs, **named}
    items = Evaluator(run, run.module, Scope()).items(positional[0]) if positional else []
    if items is None:
        return Unknown(f"{name}({shown(positional[0])})")
    try:
        return getattr(builtins, name)(items)
    except TypeError:
        return Unknown(f"{name}({shown(items)})")


def _pairs(value: object) -> list[tuple[object, object]]:
    if isinstance(value, list) and all(isinstance(one, (list, tuple)) and len(one) == 2 for one in value):
        return [(one[0], one[1]) for one in value if isinstance(one, (list, tuple))]
    return []


def _getattr(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    owner, name = positional[0], positional[1]
    if not isinstance(name, str):
        return Unknown(f"getattr({shown(owner)}, {shown(name)})")
    return attributes.read(run, owner, name, *positional[2:3])


def _setattr(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    owner, name, value = positional
    if isinstance(name, str):
        attributes.write(run, owner, name, value)
    elif isinstance(owner, Object) and (owner.is_argument or owner.is_holder):
        raise NotFollowedError("it sets attributes by unknown names")
    elif isinstance(owner, Object):
        run.unclear.add(owner.key)
    return None


def _delattr(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    if isinstance(positional[1], str):
        attributes.delete(run, positional[0], positional[1])
    return None


def _hasattr(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    owner, name = positional
    return attributes.has(run, owner, name) if isinstance(name, str) else Unknown(f"hasattr({shown(positional)})")


def _isinstance(_run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    value, of = positional
    names = [one.name for one in (of if isinstance(of, (tuple, list)) else [of]) if isinstance(one, Builtin)]
    unknown = Unknown(f"isinstance({shown(value)}, {shown(of)})")
    if isinstance(value, Member):
        return any(
            isinstance(one, External) and one.name.endswith(value.of) for one in (of if isinstance(of, tuple) else [of])
        )
    if isinstance(value, (Unknown, Object, *NAMED)):
        return unknown
    kinds = tuple(getattr(builtins, name) for name in names if isinstance(getattr(builtins, name), type))
    return isinstance(value, kinds)


def _dir(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    of = positional[0] if positional else None
    of = of.of if isinstance(of, Object) else of
    if not isinstance(of, Class):
        return Unknown(f"dir({shown(positional)})")
    bases = [one for one in bases_of(run, of) if isinstance(one, Class)]
    return sorted({name for base in bases for name, _, _ in members_of(base.node)})


def _vars(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    if positional and isinstance(positional[0], Object):
        return attributes.read(run, positional[0], "__dict__")
    return Unknown("vars()")


def _type(_run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    value = positional[0]
    if isinstance(value, Object):
        return value.of if value.of is not None else Unknown(f"class of {value.key}")
    return Unknown(f"type({shown(value)})") if not is_plain(value) else Builtin(type(value).__name__)


def _zip(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    columns = [Evaluator(run, run.module, Scope()).items(one) for one in positional]
    if any(one is None for one in columns):
        return Unknown(f"zip({shown(positional)})")
    return [tuple(one) for one in zip(*(one or [] for one in columns), strict=False)]


def _enumerate(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    items = Evaluator(run, run.module, Scope()).items(positional[0])
    return Unknown(f"enumerate({shown(positional)})") if items is None else list(enumerate(items))


def _map(run: FlowRun, positional: list[object], _named: dict[str, object]) -> object:
    items = Evaluator(run, run.module, Scope()).items(positional[1])
    if items is None:
        return Unknown(f"map({shown(positional)})")
    return [run.call(positional[0], [one], {}) for one in items]


_BUILTINS: dict[str, Callable[[FlowRun, list[object], dict[str, object]], object]] = {
    "getattr": _getattr,
    "setattr": _setattr,
    "delattr": _delattr,
    "hasattr": _hasattr,
    "isinstance": _isinstance,
    "vars": _vars,
    "dir": _dir,
    "type": _type,
    "zip": _zip,
    "enumerate": _enumerate,
    "map": _map,
    "iter": lambda _run, positional, _named: positional[0],
}


def _method(owner: object, name: str, positional: list[object], named: dict[str, object]) -> object:
    """Return the value of a method of a plain value."""
    if isinstance(owner, dict) and name == "get" and positional:
        return owner.get(positional[0], positional[1] if len(positional) > 1 else None)
    if isinstance(owner, dict) and name in ("items", "keys", "values"):
        return list(getattr(owner, name)())
    if isinstance(owner, dict) and name == "copy":
        return dict(owner)
    if isinstance(owner, (str, bytes, int)) and not _is_computed(owner, name, (*positional, *named.values())):
        return Unknown(f"{shown(owner)}.{name}({shown(positional)})")
    if name == "extend" and positional and not isinstance(positional[0], (list, tuple, set, dict)):
        positional = [[Unknown(f"more of {shown(positional[0])}")]]
    try:
        result: object = getattr(owner, name)(*positional, **named)
    except Exception as error:
        raise RaisedError(type(error).__name__) from None
    check_size(owner)
    return result


def _is_computed(owner: str | bytes | int, name: str, values: Iterable[object]) -> bool:
    """Return whether a method of a text or a number is computed: all that it gets is known, and no result is large."""
    if name.startswith("__") or (name == "format" and isinstance(owner, str) and has_width(owner)):
        return False
    return all(
        is_plain(one) and not is_large(one) and not (isinstance(one, int) and one > MOST_PARTS) for one in values
    )


_CALLS: dict[type, Callable[[FlowRun, Any, list[object], dict[str, object]], object]] = {
    Function: call_function,
    Class: construct,
    Builtin: lambda run, one, positional, named: _builtin(run, one.name, positional, named),
    Attribute: lambda _run, one, positional, named: _method(one.owner, one.name, positional, named),
    External: lambda run, one, positional, named: _external(run, one.name, positional, named),
    Object: _object,
}
HANDLERS = Handlers(evaluate_global, call)
