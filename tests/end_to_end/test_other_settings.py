"""Settings beside those of the capture model: an entry of the catalogue and a rule file migrate each, without code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from tests.support.release_judges import read_in_forks
from tests.support.tables import from_table
from tests.support.teams import write_team

Run = Callable[..., Result]

FLAG = """\
summary: Sends tokens to experts one by one
kind: flag
owner: TransformerConfig
fork: ours
deprecated-in: "0.18"
replaced-by: token_dispatch
values:
  - {old: true, new: single}
  - {old: false, new: absent}
"""
CHOICE = """\
summary: The kernels that shuffle tokens
kind: choice
owner: our_package.OurConfig
deprecated-in: "0.18"
replaced-by: shuffle_backend
values:
  - {old: fast, new: fused}
  - {old: slow, new: plain}
"""
NUMBER = """\
summary: How many buckets tokens are sorted into
kind: number
owner: TransformerConfig
fork: ours
deprecated-in: "0.19"
replaced-by: bucket_count
"""
LIST = """\
summary: The parts of a layer that are traced
kind: list
owner: TransformerConfig
fork: ours
deprecated-in: "0.18"
replaced-by: traced_parts
"""


@from_table
def test_a_value_is_mapped_or_stays(
    project: Path, cgmigrate: Run, name: str, entry: str, before: str, after: str
) -> None:
    write_team(project, {name: entry})
    path = project / "a.yaml"
    path.write_text(f"model:\n  {before}\n")
    assert "TEAM001" in cgmigrate("check", "--output-format", "concise", ".").stdout
    diff = cgmigrate("fix", "--diff", ".").stdout
    assert f"+  {after.split(chr(10))[0]}" in diff or "a: 1" in after
    assert path.read_text() == f"model:\n  {before}\n"
    cgmigrate("fix", ".")
    assert path.read_text() == f"model:\n  {after}\n"
    assert cgmigrate("fix", ".").exit_code == cgmigrate("check", ".").exit_code == 0
    assert path.read_text() == f"model:\n  {after}\n"


YAML = """\
base: &base
  hidden_size: 4096
  shuffle_kernels: fast
child:
  <<: *base
  num_layers: 2
other:
  <<: *base
  shuffle_kernels: slow
model.shuffle_kernels: fast
MODEL_ARGS:
  --shuffle-kernels: slow
flow: {shuffle_kernels: fast, a: 1}
"""


def test_yaml_in_every_form(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE})
    path = project / "a.yaml"
    path.write_text(YAML)
    cgmigrate("fix", ".")
    new = YAML.replace("shuffle_kernels", "shuffle_backend").replace("--shuffle-kernels", "--shuffle-backend")
    assert path.read_text() == new.replace(": fast", ": fused").replace(": slow", ": plain")
    assert cgmigrate("check", ".").exit_code == 0


PYTHON = """\
from our_package import OurConfig
from megatron.core.transformer import TransformerConfig


def build():
    a = OurConfig(shuffle_kernels="fast", layers=2)
    b = TransformerConfig(**{"shuffle_kernels": "slow", "num_layers": 2})
    return a, b


def recipe(cfg):
    cfg.model.shuffle_kernels = "fast"
    return cfg
"""


def test_python_in_every_form(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE})
    path = project / "a.py"
    path.write_text(PYTHON)
    cgmigrate("fix", "--unsafe-fixes", ".")
    text = path.read_text()
    assert 'OurConfig(shuffle_backend="fused", layers=2)' in text
    assert '**{"shuffle_backend": "plain", "num_layers": 2}' in text
    assert 'cfg.model.shuffle_backend = "fused"' in text


READS = """\
from megatron.core.transformer import TransformerConfig


class Ours(TransformerConfig):
    shuffle_kernels: str = "fast"


def read(config):
    if config.shuffle_kernels == "fast":
        return getattr(config, "shuffle_kernels", None)
    return "shuffle_kernels" in config.__dict__


def options(parser):
    parser.add_argument("--shuffle-kernels")
