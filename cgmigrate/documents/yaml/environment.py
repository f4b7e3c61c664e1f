"""Environment variables in a YAML file: those of the mappings around a place, the innermost first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgmigrate.documents.yaml.tree import Node, closing_order
from cgmigrate.documents.yaml.values import plain_value
from cgmigrate.megatron.settings import Missing, Undecided

_KEYS = frozenset(("env", "envs", "environment", "variables", "env_vars", "env_variables", "environment_variables"))
"""Keys, in small letters, whose values are mappings of variables of the environment."""


def variable_at(roots: Sequence[Node], offset: int, name: str) -> object:
    """Return the value of a variable at an offset: plain data, ``Undecided`` or ``Missing``."""
    nodes = closing_order(roots)
    known = [node for mapping in nodes if mapping.kind == "map" for node in _variables(mapping)]
    for mapping in (node for node in nodes if node.kind == "map" and node.start <= offset < node.end):
        for variables in _variables(mapping):
            for key, value in variables.pairs():
                if key.target.value == name:
                    plain = plain_value(value.target)
                    is_computed = isinstance(plain, str) and "$" in plain
                    return Undecided(str(plain), "a value computed at run time") if is_computed else plain
    read = {id(item) for one in known for item in one.items}
    others = (item for node in nodes for item in node.items if id(item) not in read)
    # An alias, or a text with its name, may set it.
    is_uncertain = any(item.kind == "alias" or (item.kind == "scalar" and name in item.value) for item in others)
    return Missing.UNKNOWN if is_uncertain else Missing.ABSENT


def _variables(mapping: Node) -> Iterator[Node]:
    """Yield the mappings of variables in a mapping."""
    for key, value in mapping.pairs():
        if key.target.kind == "scalar" and key.target.value.lower() in _KEYS and value.target.kind == "map":
            yield value.target
