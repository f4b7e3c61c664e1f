"""UPG501: notes about GPT models, and their rewriting as hybrid models in scripts and test cases.

The words of rewritten scripts are those that a real bash passes on, in a folder with files that a pattern matches.
"""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.plan import Plan, plan_alone
from cgmigrate.lint.rules import load
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.hybrid_models import HybridForm, hybrid_form
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import upgrade_rules
from tests.support.files import write
from tests.support.gpt_models import get, line, options_of, rewritten
from tests.support.nightly import generated
from tests.support.tables import from_table

SETTINGS = catalogue.load((upgrade_rules(),))
OWNERS = ecosystems.with_settings(ecosystems.load(), SETTINGS)
RULES = load((Path(upgrade_rules()),))
CONTEXT = Context(Release(0, 18), Release(0, 19), RULES, OWNERS, SETTINGS)
SPEC = "megatron.core.models.hybrid.hybrid_layer_specs hybrid_stack_spec"
UPGRADE = ("upgrade", "--from", "0.18", "--to", "0.19")
CASE = """\
MODEL_ARGS:
  --num-layers: 4
  --hidden-size: 64
  --recompute-granularity: full
  --recompute-num-layers: 1
"""
RECIPE = """\
spec:
  model: gpt
  script: |-
    ARGUMENTS=(
        "TRAINING_SCRIPT_PATH={script}"
    )
products:
  - test_case: [case]
"""


def plan(text: str) -> Plan:
    return plan_alone("", ShellDocument(text, catalogue=SETTINGS), CONTEXT)


def fixed(text: str) -> str:
    every = plan(text)
    texts = every.edited([fix.id for fix in every.fixes])
    return texts[0].text if texts else text


def reasons(text: str) -> list[str]:
    reported = [one for one in plan(text).files[0].diagnostics if one.rule == "UPG501"]
    return [f"{one.blocked_by} {one.help}" for one in reported]


def words_of(script: str, folder: Path) -> list[str]:
    """The words that a script gives torchrun."""
    for name in ("a-b-", "LICENSE", "EE|EE"):
        (folder / name).touch()
    shown = f'torchrun() {{ printf "%s\\n" "$@"; }}\n{script}'
    return subprocess.run(["bash", "-c", shown], cwd=folder, capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )[:-1]


def in_lines(words: list[str], end: str) -> str:
    return shlex.join(words).replace(" --", f"{end}\n    --")


