"""Calls of code that is not followed: it gets objects only if it is Megatron's."""

from __future__ import annotations

import ast

from cgmigrate.linking.python.arguments import (
    EXPECTS,
    Arguments,
    Place,
    gets_code,
    is_object,
    is_shown,
    is_unset,
    is_used,
    note_call,
)
from cgmigrate.linking.python.builtin_calls import called_builtin
from cgmigrate.linking.python.class_calls import made_object
from cgmigrate.linking.python.compared_objects import copy_of
from cgmigrate.linking.python.evaluation import ReadsSettingsError, Run, cannot_follow
from cgmigrate.linking.python.expressions import derived
from cgmigrate.proof.flow.modules import is_test
from cgmigrate.linking.python.objects import copied, forget, functions_in, has_settings, may_change, parts_of
from cgmigrate.linking.python.replaced_code import PATCH, PATCHER, patched
from cgmigrate.linking.python.values import (
    Class,
    Function,
    Member,
    Namespace,
    Object,
    Outside,
    Partial,
    key_of,
    may_be_part_of,
)
from cgmigrate.proof.flow.world import SETTINGS, is_enumeration

_FINISHES = frozenset(
    (
        *("finalize", "validate", "provide", "provide_distributed_model", "build", "__post_init__"),
        *("__init__", "__setattr__", "__delattr__", "__setstate__"),
    )
)
"""Methods after which an object is validated or another one: settings that are set later are read in another way."""


def called_outside(callee: Outside, arguments: Arguments, place: Place) -> object:
    """Return the result of code outside of the checkout. Raises RaisedError and CannotFollowError."""
    if callee.name.startswith("builtins."):
        return called_builtin(callee.name.removeprefix("builtins."), arguments, place)
    if callee.name == "dataclasses.asdict" and len(arguments[0]) == 1 and not arguments[1]:
        return copy_of(arguments[0][0], "asdict", place)
    if callee.name == "types.SimpleNamespace" and not arguments[0] and is_test(place[1].module.path):
        made = made_object(callee.name, arguments, place, by_megatron=False)
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
        return made_object(name, arguments, place, by_megatron=True)
    note_call(name, arguments, run)
    key = run.numbered(f"{name}({key_of(arguments[0])}, {key_of(arguments[1])})")
    run.forget(f"Outside(name='{name.rpartition('.')[0]}")
    for value in () if is_shown(name, arguments) else values:
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
    if not (is_unknown and all(map(is_unset, bound))):
        _check_outside(callee, arguments, place)
    for one in bound:
        if isinstance(one, Object):
            # The code that gets it later may set its settings.
            one.may_be_other = True
    return derived("partial", [*values, *named.values(), sorted(named)], place[2])


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
    if callee.name.startswith(PATCH):
        patched(values, place)
    if not SETTINGS.isdisjoint(arguments[1]) and not callee.name.startswith("megatron.bridge."):
        raise cannot_follow(f"`{last}` gets settings and is not followed", node, frame)
    if last in EXPECTS and len(arguments[0]) == 1 and isinstance(values[0], (Class, Outside)):
        return
    if any(True for value in values for _ in functions_in(value)):
        raise cannot_follow(f"`{last}` gets a function and is not followed", node, frame)
    is_known = (_makes_models(callee.name) and not callee.of_checkout) or callee.name == "copy.deepcopy"
    if not is_known and any(map(is_object, values)):
        raise cannot_follow(f"`{last}` gets an object and is not followed", node, frame)


def called_object(callee: Object, owner: object, arguments: Arguments, place: Place) -> object:
    """Return the result of a method of an object, or of a function, that is not known."""
    node, frame, run = place
    values = [*arguments[0], *arguments[1].values()]
    if run.unknowns.has_fakes and callee.key.startswith(PATCHER):
        return patched(values, place)
    if callee.key.startswith("parameter self.assert") and is_test(frame.module.path):
        raise cannot_follow("an assertion of `unittest` is not followed", node, frame, ReadsSettingsError)
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
    is_made_of = is_read and all(map(is_unset, values))
    # What a method makes that leads to settings may have some.
    is_leading = is_read and callee.key.rpartition(".")[2] in run.relevance.methods
    is_megatron = is_megatron and not is_leading and not _gives_changed(method, run)
    if (is_read or not is_megatron) and any(map(is_object, values)) and not is_made_of:
        raise cannot_follow(f"{shown} gets an object and is not followed", node, frame)
    if gets_code(arguments, run):
        raise cannot_follow(f"{shown} gets a function", node, frame)
    note_call(callee.key, arguments, run)
    others = may_be_part_of(values)
    key = run.numbered(f"{callee.key}({key_of(arguments[0])}, {key_of(arguments[1])})")
    for value in () if is_shown(callee.key, arguments) else values:
        may_change(value, key, place)
        if is_made_of and isinstance(value, Object):
            # The result may be this object, or a part of it: its settings are not known.
            value.may_be_other = True
    if isinstance(owner, Object):
        _may_change_owner(owner, key, place)
    return Object(key, is_megatron, may_be_other=others and not is_made_of)


def _may_set(owner: Object, method: str, run: Run) -> bool:
    """Return whether a method that is not followed may set settings of an object that is an attribute of its own.

    A function that is one may set some if it leads to settings. Where it replaces a method that leads to settings, all
    that call this one lead to settings as well.
    """
    if owner.by_megatron and not owner.of_checkout:
        return False
    methods = run.relevance.methods
    for name, value in owner.attributes.items():
        if isinstance(value, Namespace) or any(map(is_used, parts_of(value))):
            return True
        if name in methods and method not in methods and method != "__call__":
            continue
        if any(run.relevance.is_relevant(one.node) for one in functions_in(value)):
            return True
    return False


def _may_change_owner(owner: Object, key: str, place: Place) -> None:
    """Note that a method may have changed the attributes of its object, or may return this object."""
    if owner.by_megatron and not owner.of_checkout:
        forget(owner, place[2])
        return
    may_change(owner, key, place)
    owner.may_be_other = owner.may_be_other or owner.of_checkout
