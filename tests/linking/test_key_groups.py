"""Key groups: YAML keys and the code that names them change together; the code is run before and after."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from omegaconf import ListConfig

from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST
from cgmigrate.megatron.settings import FIELDS
from cgmigrate.megatron.types import Reader, Rejected
from tests.support.checkouts import staged
from tests.support.files import write
from tests.support.tables import from_table, table_of

HEAD = "policy:\n  transformer_config:\n    num_layers: 2\n"
RECIPES = {
    "external": HEAD + "    external_cuda_graph: true\n",
    "enabled": HEAD + "    enable_cuda_graph: true\n",
    "off": HEAD + "    enable_cuda_graph: false\n",
    "external with modules": HEAD + "    external_cuda_graph: true\n    cuda_graph_scope: [attn]\n",
    "inference": HEAD + "    enable_cuda_graph: true\n    cuda_graph_scope: full_iteration_inference\n",
    "full iteration": HEAD + "    enable_cuda_graph: true\n    cuda_graph_scope: full_iteration\n",
}
"""What a recipe sets under ``policy.transformer_config``."""
COPIES = table_of(__name__, "COPIES")
"""Code that copies the settings of a mapping to an object."""


EXAMPLE = """
def apply(config, model_cfg):
    for k in ("enable_cuda_graph", "external_cuda_graph"):
        if k in config["megatron_cfg"]:
            setattr(model_cfg, k, config["megatron_cfg"][k])
"""


def applied(project: Path) -> dict[str, Any]:
    """Run the code of a project on its recipe; return the settings that reach the model."""
    for name in [name for name in sys.modules if name == "pkg" or name.startswith("pkg.")]:
        del sys.modules[name]
    code = (project / "pkg/setup.py").read_text()
    scope: dict[str, Any] = {}
    exec(compile(code, "setup.py", "exec"), scope)
    model = SimpleNamespace(**dict.fromkeys((*FIELDS, "num_layers"), "unset"))
    scope["apply"](yaml.safe_load((project / "conf/recipe.yaml").read_text())["policy"], model)
    reached = {name: value for name, value in vars(model).items() if value != "unset" and name in FIELDS}
    return {name: list(value) if isinstance(value, ListConfig) else value for name, value in reached.items()}


def built(settings: dict[str, Any]) -> tuple[Any, ...]:
    """Build the real configuration; return what decides about graphs."""
    transformer_config = pytest.importorskip("megatron.core.transformer.transformer_config")
    config = transformer_config.TransformerConfig(num_layers=2, num_attention_heads=4, hidden_size=64, **settings)
    return config.cuda_graph_impl, config.cuda_graph_modules, config.inference_cuda_graph_scope


def test_the_real_configuration_is_built_alike_before_and_after(project: Path, cgmigrate) -> None:
    setup = write(project / "pkg/setup.py", EXAMPLE)
    filled = write(project / "conf/recipe.yaml", "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n")
    staged(project)
    before = applied(project)
    assert cgmigrate("fix", ".").exit_code == 0
    after = applied(project)
    assert (before, after) == ({"external_cuda_graph": True}, {"cuda_graph_impl": "transformer_engine"})
    assert 'for k in ("cuda_graph_impl",):' in setup.read_text()
    assert built(before) == built(after)
    assert cgmigrate("undo").exit_code == 0
    assert setup.read_text() == EXAMPLE and "external_cuda_graph: true" in filled.read_text()


@pytest.mark.parametrize("code", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", RECIPES)
def test_code_that_copies_keys_changes_with_the_files_that_have_them(
    project: Path, cgmigrate, code: str, name: str
) -> None:
    setup, filled = write(project / "pkg/setup.py", code), write(project / "conf/recipe.yaml", RECIPES[name])
    staged(project)
    before = applied(project)
    cgmigrate("fix", ".")
    old = [one for one in ("enable_cuda_graph", "external_cuda_graph") if f" {one}:" in RECIPES[name]]
    # A key that is only deleted stays in the list.
    assert all((f'"{one}"' in setup.read_text()) is (name == "off") for one in old)
    assert not any(f" {one}:" in filled.read_text() for one in (*old, "cuda_graph_scope"))
    was = capture_of(before, LAST_OLD, Reader.CONFIG)
    assert not isinstance(was, Rejected) and was == capture_of(applied(project), NEWEST, Reader.CONFIG)
    again = setup.read_text(), filled.read_text()
    cgmigrate("fix", ".")
    assert (setup.read_text(), filled.read_text()) == again


CAPTURED = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n"


def test_a_set_with_a_member_that_is_not_staged_is_withheld_with_the_command(project: Path, cgmigrate) -> None:
    setup, filled = write(project / "pkg/setup.py", EXAMPLE), write(project / "conf/recipe.yaml", CAPTURED)
    staged(project)
    for name in ("conf/recipe.yaml", "pkg/setup.py"):
        stdout = cgmigrate("fix", name).stdout
        assert "run `cgmigrate fix conf/recipe.yaml pkg/setup.py`" in " ".join(stdout.split())
    assert (setup.read_text(), filled.read_text()) == (EXAMPLE, CAPTURED)
    shown = cgmigrate("fix", "--diff", "conf/recipe.yaml", "pkg/setup.py").stdout
    assert "+++ b/conf/recipe.yaml" in shown and "+++ b/pkg/setup.py" in shown


def test_the_diagnostics_of_both_files_name_the_other(project: Path, cgmigrate) -> None:
    write(project / "pkg/setup.py", EXAMPLE)
    write(project / "conf/recipe.yaml", CAPTURED)
    staged(project)
    stdout = " ".join(cgmigrate("check", ".").stdout.split())
    assert "the deprecated key `external_cuda_graph` is in code that reads conf/recipe.yaml:3" in stdout
    assert "pkg/setup.py" in stdout and "changed together with " in stdout


def test_an_old_key_that_code_does_not_copy_stays_where_the_new_one_would_be_copied(project: Path, cgmigrate) -> None:
    write(project / "pkg/setup.py", EXAMPLE.replace('"enable_cuda_graph", "external', '"cuda_graph_impl", "other'))
    filled = write(project / "conf/recipe.yaml", CAPTURED)
    staged(project)
    assert applied(project) == {}
    cgmigrate("fix", ".")
    assert filled.read_text() == CAPTURED


TYPED = """
from typing import NotRequired, TypedDict

