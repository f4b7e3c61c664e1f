"""Values of settings as YAML 1.1 reads them, and as YAML text."""

from __future__ import annotations

import re

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from cgmigrate.documents.yaml.tree import CORE, SEQ, STR, Node, contains, plain_node
from cgmigrate.megatron.catalogue import Setting
from cgmigrate.megatron.settings import Undecided

_INTERPOLATION = re.compile(r"\$\{|\$\(|\$[A-Za-z_]|\{\{|\{%|<%|<<[A-Z]")
_KEY = re.compile(r"\$\{\.*[A-Za-z_][\w-]*(?:\.[\w-]+)*\}")
"""Matches an interpolation of a key. One in capitals without dots may name a variable of the environment."""
_VARIABLE = re.compile(r"\$\{[A-Z_][A-Z0-9_]*\}")

_RESOLVER, _CONSTRUCTOR = Resolver(), SafeConstructor()


_CONSTRUCT = {
    CORE + "null": _CONSTRUCTOR.construct_yaml_null,
    CORE + "bool": _CONSTRUCTOR.construct_yaml_bool,
    CORE + "int": _CONSTRUCTOR.construct_yaml_int,
    CORE + "float": _CONSTRUCTOR.construct_yaml_float,
}


def yaml_text(value: object) -> str:
    """Return a value as YAML text, in the plain style."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(yaml_text, value))}]"
    if isinstance(value, Undecided):
        return value.text
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def scalar_value(node: Node) -> object:
    """Return a scalar as PyYAML's SafeLoader (YAML 1.1) reads it: None, bool, number or text; else Undecided."""
    tag = node.tag
    if tag in (None, "!"):
        if not node.implicit:
            return node.value
        tag = _RESOLVER.resolve(yaml.ScalarNode, node.value, (True, False))  # type: ignore[no-untyped-call]
    if tag == STR:
        return node.value
    construct = _CONSTRUCT.get(str(tag))
    if construct is None:
        what = f"the tag {tag}" if node.tag else "a form that YAML reads as neither text, number nor boolean"
        return Undecided(node.value, f"a value with {what}")
    try:
        return construct(yaml.ScalarNode(str(tag), node.value))
    except (ArithmeticError, LookupError, ValueError, yaml.YAMLError):
        return Undecided(node.value, f"a value that cannot be read as {str(tag).removeprefix(CORE)}")


def plain_value(node: Node) -> object:
    """Return a value as plain data: a scalar or a list of scalars; else ``Undecided``."""
    if node.kind == "map":
        return Undecided("{…}", "a mapping")
    items = [item.target for item in node.items] if node.kind == "seq" else [node]
    if any(item.kind != "scalar" for item in items):
        return Undecided("[…]", "a list of collections")
    if any(_INTERPOLATION.search(item.value) for item in items):
        return Undecided(node.value or "[…]", "a value computed at run time")
    values = [scalar_value(item) for item in items]
    if undecided := next((value for value in values if isinstance(value, Undecided)), None):
        return undecided
    return values if node.kind == "seq" else values[0]


def value_of(setting: Setting, node: Node, flag: bool) -> object:
    """Return a setting's value as its reader receives it; ``flag`` says that the key is a command-line flag."""
    if node.kind == "alias" and contains(node.target, node):
        return Undecided(f"*{node.value}", "an alias of a collection around it")
    node = node.target
    if not setting.captures and not setting.is_flag:
        return plain_value(node)
    if node.kind == "map":
        template = node.items and node.items[0].kind == "map"
        return Undecided("{…}", "a template placeholder" if template else "a mapping where a value is expected")
    return _list_value(node) if node.kind == "seq" else _scalar_setting(setting, node, flag)


def interpolation_in(node: Node) -> Undecided | None:
    """Return a scalar as the interpolation of a key, None if it is none."""
    if node.kind != "scalar" or not _KEY.fullmatch(node.value) or _VARIABLE.fullmatch(node.value):
        return None
    return Undecided(node.value, "a value computed at run time")


def _scalar_setting(setting: Setting, node: Node, flag: bool) -> object:
    if _INTERPOLATION.search(node.value):
        computed = Undecided(node.value, "a value computed at run time")
        return computed if flag else interpolation_in(node) or computed
    value = scalar_value(node)
    if setting.is_flag and (value is not None or flag or setting.captures):
        return _boolean(value, flag)
    if setting.captures and isinstance(value, (int, float)) and not isinstance(value, bool):
        return Undecided(node.value, "a number where a name is expected")
    return value


def _list_value(node: Node) -> object:
    if node.tag not in (None, "!", SEQ):
        return Undecided("[…]", f"a list with the tag {node.tag}")
    values = [scalar_value(item.target) if item.target.kind == "scalar" else None for item in node.items]
    if not all(isinstance(value, str) for value in values):
        return Undecided("[…]", "a list of something other than names")
    if any(_INTERPOLATION.search(str(value)) for value in values):
        return Undecided("[…]", "a list with a value computed at run time")
    return values


def _boolean(value: object, flag: bool) -> object:
    """Return the value of a boolean setting; a flag without a value is true."""
    match value:
        case bool() | Undecided():
            return value
        case None:
            return flag
        case int() if value in (0, 1) and not flag:
            return bool(value)
        case str() if flag:
            # On a command line there are no quotes: the text is what the reader sees.
            read = scalar_value(plain_node(value))
            if isinstance(read, bool):
                return read
    return Undecided(str(value), "not a boolean (Python treats any non-empty string as true)")
