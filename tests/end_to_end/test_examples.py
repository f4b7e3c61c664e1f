"""The diagnostics and the fixes of examples/configs, to the byte.

The expected contents of the files that are rewritten are under tests/fixtures/examples.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner, Result

from cgmigrate.cli.commands import main
from tests.support.paths import EXAMPLES, FIXTURES

EXPECTED = FIXTURES / "examples"


class Diagnostics(NamedTuple):
    """Line and code of what `fix` settles, and of what it leaves for a person."""

    fixed: list[str]
    left: list[str]


DIAGNOSTICS = {
    # Megatron-LM: flags or arguments as keys
    "megatron-lm/gpt3-345m-tp2-pp2.yaml": Diagnostics(["28 CG102", "29 CG106"], []),
    "megatron-lm/inference-dynamic-583m.yaml": Diagnostics(["23 CG105"], []),
    "megatron-lm/llama3-8b-full-iteration.yaml": Diagnostics(["20 CG101", "21 CG104"], []),
    "megatron-lm/mamba-hybrid-2b.yaml": Diagnostics([], []),
    "megatron-lm/moe-8x7b-te-scoped.yaml": Diagnostics(["27 CG106"], []),
    "megatron-lm/moe-dev-recipe.yaml": Diagnostics(["30 CG106"], []),
    # Megatron-Bridge
    "megatron-bridge/deepseek-v3-256gpus.yaml": Diagnostics([], []),
    "megatron-bridge/gpt-oss-20b-local.yaml": Diagnostics([], ["5 CG501", "6 CG106"]),
    "megatron-bridge/llama3-8b-pretrain.yaml": Diagnostics(["8 CG103"], []),
    "megatron-bridge/nemotron-h-8b-gb200.yaml": Diagnostics(["9 CG104"], []),
    "megatron-bridge/qwen3-30b-a3b.yaml": Diagnostics(["11 CG106"], []),
    # NeMo-RL
    "nemo-rl/dpo-reward-colocated.yaml": Diagnostics(["18 CG302"], []),
    "nemo-rl/grpo-math-1b-megatron.yaml": Diagnostics(["26 CG102", "27 CG106"], []),
    "nemo-rl/grpo-math-8b-16k.yaml": Diagnostics(["15 CG106"], []),
    "nemo-rl/grpo-math-8b.yaml": Diagnostics([], []),
    # Megatron-Bridge, whose validation NeMo-RL calls, refuses `local` with modules.
    "nemo-rl/sft-anchors.yaml": Diagnostics([], ["10 CG501", "11 CG106", "20 CG105", "20 CG106"]),
    # OmegaConf, Hydra, serialised objects
    "omegaconf/gpt-175b-te-graphs.yaml": Diagnostics(["25 CG102", "26 CG106"], []),
    "omegaconf/hydra-pretrain.yaml": Diagnostics([], ["16 CG004", "16 CG301"]),
    "omegaconf/llama2-70b-lora.yaml": Diagnostics([], ["26 CG003", "27 CG003"]),
    "omegaconf/nemo2-gpt-serialised.yaml": Diagnostics(["12 CG101", "16 CG102", "17 CG103"], []),
    "omegaconf/verl-actor.yaml": Diagnostics(["13 CG301"], ["23 CG207"]),
}
REWRITTEN = {name for name, diagnostics in DIAGNOSTICS.items() if diagnostics.fixed}


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the examples, with their pin, to work on."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(EXAMPLES, tmp_path / "configs"))


def cgmigrate(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


def diagnostics_in(output: str) -> dict[str, Diagnostics]:
    """What `check` printed: by file, the diagnostics marked as fixable and the others."""
    diagnostics: dict[str, Diagnostics] = {}
    for path, line, code, mark in re.findall(r"^configs/(\S+):(\d+):\d+: (CG\d+)( \[\*\])?", output, re.MULTILINE):
        of_file = diagnostics.setdefault(path, Diagnostics([], []))
        (of_file.fixed if mark else of_file.left).append(f"{line} {code}")
    return diagnostics


def test_every_example_is_in_the_lists() -> None:
    assert {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.yaml")} == set(DIAGNOSTICS)
    names = {path.relative_to(EXPECTED).as_posix() for path in EXPECTED.rglob("*.yaml")}
    # A parent that stays as it is has to be beside its child: a chain with a missing file is not known.
    assert {name for name in names if (EXPECTED / name).read_bytes() != (EXAMPLES / name).read_bytes()} == REWRITTEN


def test_check_reports_these_lines_and_rules(configs: Path) -> None:
    result = cgmigrate("check", "--output-format", "concise", "configs")

    assert diagnostics_in(result.output) == {
        name: diagnostics for name, diagnostics in DIAGNOSTICS.items() if any(diagnostics)
    }
    assert result.exit_code == 1


def test_fix_writes_the_expected_bytes_and_nothing_else(configs: Path) -> None:
    result = cgmigrate("fix", "configs")

    for name in DIAGNOSTICS:
        expected = (EXPECTED if name in REWRITTEN else EXAMPLES) / name
        assert (configs / name).read_bytes() == expected.read_bytes(), name
    assert result.exit_code == 1, "diagnostics are left"


def test_a_second_run_finds_only_what_was_left(configs: Path) -> None:
    cgmigrate("fix", "configs")
    result = cgmigrate("check", "--output-format", "concise", "configs")

    # Lines move up where something above them was deleted.
    codes = {
        name: [diagnostic.split()[1] for diagnostic in diagnostics.left]
        for name, diagnostics in DIAGNOSTICS.items()
        if diagnostics.left
    }
    again = diagnostics_in(result.output)
    assert {
        name: [diagnostic.split()[1] for diagnostic in diagnostics.left] for name, diagnostics in again.items()
    } == codes
    assert not any(diagnostics.fixed for diagnostics in again.values())
    before = {path: path.read_bytes() for path in configs.rglob("*") if path.is_file()}
    cgmigrate("fix", "configs")
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_diff_is_the_change_that_git_can_apply(configs: Path) -> None:
    diff = CliRunner().invoke(main, ["fix", "configs", "--diff"])
    before = {path: path.read_bytes() for path in configs.rglob("*.yaml")}
    assert all((EXAMPLES / path.relative_to(configs)).read_bytes() == data for path, data in before.items())

    patch = diff.stdout_bytes
    subprocess.run(["git", "apply", "-"], input=patch, check=True, cwd=configs.parent, capture_output=True)
    for name in REWRITTEN:
        assert (configs / name).read_bytes() == (EXPECTED / name).read_bytes(), name


def test_line_ends_stay_what_they_were() -> None:
    name = "megatron-bridge/nemotron-h-8b-gb200.yaml"
    data = (EXPECTED / name).read_bytes()

    assert data.count(b"\n") == data.count(b"\r\n") > 0


def test_the_generation_engine_keeps_its_own_key(configs: Path) -> None:
    result = cgmigrate("fix", "configs/nemo-rl/grpo-math-1b-megatron.yaml")

    text = Path("configs/nemo-rl/grpo-math-1b-megatron.yaml").read_text()
    assert "      enable_cuda_graph: true  # the engine's own decode graphs\n" in text
    assert "belongs to NeMo-RL's generation engine" in result.output
    assert result.exit_code == 0


def test_on_0_18_and_later_a_scope_under_none_needs_a_decision(configs: Path) -> None:
    result = cgmigrate("check", "--output-format", "concise", "--from", "0.19", "configs/omegaconf/verl-actor.yaml")

    assert diagnostics_in(result.output)["omegaconf/verl-actor.yaml"] == Diagnostics([], ["13 CG301", "23 CG207"])


def test_the_configuration_beside_the_examples_answers_what_their_pin_asks(configs: Path) -> None:
    result = cgmigrate("check", "--output-format", "concise", "configs")

    assert "from 0.17 (configs/cgmigrate.toml) to 0.19 (configs/cgmigrate.toml)" in result.output
