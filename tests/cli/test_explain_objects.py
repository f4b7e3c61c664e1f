"""`explain FILE:LINE` and `explain FILE`: what the plan has of the settings at a line."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from cgmigrate.project.paths import file_and_line
from tests.support.files import write
from tests.support.nightly import part
from tests.support.paths import ROOT
from tests.support.tables import from_table

BASE = "policy:\n  megatron_cfg:\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
CHILD = "defaults: base.yaml\npolicy:\n  megatron_cfg:\n    cuda_graph_scope: [attn, mlp]\nseed: 1\n"
ANCHORS = """\
.a: &a
  enable_cuda_graph: true
  cuda_graph_scope: full_iteration
x:
  megatron:
    <<: *a
    cuda_graph_scope: attn  # cgmigrate: ignore[CG106]
y:
  megatron:
    <<: *a
"""
EXAMPLES = ROOT / "examples/configs"


@pytest.fixture
def chain(project: Path) -> Path:
    """Two files that change together, in a git checkout."""
    (project / ".git/HEAD").unlink()
    subprocess.run(["git", "init", "-q", "."], check=True)
    write("conf/base.yaml", BASE)
    write("conf/child.yaml", CHILD)
    subprocess.run(["git", "add", "."], check=True)
    return project


def section(text: str, title: str) -> list[str]:
    """Return the lines below a title, without their indentation."""
    below = text.split(f"\n{title}", 1)[1].split("\n\n")[0].splitlines()[1:]
    return [line.strip() for line in below]


def test_the_settings_of_a_chain_are_shown_with_their_origins(chain: Path, cgmigrate) -> None:
    result = cgmigrate("explain", "conf/child.yaml:4")
    assert result.exit_code == 0, result.stderr
    assert result.stdout.startswith("conf/child.yaml:4: policy.megatron_cfg (NeMo-RL)\n")
    assert section(result.stdout, "Settings in effect:") == [
        "cuda_graph_scope: [attn, mlp]  conf/child.yaml:4",
        "overrides cuda_graph_scope: attn  conf/base.yaml:4 (merged file)",
        "external_cuda_graph: true      conf/base.yaml:3 (merged file)",
    ]


def test_the_base_of_a_chain_shows_what_it_and_the_leaves_capture(chain: Path, cgmigrate) -> None:
    text = cgmigrate("explain", "conf/base.yaml:3").stdout
    captures = "0.17: {} per layer (TE) in training -> 0.19: the same"
    assert section(text, "Captures:") == [
        captures.format("attn"),
        "conf/base.yaml:3",
        captures.format("attn, mlp"),
        "conf/child.yaml:4",
    ]


def test_entry_points_with_the_same_captures_are_one_group(chain: Path, cgmigrate) -> None:
    write("conf/other.yaml", CHILD.replace("seed", "more"))
    subprocess.run(["git", "add", "."], check=True)
    text = cgmigrate("explain", "conf/child.yaml:4").stdout
    assert section(text, "Captures:")[1:] == ["conf/child.yaml:4", "conf/other.yaml:4"]


def test_the_next_command_writes_the_set_that_is_shown(chain: Path, cgmigrate) -> None:
    text = cgmigrate("explain", "--to", "0.18", "conf/base.yaml:3").stdout
    assert section(text, "Edit set ") == [
        "conf/base.yaml:3: policy.megatron_cfg",
        "writes cuda_graph_impl: transformer_engine",
        "writes cuda_graph_modules: attn",
        "conf/child.yaml:4: policy.megatron_cfg",
        "writes cuda_graph_modules: [attn, mlp]",
    ]
    words = shlex.split(text.split("Next: ")[1])
    assert words[:4] == ["cgmigrate", "fix", "--to", "0.18"]
    assert cgmigrate(*words[1:]).exit_code == 0
    assert "cuda_graph_modules: [attn, mlp]" in (chain / "conf/child.yaml").read_text()
    assert "cuda_graph_impl: transformer_engine" in (chain / "conf/base.yaml").read_text()


def test_a_withheld_set_says_why(project: Path, cgmigrate) -> None:
    write("a.yaml", ANCHORS)
    text = cgmigrate("explain", "a.yaml:2").stdout
    assert "\nEdit set " in text and "(withheld):\n" in text
    below = section(text, "Edit set ")
    assert "withheld: CG106 in a.yaml:7, which a comment suppresses and which has to change with it" in below
    assert "help: suppress this diagnostic, too, or delete the comment" in below
    assert "Next: cgmigrate fix" not in text


def test_the_origin_of_a_merged_setting_is_its_anchor(project: Path, cgmigrate) -> None:
    write("a.yaml", ANCHORS)
    text = cgmigrate("explain", "a.yaml:7").stdout
    assert section(text, "Settings in effect:") == [
        "cuda_graph_scope: attn   a.yaml:7",
        "overrides cuda_graph_scope: full_iteration  a.yaml:3 (merge key)",
        "enable_cuda_graph: true  a.yaml:2 (merge key)",
    ]


def test_code_is_explained(project: Path, cgmigrate) -> None:
    write(
        "a.py",
        "from megatron.core.transformer import TransformerConfig\n\n\ndef build():\n"
        "    config = TransformerConfig(enable_cuda_graph=True)\n"
        "    assert config.cuda_graph_scope == []\n"
        "    return config\n",
    )
    result = cgmigrate("explain", "a.py:5")
    assert result.exit_code == 0
    assert result.stdout.startswith("a.py:5: build: megatron.core.transformer.TransformerConfig (megatron-core's")
    assert section(result.stdout, "Settings in effect:") == ["enable_cuda_graph=True  a.py:5"]
    reader = cgmigrate("explain", "a.py:6").stdout
    assert reader.startswith("a.py:6: `config.cuda_graph_scope`\n") and "CG603 on line 6" in reader


def test_what_a_condition_decides_is_not_known(project: Path, cgmigrate) -> None:
    call = 'TransformerConfig(cuda_graph_impl="local" if moe else "none", cuda_graph_scope="attn")'
    write("a.py", f"from megatron.core.transformer import TransformerConfig\n\ndef build(moe):\n    return {call}\n")
    explained = cgmigrate("explain", "a.py:4").stdout
    assert section(explained, "Captures:")[0].startswith("not known: a condition or a value computed at run time")


def test_a_file_lists_its_objects(chain: Path, cgmigrate) -> None:
    result = cgmigrate("explain", "./conf/child.yaml")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "conf/child.yaml:4: policy.megatron_cfg (NeMo-RL)"
    assert lines[1].startswith("  fix ") and "(safe) together with conf/base.yaml; 0.17: attn, mlp" in lines[1]
    assert lines[-1] == "Next: cgmigrate explain conf/child.yaml:4"


def test_a_line_without_settings_names_the_nearest(chain: Path, cgmigrate) -> None:
    result = cgmigrate("explain", "conf/child.yaml:5")
    assert result.exit_code == 1 and result.stdout == ""
    assert result.stderr == (
        "conf/child.yaml:5: no settings on this line; the nearest are those of policy.megatron_cfg "
        "(`cgmigrate explain conf/child.yaml:4`)\n"
    )


def test_a_file_without_settings_is_reported(project: Path, cgmigrate) -> None:
    write("a.yaml", "a: 1\n")
    assert cgmigrate("explain", "a.yaml:1").exit_code == 1
    result = cgmigrate("explain", "a.yaml")
    assert (result.exit_code, result.stderr) == (0, "a.yaml: no settings that cgmigrate knows\n")


@pytest.mark.parametrize("name", ["no.yaml", "no.yaml:3", "conf/no:7", "./CG101", "no.py:1:2"])
def test_a_missing_file_is_an_error(project: Path, cgmigrate, name: str) -> None:
    result = cgmigrate("explain", name)
    assert result.exit_code == 2
    assert result.stderr.endswith(": no such file or directory\n") and result.stderr.startswith("error: ")


def test_a_folder_is_an_error(chain: Path, cgmigrate) -> None:
    result = cgmigrate("explain", "conf")
    assert result.exit_code == 2 and "conf is a folder: give a file, or a line as FILE:LINE" in result.stderr


def test_a_rule_takes_precedence_over_a_file_of_its_name(project: Path, cgmigrate) -> None:
    write("CG101", "a: 1\n")
    assert cgmigrate("explain", "CG101").stdout.startswith("CG101 enable-cuda-graph\n")


@from_table
def test_a_place_is_a_file_and_a_line(project: Path, text: str, expected: tuple[str, int | None]) -> None:
    write("taken.yaml:12", "")
    assert file_and_line(text) == expected


def test_every_diagnostic_of_check_is_explained_at_its_line(project: Path, cgmigrate) -> None:
    shutil.copytree(EXAMPLES, project / "configs")
    report = json.loads(cgmigrate("check", "--output-format", "json", "configs").stdout)
    assert len(report["findings"]) > 20
    for one in part(report["findings"], 3):
        if not one["place"]:
            continue
        result = cgmigrate("explain", f"{one['path']}:{one['line']}")
        assert result.exit_code == 0, (one["path"], one["line"], result.stderr)
        assert f"{one['rule']} on line {one['line']}: " in result.stdout
        assert one["fix"] is None or f"Edit set {one['fix']['id']} ({one['fix']['safety']}):" in result.stdout


LISTED = """\
model:
  cuda_graph_impl: transformer_engine
  cuda_graph_scope:  # the router
    - attn
    - moe_router
