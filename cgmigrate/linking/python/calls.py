"""Evaluation of calls: functions of the checkout are followed, others get objects only if they are Megatron's."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import lru_cache
from operator import attrgetter

from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.compared_objects import check_assertion, copy_of, method_of, view_of
from cgmigrate.linking.python.computed_names import computes_names
from cgmigrate.linking.python.evaluation import (
    MOST_CALLS,
    Frame,
    NotFollowedError,
    RaisedError,
    ReadsSettingsError,
    ReplacesCodeError,
    Returned,
    Run,
    Signal,
    cannot_follow,
)
from cgmigrate.linking.python.expressions import derived, evaluate
from cgmigrate.linking.python.layers import copies_built
from cgmigrate.linking.python.modules import Module, is_test
from cgmigrate.linking.python.objects import (
    attribute,
    changed_in_place,
    check_members,
    copied,
    forget,
    functions_in,
    has_attribute,
    has_settings,
    kept_by_class,
    may_change,
    may_change_items,
    parts_of,
    sample,
    set_attribute,
    settings_of,
)
from cgmigrate.linking.python.outcomes import state_of
from cgmigrate.linking.python.own_objects import fields_of, has_slots, is_record, own_parameters
from cgmigrate.linking.python.parametrised import parametrised
from cgmigrate.linking.python.values import (
    MOST_COMPUTED,
    CannotFollowError,
    Class,
    Function,
    Member,
    Method,
    Namespace,
    Object,
    Outside,
    Partial,
    SharedList,
    has_text_of_its_own,
    is_plain,
    is_small,
    key_of,
    may_be_part_of,
)
from cgmigrate.linking.python.world import SETTINGS, is_enumeration
from cgmigrate.megatron.settings import DEPRECATED

Arguments = tuple[list[object], dict[str, object]]
"""The positional and the named arguments of a call."""
Place = tuple[ast.Call, Frame, Run]
"""A call, and where it is evaluated."""
_PURE = frozenset(("len", "str", "int", "float", "bool", "list", "tuple", "set", "dict", "sorted", "range", "min"))
_PURE |= frozenset(("max", "any", "all", "sum", "abs", "enumerate", "zip", "frozenset", "repr", "divmod", "round"))
_ORDERED = frozenset(("str", "repr", "list", "tuple", "enumerate", "zip"))
"""Those whose results depend on the texts of members of enumerations, or on the order of a set."""
_MOST_PARAMETERS = 3
"""Of a function that names no setting, and is followed since it gets plain values."""
_PATCHER = "parameter monkeypatch"
"""The key of pytest's fixture that replaces code."""
_PATCH = "unittest.mock.patch"
_MAKING = frozenset(("__init__", "__post_init__", "__new__"))
_ACCESSES = frozenset(("__setattr__", "__getattr__", "__getattribute__", "__delattr__"))
"""Methods that change what it means to set or read an attribute."""
_FINISHES = frozenset(("finalize", "validate", "provide", "provide_distributed_model", "__post_init__", "build"))
"""Methods after which an object is validated: settings that are set afterwards are read in another way."""
_TYPES: dict[str, type] = {one.__name__: one for one in (str, list, int, bool, tuple, dict, float, set)}
_CHANGES = frozenset(("append", "extend", "insert", "update", "add", "setdefault"))
_READS = frozenset(
    ("get", "keys", "values", "items", "index", "count", "copy", "split", "rsplit", "lower", "upper", "strip", "join")
) | frozenset(("startswith", "endswith", "replace", "removeprefix", "removesuffix", "partition", "rpartition", "union"))
_SHOWS = frozenset(("print", "isinstance", "type", "id", "callable", "repr", "str", "super"))


def value_of_call(node: ast.Call, frame: Frame, run: Run) -> object:
    """Return the value of a call."""
    place = (node, frame, run)
    owner = evaluate(node.func.value, frame, run) if isinstance(node.func, ast.Attribute) else None
    callee = attribute(owner, node.func.attr, place) if isinstance(node.func, ast.Attribute) else None
    callee = evaluate(node.func, frame, run) if callee is None else callee
    arguments = _arguments(node, frame, run)
    if isinstance(callee, Object):
        return _unknown(callee, owner, arguments, place)
    handler = _CALLED.get(type(callee))
    if handler is None:
        raise cannot_follow(f"the call of `{ast.unparse(node.func)[:60]}` is not followed", node, frame)
    return handler(callee, arguments, place)


def _arguments(node: ast.Call, frame: Frame, run: Run) -> Arguments:
    positional: list[object] = []
    for argument in node.args:
        if not isinstance(argument, ast.Starred):
            positional.append(evaluate(argument, frame, run))
            continue
        values = evaluate(argument.value, frame, run)
        check_members(values, (argument, frame, run))
        if not isinstance(values, (list, tuple)):
            raise cannot_follow("the arguments of a call are not known", node, frame)
        positional += values
    named: dict[str, object] = {}
    for keyword in node.keywords:
        value = evaluate(keyword.value, frame, run)
        if keyword.arg is not None:
            named[keyword.arg] = value
        elif isinstance(value, dict) and all(isinstance(name, str) for name in value):
            named |= value
        else:
            raise cannot_follow("the keyword arguments of a call are not known", node, frame)
    return positional, named


