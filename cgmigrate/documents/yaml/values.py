"""Keys that name settings, and values as YAML 1.1 reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import yaml
from yaml.constructor import SafeConstructor
from yaml.resolver import Resolver

from cgmigrate.documents.yaml.tree import CORE, SEQ, STR, Node, contains, is_merge, plain_node
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, FIELDS, Undecided

_FIELD_OF_KEY = {name: name for name in FIELDS} | {"--" + name.replace("_", "-"): name for name in FIELDS}


_INTERPOLATION = re.compile(r"\$\{|\$\(|\$[A-Za-z_]|\{\{|\{%|<%|<<[A-Z]")


_PREFIX = re.compile(r"[\w\-+/@.]+")


_RESOLVER, _CONSTRUCTOR = Resolver(), SafeConstructor()


_CONSTRUCT = {
    CORE + "null": _CONSTRUCTOR.construct_yaml_null,
    CORE + "bool": _CONSTRUCTOR.construct_yaml_bool,
    CORE + "int": _CONSTRUCTOR.construct_yaml_int,
    CORE + "float": _CONSTRUCTOR.construct_yaml_float,
}


class Place:
    """Where the settings of one site stand: their mapping and pairs."""

    __slots__ = ("mapping", "pairs", "prefix")

    def __init__(self, mapping: Node, prefix: str) -> None:
        self.mapping = mapping
        self.prefix = prefix
        self.pairs: dict[str, tuple[Node, Node]] = {}


def yaml_text(value: object) -> str:
    """A value as YAML text, in its plain style."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(yaml_text, value))}]"
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    return str(value)


def split_key(key: Node) -> tuple[str, str] | None:
    """(prefix of a dotted key, field) when the key names a setting."""
    key = key.target
    if key.kind != "scalar" or key.style in ("|", ">"):
        return None
    prefix, dot, last = key.value.rpartition(".")
    name = _FIELD_OF_KEY.get(last)
    if name is None or (dot and (last.startswith("-") or not _PREFIX.fullmatch(prefix))):
        return None
    return prefix + dot, name


def settings_in(mapping: Node) -> dict[str, list[tuple[str, Node, Node]]]:
    """Prefix of dotted keys → (field, key, value) of each setting, in the order of the text."""
    found: dict[str, list[tuple[str, Node, Node]]] = {}
    for key, value in mapping.pairs():
        if split := split_key(key):
            found.setdefault(split[0], []).append((split[1], key, value))
    return found


def prefixes_of(closing: Sequence[Node], merged: Mapping[int, Sequence[Node]]) -> dict[int, list[str]]:
    """The prefixes of settings that each mapping (by id) has, its own and those of what it merges.

    A mapping that only merges others is a place as well: what it merges must keep its meaning there.
    """
    found: dict[int, list[str]] = {}
    for mapping in closing:
        if mapping.kind == "map":
            prefixes = list(settings_in(mapping))
            if id(mapping) in merged:
                prefixes.append("")
            for source in merged.get(id(mapping), ()):
                prefixes += found.get(id(source), ())
            if prefixes:
                found[id(mapping)] = list(dict.fromkeys(prefixes))
    return found


def neighbours_of(
    closing: Sequence[Node], prefixes: Mapping[int, Sequence[str]], merged: Mapping[int, Sequence[Node]]
) -> dict[tuple[int, str], dict[str, object]]:
    """What stands beside the settings of each prefix of a mapping (by id), also through what it merges."""
    asked = {*prefixes, *(id(source) for sources in merged.values() for source in sources)}
    found: dict[tuple[int, str], dict[str, object]] = {}
    for mapping in closing:
        if id(mapping) not in asked:
            continue
        own = _plain_pairs(mapping)
        sources = merged.get(id(mapping), ())
        inherited = [prefix for source in sources for prefix in prefixes.get(id(source), ())]
        for prefix in dict.fromkeys((*prefixes.get(id(mapping), ()), "", *own, *inherited)):
            together: dict[str, object] = {}
            for source in reversed(sources):
                together.update(found.get((id(source), prefix), {}))
            found[id(mapping), prefix] = together | own.get(prefix, {})
    return found


def _plain_pairs(mapping: Node) -> dict[str, dict[str, object]]:
    """Prefix → the pairs of a mapping with that prefix that are no settings."""
    own: dict[str, dict[str, object]] = {}
    for key, value in mapping.pairs():
        if key.target.kind == "scalar" and not is_merge(key) and split_key(key) is None:
            prefix, dot, _ = key.target.value.rpartition(".")
            own.setdefault(prefix + dot, {})[key.target.value] = _neighbour_value(value.target)
    return own


def _neighbour_value(node: Node) -> object:
    match node.kind:
        case "map":
            return Undecided("{…}", "a mapping")
        case "seq":
            return Undecided("[…]", "a list")
    return scalar_value(node)


def scalar_value(node: Node) -> object:
    """A scalar as PyYAML's SafeLoader (YAML 1.1) reads it: None, bool, number or text; else Undecided."""
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


def value_of(name: str, node: Node, flag: bool) -> object:
    """A setting's value as its reader receives it."""
    if node.kind == "alias" and contains(node.target, node):
        return Undecided(f"*{node.value}", "an alias of what holds it")
    node = node.target
    if node.kind == "map":
        template = node.items and node.items[0].kind == "map"
        return Undecided("{…}", "a template placeholder" if template else "a mapping where a value is expected")
    if node.kind == "seq":
        return _list_value(node)
    if _INTERPOLATION.search(node.value):
        return Undecided(node.value, "a value that is computed when the file is used")
    value = scalar_value(node)
    if name in (ENABLE, EXTERNAL):
        return _boolean(value, flag)
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return Undecided(node.value, "a number where a name is expected")
    return value


def _list_value(node: Node) -> object:
    if node.tag not in (None, "!", SEQ):
        return Undecided("[…]", f"a list with the tag {node.tag}")
    values = [scalar_value(item.target) if item.target.kind == "scalar" else None for item in node.items]
    if not all(isinstance(value, str) for value in values):
        return Undecided("[…]", "a list of something other than names")
    if any(_INTERPOLATION.search(str(value)) for value in values):
        return Undecided("[…]", "a list with a value that is computed when the file is used")
    return values


def _boolean(value: object, flag: bool) -> object:
    """What a boolean setting's value comes to; a flag without value is a flag that is given."""
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
    return Undecided(str(value), "not a boolean (in Python any text that is not empty counts as true)")
