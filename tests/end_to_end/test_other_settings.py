"""Settings beside those of the capture model: an entry of the catalogue and a rule file migrate each, without code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]

PROOF = '  proved-by: "our loader, read_settings: the old name is an alias of the new one"\n'


def team(folder: Path, name: str, entry: str, fix: str = PROOF) -> None:
    """Write the entry of a setting and the rule that migrates it, and configure them."""
    rules = folder / "team"
    (rules / "settings").mkdir(parents=True, exist_ok=True)
    (rules / f"settings/{name}.yaml").write_text(f"{entry}sources: [our changelog]\n")
    (rules / f"TEAM001-{name.replace('_', '-')}.yaml").write_text(
        f"""\
id: TEAM001
name: {name.replace("_", "-").lower()}
kind: deprecated
summary: "`{name}` has a new name, and the old one will go"
fix:
  migrate: {name}
{fix}explanation: |
  The setting has a new name since a release of ours. The old one is read until it is removed.
sources: [our changelog]
"""
    )
    (folder / "pyproject.toml").write_text('[tool.cgmigrate]\nextend-rules = ["team"]\n')


FLAG = """\
summary: Sends tokens to experts one by one
kind: flag
owner: TransformerConfig
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
deprecated-in: "0.19"
replaced-by: bucket_count
"""
TEXT = """\
summary: The name of the trace of a run
kind: text
owner: TransformerConfig
deprecated-in: "0.18"
replaced-by: trace_name
"""
LIST = """\
summary: The parts of a layer that are traced
kind: list
owner: TransformerConfig
deprecated-in: "0.18"
replaced-by: traced_parts
"""


@pytest.mark.parametrize(
    ("name", "entry", "before", "after"),
    [
        ("single_dispatch", FLAG, "single_dispatch: true", "token_dispatch: single"),
        ("single_dispatch", FLAG, "a: 1\n  single_dispatch: false", "a: 1"),
        ("shuffle_kernels", CHOICE, "shuffle_kernels: fast  # why", "shuffle_backend: fused  # why"),
        ("shuffle_kernels", CHOICE, 'shuffle_kernels: "slow"', 'shuffle_backend: "plain"'),
        ("num_buckets", NUMBER, "num_buckets: 0x10", "bucket_count: 0x10"),
        ("num_buckets", NUMBER, "num_buckets: 1.5e3", "bucket_count: 1.5e3"),
        ("num_buckets", NUMBER, "num_buckets: ${oc.env:N,4}", "bucket_count: ${oc.env:N,4}"),
        ("num_buckets", NUMBER, "num_buckets: null", "bucket_count: null"),
        ("TraceName", TEXT, "TraceName: a run, of mine", "trace_name: a run, of mine"),
        ("trace_parts", LIST, "trace_parts: [a, b]", "traced_parts: [a, b]"),
        ("trace_parts", LIST, "trace_parts:\n  - 1\n  - 2", "traced_parts:\n  - 1\n  - 2"),
    ],
)
def test_a_value_is_mapped_or_stays(
    project: Path, cgmigrate: Run, name: str, entry: str, before: str, after: str
) -> None:
    team(project, name, entry)
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
    team(project, "shuffle_kernels", CHOICE)
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
    team(project, "shuffle_kernels", CHOICE)
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
    team(project, "shuffle_kernels", CHOICE)
    path = project / "a.py"
    path.write_text(READS)
    reported = cgmigrate("check", "--output-format", "concise", ".").stdout
    for place in ("5:5: CG605", "9:8: CG603", "10:32: CG604", "11:12: CG604", "15:25: CG605"):
        assert place in reported, reported
    assert "cuda_graph" not in reported
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == READS


def test_a_fix_without_proof_is_unsafe(project: Path, cgmigrate: Run) -> None:
    team(project, "shuffle_kernels", CHOICE, fix="")
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
since: "0.13"
deprecated-in: "{deprecated}"
replaced-by: {new}
"""


@pytest.mark.parametrize(
    ("new", "deprecated", "words", "reason"),
    [
        ("moe_flex_dispatcher_num_sms", "0.18", ("--to", "0.18"), "`TransformerConfig` of megatron-core 0.18 has no"),
        ("moe_flex_dispatcher_num_sms", "0.19", (), ""),
        ("cuda_graph_retain_backward_graph", "0.19", (), ""),
    ],
)
def test_the_target_has_the_new_setting(
    project: Path, cgmigrate: Run, new: str, deprecated: str, words: tuple[str, ...], reason: str
) -> None:
    team(project, "moe_deepep_num_sms", REAL.format(new=new, deprecated=deprecated))
    path = project / "a.yaml"
    path.write_text("model:\n  moe_deepep_num_sms: 20\n")
    assert reason in cgmigrate("check", *words, ".").stdout
    cgmigrate("fix", *words, ".")
    assert (new in path.read_text()) is not bool(reason)


def test_a_value_without_a_new_one_is_a_choice(project: Path, cgmigrate: Run) -> None:
    team(project, "shuffle_kernels", CHOICE)
    path = project / "a.yaml"
    path.write_text("model:\n  shuffle_kernels: ${env:K}\n  cuda_graph_impl: local\n")
    stdout = cgmigrate("check", ".").stdout
    assert "no value that corresponds to ${env:K}: choose fused or plain" in stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert "shuffle_kernels: ${env:K}" in path.read_text()


def test_both_names_are_a_choice(project: Path, cgmigrate: Run) -> None:
    team(project, "shuffle_kernels", CHOICE)
    path = project / "a.yaml"
    path.write_text("model:\n  shuffle_kernels: fast\n  shuffle_backend: plain\n")
    assert "`shuffle_backend` that replaces it is written as well" in cgmigrate("check", ".").stdout
    cgmigrate("fix", "--unsafe-fixes", ".")
    assert path.read_text() == "model:\n  shuffle_kernels: fast\n  shuffle_backend: plain\n"


def test_it_does_not_keep_the_capture_settings_beside_it_from_their_fix(project: Path, cgmigrate: Run) -> None:
    team(project, "num_buckets", NUMBER)
    path = project / "a.yaml"
    path.write_text(
        "megatron_cfg:\n  num_buckets: 3\n  cuda_graph_impl: transformer_engine\n  cuda_graph_scope: [attn]\n"
    )
    cgmigrate("fix", ".")
    assert path.read_text() == (
        "megatron_cfg:\n  bucket_count: 3\n  cuda_graph_impl: transformer_engine\n  cuda_graph_modules: [attn]\n"
    )


def test_it_is_explained(project: Path, cgmigrate: Run) -> None:
    team(project, "num_buckets", NUMBER)
    assert "`num_buckets` has a new name" in cgmigrate("explain", "TEAM001").stdout
    result = cgmigrate("explain", "num_buckets")
    assert result.exit_code == 0
    assert "How many buckets tokens are sorted into" in result.stdout
    assert "deprecated in 0.19, replaced by bucket_count" in result.stdout
    assert "TEAM001" in result.stdout


def test_its_examples_are_tested(project: Path, cgmigrate: Run) -> None:
    team(project, "num_buckets", NUMBER)
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