# --- functions of the checkout --------------------------------------------------------------------


def _function(callee: Function, arguments: Arguments, place: Place) -> object:
    if _copies_built(callee, place[2]):
        return Object(_skipped(callee, arguments, place).key)
    return _of_checkout(callee, arguments, place)


def _of_checkout(callee: Function, arguments: Arguments, place: Place) -> object:
    _, frame, run = place
    if _is_patched(arguments, run) and is_test(callee.module.path):
        return _patched([arguments, _texts_in(callee.node)], place)
    if run.relevance.is_relevant(callee.node) and not _has_object(arguments) and not _gets_code(arguments, run):
        return _followed_or_any(callee, arguments, place)
    if run.relevance.is_relevant(callee.node) or (_has_object(arguments) and _returns(callee.node)):
        return call(callee, arguments, run, frame.depth + 1)
    # It may change attributes of classes.
    run.forget("of_checkout=True")
    if _has_object(arguments) and computes_names(callee, run):
        raise cannot_follow(f"`{callee.name}` uses attributes by names that it computes", place[0], frame)
    if is_plain(arguments[0]) and is_plain(arguments[1]) and len(callee.node.args.args) <= _MOST_PARAMETERS:
        return _computed(callee, arguments, place)
    if _gets_code(arguments, run):
        # It may call this code.
        return call(callee, arguments, run, frame.depth + 1)
    return _skipped(callee, arguments, place)


def _copies_built(callee: Function, run: Run) -> bool:
    """Return whether a function gets what was validated, and makes the configuration of a part of the model."""
    return isinstance(callee.node, ast.FunctionDef) and copies_built(callee.node, callee.module, run.modules)


def _gets_code(arguments: Arguments, run: Run) -> bool:
    """Return whether a call gets a function that may set a setting, also as an attribute of an object."""
    values = (*arguments[0], *arguments[1].values())
    return any(run.relevance.is_relevant(one.node) for value in values for one in functions_in(value))


def _computed(callee: Function, arguments: Arguments, place: Place) -> object:
    """Return the result of a function that gets plain values only; it is not followed where that is not possible."""
    _, frame, run = place
    choices, events = len(run.path.choices), len(run.path.events)
    try:
        return call(callee, arguments, run, frame.depth + 1)
    except CannotFollowError:
        if len(run.path.choices) > choices:
            raise
        del run.path.events[events:]
        return _skipped(callee, arguments, place)


def _followed_or_any(callee: Function, arguments: Arguments, place: Place) -> object:
    """Return the result of a function that gets no object: any object that other code has left if it is not followed.

    It is evaluated by itself then, and what it leaves is known from that.
    """
    _, frame, run = place
    if callee.node in run.touched.not_followed:
        # It may have settings, also if Megatron makes it.
        return Object(_skipped(callee, arguments, place).key)
    effects = run.effects()
    try:
        return call(callee, arguments, run, frame.depth + 1)
    except CannotFollowError as error:
        if run.effects() != effects:
            raise
        raise NotFollowedError(callee.node) from error


def _has_object(arguments: Arguments) -> bool:
    return any(map(_is_object, (*arguments[0], *arguments[1].values())))