FORMS: dict[str, Callable[[list[str]], str]] = {
    "one line": lambda words: f"torchrun pretrain_gpt.py {shlex.join(words)}\n",
    "lines": lambda words: f"torchrun pretrain_gpt.py {in_lines(words, ' ' + chr(92))}\n",
    "array": lambda words: f"ARGS=(\n    {in_lines(words, '')}\n)\ntorchrun pretrain_gpt.py ${{ARGS[@]}}\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_scripts_get_the_words_of_the_hybrid_model(form: str, tmp_path: Path) -> None:
    count = 0
    for seed in range(generated(push=40, night=1000)):
        options = options_of(seed)
        script = FORMS[form](line(options))
        hybrid = hybrid_form(get(options))
        if not isinstance(hybrid, HybridForm):
            assert fixed(script) == script
            assert reasons(script) and hybrid.reason in reasons(script)[0]
            continue
        count += 1
        words = words_of(fixed(script), tmp_path)
        assert words[0] == "pretrain_hybrid.py"
        assert sorted(words[1:]) == sorted(rewritten(options, hybrid)), fixed(script)
    assert count > 20


@from_table
def test_what_is_not_understood_stays_with_its_reason(script: str, reason: str) -> None:
    assert fixed(script) == script
    assert all(reason in one for one in reasons(script)), reasons(script)
    assert reasons(script)


@pytest.mark.parametrize("program", ["pretrain_vlm.py", "pretrain_hybrid.py --hybrid-layer-pattern M-"])
def test_other_models_are_not_reported(program: str) -> None:
    assert reasons(f"torchrun {program} --num-layers 2") == []


def test_a_list_of_arguments_in_code_stays(project: Path, cgmigrate: Callable[..., Any]) -> None:
    code = 'import subprocess\n\nsubprocess.run(["torchrun", "pretrain_gpt.py", "--num-layers", "4", "--bf16"])\n'
    write(project / "run.py", code)
    shown = cgmigrate(*UPGRADE, "--hybrid", "--output-format", "full", "run.py").stdout
    assert "'*-*-*-*-'" in shown and "code starts `pretrain_gpt.py` with this list" in shown
    cgmigrate(*UPGRADE, "--hybrid", "--fix", "--unsafe-fixes", "run.py")
    assert (project / "run.py").read_text() == code


def test_the_value_of_a_variable_that_the_script_sets() -> None:
    script = 'N=2\nARGS="--num-layers $N"\ntorchrun "$MEGATRON/pretrain_gpt.py" $ARGS --hidden-size 8\n'
    assert fixed(script) == (
        f'N=2\nARGS=""\ntorchrun "$MEGATRON/pretrain_hybrid.py" --hybrid-layer-pattern \'*-*-\' --spec {SPEC} '
        "$ARGS --hidden-size 8\n"
    )


def test_graphs_of_each_class_of_layers_are_noted() -> None:
    script = "torchrun pretrain_gpt.py --num-layers 2 --cuda-graph-impl local --cuda-graph-modules attn\n"
    notes = [note for one in plan(script).files[0].diagnostics for note in one.notes]
    assert notes == [
        "`--hybrid-layer-pattern '*-*-'`; megatron-core 0.19 loads GPT weights into it",
        "`local` captures before: each layer of a GPT model: the whole layer; after: attention layers of a hybrid "
        "model: the whole layer; MLP layers of a hybrid model: nothing",
    ]


@pytest.fixture
def case(project: Path) -> Path:
    write(project / "tests/test_utils/recipes/h100/gpt.yaml", RECIPE.format(script="pretrain_gpt.py"))
    path = project / "tests/functional_tests/test_cases/gpt/case/model_config.yaml"
    write(path, CASE)
    return path


def test_test_cases_are_rewritten(case: Path, cgmigrate: Callable[..., Any]) -> None:
    cgmigrate(*UPGRADE, "--hybrid", "--fix", "--unsafe-fixes", str(case))
    hybrid = f'  --hybrid-layer-pattern: "*-*-*-*-"\n  --spec: "[{SPEC}]"\n'
    expected = CASE.replace("  --num-layers: 4\n", hybrid).replace("num-layers: 1", "num-layers: 2")
    assert case.read_text() == expected


def test_without_the_option_it_is_a_note(case: Path, cgmigrate: Callable[..., Any]) -> None:
    before = case.read_text()
    shown = cgmigrate(*UPGRADE, "--output-format", "full", str(case)).stdout
    assert "UPG501" in shown and "'*-*-*-*-'" in shown and "recipe" in shown
    cgmigrate(*UPGRADE, "--fix", "--unsafe-fixes", str(case))
    assert case.read_text() == before


def test_a_test_case_of_another_program_is_not_reported(case: Path, cgmigrate: Callable[..., Any]) -> None:
    write(case.parents[4] / "test_utils/recipes/h100/gpt.yaml", RECIPE.format(script="pretrain_bert.py"))
    assert "UPG501" not in cgmigrate(*UPGRADE, "--output-format", "full", str(case)).stdout


@from_table
def test_a_test_case_whose_program_is_not_compared_stays_with_its_reason(
    recipe: str, reason: str, case: Path, cgmigrate: Callable[..., Any]
) -> None:
    write(case.parents[4] / "test_utils/recipes/h100/gpt.yaml", recipe)
    shown = cgmigrate(*UPGRADE, "--hybrid", "--fix", "--unsafe-fixes", "--output-format", "full", str(case)).stdout
    assert "UPG501" in shown and f"no hybrid form is known: {reason}" in shown
    assert case.read_text() == CASE


def test_a_test_case_without_a_recipe_has_the_program_of_its_model(case: Path, cgmigrate: Callable[..., Any]) -> None:
    other = case.parents[1] / "other/model_config.yaml"
    write(other, CASE)
    cgmigrate(*UPGRADE, "--hybrid", "--fix", "--unsafe-fixes", str(other))
    assert '--hybrid-layer-pattern: "*-*-*-*-"' in other.read_text()
