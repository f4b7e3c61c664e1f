"""The form of the data files of a team: each is compared with a schema, with file, line and what is expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cgmigrate.megatron.rule_data import RuleError, rules_folder

_MAX_DEPTH = 100
"""Collections in one another in a file; the C loader of PyYAML ends the process where there are too many."""


_MAX_NODES = 100_000
"""Values in a file, those behind aliases counted at each use."""


@dataclass(frozen=True, slots=True)
class Schema:
    """The schema of a kind of file, which is in the folder of rules, and how an error names such a file."""

    file: str
    noun: str


RULE = Schema("schema.json", "the rule")


SETTING = Schema("settings/schema.json", "the setting")


def check_size(text: str, path: str) -> None:
    """Refuse YAML that is nested too deeply for the C loader, or that aliases make too large. Raises RuleError."""
    import yaml

    sizes, named = [0], dict[str, int]()
    anchors: list[str] = []
    events: Any = yaml.parse(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    try:
        for event in events:
            match event:
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    sizes.append(1)
                    anchors.append(event.anchor or "")
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    size = named[anchors.pop()] = sizes.pop()
                    sizes[-1] += size
                case yaml.AliasEvent():
                    sizes[-1] += named.get(str(event.anchor), 1)
                case yaml.ScalarEvent():
                    sizes[-1] += 1
            if len(sizes) > _MAX_DEPTH or sizes[-1] > _MAX_NODES:
                raise RuleError(f"{path}:{event.start_mark.line + 1}: nested too deeply or too large for a rule")
    except yaml.YAMLError:
        # The loader says what is wrong.
        return


def check_form(data: Any, schema: Schema, text: str, path: str) -> None:
    """Compare data with a schema. Raises RuleError: file, line, what is there, what is expected."""
    import json

    import jsonschema

    if (key := _repeated_key(text)) is not None:
        raise RuleError(f"{path}:{key.start_mark.line + 1}: the key {key.value!r} is written twice")
    form = json.loads((rules_folder() / schema.file).read_text(encoding="utf-8"))
    errors = sorted(
        jsonschema.Draft202012Validator(form).iter_errors(data),
        key=lambda error: (len(error.absolute_path), str(error.absolute_path)),
    )
    if errors:
        error = jsonschema.exceptions.best_match(errors)
        where = ".".join(map(str, error.absolute_path)) or schema.noun
        key = _unknown_key(error)
        line = line_of(text, [*error.absolute_path, *([key] if key is not None else [])])
        raise RuleError(f"{path}:{line}: {where}: {_expectation(error)}")


def _unknown_key(error: Any) -> str | None:
    """Return the first key of a mapping that its schema does not know; None for another error."""
    if error.validator != "additionalProperties":
        return None
    return next((key for key in error.instance if key not in error.schema.get("properties", {})), None)


def _expectation(error: Any) -> str:
    expected = f"; expected {error.schema['description']}" if "description" in error.schema else ""
    match error.validator:
        case "enum":
            return f"{error.instance!r} is not one of {', '.join(map(str, error.validator_value))}"
        case "required" | "dependentRequired":
            return f"{error.message}{expected}".replace(" is a dependency of ", " is required beside ")
        case "additionalProperties":
            return _unknown(_unknown_key(error), list(error.schema.get("properties", {})))
        case "minLength":
            return f"{error.instance!r} has fewer than {error.validator_value} characters{expected}"
        case "pattern":
            return f"{error.instance!r} does not have the form {error.validator_value}{expected}"
        case _:
            return f"{error.message}{expected}"


def _unknown(key: object, known: Sequence[str]) -> str:
    import difflib

    near = difflib.get_close_matches(str(key), known, n=1)
    return f"{key!r} is not a key" + (f"; did you mean {near[0]}?" if near else f" ({', '.join(known)})")


def _repeated_key(text: str) -> Any:
    """Return the node of the first key that a mapping has twice, None if there is none."""
    import yaml

    nodes: list[Any] = [yaml.compose(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))]
    seen_nodes = set[int]()
    for node in nodes:
        if id(node) in seen_nodes or not isinstance(node, yaml.CollectionNode):
            continue
        seen_nodes.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            nodes += node.value
            continue
        keys = set[tuple[str, object]]()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and (key.tag, key.value) in keys:
                return key
            keys.add((key.tag, str(key.value)))
            nodes.append(value)
    return None


def line_of(text: str, path: Sequence[str | int]) -> int:
    """Return the line of the value at a path of keys and positions, or of the nearest value around it."""
    import yaml

    node = yaml.compose(text, yaml.SafeLoader)
    line = 1
    for step in path:
        if isinstance(node, yaml.MappingNode):
            pair = next((pair for pair in node.value if pair[0].value == step), None)
            if pair is None:
                break
            line, node = pair[0].start_mark.line + 1, pair[1]
        elif isinstance(node, yaml.SequenceNode) and isinstance(step, int):
            node = node.value[step]
            line = node.start_mark.line + 1
    return line
