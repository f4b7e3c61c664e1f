"""Rules are data: loading and checking ``rules/*.yaml``.

A rule has conditions on settings, the settings to have instead, and messages. It never says how a syntax is written.
The rules that ship are checked by the tests; a team's own are checked against ``rules/schema.json`` when they are
loaded, with file, line and what is expected.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cgmigrate.megatron.releases import OLDEST, Release
from cgmigrate.megatron.rule_data import RuleError, load_yaml, rules_folder
from cgmigrate.megatron.settings import FIELDS, without_name
from cgmigrate.text.files import read_text

_PLACEHOLDER = re.compile(r"{(\w+)}")


_FILLED_IN = (*FIELDS, "source", "target", "reason", "refuser")


ABSENT = "absent"
"""In a condition: the setting is not written."""


_MAX_DEPTH = 100
"""Collections in one another in a rule; the C loader of PyYAML ends the process where there are too many."""


_MAX_NODES = 100_000
"""Values in a rule, those behind aliases counted at each use."""


@dataclass(frozen=True, slots=True)
class Fix:
    """The settings to have instead. ``unsafe`` says what may change, empty if nothing does."""

    set: Mapping[str, object] = field(default_factory=dict)
    remove: tuple[str, ...] = ()
    rename: Mapping[str, str] = field(default_factory=dict)
    drop: Mapping[str, str] = field(default_factory=dict)
    unsafe: str = ""

    def apply(self, settings: Mapping[str, object]) -> dict[str, object]:
        """Return the settings after this fix. A name dropped from its list takes an empty list along."""
        after = dict(settings)
        for name, value in self.drop.items():
            if name in after:
                left = without_name(after.pop(name), value)
                if left is not None:
                    after[name] = left
        for old, new in self.rename.items():
            if old in after:
                after[new] = after.pop(old)
        for name in self.remove:
            after.pop(name, None)
        return after | dict(self.set)


@dataclass(frozen=True, slots=True)
class Case:
    """One way in which a rule matches.

    Without a fix, ``decide`` says what a person has to choose. ``help`` says what to write by hand where a rule
    only remarks on a site.
    """

    when: Mapping[str, Any]
    message: str
    fix: Fix | None = None
    decide: str = ""
    help: str = ""

    @property
    def about_refusal(self) -> bool:
        """Whether the case is about settings that a reader refuses."""
        return "rejected" in self.when


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule file. ``fields`` are where diagnostics point, best first; ``help`` is the general help."""

    id: str
    name: str
    summary: str
    severity: str
    fields: tuple[str, ...]
    cases: tuple[Case, ...]
    explanation: str
    sources: tuple[str, ...]
    examples: tuple[Mapping[str, Any], ...]
    deprecated_in: Release
    available_in: Release
    path: str
    help: str = ""

    @property
    def migrates(self) -> bool:
        """Whether the rule takes part in rewriting a site; if not, it only remarks on it."""
        return any(case.fix or case.decide for case in self.cases)


def load(extra: Sequence[Path] = ()) -> dict[str, Rule]:
    """Return the rules by id, in order of id; ``extra`` are folders of a team's own rules.

    Raises RuleError for a rule that does not fit the schema or repeats an id.
    """
    rules: dict[str, Rule] = {}
    for folder in (rules_folder(), *extra):
        own = folder in extra
        if own and not folder.is_dir():
            raise RuleError(f"{folder}: not a folder of rules")
        for path in sorted(folder.glob("*.yaml")):
            rule = read(path, checked=own)
            if rule.id in rules:
                raise RuleError(f"{path}: {rule.id} is already defined in {rules[rule.id].path}")
            rules[rule.id] = rule
    return dict(sorted(rules.items()))


def read(path: Path, checked: bool = True) -> Rule:
    """Read one rule file; ``checked`` is for a team's own, and compares it with the schema. Raises RuleError."""
    try:
        return _read(path, checked)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        if isinstance(error, RuleError):
            raise
        raise RuleError(f"{path}: cannot be read as a rule: {type(error).__name__}: {error}") from error


def text_of(path: Path) -> str:
    """Return the text of a rule file. Raises RuleError."""
    try:
        return read_text(path)
    except OSError as error:
        raise RuleError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise RuleError(f"{path}:1: not UTF-8: {error.reason}") from error


def _read(path: Path, checked: bool) -> Rule:
    text = text_of(path)
    if checked:
        _check_size(text, str(path))
    data = load_yaml(text, str(path))
    if checked:
        check(data, text, str(path))
        _check_messages(data, text, str(path))
    cases = data.get("cases")
    if cases is None:
        cases = [data] if "when" in data else []
    fields = tuple(data["fields"])
    return Rule(
        id=data["id"],
        name=data["name"],
        summary=data["summary"],
        severity=data.get("severity", "warning"),
        fields=fields,
        cases=tuple(_case(case, data) for case in cases),
        explanation=data["explanation"],
        sources=tuple(data["sources"]),
        examples=tuple(data.get("examples", ())),
        deprecated_in=release_of(data["deprecated-in"]) if "deprecated-in" in data else OLDEST,
        available_in=release_of(data["replacement-available-in"]) if "replacement-available-in" in data else OLDEST,
        path=str(path),
        help=data.get("help", "").strip(),
    )


def _case(case: Mapping[str, Any], rule: Mapping[str, Any]) -> Case:
    fix = case.get("fix")
    return Case(
        when=case["when"],
        message=case.get("message", rule["summary"]).strip(),
        fix=None
        if fix is None
        else Fix(
            set=fix.get("set", {}),
            remove=tuple(fix.get("remove", ())),
            rename=fix.get("rename", {}),
            drop=fix.get("drop", {}),
            unsafe=fix.get("unsafe", "").strip(),
        ),
        decide=case.get("decide", "").strip(),
        help=case.get("help", rule.get("help", "")).strip(),
    )


def _check_size(text: str, path: str) -> None:
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


def check(data: Any, text: str, path: str) -> None:
    """Compare a rule with the schema. Raises RuleError: file, line, what is there, what is expected."""
    import json

    import jsonschema

    schema = json.loads((rules_folder() / "schema.json").read_text(encoding="utf-8"))
    errors = sorted(
        jsonschema.Draft202012Validator(schema).iter_errors(data),
        key=lambda error: (len(error.absolute_path), str(error.absolute_path)),
    )
    if errors:
        error = jsonschema.exceptions.best_match(errors)
        where = ".".join(map(str, error.absolute_path)) or "the rule"
        line = line_of(text, list(error.absolute_path))
        raise RuleError(f"{path}:{line}: {where}: {_expectation(error)}")


def _check_messages(data: Mapping[str, Any], text: str, path: str) -> None:
    """Check that every placeholder of a message will be filled in. Raises RuleError."""
    cases = data.get("cases")
    for number, case in enumerate(cases or [data]):
        place: list[str | int] = ["cases", number] if cases else []
        for key in ("message", "decide", "help"):
            line = line_of(text, [*place, key])
            for name in _PLACEHOLDER.findall(case.get(key, "")):
                if name not in _FILLED_IN:
                    raise RuleError(f"{path}:{line}: nothing fills in `{{{name}}}`; there are {', '.join(_FILLED_IN)}")
                if name in ("reason", "refuser") and "rejected" not in case.get("when", {}):
                    raise RuleError(f"{path}:{line}: `{{{name}}}` quotes a refusal, so `when` must ask for `rejected`")


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


def release_of(text: str) -> Release:
    """Return the release that a rule names, such as ``0.18``."""
    major, _, minor = str(text).partition(".")
    return Release(int(major), int(minor))