"""


def test_reads_and_definitions_are_reported_and_not_changed(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE})
    path = project / "a.py"
    path.write_text(READS)
    reported = cgmigrate("check", "--output-format", "concise", ".").stdout
    for place in ("5:5: CG605", "9:8: CG603", "10:32: CG604", "11:12: CG604", "15:25: CG605"):
        assert place in reported, reported
    assert "cuda_graph" not in reported
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == READS


def test_a_fix_without_proof_is_unsafe(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE}, fix="")
    path = project / "a.yaml"
    path.write_text("model:\n  shuffle_kernels: fast\n")
    assert (
        "no source shows that 0.19 reads the new settings as 0.17 reads the old ones" in cgmigrate("check", ".").stdout
    )
    cgmigrate("fix", ".")
    assert path.read_text() == "model:\n  shuffle_kernels: fast\n"
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == "model:\n  shuffle_backend: fused\n"


REAL = """\
summary: Streaming multiprocessors that DeepEP uses
kind: number
owner: TransformerConfig
fork: ours
since: "0.13"
deprecated-in: "{deprecated}"
replaced-by: {new}
"""


@pytest.mark.parametrize("new", ["moe_flex_dispatcher_num_sms", "cuda_graph_warmup_steps"])
def test_the_target_has_the_new_setting(project: Path, cgmigrate: Run, new: str) -> None:
    write_team(project, {"moe_deepep_num_sms": REAL.format(new=new, deprecated="0.19")})
    path = project / "a.yaml"
    path.write_text("model:\n  moe_deepep_num_sms: 20\n")
    cgmigrate("fix", ".")
    assert new in path.read_text()


def test_an_entry_names_the_release_that_has_the_new_setting(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"moe_deepep_num_sms": REAL.format(new="moe_flex_dispatcher_num_sms", deprecated="0.18")})
    (project / "a.yaml").write_text("model:\n  moe_deepep_num_sms: 20\n")
    result = cgmigrate("check", ".")
    assert result.exit_code == 2
    assert "deprecated-in: moe_flex_dispatcher_num_sms is there since 0.19, not 0.18" in result.stderr


def test_a_value_without_a_new_one_is_a_choice(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE})
    path = project / "a.yaml"
    path.write_text("model:\n  shuffle_kernels: ${env:K}\n  cuda_graph_impl: local\n")
    stdout = cgmigrate("check", ".").stdout
    assert "no value that corresponds to ${env:K}: choose fused or plain" in stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert "shuffle_kernels: ${env:K}" in path.read_text()


@from_table
def test_a_setting_that_stays_as_it_is(
    project: Path, cgmigrate: Run, entries: dict[str, str], text: str, message: str, fixed: str
) -> None:
    known = {"CHOICE": CHOICE, "NUMBER": NUMBER, "OTHER": OTHER}
    write_team(project, {name: known.get(entry, entry) for name, entry in entries.items()})
    path = project / "a.yaml"
    path.write_text(text)
    assert message in cgmigrate("check", ".").stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == fixed


def test_it_does_not_keep_the_capture_settings_beside_it_from_their_fix(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"num_buckets": NUMBER})
    path = project / "a.yaml"
    path.write_text(
        "megatron_cfg:\n  num_buckets: 3\n  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: [attn]\n"
    )
    cgmigrate("fix", ".")
    assert path.read_text() == (
        "megatron_cfg:\n  bucket_count: 3\n  cuda_graph_impl: transformer_engine\n  cuda_graph_modules: [attn]\n"
    )


def test_it_is_explained(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"num_buckets": NUMBER})
    assert "`num_buckets` has a new name" in cgmigrate("explain", "TEAM001").stdout
    result = cgmigrate("explain", "num_buckets")
    assert result.exit_code == 0
    assert "How many buckets tokens are sorted into" in result.stdout
    assert "deprecated in 0.19, replaced by bucket_count" in result.stdout
    assert "TEAM001" in result.stdout


def test_its_examples_are_tested(project: Path, cgmigrate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    read_in_forks(monkeypatch)
    write_team(project, {"num_buckets": NUMBER})
    rule = project / "team/TEAM001-num-buckets.yaml"
    rule.write_text(
        rule.read_text()
        + """\
examples:
  - syntax: yaml
    before: |
      model:
        num_buckets: 3
    after: |
      model:
        bucket_count: 3
  - syntax: yaml
    reported: false
    before: |
      model:
        bucket_count: 3