class MegatronConfig(TypedDict):
    num_layers: int
    # On small models.
    enable_cuda_graph: NotRequired[bool]
    external_cuda_graph: NotRequired[bool]
    use_te_rng_tracker: NotRequired[bool]
"""


def test_the_keys_of_a_typed_dict_change_with_the_code_that_copies_them(project: Path, cgmigrate) -> None:
    write(project / "pkg/setup.py", EXAMPLE)
    typed = write(project / "pkg/policy.py", TYPED)
    write(project / "conf/recipe.yaml", CAPTURED)
    staged(project)
    assert cgmigrate("fix", ".").exit_code == 0
    assert applied(project) == {"cuda_graph_impl": "transformer_engine"}
    old = "    enable_cuda_graph: NotRequired[bool]\n    external_cuda_graph: NotRequired[bool]\n"
    new = "    cuda_graph_impl: NotRequired[str]\n"
    assert typed.read_text() == TYPED.replace(old, new)
    assert cgmigrate("check", ".").exit_code == 0


ANNOTATIONS = {
    "a string": "NotRequired[str]",
    "a list": "NotRequired[list[str]]",
    "a list or nothing": "NotRequired[list[str] | None]",
}


@pytest.mark.parametrize("annotation", ANNOTATIONS.values(), ids=ANNOTATIONS)
def test_a_key_that_keeps_its_value_keeps_its_type(project: Path, cgmigrate, annotation: str) -> None:
    code = COPIES["a loop"] + "\nclass C(TypedDict):\n    cuda_graph_scope: {}\n"
    setup = write(project / "pkg/setup.py", code.format(annotation))
    filled = write(project / "conf/recipe.yaml", RECIPES["external with modules"])
    write(project / "conf/other.yaml", RECIPES["external"])
    staged(project)
    cgmigrate("fix", ".")
    assert f"    cuda_graph_modules: {annotation}\n" in setup.read_text()
    assert "cuda_graph_modules: [attn]" in filled.read_text()


SET_BY = table_of(__name__, "SET_BY")


@pytest.mark.parametrize(("name", "code"), SET_BY.values(), ids=SET_BY)
def test_code_that_sets_a_setting_by_itself_makes_the_set_unsafe(
    project: Path, cgmigrate, name: str, code: str
) -> None:
    setup, filled = write(project / "pkg/setup.py", EXAMPLE), write(project / "conf/recipe.yaml", CAPTURED)
    write(project / name, code)
    staged(project)
    stdout = " ".join(cgmigrate("fix", ".").stdout.split())
    assert re.search(rf"{name}:\d+", stdout), stdout
    assert (setup.read_text() == EXAMPLE or name == "pkg/setup.py") and filled.read_text() == CAPTURED


VALUES = table_of(__name__, "VALUES")


@pytest.mark.parametrize(("code", "moves"), VALUES.values(), ids=VALUES)
def test_what_code_gives_a_key_captures_the_same_under_its_new_name(
    project: Path, cgmigrate, code: str, moves: bool
) -> None:
    setup = write(project / "pkg/setup.py", code)
    filled = write(project / "conf/recipe.yaml", RECIPES["external with modules"])
    staged(project)
    cgmigrate("fix", ".")
    assert ("cuda_graph_modules" in setup.read_text(), "cuda_graph_modules" in filled.read_text()) == (moves, moves)


GENERATOR = """
def lines(values):
    return "\\n".join(f"    - {value}" for value in values)