@lru_cache(maxsize=4096)
def _returns(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether a function may return what it gets."""
    if isinstance(node, ast.Lambda):
        return True
    returns = (part.value for part in ast.walk(node) if isinstance(part, ast.Return))
    return any(value is not None and not isinstance(value, ast.Constant) for value in returns)


def _skipped(callee: Function, arguments: Arguments, place: Place) -> Object:
    """Return the result of a function that names no setting; it may change the other attributes of objects."""
    node, frame, run = place
    values = [*arguments[0], *arguments[1].values()]
    if _gets_code(arguments, run):
        raise cannot_follow(f"`{callee.name}` gets a function that may set a setting", node, frame)
    name = f"{callee.module.package}.{callee.name}"
    key = run.numbered(f"{name}({key_of(arguments[0])}, {key_of(arguments[1])})")
    _note(key, arguments, run)
    for value in values:
        may_change(value, key, place)
    by_megatron = callee.module.package.startswith("megatron") and not run.relevance.may_return_changed(
        callee.node, callee.module
    )
    return Object(key, by_megatron, may_be_other=_may_share(callee.node))


def _may_share(node: ast.FunctionDef | ast.Lambda) -> bool:
    """Return whether calls of a function may return one object: a default argument, or what a decorator keeps."""
    defaults = (*node.args.defaults, *filter(None, node.args.kw_defaults))
    is_decorated = isinstance(node, ast.FunctionDef) and bool(node.decorator_list)
    return is_decorated or any(isinstance(one, ast.Call) for one in defaults)


def _is_object(value: object) -> bool:
    if isinstance(value, (Function, Class, Namespace, Partial)):
        return True
    return any(map(_is_used, parts_of(value)))


def enter(function: Function, run: Run) -> object:
    """Return what an entry point returns. Callers may give it any value, so its parameters are not known."""
    frame = Frame(function, values_of_parameters(function.node, function.module, run), 0)
    run.path.arguments = list(frame.names.values())
    return _executed(function, frame, run)


def values_of_parameters(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, module: Module, run: Run
) -> dict[str, object]:
    """Return the parameters of a function by name: objects that are not known, and samples of settings."""
    records, options = own_parameters(node, module, run.modules)
    by_decorator = {} if isinstance(node, ast.Lambda) else parametrised(node, module, run)
    return by_decorator | {
        name: sample(name, f"parameter {name}", run)
        if name in SETTINGS and run.unknowns.states
        else Object(f"parameter {name}", is_record=name in records, is_options=name in options)
        for name in parameters(node)
        if name not in by_decorator
    }


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> list[str]:
    """Return the names of the parameters of a function."""
    every = node.args
    names = [one.arg for one in (*every.posonlyargs, *every.args, *every.kwonlyargs)]
    return names + [one.arg for one in (every.vararg, every.kwarg) if one is not None]


def call(function: Function, arguments: Arguments, run: Run, depth: int) -> object:
    """Return what a function of the checkout returns. Raises RaisedError and CannotFollowError."""
    frame = Frame(function, {}, depth)
    run.code.use_function(function.module.path, function.node)
    if depth > MOST_CALLS:
        raise cannot_follow("too many functions call each other", function.node, frame)
    frame.names.update(_bound(function, arguments, run, frame))
    needed = run.needed
    leaked = [frame.names[name] for name in run.relevance.leaked_in(function.node, needed)]
    try:
        return _executed(function, frame, run)
    finally:
        run.needed = needed
        for value in leaked:
            may_change_items(value, run.numbered(function.name), (function.node, frame, run))


def _executed(function: Function, frame: Frame, run: Run) -> object:
    node = function.node
    if isinstance(node, ast.FunctionDef) and not all(_is_mark(one, function, run) for one in node.decorator_list):
        raise cannot_follow(f"`{node.name}` has a decorator", node, frame)
    if _is_special(node):
        raise cannot_follow(f"`{function.name}` is a generator, or sets names around it", node, frame)
    if isinstance(node, ast.Lambda):
        return evaluate(node.body, frame, run)
    run.needed = run.relevance.needed_in(node, run.needed)
    return executed_in(run.handlers.execute(node.body, frame, run))


def _is_mark(node: ast.expr, function: Function, run: Run) -> bool:
    """Return whether a decorator leaves a function as it is, or replaces code that leads to no setting in a test."""
    name = dotted(node.func if isinstance(node, ast.Call) else node)
    if name.startswith("pytest.mark."):
        return True
    is_patch = name.startswith(("patch", "mock.patch", "unittest.mock.patch")) and is_test(function.module.path)
    return is_patch and run.relevance.words.isdisjoint(_texts_in(node))


# --- what tests replace ---------------------------------------------------------------------------


def _is_patched(arguments: Arguments, run: Run) -> bool:
    """Return whether a helper of tests gets pytest's fixture that replaces code."""
    values = (*arguments[0], *arguments[1].values())
    return run.unknowns.has_fakes and any(isinstance(one, Object) and one.key == _PATCHER for one in values)


def _patched(replaced: object, place: Place) -> object:
    """Return the result of code that replaces other code in a test.

    Raises CannotFollowError if the other code leads to settings.
    """
    node, frame, run = place
    names = set(_texts_of(replaced))
    if not run.relevance.words.isdisjoint(names):
        raise cannot_follow("code that leads to settings is replaced", node, frame, ReplacesCodeError)
    run.replaced |= names
    return Object(run.numbered("patched"))


def _texts_of(value: object) -> Iterator[str]:
    """Yield the names in the texts of a value: ``name`` of ``package.name``."""
    if isinstance(value, str):
        yield value.rpartition(".")[2]
    elif isinstance(value, (list, tuple, set, frozenset, dict)):
        for one in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts_of(one)


@lru_cache(maxsize=4096)
def _texts_in(node: ast.AST) -> frozenset[str]:
    texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
    return frozenset(text.rpartition(".")[2] for text in texts)


def executed_in(signal: Signal) -> object:
    """Return the value that executed statements return."""
    return signal.value if isinstance(signal, Returned) else None


@lru_cache(maxsize=65536)
def _is_special(node: ast.FunctionDef | ast.Lambda) -> bool:
    return any(isinstance(part, (ast.Yield, ast.YieldFrom, ast.Global, ast.Nonlocal)) for part in ast.walk(node))


def _bound(function: Function, arguments: Arguments, run: Run, frame: Frame) -> dict[str, object]:
    """Return the parameters of a function by name."""
    node = function.node.args
    names = [one.arg for one in (*node.posonlyargs, *node.args)]
    positional, named = arguments
    bound: dict[str, object] = dict(zip(names, positional, strict=False))
    if len(positional) > len(names):
        if node.vararg is None:
            raise RaisedError("TypeError")
        bound[node.vararg.arg] = tuple(positional[len(names) :])
    elif node.vararg is not None:
        bound[node.vararg.arg] = ()
    known = {*names, *(one.arg for one in node.kwonlyargs)}
    further = {name: value for name, value in named.items() if name not in known}
    if (further and node.kwarg is None) or bound.keys() & named.keys():
        raise RaisedError("TypeError")
    bound |= {name: value for name, value in named.items() if name in known}
    if node.kwarg is not None:
        bound[node.kwarg.arg] = further
    defaults = dict(zip(names[len(names) - len(node.defaults) :], node.defaults, strict=True))
    defaults |= {one.arg: value for one, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value}
    for name in known - bound.keys():
        if name not in defaults:
            raise RaisedError("TypeError")
        bound[name] = _default(defaults[name], frame, run)
    return bound


def _default(node: ast.expr, frame: Frame, run: Run) -> object:
    """Return a default argument; all calls share its value. Python evaluates it where the function is defined."""
    if frame.function.around and not isinstance(node, ast.Constant):
        raise cannot_follow("a default argument of an inner function is not followed", node, frame)
    value = evaluate(node, Frame(frame.function, {}, frame.depth), run)
    if any(one.is_instance or one.by_megatron for one in parts_of(value)):
        raise cannot_follow("a default argument that all calls share is not followed", node, frame)
    if isinstance(value, list):
        return SharedList(value)
    if isinstance(value, (dict, set)):
        raise cannot_follow("a default argument that all calls share is not followed", node, frame)
    return value


# --- classes --------------------------------------------------------------------------------------


def _instance(callee: Class, arguments: Arguments, place: Place) -> object:
    """Return a new object of a class of the checkout."""
    node, frame, run = place
    by_megatron = _is_megatrons(callee, run, set()) and not _keeps_leading(callee, run, set())
    if not by_megatron and is_record(callee.node):
        return _record(callee, arguments, place)
    reason = _sets_settings(callee, run, set())
    if is_test(callee.module.path) and (reason or _has_stand_in(callee)):
        reason = reason or f"objects of `{callee.node.name}` have others with settings of their own"
        raise cannot_follow(reason, node, frame, ReadsSettingsError)
    if reason:
        raise cannot_follow(reason, node, frame)
    if not by_megatron and any(map(_is_object, (*arguments[0], *arguments[1].values()))):
        raise cannot_follow(f"what `{callee.node.name}` does with an object is not followed", node, frame)
    made = _made(callee.node.name, arguments, place, by_megatron)
    if _has_making(callee, run, set()):
        for value in (*arguments[0], *(value for name, value in arguments[1].items() if name not in SETTINGS)):
            may_change_items(value, made.key, place)
    made.of_checkout = True
    made.properties = frozenset(_properties(callee, run, set()))
    made.may_be_other = _has_accesses(callee, run, set())
    return made


@lru_cache(maxsize=4096)
def _stand_ins(module: Module) -> frozenset[str]:
    """Return the classes of a module of tests whose objects have only the settings that the class names."""
    classes = (one for one in module.bindings.values() if isinstance(one, ast.ClassDef))
    return frozenset(one.name for one in classes if is_record(one))


def _has_stand_in(callee: Class) -> bool:
    """Return whether the body of a class of tests names one whose objects replace a configuration."""
    names = {part.id for part in ast.walk(callee.node) if isinstance(part, ast.Name)}
    return not names.isdisjoint(_stand_ins(callee.module))


def _record(callee: Class, arguments: Arguments, place: Place) -> Object:
    """Return a new record: it has what code gives it."""
    run = place[2]
    named = dict(zip(fields_of(callee.node.body), arguments[0], strict=False)) | arguments[1]
    made = Object(run.numbered(f"{callee.node.name}()"), is_instance=True, is_record=True, attributes=named)
    run.path.uses.update(
        (place[1].module.path, line) for line in range(place[0].lineno, (place[0].end_lineno or 0) + 1)
    )
    run.path.records.append(made)
    return made


def _has_making(callee: Class, run: Run, seen: set[int]) -> bool:
    """Return whether code of a class runs when an object of it is made: it may change what this gets."""
    if id(callee.node) in seen:
        return False
    seen.add(id(callee.node))
    if any(isinstance(one, ast.FunctionDef) and one.name in _MAKING for one in callee.node.body):
        return True
    bases = _bases(callee, run)
    return any(
        _has_making(base, run, seen)
        if isinstance(base, Class)
        else not (isinstance(base, Outside) and base.name.startswith(("megatron.", "abc.", "builtins.object")))
        for base in bases
    )


def _has_accesses(callee: Class, run: Run, seen: set[int]) -> bool:
    """Return whether a class changes what it means to set or read an attribute."""
    if id(callee.node) in seen:
        return False
    seen.add(id(callee.node))
    if any(isinstance(one, ast.FunctionDef) and one.name in _ACCESSES for one in callee.node.body):
        return True
    return any(isinstance(base, Class) and _has_accesses(base, run, seen) for base in _bases(callee, run))


def _properties(callee: Class, run: Run, seen: set[int]) -> Iterator[str]:
    """Yield the names of the properties of a class and its bases, as far as they are of the checkout."""
    if id(callee.node) in seen:
        return
    seen.add(id(callee.node))
    for one in callee.node.body:
        if isinstance(one, ast.FunctionDef) and any("property" in ast.unparse(mark) for mark in one.decorator_list):
            yield one.name
    for base in _bases(callee, run):
        if isinstance(base, Class):
            yield from _properties(base, run, seen)


def _made(name: str, arguments: Arguments, place: Place, by_megatron: bool) -> Object:
    node, frame, run = place
    made = Object(run.numbered(f"{name}({', '.join(map(key_of, arguments[0]))})"), by_megatron, is_instance=True)
    if name.rpartition(".")[2] in run.replaced:
        made.is_bare = run.choose(f"{made.key} is a fake")
        run.path.is_with_fakes = run.path.is_with_fakes or made.is_bare
    for attr, value in arguments[1].items():
        set_attribute(made, attr, value, (_keyword(node, attr), frame, run))
    for at, value in enumerate(arguments[0]):
        if _is_object(value):
            raise cannot_follow("an object is a positional argument of a class", node, frame)
        made.first[f"argument {at}"] = value
    return made


def _keyword(node: ast.Call, name: str) -> ast.AST:
    return next((keyword.value for keyword in node.keywords if keyword.arg == name), node)


def _bases(callee: Class, run: Run) -> list[object]:
    from cgmigrate.linking.python.lookup import name_in

    result: list[object] = []
    for base in callee.node.bases:
        name = dotted(base.value if isinstance(base, ast.Subscript) else base)
        first, *rest = name.split(".")
        try:
            value = name_in(first, callee.module, run) if first else None
        except CannotFollowError:
            value = None
        if isinstance(value, Outside):
            value = Outside(".".join((value.name, *rest)))
        result.append(value if not rest or isinstance(value, Outside) else None)
    return result


def _is_megatrons(callee: Class, run: Run, seen: set[int]) -> bool:
    """Return whether a class of the checkout is a class of Megatron, or one that only derives from those."""
    if id(callee.node) in seen:
        return False
    seen.add(id(callee.node))
    if callee.module.package.startswith("megatron"):
        return True
    bases = _bases(callee, run)
    return bool(bases) and all(
        _is_megatrons(base, run, seen)
        if isinstance(base, Class)
        else isinstance(base, Outside) and base.name.startswith("megatron.")
        for base in bases
    )


def _keeps_leading(callee: Class, run: Run, seen: set[int]) -> bool:
    """Return whether objects of a class may have others of code that changes: ``config = start_config()``."""
    if id(callee.node) in seen:
        return False
    seen.add(id(callee.node))
    leads = any(run.relevance.may_return_changed(one, callee.module) for one in kept_by_class(callee.node))
    bases = () if leads else _bases(callee, run)
    return leads or any(isinstance(base, Class) and _keeps_leading(base, run, seen) for base in bases)


def _sets_settings(callee: Class, run: Run, seen: set[int]) -> str:
    """Return why an object of a class may have settings from the start, empty if it has none."""
    if id(callee.node) in seen:
        return ""
    seen.add(id(callee.node))
    if reason := _own_settings(callee.node):
        return reason
    for statement in callee.node.body:
        is_making = isinstance(statement, ast.FunctionDef) and statement.name in _MAKING
        if (is_making and run.relevance.leads(statement)) or _makes_holder(statement, run):
            return f"`{callee.node.name}` is made by code that may set a setting"
    for base in _bases(callee, run):
        if isinstance(base, Class) and (reason := _sets_settings(base, run, seen)):
            return reason
    return ""


def _makes_holder(statement: ast.stmt, run: Run) -> bool:
    """Return whether a statement of a class gives its objects one whose settings code uses: ``model = make()``."""
    match statement:
        case (
            ast.Assign(targets=[ast.Name(id=name)], value=value)
            | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
        ):
            return name in run.relevance.holders and run.relevance.is_relevant(value)
    return False


@lru_cache(maxsize=16384)
def _own_settings(node: ast.ClassDef) -> str:
    """Return why objects of a class may have other settings than code gives them, empty if they have none."""
    if node.decorator_list and not all(
        dotted(one).startswith("dataclass") for one in map(_called, node.decorator_list)
    ):
        return f"the class `{node.name}` has a decorator"
    if any(one.arg == "metaclass" and dotted(one.value).rpartition(".")[2] != "ABCMeta" for one in node.keywords):
        return f"the class `{node.name}` has a metaclass"
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef):
            if statement.name in SETTINGS:
                return f"the class `{node.name}` defines `{statement.name}`"
            if statement.name not in _MAKING:
                continue
        for part in ast.walk(statement):
            if _name_of(part) in SETTINGS:
                return f"the class `{node.name}` sets `{_name_of(part)}` itself"
    return f"the class `{node.name}` has only some attributes" if any(map(has_slots, node.body)) else ""


