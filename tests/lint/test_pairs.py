"""Rules about what goes with graphs: a case that each reports and one, one setting away, that it does not.

tests/fixtures/pairs.yaml has the settings. Each is written in YAML, in Python and on a command line, as far as the
rule's reader has them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

import pytest
import yaml

from cgmigrate.documents.syntax import document_of, syntax_of
from cgmigrate.linking import ecosystems
from cgmigrate.lint.conditions import PACKAGE, release_of
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.setting import flag_of
from tests.support.paths import FIXTURES
from tests.support.plans import examine

RULES = load()
OWNERS = ecosystems.load()
SETTINGS = catalogue.load()
PAIRS: list[dict[str, Any]] = yaml.safe_load((FIXTURES / "pairs.yaml").read_text(encoding="utf-8"))
Values = Mapping[str, Any]


def nested(values: Values) -> dict[str, Any]:
    """Dotted names → a mapping of mappings."""
    result: dict[str, Any] = {}
    for name, value in values.items():
        *above, last = name.split(".")
        inner = result
        for key in above:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return result


def words(values: Values) -> list[str]:
    """Settings as words of a command line."""
    result = []
    for name, value in values.items():
        setting = SETTINGS.get(name)
        flag = setting.flag if setting else flag_of(name)
        if value is False and setting and setting.no_flag:
            result.append(setting.no_flag)
        elif value is not False:
            items = value if isinstance(value, list) else [] if value is True else [value]
            result += [flag, *map(str, items)]
    return result


# --- settings of TransformerConfig ----------------------------------------------------------------


def settings_in_yaml(values: Values, _: Values) -> tuple[str, str]:
    return "a.yaml", yaml.safe_dump({"model": {"hidden_size": 16, **values}}, sort_keys=False)


def settings_in_python(values: Values, _: Values) -> tuple[str, str]:
    keywords = "".join(f"    {name}={value!r},\n" for name, value in values.items())
    imported = "from megatron.core.transformer import TransformerConfig\n\n"
    return "a.py", f"{imported}config = TransformerConfig(\n    num_layers=2,\n{keywords})\n"


# --- arguments of a program -----------------------------------------------------------------------


def arguments_in_a_script(values: Values, variables: Values, program: str = "pretrain_gpt.py") -> tuple[str, str]:
    exports = "".join(f"export {name}={value}\n" for name, value in variables.items())
    return "a.sh", f"{exports}torchrun {program} {shlex.join(words(values))}\n"


def arguments_in_yaml(values: Values, variables: Values, program: str = "pretrain_gpt.py") -> tuple[str, str]:
    command = f"torchrun {program} {shlex.join(words(values))}"
    return "a.yaml", yaml.safe_dump({"env": dict(variables), "command": command}, sort_keys=False, width=1000)


def arguments_in_python(values: Values, variables: Values, program: str = "pretrain_gpt.py") -> tuple[str, str]:
    set_ = "".join(f"os.environ[{name!r}] = {value!r}\n" for name, value in variables.items())
    run = f"subprocess.run({json.dumps(['torchrun', program, *words(values)])}, check=True)\n"
    return "a.py", f"import os\nimport subprocess\n\n{set_}{run}"


# --- recipes --------------------------------------------------------------------------------------


def recipe_in_yaml(values: Values, _: Values) -> tuple[str, str]:
    rest = {"ddp.overlap_grad_reduce": True, "rng.seed": 1, "train.train_iters": 100}
    return "a.yaml", yaml.safe_dump(nested({**values, **rest}), sort_keys=False)


def recipe_in_python(values: Values, _: Values) -> tuple[str, str]:
    lines = "".join(f"    cfg.{name} = {value!r}\n" for name, value in values.items())
    imported = "from megatron.bridge.training.config import ConfigContainer\n\n\n"
    return "a.py", f"{imported}def recipe(cfg: ConfigContainer) -> None:\n{lines}"


def policy_in_yaml(values: Values, _: Values) -> tuple[str, str]:
    return "a.yaml", yaml.safe_dump({"policy": nested(values)}, sort_keys=False)


Form = Callable[..., tuple[str, str]]
FORMS: Mapping[str, list[Form]] = {
    "settings": [settings_in_yaml, settings_in_python, arguments_in_a_script],
    "arguments": [arguments_in_a_script, arguments_in_yaml, arguments_in_python],
    "recipe": [recipe_in_yaml, recipe_in_python],
    "policy": [policy_in_yaml],
}


def kind_of(pair: Mapping[str, Any]) -> str:
    (kind,) = FORMS.keys() & pair.keys()
    return kind


CASES = [
    pytest.param(pair, form, id=f"{pair['rule']}-{number}-{form.__name__}")
    for number, pair in enumerate(PAIRS)
    for form in FORMS[kind_of(pair)]
    if not (form is arguments_in_a_script and "config-only" in pair)
]


def reported(pair: Mapping[str, Any], form: Form, change: Values) -> set[str]:
    values, variables = dict(pair[kind_of(pair)]), dict(pair.get("variables", {}))
    for name, value in change.items():
        place = variables if name.isupper() else values
        place[name] = value
        if value is None:
            del place[name]
    program = {"program": pair["program"]} if "program" in pair else {}
    path, text = form(values, variables, **program)
    syntax = syntax_of(path)
    assert syntax is not None
    source, target = (release_of(pair.get(name, "0.19")) for name in ("from", "to"))
    plan = examine(document_of(path, text, syntax, SETTINGS), Context(source, target, RULES, OWNERS))
    return {diagnostic.rule for diagnostic in plan.diagnostics}


@pytest.mark.parametrize(("pair", "form"), CASES)
def test_one_setting_decides_what_a_rule_reports(pair: dict[str, Any], form: Form) -> None:
    assert pair["rule"] in reported(pair, form, {})
    assert pair["rule"] not in reported(pair, form, pair["but"])


def test_every_rule_about_what_goes_with_graphs_has_a_pair() -> None:
    about = {code for code in RULES if code[:3] == "CG4" or code in ("CG214", "CG502") or "CG307" <= code <= "CG399"}
    # Pins are files beside the text: tests/lint/test_package_versions.py has those.
    about -= {code for code in about if any(PACKAGE in case.when for case in RULES[code].cases)}
    assert about == {pair["rule"] for pair in PAIRS}
