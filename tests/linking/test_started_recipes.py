"""Command lines that override settings of a recipe that they name: both are rewritten together, or neither is.

The judge applies the overrides to the recipe as NeMo-RL does, with the refusals of Hydra and OmegaConf.
"""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from tests.support.capture_judges import READERS, fix, judge_fix, load_all
from tests.support.files import write
from tests.support.generated_chains import SCOPES, Tree, nemo_rl_trees
from tests.support.loaders import Config, load_nemo_rl
from tests.support.nightly import NIGHTLY, generated

PLACE = ("policy", "megatron_cfg")
PREFIX = ".".join(PLACE)
OLD = f"{PREFIX}.cuda_graph_scope"
RECIPE = "policy:\n  megatron_cfg:\n    enabled: true\n    external_cuda_graph: true\n"
OFF = "policy:\n  megatron_cfg:\n    enabled: true\n    cuda_graph_impl: none\n"
NEW_RECIPE = RECIPE.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine")


def checkout(top: Path) -> None:
    (top / ".git/HEAD").unlink(missing_ok=True)
    for words in (["init", "-q", "."], ["add", "."]):
        subprocess.run(["git", "-C", str(top), *words], check=True)


def started(config: Config, overrides: list[str]) -> Config:
    """Apply overrides as Hydra does: a key without a sign has to exist, and one with `+` must not."""
    for override in overrides:
        name, _, value = override.partition("=")
        *above, last = name.lstrip("+").split(".")
        mapping: Any = config
        for key in above:
            mapping = mapping.setdefault(key, {})
        sign = name[: len(name) - len(name.lstrip("+"))]
        if sign != "++" and (last in mapping) != (sign == ""):
            raise KeyError(f"{override}: the key is {'missing' if sign == '' else 'there'}")
        mapping[last] = value_of(value)
    return config


def value_of(text: str) -> Any:
    if text.startswith("["):
        return [word.strip() for word in text[1:-1].split(",") if word.strip()]
    return {"true": True, "false": False, "null": None}.get(text, text.strip("'"))


def load_script(script: Path) -> Config:
    """What the last command of a script starts: the recipe that it names with its overrides."""
    words = shlex.split(script.read_text(encoding="utf-8").rpartition("\nuv run ")[2])
    at = words.index("--config")
    return started(load_nemo_rl(script.parent / words[at + 1]), [word for word in words[at + 2 :] if "=" in word])