def _called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def _name_of(node: ast.AST) -> object:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.keyword(arg=name) | ast.Constant(value=name):
            return name if isinstance(name, str) else None
    return None


# --- code that is not followed --------------------------------------------------------------------


def _called_outside(callee: Outside, arguments: Arguments, place: Place) -> object:
    if callee.name.startswith("builtins."):
        return _builtin(callee.name.removeprefix("builtins."), arguments, place)
    if callee.name == "dataclasses.asdict" and len(arguments[0]) == 1 and not arguments[1]:
        return copy_of(arguments[0][0], "asdict", place)
    if callee.name == "types.SimpleNamespace" and not arguments[0] and is_test(place[1].module.path):
        made = _made(callee.name, arguments, place, by_megatron=False)
        made.is_bare = True
        return made
    return _outside(callee, arguments, place)


def _outside(callee: Outside, arguments: Arguments, place: Place) -> object:
    """Return the result of code that is not followed; Megatron's reads settings by the rules of its release."""
    run = place[2]
    name, values = callee.name, [*arguments[0], *arguments[1].values()]
    if name == "functools.partial":
        return _partial(callee, arguments, place)
    if name == "typing.cast" and len(values) == 2:
        return values[1]
    _check_outside(callee, arguments, place)
    if is_enumeration(name) and len(values) == 1 and isinstance(values[0], str):
        return Member(name.rpartition(".")[2], values[0])
    if name == "copy.deepcopy" and len(values) == 1:
        return copied(values[0])
    last = name.rpartition(".")[2]
    if name.startswith("megatron.") and last[:1].isupper() and not arguments[0]:
        return _made(name, arguments, place, by_megatron=True)
    _note(name, arguments, run)
    key = run.numbered(f"{name}({key_of(arguments[0])}, {key_of(arguments[1])})")
    run.forget(f"Outside(name='{name.rpartition('.')[0]}")
    for value in values:
        may_change(value, key, place)
    others = may_be_part_of(values)
    # What a method of the project makes that leads to settings may have some.
    is_leading = callee.leads or (callee.of_checkout and last in run.relevance.methods) or _gives_changed(last, run)
    is_unset = _makes_models(name) and not is_leading
    return Object(key, is_unset, is_instance=last[:1].isupper(), may_be_other=others)


