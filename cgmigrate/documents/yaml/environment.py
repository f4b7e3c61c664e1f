"""Environment variables in a YAML file: those of the mappings around a place, the innermost first.

Jobs of workflows inherit the variables of the workflow, containers have lists of them, and configurations of clusters
have a mapping of them beside the settings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgmigrate.documents.yaml.tree import Node, closing_order
from cgmigrate.documents.yaml.values import plain_value
from cgmigrate.megatron.settings import Missing, Undecided

_KEYS = frozenset(("env", "envs", "environment", "variables", "env_vars", "env_variables", "environment_variables"))
"""Keys, in small letters, whose values are variables of the environment."""
_FILES = frozenset(("env_file", "envfrom", "env_from"))
"""Keys that name other places with variables."""
_COMPUTED = "a value computed at run time"


def variable_at(roots: Sequence[Node], offset: int, name: str) -> object:
    """Return the value of a variable at an offset: plain data, ``Undecided`` or ``Missing``."""
    nodes = closing_order(roots)
    around = [node for node in nodes if node.kind == "map" and node.start <= offset < node.end]
    for mapping in around:
        for key, value in _variables(mapping):
            if (read := _value(value, name)) is not Missing.ABSENT:
                return Missing.UNKNOWN if key.value.lower() in _FILES else read
    return Missing.UNKNOWN if _is_uncertain(nodes, around, name) else Missing.ABSENT


def _variables(mapping: Node) -> Iterator[tuple[Node, Node]]:
    """Yield the keys of a mapping that set variables, each with its value."""
    for key, value in mapping.pairs():
        if key.target.kind == "scalar" and key.target.value.lower() in _KEYS | _FILES:
            yield key.target, value.target


def _value(variables: Node, name: str) -> object:
    """Return the value of a variable among those that a key sets."""
    for key, value in variables.pairs() if variables.kind == "map" else ():
        if key.target.value == name:
            return _plain(value.target)
    for item in variables.items if variables.kind == "seq" else ():
        if item.kind == "scalar" and item.value.startswith(name + "="):
            return _text(item.value[len(name) + 1 :])
        pairs = {key.target.value: value.target for key, value in item.pairs()} if item.kind == "map" else {}
        if "name" in pairs and pairs["name"].value == name:
            return _plain(pairs["value"]) if "value" in pairs else Undecided("…", _COMPUTED)
    return Missing.ABSENT


def _plain(node: Node) -> object:
    value = plain_value(node)
    return _text(value) if isinstance(value, str) else value


def _text(value: str) -> object:
    return Undecided(value, _COMPUTED) if "$" in value else value


def _is_uncertain(nodes: Sequence[Node], around: Sequence[Node], name: str) -> bool:
    """Whether a place that is not read may set a variable: an alias, another file, or a text with its name."""
    if any(item.kind == "alias" for node in nodes for item in node.items):
        return True
    lists = [value for node in nodes if node.kind == "map" for _, value in _variables(node)]
    read = {
        id(item) for one in lists for item in (one, *one.items, *(part for item in one.items for part in item.items))
    }
    texts = (item for node in nodes for item in node.items if item.kind == "scalar" and id(item) not in read)
    files = (key for node in around for key, _ in _variables(node) if key.value.lower() in _FILES)
    return any(name in text.value for text in texts) or any(True for _ in files)
