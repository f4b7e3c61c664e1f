"""Calls of classes: what a new object of a class of the checkout, or of Megatron, has from the start."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Mapping
from functools import lru_cache

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import dotted
from cgmigrate.linking.python.arguments import Arguments, Place, is_object, note_choice
from cgmigrate.linking.python.default_fields import NO_DEFAULTS, default_fields
from cgmigrate.linking.python.evaluation import ReadsSettingsError, Run, cannot_follow
from cgmigrate.proof.flow.modules import is_test
from cgmigrate.linking.python.objects import kept_by_class, may_change_items, set_attribute
from cgmigrate.linking.python.own_objects import fields_of, has_slots, is_record
from cgmigrate.linking.python.values import CannotFollowError, Class, Object, Outside, key_of
from cgmigrate.proof.flow.world import SETTINGS

_MAKING = frozenset(("__init__", "__post_init__", "__new__"))

_ACCESSES = frozenset(("__setattr__", "__getattr__", "__getattribute__", "__delattr__"))
"""Methods that change what it means to set or read an attribute."""


def made_instance(callee: Class, arguments: Arguments, place: Place) -> object:
    """Return a new object of a class of the checkout."""
    node, frame, run = place
    by_megatron = _is_megatrons(callee, run, set()) and not _keeps_leading(callee, run, set())
    if not by_megatron and is_record(callee.node):
        return _record(callee, arguments, place)
    reason = _sets_settings(callee, run, set(), with_fields=by_megatron)
    if is_test(callee.module.path):
        reason = reason or f"what objects of `{callee.node.name}` do is not followed"
        raise cannot_follow(reason, node, frame, ReadsSettingsError)
    if reason:
        raise cannot_follow(reason, node, frame)
    if not by_megatron and any(map(is_object, (*arguments[0], *arguments[1].values()))):
        raise cannot_follow(f"what `{callee.node.name}` does with an object is not followed", node, frame)
    defaults = _defaults(callee, run, set()) if by_megatron else {}
    run.path.uses.update(at for _, at in defaults.values())
    values = {name: value for name, (value, _) in defaults.items()}
    made = made_object(callee.node.name, arguments, place, by_megatron, values)
    if _has_making(callee, run, set()):
        note_choice(callee.node.name, [*arguments[0], *arguments[1].values()], run)
        for value in (*arguments[0], *(value for name, value in arguments[1].items() if name not in SETTINGS)):
            may_change_items(value, made.key, place)
    made.of_checkout = True
    made.properties = frozenset(_properties(callee, run, set()))
    made.may_be_other = _has_accesses(callee, run, set())
    return made


def _record(callee: Class, arguments: Arguments, place: Place) -> Object:
    """Return a new record: it has what code gives it."""
    fields = fields_of(callee.node.body)
    defaults = {one.name: copy.deepcopy(one.value) for one in default_fields(callee.node)}
    named = defaults | dict(zip(fields, arguments[0], strict=False)) | arguments[1]
    if unknown := SETTINGS.intersection(fields) - named.keys():
        raise cannot_follow(f"the default of `{callee.node.name}.{min(unknown)}` is not known", place[0], place[1])
    return _new_record(f"{callee.node.name}()", named, place)


def _new_record(key: str, attributes: dict[str, object], place: Place) -> Object:
    node, frame, run = place
    made = Object(run.numbered(key), is_instance=True, is_record=True, attributes=attributes)
    run.use_lines(node, frame.module)
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


def made_object(
    name: str, arguments: Arguments, place: Place, by_megatron: bool, defaults: Mapping[str, object] = NO_DEFAULTS
) -> Object:
    """Return a new object with what its class and a call give it. Raises CannotFollowError."""
    node, frame, run = place
    made = Object(run.numbered(f"{name}({', '.join(map(key_of, arguments[0]))})"), by_megatron, is_instance=True)
    made.attributes |= copy.deepcopy(dict(defaults))
    if name.rpartition(".")[2] in run.replaced:
        made.is_bare = run.choose(f"{made.key} is a fake")
        run.path.is_with_fakes = run.path.is_with_fakes or made.is_bare
    for attr, value in arguments[1].items():
        set_attribute(made, attr, value, (_keyword(node, attr), frame, run))
    for at, value in enumerate(arguments[0]):
        if is_object(value):
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


def _sets_settings(callee: Class, run: Run, seen: set[int], *, with_fields: bool) -> str:
    """Return why an object of a class may have settings from the start that are not known, empty if it has none.

    ``with_fields`` says that the defaults of its fields are known.
    """
    if id(callee.node) in seen:
        return ""
    seen.add(id(callee.node))
    if reason := _own_settings(callee.node, with_fields=with_fields):
        return reason
    for statement in callee.node.body:
        is_making = isinstance(statement, ast.FunctionDef) and statement.name in _MAKING
        if (is_making and run.relevance.leads(statement)) or _makes_holder(statement, run):
            return f"`{callee.node.name}` is made by code that may set a setting"
    for base in _bases(callee, run):
        if isinstance(base, Class) and (reason := _sets_settings(base, run, seen, with_fields=with_fields)):
            return reason
    return ""


def _defaults(callee: Class, run: Run, seen: set[int]) -> dict[str, tuple[object, tuple[str, int]]]:
    """Return the settings that an object of a class has from the start, each with its value and its place in the code.

    Raises CannotFollowError where the order of several bases decides.
    """
    if id(callee.node) in seen:
        return {}
    seen.add(id(callee.node))
    of_bases = [_defaults(base, run, seen) for base in _bases(callee, run) if isinstance(base, Class)]
    if sum(map(bool, of_bases)) > 1:
        at = f"{callee.module.path}:{callee.node.lineno}"
        raise CannotFollowError(f"several bases of `{callee.node.name}` have settings ({at})")
    inherited = next(filter(None, of_bases), {})
    return inherited | {
        one.name: (one.value, (callee.module.path, one.statement.lineno)) for one in default_fields(callee.node)
    }


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
def _own_settings(node: ast.ClassDef, *, with_fields: bool) -> str:
    """Return why objects of a class may have other settings than code gives them, empty if they have none.

    With ``with_fields``, these are not the plain defaults of its fields.
    """
    if node.decorator_list and not all(
        dotted(one).startswith("dataclass") for one in map(_called, node.decorator_list)
    ):
        return f"the class `{node.name}` has a decorator"
    if any(one.arg == "metaclass" and dotted(one.value).rpartition(".")[2] != "ABCMeta" for one in node.keywords):
        return f"the class `{node.name}` has a metaclass"
    fields = {id(field.statement) for field in default_fields(node)} if with_fields else set()
    for statement in node.body:
        if id(statement) in fields:
            continue
        if isinstance(statement, ast.FunctionDef):
            if statement.name in SETTINGS:
                return f"the class `{node.name}` defines `{statement.name}`"
            if statement.name not in _MAKING:
                continue
        for part in walk(statement):
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