def _gives_changed(method: str, run: Run) -> bool:
    """Return whether a method with a name may give an object of code that changes: its class is not known."""
    return run.relevance.method_may_return_changed(method)


def _partial(callee: Outside, arguments: Arguments, place: Place) -> object:
    values, named = arguments
    if values and isinstance(values[0], Function):
        return Partial(values[0], tuple(values[1:]), named)
    bound = [*values[1:], *named.values()]
    is_unknown = bool(values) and isinstance(values[0], Object) and SETTINGS.isdisjoint(named)
    if not (is_unknown and all(map(_is_unset, bound))):
        _check_outside(callee, arguments, place)
    for one in bound:
        if isinstance(one, Object):
            # The code that gets it later may set its settings.
            one.may_be_other = True
    return derived("partial", [*values, *named.values(), sorted(named)], place[2])


def _called_partial(callee: Partial, arguments: Arguments, place: Place) -> object:
    return _function(callee.function, ([*callee.values, *arguments[0]], {**callee.named, **arguments[1]}), place)


def _makes_models(name: str) -> bool:
    """Return whether a function of Megatron makes an object without settings: a class, or a method of one.

    Another function may be a recipe, which sets them.
    """
    package, *names = name.split(".")
    return package == "megatron" and any(one[:1].isupper() for one in names[-2:])