def body(name, scope):
    return f"name: {name}\\nmegatron_cfg:\\n" + (
        f"    cuda_graph_scope: {scope}\\n" if isinstance(scope, str) else "    cuda_graph_scope:\\n" + lines(scope)
    )

SCOPES = {"attn": "attn", "both": ["attn", "mlp"]}
for tag, scope in SCOPES.items():
    print(body(tag, scope))
"""
GENERATORS = {
    "modules": (GENERATOR, "", True),
    "an implementation": (GENERATOR.replace('"attn": "attn"', '"full": "full_iteration"'), "", False),
    "a value of the command line": (GENERATOR + "print(body('own', sys.argv[1]))\n", "", False),
    "another caller": (GENERATOR, "from pkg.generate import body\nprint(body('full', 'full_iteration'))\n", False),
}


@pytest.mark.parametrize(("code", "other", "moves"), GENERATORS.values(), ids=GENERATORS)
def test_a_generator_changes_with_the_files_that_it_writes(
    project: Path, cgmigrate, code: str, other: str, moves: bool
) -> None:
    generator = write(project / "pkg/generate.py", code)
    filled = write(project / "conf/recipe.yaml", RECIPES["external with modules"])
    write(project / "pkg/other.py", other)
    staged(project)
    cgmigrate("fix", ".")
    assert (generator.read_text() != code, "cuda_graph_modules" in filled.read_text()) == (moves, moves)


def test_code_outside_of_the_run_may_set_a_setting_too(project: Path, cgmigrate) -> None:
    write(project / "pkg/setup.py", EXAMPLE)
    write(project / "conf/recipe.yaml", CAPTURED)
    write(project / "other/stop.py", SET_BY["on an object of that name"][1])
    staged(project)
    stdout = " ".join(cgmigrate("fix", "pkg", "conf").stdout.split())
    assert "other/stop.py:2 also uses `cuda_graph_impl` and may set or read the same setting" in stdout


def test_a_configuration_beside_the_code_is_rewritten_with_it(project: Path, cgmigrate) -> None:
    head = "from megatron.core.transformer import TransformerConfig\n"
    call = "def small():\n    return TransformerConfig(num_layers=2, enable_cuda_graph=True)\n"
    setup = write(project / "pkg/setup.py", head + EXAMPLE + call)
    write(project / "conf/recipe.yaml", CAPTURED)
    staged(project)
    assert "CG101 `enable_cuda_graph` is deprecated" in cgmigrate("check", "--output-format", "concise", ".").stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert call.replace("enable_cuda_graph=True", 'cuda_graph_impl="local"') in setup.read_text()
    assert 'for k in ("cuda_graph_impl",):' in setup.read_text()


NOT_COPIED = table_of(__name__, "NOT_COPIED")


@pytest.mark.parametrize(("code", "recipe", "reason"), NOT_COPIED.values(), ids=NOT_COPIED)
def test_code_that_is_not_followed_leaves_both_files_as_they_are(
    project: Path, cgmigrate, code: str, recipe: str, reason: str
) -> None:
    setup, filled = write(project / "pkg/setup.py", code), write(project / "conf/recipe.yaml", recipe)
    staged(project)
    result = cgmigrate("fix", ".")
    assert (result.exit_code, setup.read_text(), filled.read_text()) == (1, code, recipe)
    assert reason in " ".join(result.stdout.split())


def test_a_name_that_another_file_has_and_the_code_does_not_copy_prevents_the_fix(project: Path, cgmigrate) -> None:
    setup, filled = write(project / "pkg/setup.py", EXAMPLE), write(project / "conf/recipe.yaml", CAPTURED)
    write(project / "conf/b.yaml", "policy:\n  megatron_cfg:\n    cuda_graph_impl: full_iteration\n")
    staged(project)
    result = cgmigrate("fix", ".")
    assert (setup.read_text(), filled.read_text()) == (EXAMPLE, CAPTURED)
    assert "pkg/setup.py:3 also uses" in " ".join(result.stdout.split())


def test_a_list_of_names_that_another_file_may_import_is_not_followed(project: Path, cgmigrate) -> None:
    code = EXAMPLE.replace('("enable_cuda_graph", "external_cuda_graph")', "KEYS")
    code = 'KEYS = ("enable_cuda_graph", "external_cuda_graph")\n' + code
    setup, filled = write(project / "pkg/setup.py", code), write(project / "conf/recipe.yaml", CAPTURED)
    staged(project)
    assert "pkg/setup.py:1 also uses" in cgmigrate("fix", ".").stdout
    assert (setup.read_text(), filled.read_text()) == (code, CAPTURED)


@from_table
def test_other_files_do_not_stop_a_group(project: Path, cgmigrate, name: str, text: str) -> None:
    setup, filled = write(project / "pkg/setup.py", EXAMPLE), write(project / "conf/recipe.yaml", CAPTURED)
    write(project / name, text)
    staged(project)
    cgmigrate("fix", ".")
    assert 'for k in ("cuda_graph_impl",):' in setup.read_text()
    assert "cuda_graph_impl: transformer_engine" in filled.read_text()


def test_an_override_of_an_old_key_on_a_command_line_prevents_the_fix(project: Path, cgmigrate) -> None:
    setup, filled = write(project / "pkg/setup.py", EXAMPLE), write(project / "conf/recipe.yaml", CAPTURED)
    write(project / "docs/launch.sh", "python train.py ++policy.megatron_cfg.external_cuda_graph=true\n")
    staged(project)
    assert "docs/launch.sh" in cgmigrate("fix", ".").stdout
    assert (setup.read_text(), filled.read_text()) == (EXAMPLE, CAPTURED)


OTHER = EXAMPLE.replace("megatron_cfg", "trainer_cfg")
STARTED = "train.py --config conf/recipe.yaml ++policy.{override}"
LAUNCHERS = {
    "launch.sh": "python {line}\n",
    "job.yaml": "spec:\n  args: {words}\n",
    "launch.py": "import subprocess\nsubprocess.run({words})\n",
}


def started(project: Path, launcher: str, override: str, files: dict[str, str]) -> Path:
    """Write a project with a launcher that starts its recipe with an override; return the launcher."""
    line = STARTED.format(override=override)
    for name, text in files.items():
        write(project / name, text)
    path = write(project / launcher, LAUNCHERS[launcher].format(line=line, words=line.split()))
    staged(project)
    return path


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_an_override_of_another_interface_changes_with_its_code(project: Path, cgmigrate, launcher: str) -> None:
    files = {"pkg/setup.py": EXAMPLE, "conf/recipe.yaml": CAPTURED, "pkg/other.py": OTHER}
    path = started(project, launcher, "trainer_cfg.external_cuda_graph=true", files)
    cgmigrate("fix", ".")
    is_rewritten = "++policy.trainer_cfg.cuda_graph_impl=transformer_engine" in path.read_text()
    assert is_rewritten is ("cuda_graph_impl" in (project / "pkg/other.py").read_text())


@pytest.mark.parametrize("launcher", LAUNCHERS)
@from_table
def test_an_override_whose_key_code_reads_stays_if_the_code_does(
    project: Path, cgmigrate, launcher: str, override: str, files: dict[str, str]
) -> None:
    path = started(project, launcher, override, {"conf/recipe.yaml": CAPTURED, **files})
    text = path.read_text()
    cgmigrate("fix", ".")
    assert path.read_text() == text
    assert cgmigrate("check", ".").exit_code == 1
