"""Settings that are interpolations of other keys: OmegaConf resolves the files before and after the fix."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cgmigrate.lint.diagnostics import Applicability
from cgmigrate.megatron.types import Reader
from tests.support.capture_judges import captured_before, captured_by_newest, fix, settings_at
from tests.support.files import write
from tests.support.loaders import load_nemo_rl

PLACE = ("policy", "megatron_cfg")
LAYERS = "policy:\n  megatron_cfg:\n    cuda_graph_impl: transformer_engine\n"
BASE = f"{LAYERS}    cuda_graph_scope: ${{graphs.scope}}\ngraphs:\n  scope: [attn]\n"


def assert_captures_stay(*paths: Path) -> None:
    """Fix the folder of the files; each captures the same, read by the newest release."""
    before = [captured_before(settings_at(load_nemo_rl(path), PLACE), Reader.NEMO_RL) for path in paths]
    fix(paths[0].parent)
    assert before == [captured_by_newest(settings_at(load_nemo_rl(path), PLACE), Reader.NEMO_RL) for path in paths]


@pytest.mark.parametrize(
    ("written", "elsewhere"),
    [
        ("${graphs.scope}", "graphs:\n  scope: [attn]\n"),
        ("${graphs.cuda_graph_scope}", "graphs:\n  cuda_graph_scope: attn\n"),
        ("${.mode}", "    mode: attn\n"),
        ("${..mode}", "  mode: attn,mlp\n"),
        ("${graphs.first}", "graphs:\n  first: ${graphs.second}\n  second: mlp\n"),
        ("${mode}", "mode: attn\n"),
    ],
)
def test_a_key_gets_its_new_name_and_keeps_its_interpolation(project: Path, written: str, elsewhere: str) -> None:
    path = write(project / "a.yaml", f"{LAYERS}    cuda_graph_scope: {written}\n{elsewhere}")
    assert_captures_stay(path)
    assert path.read_text() == f"{LAYERS}    cuda_graph_modules: {written}\n{elsewhere}"


@pytest.mark.parametrize(
    ("written", "elsewhere"),
    [
        ("${oc.env:SCOPE,attn}", ""),
        ("${SCOPE}", "SCOPE: attn\n"),
        ("${graphs.scope}", ""),
        ("${graphs.scope}", "graphs:\n  scope: ${oc.env:SCOPE,attn}\n"),
        ("${graphs.scope}", "graphs:\n  scope: {attn: true}\n"),
        ("${graphs.scope}", "graphs:\n  scope: ???\n"),
        ("${.cuda_graph_scope}", ""),
        ("${....x}", "x: attn\n"),
        ("graphs-${graphs.scope}", "graphs:\n  scope: attn\n"),
        ("${graphs.scope}", "all: &all\n  scope: attn\ngraphs:\n  <<: *all\n"),
    ],
)
def test_what_is_not_known_is_reported_and_stays(project: Path, written: str, elsewhere: str) -> None:
    path = write(project / "a.yaml", text := f"{LAYERS}    cuda_graph_scope: {written}\n{elsewhere}")
    assert "CG003" in {one.rule for checked in fix(project).results for one in checked.remaining}
    assert path.read_text() == text


def test_a_key_of_another_file_is_followed(project: Path) -> None:
    keys = write(project / "keys.yaml", "graphs:\n  scope: [attn, mlp]\n")
    path = write(project / "a.yaml", f"defaults: keys.yaml\n{LAYERS}    cuda_graph_scope: ${{graphs.scope}}\n")
    assert_captures_stay(path)
    assert "cuda_graph_modules: ${graphs.scope}" in path.read_text()
    assert keys.read_text() == "graphs:\n  scope: [attn, mlp]\n"


def test_a_key_with_different_values_in_several_files_is_not_known(project: Path) -> None:
    base = write(project / "base.yaml", BASE)
    child = write(project / "child.yaml", "defaults: base.yaml\ngraphs:\n  scope: [mlp]\n")
    assert_captures_stay(base, child)
    assert base.read_text() == BASE


def test_a_value_that_the_interpolation_does_not_yield_is_unsafe(project: Path) -> None:
    text = "policy:\n  megatron_cfg:\n    external_cuda_graph: ${graphs.on}\ngraphs:\n  on: true\n"
    path = write(project / "a.yaml", text)
    (one,) = fix(project).results[0].remaining
    assert one.fix is not None and one.fix.applicability is Applicability.UNSAFE
    assert one.because == "`${graphs.on}` is replaced, and what sets that key would have no effect on it"
    fix(project, unsafe=True)
    assert "    cuda_graph_impl: transformer_engine\n" in path.read_text()


def test_a_setting_that_an_interpolation_reads_keeps_its_name(project: Path) -> None:
    text = f"{LAYERS}    cuda_graph_scope: attn\nother:\n  megatron_cfg:\n    cuda_graph_impl: transformer_engine\n"
    path = write(project / "a.yaml", text + "    cuda_graph_scope: ${policy.megatron_cfg.cuda_graph_scope}\n")
    assert_captures_stay(path)
    assert path.read_text().startswith(f"{LAYERS}    cuda_graph_scope: attn\n")
    reasons = {one.blocked_by for one in fix(project).results[0].remaining}
    assert reasons == {"`${policy.megatron_cfg.cuda_graph_scope}` reads a setting of it by its name"}


def test_a_command_line_that_overrides_the_key_is_named(project: Path) -> None:
    path = write(project / "a.yaml", BASE)
    write(project / "run.sh", "python run.py --config a.yaml \\\n  graphs.scope=full_iteration\n")
    (project / ".git/HEAD").unlink()
    for words in (["init", "-q", "."], ["add", "."]):
        subprocess.run(["git", "-C", str(project), *words], check=True)
    (one,) = fix(project).results[0].remaining
    assert one.because == "a command line overrides `graphs.scope` (run.sh:2), whose value it has"
    assert path.read_text() == BASE


def test_an_interpolation_of_a_whole_group_is_not_known(project: Path) -> None:
    text = "defaults:\n  - graphs: a\n  - _self_\nmodel:\n  num_layers: 2\n  cuda_graph_scope: ${graphs}\n"
    path = write(project / "config.yaml", text)
    write(project / "graphs/a.yaml", "scope: attn\n")
    done = fix(project)
    assert not done.written and path.read_text() == text
    assert {diagnostic.rule for one in done.results for diagnostic in one.remaining} == {"CG003"}


def test_a_key_with_dots_stays(project: Path) -> None:
    text = (
        "model.cuda_graph_impl: transformer_engine\nmodel.cuda_graph_scope: ${graphs.scope}\ngraphs:\n  scope: attn\n"
    )
    path = write(project / "a.yaml", text)
    assert not fix(project).written and path.read_text() == text