def _check_outside(callee: Outside, arguments: Arguments, place: Place) -> None:
    """Check that code that is not followed gets nothing that it may change, or call. Raises CannotFollowError."""
    node, frame, _ = place
    values = [*arguments[0], *arguments[1].values()]
    last = callee.name.rpartition(".")[2]
    if callee.name.startswith(_PATCH):
        _patched(values, place)
    if not SETTINGS.isdisjoint(arguments[1]) and not callee.name.startswith("megatron.bridge."):
        raise cannot_follow(f"`{last}` gets settings and is not followed", node, frame)
    if any(True for value in values for _ in functions_in(value)):
        raise cannot_follow(f"`{last}` gets a function and is not followed", node, frame)
    is_known = (_makes_models(callee.name) and not callee.of_checkout) or callee.name == "copy.deepcopy"
    if not is_known and any(map(_is_object, values)):
        raise cannot_follow(f"`{last}` gets an object and is not followed", node, frame)


def _note(name: str, arguments: Arguments, run: Run) -> None:
    """Note what code gets that is not followed: it has to be the same before and after."""
    for value in (*arguments[0], *arguments[1].values()):
        run.path.passed += settings_of(value)
    states = [state_of(value, run.world) for value in (*arguments[0], *arguments[1].values())]
    run.path.events.append(f"{name}({', '.join(states)}) {sorted(arguments[1])}")