TOGETHER = {
    "on a continued line": ("run.sh", "uv run x.py --config conf/a.yaml \\\n  ++{old}=[attn] \\\n  x=1\n"),
    "an option with =": ("run.sh", "uv run x.py --config=conf/a.yaml '++{old}=[attn]'\n"),
    "a folder below": ("jobs/run.sh", "uv run x.py --config conf/a.yaml ++{old}=[attn]\n"),
    "beside the recipe": ("conf/run.sh", "uv run x.py --config a.yaml ++{old}=[attn]\n"),
    "a variable": ("run.sh", "CONFIG=conf/a.yaml\nuv run x.py --config $CONFIG ++{old}=[attn]\n"),
    "a folder in a variable": ("run.sh", 'uv run x.py --config "$ROOT/conf/a.yaml" ++{old}=[attn]\n'),
    "an array": ("run.sh", 'ARGS=(\n  --config conf/a.yaml\n  "++{old}=[attn]"\n)\nuv run x.py "${{ARGS[@]}}"\n'),
    "a command in a variable": ("run.sh", 'COMMAND="uv run x.py --config conf/a.yaml ++{old}=[attn]" sbatch ray.sub\n'),
    "bash -c": ("run.sh", "docker run i bash -c 'uv run x.py --config conf/a.yaml ++{old}=[attn]'\n"),
    "Hydra's options": ("run.sh", "python -m x --config-path=conf --config-name a ++{old}=[attn]\n"),
    "Hydra's name alone": ("run.sh", "python -m x --config-name=a ++{old}=[attn]\n"),
    "a list in YAML": ("job.yaml", "spec:\n  args: [--config, conf/a.yaml, '++{old}=[attn]']\n"),
    "a script in YAML": ("job.yaml", "steps:\n- run: |\n    uv run x.py --config conf/a.yaml ++{old}=[attn]\n"),
    "Python": (
        "start.py",
        "import subprocess\nsubprocess.run(['x.py', '--config', 'conf/a.yaml', '++{old}=[attn]'])\n",
    ),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_a_recipe_and_its_override_are_one_set(project: Path, name: str) -> None:
    path, text = TOGETHER[name]
    script, recipe = project / path, project / "conf/a.yaml"
    write(recipe, RECIPE)
    write(script, text.format(old=OLD))
    checkout(project)
    checked = fix(project)
    assert checked.written == {path, "conf/a.yaml"}
    assert recipe.read_text() == NEW_RECIPE
    assert script.read_text() == text.format(old=OLD.replace("scope", "modules"))
    ids = {one.fix.id for item in checked.results for one in item.diagnostics if one.fix}
    assert len(ids) == 1, "it is one edit set"
    assert not fix(project).written


ALONE = {
    "nothing else": "++{old}=[attn]\n",
    "no recipe": "uv run x.py ++{old}=[attn]\n",
    "two recipes": "uv run x.py --config conf/a.yaml --base conf/b.yaml ++{old}=[attn]\n",
    "a recipe that the line computes": 'uv run x.py --config "$1" ++{old}=[attn]\n',
    "a default": "uv run x.py --config ${{CONFIG:-conf/a.yaml}} ++{old}=[attn]\n",
    "a branch": 'ARGS=()\nif x; then ARGS+=(++{old}=[attn]); fi\nuv run x.py --config conf/a.yaml "${{ARGS[@]}}"\n',
    "a file that is not there": "uv run x.py --config conf/c.yaml ++{old}=[attn]\n",
}


@pytest.mark.parametrize("name", ALONE)
def test_an_override_without_a_known_recipe_is_not_safe(project: Path, name: str) -> None:
    write(project / "conf/a.yaml", "policy:\n  megatron_cfg:\n    enabled: true\n")
    write(project / "conf/b.yaml", "policy:\n  megatron_cfg:\n    enabled: true\n")
    write(project / "run.sh", ALONE[name].format(old=OLD))
    checkout(project)
    checked = fix(project)
    assert not checked.written
    assert any("does not show" in reason or "overrides" in reason for reason in checked.reasons)


REFUSED = {
    "the key would be in no file": (OFF + "    cuda_graph_scope: full_iteration\n", f"{OLD}=[attn]", "and none would"),
    "the key would be there": (OFF.replace("none", "local"), f"+{OLD}=full_iteration", "have it already"),
    "the value is computed": (RECIPE, f"++{OLD}=[$SCOPE]", ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_both_stay_if_their_rewrite_is_not_possible(project: Path, name: str) -> None:
    recipe, override, reason = REFUSED[name]
    write(project / "a.yaml", recipe)
    write(project / "run.sh", f"uv run x.py --config a.yaml {override}\n")
    checkout(project)
    checked = fix(project)
    assert not checked.written
    diagnostics = [one for item in checked.results for one in item.diagnostics]
    assert {Path(item.path).name for item in checked.results if item.diagnostics} == {"a.yaml", "run.sh"}
    assert any(reason in one.blocked_by for one in diagnostics), [one.blocked_by for one in diagnostics]


def test_a_recipe_without_settings_leaves_the_override_alone_and_safe(project: Path) -> None:
    write(project / "a.yaml", "policy:\n  megatron_cfg:\n    enabled: true\n")
    line = f"uv run x.py --config a.yaml ++{PREFIX}.cuda_graph_impl=transformer_engine ++{OLD}=[attn]\n"
    write(project / "run.sh", line)
    checkout(project)
    assert fix(project).written == {"run.sh"}
    assert (project / "run.sh").read_text() == line.replace("scope", "modules")


def test_two_scripts_of_one_recipe_are_one_set(project: Path) -> None:
    write(project / "a.yaml", RECIPE)
    for name, scope in (("one", "attn"), ("two", "mlp")):
        write(project / f"{name}.sh", f"uv run x.py --config a.yaml ++{OLD}=[{scope}]\n")
    checkout(project)
    assert {Path(path).name for path in fix(project).written} == {"a.yaml", "one.sh", "two.sh"}


def test_one_script_of_two_recipes_joins_them(project: Path) -> None:
    for name in ("a", "b"):
        write(project / f"{name}.yaml", RECIPE)
    write(
        project / "run.sh",
        f"uv run x.py --config a.yaml ++{OLD}=[attn]\nuv run x.py --config b.yaml ++{OLD}=full\n",
    )
    checkout(project)
    assert {Path(path).name for path in fix(project).written} == {"a.yaml", "b.yaml", "run.sh"}
    assert (project / "run.sh").read_text() == (
        f"uv run x.py --config a.yaml ++{OLD.replace('scope', 'modules')}=[attn]\n"
        f"uv run x.py --config b.yaml ++{PREFIX}.cuda_graph_modules='[]'\n"
    )


def test_a_suppression_in_the_script_withholds_the_recipe(project: Path) -> None:
    write(project / "a.yaml", RECIPE)
    write(project / "run.sh", f"# cgmigrate: ignore[CG106] later\nuv run x.py --config a.yaml ++{OLD}=[attn]\n")
    checkout(project)
    assert not fix(project).written


overrides = st.lists(
    st.one_of(
        st.sampled_from(SCOPES).map(lambda scope: f"cuda_graph_scope={written(scope)}"),
        st.sampled_from(["none", "local", "transformer_engine"]).map(lambda impl: f"cuda_graph_impl={impl}"),
        st.sampled_from(["enable_cuda_graph=true", "external_cuda_graph=true", "enable_cuda_graph=false"]),
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda override: override.partition("=")[0],
)


def written(scope: object) -> str:
    if isinstance(scope, list):
        return f"[{','.join(scope)}]"
    return "null" if scope is None else f"'{scope}'" if "," in str(scope) else str(scope)


@settings(
    max_examples=generated(25, 400),
    derandomize=not NIGHTLY,
    deadline=None,
    phases=list(Phase) if NIGHTLY else [Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(
    nemo_rl_trees(), st.lists(st.tuples(st.sampled_from(["++", "", "+"]), overrides), min_size=1, max_size=2), st.data()
)
def test_generated_scripts(tree: Tree, lines: list[tuple[str, list[str]]], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "project"
        entries = dict(tree.write(folder))
        for number, (sign, words) in enumerate(lines):
            recipe = data.draw(st.sampled_from(sorted(tree.files)))
            script = folder / f"run-{number}.sh"
            every = " \\\n  ".join(f'"{sign}{PREFIX}.{word}"' for word in words)
            script.write_text(f"#!/bin/bash\nuv run x.py --config {recipe} \\\n  {every} \\\n  --last\n")
            entries[script.name] = partial(load_script, script)
        checkout(folder)
        try:
            load_all(entries)
        except Exception:
            assume(False)
        judgement = judge_fix(folder, entries, {PLACE: READERS[PLACE]})
        assert not judgement.wrong, judgement.wrong
