"""What code of Megatron-LM is gone or takes other arguments, against the installed megatron-core."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from pathlib import Path

import pytest

from cgmigrate.megatron.code import CallShape, Parameters, load
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.versions import parse_release
from tests.support.paths import FETCHED
from tests.support.release_tables import installed
from tests.support.tables import from_table


def _file_of(module: str) -> Path | None:
    pytest.importorskip("megatron.core", reason="no megatron-core")
    spec = importlib.util.find_spec("megatron")
    assert spec is not None and spec.submodule_search_locations
    path = Path(next(iter(spec.submodule_search_locations)), *module.split(".")[1:])
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()), None)


def _defined_in(path: Path) -> dict[str, ast.stmt]:
    return {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_the_installed_release_does_not_define_what_is_gone() -> None:
    checked = 0
    for module, names in load().gone.items():
        path = _file_of(module)
        for name in names:
            gone = load().gone_name(module, name)
            if gone is not None and gone.since <= installed():
                checked += 1
                assert path is None or (name and name not in _defined_in(path)), f"{module}.{name}"
    assert checked > 500


def test_the_installed_release_has_the_last_known_parameters() -> None:
    checked = 0
    for function, history in load().parameters.items():
        module, _, name = function.rpartition(".")
        path = _file_of(module)
        defined = _defined_in(path).get(name) if path else None
        if isinstance(defined, ast.FunctionDef) and ast.unparse(defined.args) != "*args, **kwargs":
            checked += 1
            last = next(
                form
                for release, form in reversed(history.items())
                if Release(*map(int, release.split("."))) <= installed()
            )
            assert str(Parameters.of(defined.args)) == last, function
    assert checked > 50


def test_methods_of_the_installed_release_have_what_was_added() -> None:
    checked = 0
    for name, row in load().overrides.items():
        module, _, class_name = name.rpartition(".")
        path = _file_of(module) if module.startswith("megatron.core") and not isinstance(row, str) else None
        for node in ast.parse(path.read_text()).body if path else ():
            for method in node.body if isinstance(node, ast.ClassDef) and node.name == class_name else ():
                if isinstance(method, ast.FunctionDef):
                    added = row.get(method.name, {}).items()
                    known = [one for since, names in added if parse_release(since) <= installed() for one in names]
                    checked += len(known)
                    assert Parameters.of(method.args).names.issuperset(known), f"{name}.{method.name}"
    assert checked > 100


@pytest.mark.parametrize(("wheel", "release"), [("megatron-bridge-0.4.2", "0.17"), ("megatron-bridge-0.6.2", "0.19")])
def test_the_wheels_of_megatron_bridge_do_not_have_what_is_gone(wheel: str, release: str) -> None:
    if not (folder := FETCHED / wheel).is_dir():
        pytest.skip(f"{folder} is missing; .ci/run fetches it")
    checked = 0
    for module, names in load().gone.items():
        path = folder.joinpath(*module.split("."))
        own = [one for one in (path.with_suffix(".py"), path / "__init__.py") if one.is_file()]
        for name in names if module.startswith("megatron.bridge") else ():
            gone = load().gone_name(module, name)
            if gone is not None and gone.since <= parse_release(release):
                checked += 1
                # A word of the source that is no name at all, such as one in a docstring, would be a false alarm.
                assert not own or (name and name not in _bound_in(own[0])), f"{module}.{name}"
    assert checked > 300


def _bound_in(path: Path) -> set[str]:
    """Return what a module defines, assigns and imports at its top."""
    tree = ast.parse(path.read_text())
    names = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom):
            names |= {one.asname or one.name for one in node.names if (node.module or "").startswith("megatron")}
        elif isinstance(node, ast.Assign):
            names |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return names


LAYER_SPEC = "core.models.gpt.gpt_layer_specs.get_gpt_layer_local_spec"
INITIALIZE = "training.initialize.initialize_megatron"
RECIPE = "bridge.recipes.llama.llama3_8b_pretrain_config"
GEMM = "has no parameter `moe_use_legacy_grouped_gemm`"
GROUP = "takes `is_hybrid_cp` as argument 2, where `cp_group` was"


@from_table
def test_what_became_of_a_name(module: str, name: str, since: str, place: str) -> None:
    gone = load().gone_name(module, name)
    assert gone is not None
    assert (str(gone.since), gone.module) == (since, place)


def test_a_name_that_is_there_is_not_gone() -> None:
    assert load().gone_name("megatron.core.utils", "unwrap_model") is None
    # Imported from another module, under this name.
    assert load().gone_name("megatron.bridge.recipes.llama", "llama3_8b_pretrain_config") is None


@pytest.mark.parametrize(
    ("function", "positional", "names", "expected"),
    [
        ("core.utils.get_batch_on_this_cp_rank", 1, [], [("0.18", "needs `is_hybrid_cp`", False)]),
        ("core.utils.get_batch_on_this_cp_rank", 2, [], [("0.18", GROUP, True)]),
        ("core.utils.get_batch_on_this_cp_rank", 1, ["cp_group"], [("0.18", "needs `is_hybrid_cp`", False)]),
        (INITIALIZE, 0, ["args_defaults"], [("0.18", "has no parameter `args_defaults`", False)]),
        (INITIALIZE, 0, [], []),
        (RECIPE, 0, [], []),
        (RECIPE, 0, ["dir"], [("0.16", "has no parameter `dir`", False)]),
        (LAYER_SPEC, 0, ["moe_use_legacy_grouped_gemm"], [("0.17", GEMM, False)]),
    ],
)  # fmt: skip
def test_a_call_that_a_release_does_not_take(
    function: str, positional: int, names: list[str], expected: list[tuple[str, str, bool]]
) -> None:
    mismatches = load().mismatches(f"megatron.{function}", CallShape(positional, frozenset(names)))
    assert [(str(one.since), one.why, one.is_silent) for one in mismatches] == expected


@pytest.mark.parametrize(
    ("argument", "taken", "expected"),
    [
        (1, "pre_process=0, post_process=0, vp_stage=0, config=0, pg_collection=0", []),
        (1, "pre_process=0, post_process=0, **rest", []),
        (1, "pre_process=0, post_process=0", [("0.16", "has no parameter `config`, `pg_collection`")]),
        ("model_provider", "pre_process, post_process", [("0.16", "has no parameter `config`, `pg_collection`")]),
        # It is no model provider in any release.
        (1, "path", []),
        (0, "pre_process, post_process", []),
    ],
)
def test_a_function_that_is_passed_on_and_called_otherwise(
    argument: str | int, taken: str, expected: list[tuple[str, str]]
) -> None:
    refused = load().refused_callbacks("megatron.training.pretrain", argument, Parameters.read(taken))
    assert [(str(release), why) for release, why in refused] == expected


def test_parameters_are_read_as_they_are_written() -> None:
    def function(a: int, b: int = 1, *, c: int, d: int = 2, **rest: int) -> None: ...

    [node] = ast.parse(inspect.cleandoc(inspect.getsource(function))).body
    assert isinstance(node, ast.FunctionDef)
    parameters = Parameters.of(node.args)
    assert Parameters.read(str(parameters)) == parameters
    assert str(parameters) == "a, b=0, *, c, d=0, **__"


def test_a_parameter_with_a_new_name_alone_is_taken_for_the_same() -> None:
    before, after = Parameters.read("query, group"), Parameters.read("q, group")
    assert CallShape(2, frozenset()).moved(before, after) == ""
    assert CallShape(1, frozenset({"query"})).mismatch(after) == "has no parameter `query`"
    assert CallShape(1, frozenset()).moved(before, Parameters.read("batch, group")) != ""