"""
COPIER = """\
from megatron.bridge.models import GPTModelProvider

for key in ("external_cuda_graph", "cuda_graph_scope"):
    if key in config["megatron_cfg"]:
        setattr(model_cfg, key, config["megatron_cfg"][key])
"""


def test_values_of_several_lines_are_shown_in_one_without_their_comments(project: Path, cgmigrate) -> None:
    write("train.yaml", LISTED)
    text = cgmigrate("explain", "train.yaml:3").stdout
    assert section(text, "Settings in effect:") == [
        "cuda_graph_impl: transformer_engine   train.yaml:2",
        "cuda_graph_scope: [attn, moe_router]  train.yaml:3",
    ]
    assert "    writes cuda_graph_modules: [attn, moe_router]" in text.splitlines()


def test_code_that_copies_keys_is_described_by_its_fix(chain: Path, cgmigrate) -> None:
    write("setup.py", COPIER)
    subprocess.run(["git", "add", "."], check=True)
    members = [line for line in section(cgmigrate("explain", "conf/base.yaml:3").stdout, "Edit set ") if "fix:" in line]
    assert members == ["fix: write `cuda_graph_impl`", "fix: write `cuda_graph_modules`"]


# --- layers and advice ------------------------------------------------------------------------------

FACTS = yaml.safe_load((ROOT / "rules/advice/captures.yaml").read_text(encoding="utf-8"))
GPT = "each layer of a GPT model: nothing"


@from_table
def test_captures_of_local_are_shown_by_layer(
    project: Path, cgmigrate, name: str, text: str, has: list[str], lacks: list[str]
) -> None:
    write(name, text)
    output = cgmigrate("explain", "--from", "0.19", f"{name}:1").stdout
    lines = section(output, "By layer:")
    assert not set(has) - set(lines) and not set(lacks) & set(lines)
    assert json.loads(cgmigrate("explain", "--from", "0.19", "--format", "json", f"{name}:1").stdout)["objects"][0][
        "layers"
    ] == list(lines)


@pytest.mark.parametrize("impl", ["none", "transformer_engine", "full_iteration"])
def test_modules_of_other_implementations_say_what_they_capture(project: Path, cgmigrate, impl: str) -> None:
    write("a.yaml", f"model: {{cuda_graph_impl: {impl}}}\n")
    output = cgmigrate("explain", "--from", "0.19", "a.yaml:1").stdout
    assert "Captures:" in output and "By layer:" not in output


@pytest.mark.parametrize("fact", FACTS, ids=[fact["text"].split(":")[0] for fact in FACTS])
def test_each_fact_is_shown_where_it_applies(project: Path, cgmigrate, fact: dict) -> None:
    for settings, is_shown in ((fact["example"], True), ({"cuda_graph_impl": "none"}, False)):
        write("a.yaml", f"model: {json.dumps(settings)}\n")
        output = cgmigrate("explain", "--from", "0.19", "a.yaml:1").stdout
        assert "Captures:" in output and (fact["text"] in output) is is_shown


def test_a_refusal_of_a_boolean_beside_none_is_the_same_before_and_after(project: Path, cgmigrate) -> None:
    """0.19.2 turns the boolean into `local`, and stops: attention dropout is not supported with graphed attention."""
    text = "model:\n  cuda_graph_impl: none\n  enable_cuda_graph: true\n  cuda_graph_modules: [full]\n"
    text += "  recompute_granularity: selective\n  recompute_modules: [core_attn]\n  attention_dropout: 0.1\n"
    write("a.yaml", text)

    shown = cgmigrate("explain", "--from", "0.19", "--to", "0.19", "a.yaml").stdout

    assert "0.19: rejected: `core_attn` is recomputed inside a graph" in shown
    assert "captures" not in shown
