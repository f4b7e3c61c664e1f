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

    form = json.loads((rules_folder() / schema.file).read_text(encoding="utf-8"))
    errors = sorted(
        jsonschema.Draft202012Validator(form).iter_errors(data),
        key=lambda error: (len(error.absolute_path), str(error.absolute_path)),
    )
    if errors:
        error = jsonschema.exceptions.best_match(errors)
        where = ".".join(map(str, error.absolute_path)) or schema.noun
        line = line_of(text, list(error.absolute_path))
        raise RuleError(f"{path}:{line}: {where}: {_expectation(error)}")


def _expectation(error: Any) -> str:
    match error.validator:
        case "enum":
            return f"{error.instance!r} is not one of {', '.join(map(str, error.validator_value))}"
        case "required" | "additionalProperties" | "dependentRequired":
            return str(error.message)
        case "pattern":
            return f"{error.instance!r} does not have the form {error.validator_value}"
        case _:
            expected = error.schema.get("description")
            return f"{error.message}{f'; expected {expected}' if expected else ''}"


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