def _unknown(callee: Object, owner: object, arguments: Arguments, place: Place) -> object:
    """Return the result of a method of an object, or of a function, that is not known."""
    node, frame, run = place
    values = [*arguments[0], *arguments[1].values()]
    if run.unknowns.has_fakes and callee.key.startswith(_PATCHER):
        return _patched(values, place)
    if _is_assertion(callee, values, place):
        return _asserted(callee, arguments, place)
    shown = f"`{ast.unparse(node.func)[:60]}`"
    method = callee.key.rpartition(".")[2] if owner is not None else "__call__"
    # A call of an object itself is one of its method.
    owner = callee if owner is None and callee.is_instance else owner
    if isinstance(owner, Object) and _may_set(owner, method, run):
        raise cannot_follow(f"{shown} may set settings of what it has", node, frame)
    if isinstance(owner, Object) and (has_settings(owner) or callee.key.rpartition(".")[2] in _FINISHES):
        raise cannot_follow(f"{shown} may change settings", node, frame)
    is_megatron = isinstance(owner, Object) and owner.by_megatron
    is_read = isinstance(owner, Object) and owner.of_checkout
    is_made_of = is_read and all(map(_is_unset, values))
    # What a method makes that leads to settings may have some.
    is_leading = is_read and callee.key.rpartition(".")[2] in run.relevance.methods
    is_megatron = is_megatron and not is_leading and not _gives_changed(method, run)
    if (is_read or not is_megatron) and any(map(_is_object, values)) and not is_made_of:
        raise cannot_follow(f"{shown} gets an object and is not followed", node, frame)
    if _gets_code(arguments, run):
        raise cannot_follow(f"{shown} gets a function", node, frame)
    _note(callee.key, arguments, run)
    others = may_be_part_of(values)
    key = run.numbered(f"{callee.key}({key_of(arguments[0])}, {key_of(arguments[1])})")
    for value in values:
        may_change(value, key, place)
        if is_made_of and isinstance(value, Object):
            # The result may be this object, or a part of it: its settings are not known.
            value.may_be_other = True
    if isinstance(owner, Object):
        _may_change_owner(owner, key, place)
    return Object(key, is_megatron, may_be_other=others and not is_made_of)


def _is_assertion(callee: Object, values: list[object], place: Place) -> bool:
    """Return whether a call is an assertion of `unittest`, which leaves what it compares as it is."""
    is_own = callee.key.startswith("parameter self.assert") and is_test(place[1].module.path)
    return is_own and not any(True for value in values for _ in functions_in(value))


def _asserted(callee: Object, arguments: Arguments, place: Place) -> object:
    """Return the result of an assertion of `unittest`. Raises CannotFollowError if it may ask settings by name."""
    node, frame, run = place
    if not DEPRECATED.isdisjoint(arguments[1]):
        raise cannot_follow("an assertion asks a setting", node, frame, ReadsSettingsError)
    check_assertion([*arguments[0], *arguments[1].values()], place)
    _note(callee.key, arguments, run)
    return Object(run.numbered(callee.key))


def _may_set(owner: Object, method: str, run: Run) -> bool:
    """Return whether a method that is not followed may set settings of an object that is an attribute of its own.

    A function that is one may set some if it leads to settings. Where it replaces a method that leads to settings, all
    that call this one lead to settings as well.
    """
    if owner.by_megatron and not owner.of_checkout:
        return False
    methods = run.relevance.methods
    for name, value in owner.attributes.items():
        if isinstance(value, Namespace) or any(map(_is_used, parts_of(value))):
            return True
        if name in methods and method not in methods and method != "__call__":
            continue
        if any(run.relevance.is_relevant(one.node) for one in functions_in(value)):
            return True
    return False


def _is_used(value: Object) -> bool:
    return value.is_instance or bool(value.attributes) or value.by_megatron


def _may_change_owner(owner: Object, key: str, place: Place) -> None:
    """Note that a method may have changed the attributes of its object, or may return this object."""
    if owner.by_megatron and not owner.of_checkout:
        forget(owner, place[2])
        return
    may_change(owner, key, place)
    owner.may_be_other = owner.may_be_other or owner.of_checkout


def _is_unset(value: object) -> bool:
    """Return whether a value is plain, or one of Megatron's objects of which nothing was set or read."""
    if isinstance(value, Object):
        return value.by_megatron and not value.attributes and not value.first
    return is_plain(value)


# --- builtins and methods of plain values ---------------------------------------------------------


def _builtin(name: str, arguments: Arguments, place: Place) -> object:
    node, frame, run = place
    handler = _BUILTINS.get(name)
    if handler is not None:
        return handler(arguments, place)
    values = [*arguments[0], *arguments[1].values()]
    if any(True for value in values for _ in functions_in(value)) and name in _PURE:
        raise cannot_follow(f"`{name}` gets a function", node, frame)
    if name in _PURE:
        return _pure(name, arguments, run)
    if name in _SHOWS and not any(isinstance(value, Function) for value in values):
        if name == "print":
            _note(name, arguments, run)
        return derived(name, values, run)
    if name[:1].isupper():
        return Object(run.numbered(f"{name}({', '.join(map(key_of, values))})"), is_instance=True)
    raise cannot_follow(f"`{name}` is not followed", node, frame)


def _pure(name: str, arguments: Arguments, run: Run) -> object:
    values, named = arguments
    if named or not all(map(is_plain, values)):
        if name in ("list", "tuple") and len(values) == 1 and isinstance(values[0], (list, tuple)) and not named:
            return list(values[0]) if name == "list" else tuple(values[0])
        return derived(name, [*values, *named.values(), sorted(named)], run)
    if not all(map(is_small, values)) or (name in _ORDERED and any(map(has_text_of_its_own, values))):
        return derived(name, values, run)
    function: Callable[..., object] = getattr(__import__("builtins"), name)
    try:
        result = function(*values)
    except (TypeError, ValueError) as error:
        raise RaisedError(type(error).__name__) from error
    if isinstance(result, range) and result[MOST_COMPUTED:]:
        return derived(name, values, run)
    return list(result) if name in ("enumerate", "zip", "range") else result  # type: ignore[call-overload]


