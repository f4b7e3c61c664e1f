"""Reads and writes of attributes: settings of objects, attributes of classes, members of enumerations."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, MODULES, SCOPE
from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow.modules import Module
from cgmigrate.proof.flow.names import bases_of, enumeration, global_name, is_record, member_named
from cgmigrate.proof.flow.run import KEPT_STATE, WHOLE, FlowRun, RaisedError
from cgmigrate.proof.flow.values import (
    Attribute,
    Bound,
    Builtin,
    Class,
    External,
    Function,
    Member,
    Object,
    PackageModule,
    Scope,
    Unknown,
    shown,
)
from cgmigrate.proof.flow.world import SETTINGS, TRACKERS, value_of_member

MISSING = object()
_PATCHES = re.compile(r"\bmonkeypatch\b|\bpatch\b|\bmock\b|Mock\(")
_ABSENT = Builtin("absent")
_PLAIN = (str, list, dict, set, tuple, int, float, frozenset)


def read(run: FlowRun, owner: object, name: str, default: object = MISSING) -> object:
    """Return an attribute of a value. Raises RaisedError if it has none and there is no default."""
    match owner:
        case Object():
            value = _of_object(run, owner, name)
        case Class():
            value = _of_class(run, owner, name, None)
        case PackageModule(module=module):
            run.touch(module, name)
            run.touch(module, "__getattr__")
            maker = module.bindings.get("__getattr__")
            if name not in module.bindings and isinstance(maker, ast.FunctionDef):
                value = run.call(Function(module, maker, Scope()), [name], {})
            else:
                value = global_name(run, module, name)
        case External(name=full):
            value = Member(of, name) if (of := enumeration(owner)) else External(f"{full}.{name}")
        case Member(of=of, name=own):
            value = own if name == "name" else value_of_member(of, own) if name == "value" else MISSING
        case _:
            value = _of_plain(owner, name)
    if value is MISSING:
        if default is MISSING:
            raise RaisedError("AttributeError")
        return default
    return run.resolved(value)


def _of_plain(owner: object, name: str) -> object:
    if isinstance(owner, _PLAIN):
        return Attribute(owner, name) if hasattr(owner, name) else MISSING
    if isinstance(owner, Function) and name in ("__name__", "__qualname__"):
        return owner.name
    return Unknown(f"{shown(owner)}.{name}")


def _of_object(run: FlowRun, owner: Object, name: str) -> object:
    if name == "__dict__":
        run.hold(owner)
        return owner.fields
    if name == "__class__":
        return owner.of if owner.of is not None else Unknown(f"class of {owner.key}")
    if name in KEPT_STATE and not owner.is_bare:
        run.hold(owner)
        run.has_read = run.has_read or name in SETTINGS
    value = owner.fields.get(name, MISSING)
    if value is MISSING and isinstance(owner.of, Class):
        value = _of_class(run, owner.of, name, owner)
    return _unset(run, owner, name) if value is MISSING else value


def _unset(run: FlowRun, owner: Object, name: str) -> object:
    """Return an attribute that nothing has set."""
    is_mock = name in KEPT_STATE and isinstance(owner.of, External) and owner.of.name.endswith(("Mock", "patch"))
    if name in KEPT_STATE and not (owner.is_bare or is_mock):
        # A test of an object that keeps the old scope is not about its modules.
        is_other_test = run.is_test and name == MODULES and owner.fields.get(SCOPE)
        if (owner.is_argument and name in TRACKERS) or is_other_test:
            return Unknown(f"{owner.key}.{name}")
        return _default(run, name)
    if owner.is_bare and owner.of is None and not owner.is_argument:
        return MISSING
    return _part(owner, name)


def _default(run: FlowRun, name: str) -> object:
    if name in TRACKERS:
        return False
    value = run.side.world.defaults.get(name, MISSING)
    return list(value) if isinstance(value, list) else value


def _part(owner: Object, name: str) -> object:
    """Return an attribute that nothing has set: an object, unless code shows that it is none."""
    if owner.is_bare and name in SETTINGS:
        return Unknown(f"{owner.key}.{name}")
    made = Object(f"{owner.key}.{name}", is_argument=owner.is_argument, is_part=True, is_foreign=owner.is_foreign)
    owner.fields[name] = made
    return made


def _of_class(run: FlowRun, owner: Class, name: str, instance: Object | None) -> object:
    for base in bases_of(run, owner):
        if not isinstance(base, Class):
            continue
        if name in base.made:
            return base.made[name]
        member = member_named(base.node, name)
        if member is not None:
            return _member(run, base, *member, instance)
    if instance is None and name not in KEPT_STATE:
        return Unknown(f"{owner.node.name}.{name}") if not is_record(run, owner) else MISSING
    return MISSING


def read_above(run: FlowRun, of: object, name: str) -> object:
    """Return an attribute of the classes above one, for `super()`."""
    assert isinstance(of, tuple)
    own, instance = of
    for base in bases_of(run, own)[1:]:
        member = member_named(base.node, name) if isinstance(base, Class) else None
        if member is not None:
            assert isinstance(base, Class)
            value = _member(run, base, *member, instance if isinstance(instance, Object) else None)
            return Bound(value, (instance,)) if isinstance(value, Function) and instance is not None else value
    return External(f"super().{name}")


def _member(run: FlowRun, base: Class, statement: ast.stmt, value: ast.expr | None, instance: Object | None) -> object:
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            return _method(Function(base.module, statement, base.scope, base), instance)
        case ast.ClassDef():
            return Class(base.module, statement, base.scope)
    if value is None:
        return MISSING
    run.note(base.module, statement)
    return field_default(run, base, value)


def _method(function: Function, instance: Object | None) -> object:
    assert not isinstance(function.node, ast.Lambda)
    kinds = {
        one.id if isinstance(one, ast.Name) else one.attr
        for one in function.node.decorator_list
        if isinstance(one, (ast.Name, ast.Attribute))
    }
    if "staticmethod" in kinds:
        return function
    if "classmethod" in kinds:
        return Bound(function, (function.owner,))
    if instance is None:
        return function
    if kinds & {"property", "cached_property"}:
        return Attribute(Bound(function, (instance,)), "property")
    return Bound(function, (instance,))


def field_default(run: FlowRun, base: Class, value: ast.expr) -> object:
    """Return the default of a field of a class: `field(default_factory=list)` makes a list."""
    match value:
        case ast.Call(func=ast.Name(id="field") | ast.Attribute(attr="field"), keywords=words):
            for word in words:
                if word.arg == "default":
                    return run.evaluate(base.module, word.value)
                if word.arg == "default_factory":
                    call = ast.Call(word.value, [], [])
                    ast.copy_location(call, value)
                    return run.evaluate(base.module, call)
            return MISSING
    return run.evaluate(base.module, value)


def write(run: FlowRun, owner: object, name: str, value: object) -> None:
    """Set an attribute."""
    match owner:
        case Object():
            if name in KEPT_STATE and not owner.is_bare:
                run.hold(owner)
                if name in (ENABLE, EXTERNAL, IMPL) and value is not False:
                    # The project says itself how this object captures: its class does not.
                    owner.is_foreign = False
                value = run.sampled(value, name) if name in SETTINGS else value
            elif run.is_reading or (isinstance(value, str) and any(one in value for one in SETTINGS)):
                run.event("sets", owner, name, value)
            run.objects.setdefault(owner.key, owner)
            run.sets_argument = run.sets_argument or (owner.is_argument and name in KEPT_STATE)
            owner.fields[name] = value
        case Class():
            owner.made[name] = value
        case PackageModule(module=module):
            run.globals[module.path, name], run.is_patched = value, True
        case Unknown() | External():
            if name in SETTINGS:
                run.event("sets", owner, name, value)


def delete(run: FlowRun, owner: object, name: str) -> None:
    """Delete an attribute."""
    if isinstance(owner, Object):
        if name in KEPT_STATE:
            run.hold(owner)
        owner.fields.pop(name, None)


def has(run: FlowRun, owner: object, name: str) -> object:
    """Return whether a value has an attribute."""
    if isinstance(owner, Object) and name not in KEPT_STATE and name not in owner.fields and not owner.is_bare:
        known = _of_class(run, owner.of, name, owner) if isinstance(owner.of, Class) else MISSING
        # A test that sets what it asks for has it, as far as it passes.
        return True if known is not MISSING or run.is_test else Unknown(f"hasattr({owner.key}, {name})")
    if isinstance(owner, (Unknown, External)):
        return Unknown(f"hasattr({shown(owner)}, {name})")
    if _may_be_fake(run, owner) and name in SETTINGS and name not in getattr(owner, "fields", ()):
        return Unknown(f"hasattr({shown(owner)}, {name})")
    return read(run, owner, name, _ABSENT) is not _ABSENT


def _may_be_fake(run: FlowRun, owner: object) -> bool:
    """Return whether a test may have replaced the code that makes an object: then it may lack attributes."""
    if not (run.is_test and isinstance(owner, Object) and owner.of is None and not owner.is_bare):
        return False
    tests = [one for one in run.touched if is_test(one.path)]
    for one in tests:
        run.touch(one, WHOLE)
    return any(map(_patches, tests))


@lru_cache(maxsize=8192)
def _patches(module: Module) -> bool:
    return _PATCHES.search(module.text) is not None