"""
    )
    result = cgmigrate("rules", "test", "team")
    assert result.exit_code == 0, result.stdout + result.stderr


# --- several settings of one site -----------------------------------------------------------------

OTHER = NUMBER.replace("How many buckets tokens are sorted into", "How many buckets experts are sorted into")
SECTIONS = (
    ("a", "shuffle_kernels: medium"),
    ("b", "shuffle_kernels: ${env:K}"),
    ("c", "enable_cuda_graph: ${oc.env:G}"),
    ("d", "enable_cuda_graph: true\n  external_cuda_graph: true"),
)


@pytest.mark.parametrize(("name", "line"), SECTIONS)
def test_a_setting_that_cannot_be_rewritten_keeps_no_other_from_its_fix(
    project: Path, cgmigrate: Run, name: str, line: str
) -> None:
    write_team(project, {"shuffle_kernels": CHOICE, "num_buckets": NUMBER})
    path = project / "a.yaml"
    path.write_text(f"{name}:\n  hidden_size: 1\n  {line}\n  num_buckets: 3\n")
    cgmigrate("fix", ".")
    assert path.read_text() == f"{name}:\n  hidden_size: 1\n  {line}\n  bucket_count: 3\n"
    again = cgmigrate("check", ".")
    assert again.exit_code == 1 and "help: " in again.stdout and "num_buckets" not in again.stdout


def test_the_value_without_a_new_one_has_help_and_no_fix(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE, "num_buckets": NUMBER})
    (project / "a.yaml").write_text("model:\n  shuffle_kernels: medium\n  num_buckets: 3\n  enable_cuda_graph: true\n")
    stdout = cgmigrate("check", ".").stdout
    assert "`shuffle_backend` has no value that corresponds to medium: choose fused or plain" in stdout
    assert "blocked by" not in stdout and stdout.count("(safe") == 2


def test_a_chain_of_names_ends_in_the_newest(project: Path, cgmigrate: Run) -> None:
    first = 'summary: What it is first\nkind: choice\nowner: TransformerConfig\nfork: ours\ndeprecated-in: "0.15"\n'
    second = first.replace("first", "second").replace("0.15", "0.18")
    entries = {
        "stage_a": first + "replaced-by: stage_b\nvalues: [{old: x, new: y}]\n",
        "stage_b": second + "replaced-by: stage_c\nvalues: [{old: y, new: z}]\n",
    }
    write_team(project, entries)
    path = project / "a.yaml"
    path.write_text("a:\n  hidden_size: 1\n  stage_a: x  # why\n  z: 1\nb:\n  hidden_size: 1\n  stage_b: y\n")
    cgmigrate("fix", "--to", "0.17", ".")
    assert "stage_b: y  # why" in path.read_text()
    cgmigrate("fix", ".")
    assert path.read_text() == "a:\n  hidden_size: 1\n  stage_c: z  # why\n  z: 1\nb:\n  hidden_size: 1\n  stage_c: z\n"
    path.write_text("a:\n  hidden_size: 1\n  stage_a: x\n  stage_c: w\n")
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == "a:\n  hidden_size: 1\n  stage_a: x\n  stage_c: w\n"
    assert "stage_a" in cgmigrate("check", ".").stdout


def test_mappings_that_are_merged_agree_about_a_setting(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE})
    path = project / "a.yaml"
    text = "a: &a\n  hidden_size: 1\n  shuffle_kernels: medium\nb:\n  <<: *a\n  shuffle_kernels: slow\n"
    path.write_text(text)
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == text


SWITCH = """\
summary: Whether the tokenizer is the fast one
kind: flag
owner: TransformerConfig
fork: ours
deprecated-in: "0.18"
replaced-by: use_slow
values:
  - {old: true, new: absent}
  - {old: false, new: true}
"""


def test_null_is_a_value_of_its_own(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"use_fast": SWITCH})
    files = {
        "a.yaml": "a:\n  hidden_size: 1\n  use_fast: null\n",
        "a.py": "from megatron.core.transformer import TransformerConfig\n\nTransformerConfig(use_fast=None)\n",
    }
    for name, text in files.items():
        (project / name).write_text(text)
    assert cgmigrate("check", ".").stdout.count("no value that corresponds to null") == 2
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert {name: (project / name).read_text() for name in files} == files


def test_a_flag_that_would_have_to_be_false_is_not_written(project: Path, cgmigrate: Run) -> None:
    entry = SWITCH.replace("use_slow", "use_quick").replace("absent", "false")
    new = "summary: Whether it is quick\nkind: flag\nowner: TransformerConfig\nfork: ours\nno-flag: --no-use-quick\n"
    write_team(project, {"use_fast": entry, "use_quick": new})
    path = project / "a.yaml"
    path.write_text("MODEL_ARGS:\n  --hidden-size: 3\n  --use-fast: true\n")
    assert "write `--no-use-quick` in place of `--use-fast`" in cgmigrate("check", ".").stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == "MODEL_ARGS:\n  --hidden-size: 3\n  --use-fast: true\n"


ITEMS = LIST + "values:\n  - {old: attn, new: attention}\n  - {old: mlp, new: absent}\n"


@from_table
def test_the_values_of_a_list_are_those_of_its_items(
    project: Path, cgmigrate: Run, name: str, before: str, after: str
) -> None:
    write_team(project, {"trace_parts": ITEMS})
    head = "from megatron.core.transformer import TransformerConfig\n\n" if name == "a.py" else ""
    (project / name).write_text(head + before)
    cgmigrate("fix", ".")
    text = (project / name).read_text()
    assert ("traced_parts" in text and after in text) if after else text == before


@from_table
def test_a_call_is_not_safe_where_its_object_is_read_or_set_again(
    project: Path, cgmigrate: Run, rest: str, reason: str
) -> None:
    write_team(project, {"num_buckets": NUMBER})
    head = "from megatron.core.transformer import TransformerConfig\n\n\ndef build():\n"
    (project / "a.py").write_text(f"{head}    cfg = TransformerConfig(num_buckets=3)\n{rest}    return cfg\n")
    assert reason in cgmigrate("check", ".").stdout
    cgmigrate("fix", ".")
    assert ("bucket_count=3" in (project / "a.py").read_text()) is not bool(reason)


@pytest.mark.parametrize("line", ["    cfg.single_dispatch = False\n", '    run(["model.single_dispatch=false"])\n'])
def test_a_value_that_is_set_elsewhere_is_not_deleted(project: Path, cgmigrate: Run, line: str) -> None:
    write_team(project, {"single_dispatch": FLAG})
    text = f"from megatron.core import run\n\n\ndef build(cfg):\n    cfg.cuda_graph_impl\n{line}    return cfg\n"
    (project / "a.py").write_text(text)
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert (project / "a.py").read_text() == text


TWO = """\
id: TEAM001
name: dispatch-mode
kind: deprecated
summary: "`dispatch_mode` became two settings"
fields: [dispatch_mode]
cases:
  - when: {dispatch_mode: flex}
    message: "`{dispatch_mode}` became two settings"
    fix:
      remove: [dispatch_mode]
      set: {dispatcher: flex, backend: deepep}
      proved-by: our changelog
  - when: {dispatch_mode: {written: true}}
    message: "`{dispatch_mode}` became two settings"
    decide: write `{dispatcher}` and `{backend}`
