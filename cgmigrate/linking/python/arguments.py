"""Arguments of calls: which are objects that may have settings, and what is noted of them."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from cgmigrate.linking.python.evaluation import LOGGED, Frame, Run
from cgmigrate.linking.python.objects import each_part, functions_in, settings_of
from cgmigrate.linking.python.outcomes import state_of
from cgmigrate.linking.python.values import Class, Function, Namespace, Object, Partial, is_plain, key_of
from cgmigrate.proof.flow.world import SETTINGS
from cgmigrate.megatron.settings import IMPLEMENTATIONS

Arguments = tuple[list[object], dict[str, object]]
"""The positional and the named arguments of a call."""

Place = tuple[ast.Call, Frame, Run]
"""A call, and where it is evaluated."""

EXPECTS = frozenset(("raises", "assertRaises", "assertRaisesRegex"))
"""Functions that get the class of an exception, and expect that code raises one: `pytest.raises(ValueError)`."""

_SHOWN = frozenset(("print", "debug", "info", "warning", "error", "log", "print_rank_0", "log_single_rank"))
"""Functions and methods that show texts to people."""


def _values_of(arguments: Arguments) -> list[object]:
    return [*arguments[0], *arguments[1].values()]


def gets_code(arguments: Arguments, run: Run) -> bool:
    """Return whether a call gets a function that may set a setting, also as an attribute of an object."""
    return any(run.relevance.is_relevant(one.node) for value in _values_of(arguments) for one in functions_in(value))


def gives_settings(arguments: Arguments) -> bool:
    """Return whether a call gets settings by their names, also in a dict."""
    dicts = (one for one in _values_of(arguments) if isinstance(one, dict))
    return any(not SETTINGS.isdisjoint(one) for one in (arguments[1], *dicts))


def has_object(arguments: Arguments) -> bool:
    """Return whether a call gets an object that may have settings, or code."""
    return any(map(is_object, _values_of(arguments)))


def is_object(value: object) -> bool:
    """Return whether a value is code, or has an object of which something is known or used."""
    if isinstance(value, (Function, Class, Namespace, Partial)):
        return True
    return any(map(is_used, each_part(value)))


def is_shown(name: str, arguments: Arguments) -> bool:
    """Return whether a call only shows what it gets to people: it changes nothing of that."""
    return name.partition("(")[0].rpartition(".")[2] in _SHOWN and not has_object(arguments)


def note_call(name: str, arguments: Arguments, run: Run) -> None:
    """Note what code gets that is not followed: it has to be the same before and after.

    What a log shows may have new names, as long as its code reads no old one. What a program prints may be its result.
    """
    if is_shown(name, arguments):
        kind = "" if name == "print" else LOGGED
        run.path.events.append(f"{kind}{name.partition('(')[0]}({', '.join(map(key_of, _values_of(arguments)))})")
        return
    for value in _values_of(arguments):
        run.path.passed += settings_of(value)
    states = [state_of(value, run.world) for value in _values_of(arguments)]
    run.path.events.append(f"{name}({', '.join(states)}) {sorted(arguments[1])}")


def note_choice(of: object, values: Iterable[object], run: Run) -> None:
    """Note code that may refuse an implementation which it does not know: a member of an enumeration, a key of a table.

    Its result may be used by nothing, but an exception ends the code.
    """
    if chosen := [one for one in values if isinstance(one, str) and one in IMPLEMENTATIONS]:
        run.path.events.append(f"{key_of(of)} for {', '.join(chosen)}")


def is_used(value: Object) -> bool:
    """Return whether something is known of an object: what made it, or an attribute."""
    return value.is_instance or bool(value.attributes) or value.by_megatron


def is_unset(value: object) -> bool:
    """Return whether a value is plain, or one of Megatron's objects of which nothing was set or read."""
    if isinstance(value, Object):
        return value.by_megatron and not value.attributes and not value.first
    return is_plain(value)