def _getattr(arguments: Arguments, place: Place) -> object:
    node, frame, _ = place
    values = arguments[0]
    if len(values) < 2 or not isinstance(values[1], str):
        raise cannot_follow("`getattr` with a name that is not known", node, frame)
    if len(values) == 2:
        return attribute(values[0], values[1], place)
    known = has_attribute(values[0], values[1], place)
    if known is False:
        return values[2]
    value = attribute(values[0], values[1], place)
    is_default = may_be_part_of(values[2:])
    if known is None and isinstance(value, Object) and (is_default or not _is_object(value)):
        # The default counts as well: it is part of what is not known.
        others = value.may_be_other or is_default
        return Object(f"{value.key} or {key_of(values[2])}", value.by_megatron, may_be_other=others)
    return value


def _hasattr(arguments: Arguments, place: Place) -> object:
    node, frame, run = place
    values = arguments[0]
    if len(values) != 2 or not isinstance(values[1], str):
        raise cannot_follow("`hasattr` with a name that is not known", node, frame)
    known = has_attribute(values[0], values[1], place)
    return derived("hasattr", values, run) if known is None else known


def _setattr(arguments: Arguments, place: Place) -> object:
    node, frame, _ = place
    values = arguments[0]
    if len(values) != 3 or not isinstance(values[1], str):
        raise cannot_follow("`setattr` with a name that is not known", node, frame)
    set_attribute(values[0], values[1], values[2], place)
    return None


def _isinstance(arguments: Arguments, place: Place) -> object:
    values, run = arguments[0], place[2]
    kinds = values[1] if len(values) == 2 and isinstance(values[1], tuple) else values[1:]
    names = [kind.name.removeprefix("builtins.") if isinstance(kind, Outside) else "" for kind in kinds]
    if isinstance(values[0], Member) or is_plain(values[0]):
        if all(name in _TYPES for name in names):
            return isinstance(values[0], tuple(_TYPES[name] for name in names))
        if all(isinstance(kind, Class) and not kind.node.bases for kind in kinds):
            return False
    elif isinstance(values[0], Object) and _is_of_megatron(values[0]) and all(name in _TYPES for name in names):
        return False
    return derived("isinstance", values, run)


def _is_of_megatron(value: Object) -> bool:
    """Return whether an object is surely of a class of Megatron. One of other code may derive from a builtin class."""
    return value.is_instance and value.by_megatron and not value.of_checkout


def _fromkeys(arguments: Arguments, place: Place) -> object:
    values, named = arguments
    if named or not values or not isinstance(values[0], (list, tuple)) or not is_plain(values[0]):
        return derived("dict.fromkeys", [*values, *named.values()], place[2])
    try:
        return dict.fromkeys(values[0], *values[1:2] or [None])
    except TypeError as error:
        raise RaisedError("TypeError") from error


def _super(arguments: Arguments, place: Place) -> object:
    del arguments
    raise cannot_follow("`super` is not followed", place[0], place[1])


def _vars(arguments: Arguments, place: Place) -> object:
    if len(arguments[0]) != 1 or arguments[1]:
        raise cannot_follow("`vars` is not followed", place[0], place[1])
    return view_of(arguments[0][0], "vars", place)


_BUILTINS: dict[str, Callable[[Arguments, Place], object]] = {
    "getattr": _getattr,
    "hasattr": _hasattr,
    "setattr": _setattr,
    "isinstance": _isinstance,
    "super": _super,
    "vars": _vars,
    "dict.fromkeys": _fromkeys,
}


def _called_method(callee: Method, arguments: Arguments, place: Place) -> object:
    if isinstance(callee.value, Object):
        return method_of(callee.value, callee.name, arguments, place)
    return _method(callee, arguments, place)


def _method(callee: Method, arguments: Arguments, place: Place) -> object:
    """Return the result of a method of a list, a dict or a text."""
    node, frame, run = place
    value, values = callee.value, arguments[0]
    if not all(map(is_small, (value, *values))):
        raise cannot_follow("a value is too large to be computed", node, frame)
    if callee.name != "append":
        for one in (value, *values):
            check_members(one, place)
    if callee.name in _CHANGES and isinstance(value, (list, dict)):
        changed_in_place(value, place)
    elif callee.name not in _READS or not all(map(is_plain, (value, *values))):
        if isinstance(value, dict) and callee.name in ("get", "keys", "values", "items"):
            pass
        elif isinstance(value, (str, int, float)):
            return derived(f"{key_of(value)}.{callee.name}", [*values, *arguments[1].values()], run)
        else:
            raise cannot_follow(f"`.{callee.name}` of a collection is not followed", node, frame)
    try:
        result = attrgetter(callee.name)(value)(*values, **arguments[1])
    except (TypeError, ValueError, KeyError, IndexError, AttributeError) as error:
        if not all(map(is_plain, (value, *values, *arguments[1].values()))):
            raise cannot_follow(f"`.{callee.name}` gets a value that is not known", node, frame) from error
        raise RaisedError(type(error).__name__) from error
    return list(result) if callee.name in ("keys", "values", "items") else result


_CALLED: dict[type, Callable[..., object]] = {
    Function: _function,
    Class: _instance,
    Method: _called_method,
    Outside: _called_outside,
    Partial: _called_partial,
}