explanation: |
  The mode named the dispatcher and its backend at once. Each has a setting of its own now.
sources: [our changelog]
"""


@from_table
def test_a_setting_becomes_two(project: Path, cgmigrate: Run, before: str, after: str) -> None:
    entry = CHOICE[: CHOICE.index("replaced-by")] + "replaced-by: [dispatcher, backend]\n"
    write_team(project, {"dispatch_mode": entry})
    (project / "team/TEAM001-dispatch-mode.yaml").write_text(TWO)
    path = project / "a.yaml"
    path.write_text(f"model:\n  {before}\n")
    assert "help: " in cgmigrate("check", ".").stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == f"model:\n  {after or before}\n"


def test_a_setting_is_explained_with_its_values_and_without_a_rule(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"single_dispatch": FLAG})
    stdout = cgmigrate("explain", "single_dispatch").stdout
    assert "Value: true is token_dispatch: single today\nValue: false is written without token_dispatch\n" in stdout
    assert "No rule" not in stdout
    (project / "team/TEAM001-single-dispatch.yaml").unlink()
    assert "No rule reports it; one with `fix: {migrate: single_dispatch}` does." in (
        cgmigrate("explain", "single_dispatch").stdout
    )


def test_a_name_that_is_nearly_that_of_a_setting_is_proposed(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"shuffle_kernels": CHOICE})
    result = cgmigrate("explain", "shuffle_kernel")
    assert result.exit_code == 2 and "did you mean shuffle_kernels" in result.stderr


def test_the_old_name_in_a_parent_and_the_new_one_in_its_child_are_a_choice(project: Path, cgmigrate: Run) -> None:
    new = 'summary: How many buckets there are\nkind: number\nowner: TransformerConfig\nfork: ours\nsince: "0.19"\n'
    write_team(project, {"num_buckets": NUMBER, "bucket_count": new})
    head = "policy:\n  megatron_cfg:\n    num_layers: 2\n"
    files = {
        "base.yaml": f"{head}    num_buckets: 3\n",
        "child.yaml": f"defaults: ./base.yaml\n{head}    bucket_count: 4\n",
    }
    for name, text in files.items():
        (project / name).write_text(text)
    stdout = cgmigrate("check", ".").stdout
    assert "child.yaml:4" in stdout
    assert "help: write `bucket_count` with the value that is meant, and delete `num_buckets`" in stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert {name: (project / name).read_text() for name in files} == files


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "cuda_graph_scope = (\n"),
        ("a.py", "from megatron import core\nenable_cuda_graph = " + "(" * 300 + ")" * 300),
    ],
)
def test_code_that_cannot_be_parsed_is_a_diagnostic(project: Path, cgmigrate: Run, path: str, text: str) -> None:
    (project / path).write_text(text)
    result = cgmigrate("check", "--output-format", "concise", ".")
    assert result.exit_code == 1, result.stderr
    assert "CG009" in result.stdout or "CG013" in result.stdout


def test_a_section_belongs_to_the_class_that_the_entry_names(project: Path, cgmigrate: Run) -> None:
    write_team(project, {"num_buckets": NUMBER.replace("TransformerConfig", "our.optim.OptimizerConfig")})
    path = project / "a.yaml"
    path.write_text("optimizer:\n  num_buckets: 1\nlogger:\n  num_buckets: 2\n")
    cgmigrate("fix", ".")
    assert path.read_text() == "optimizer:\n  bucket_count: 1\nlogger:\n  num_buckets: 2\n"
