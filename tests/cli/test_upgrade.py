"""`cgmigrate upgrade`: what a release changes in a project, by the tables of all releases and the rules UPG."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.lint.rules import read
from cgmigrate.megatron import catalogue
from cgmigrate.megatron.entry_checks import EntryFile, check_together
from cgmigrate.megatron.gone import gone_names
from cgmigrate.megatron.rule_data import RuleError, load_yaml, rules_folder, text_of, upgrade_rules
from tests.support.files import write
from tests.support.tables import from_table

SETTINGS = sorted((rules_folder() / "upgrade/settings").rglob("*.yaml"))
RELEASES = ("--from", "0.15", "--to", "0.18")
# As in OpenEuroLLM/oellm-autoexp: the keys are attributes of Megatron-LM's arguments.
OLD = """\
backend:
  megatron:
    num_layers: 24
    norm_epsilon: 1.0e-05  # of RMS norm
    legacy_tokenizer: false
    hybrid_mlp_ratio: 0.0
    retro_project_dir: /data
"""
NEW = """\
backend:
  megatron:
    num_layers: 24
    layernorm_epsilon: 1.0e-05  # of RMS norm
    retro_project_dir: /data
"""


def test_nothing_changes(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.yaml", "model:\n  num_layers: 24\n")
    result = cgmigrate("upgrade", *RELEASES, ".")
    assert (result.exit_code, result.stdout) == (0, "")


def test_the_table_has_the_worst_first(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.yaml", OLD)
    write(project / "b.yaml", "model:\n  tensor_model_parallel_size: 2\n  moe_router_padding_for_fp8: true\n")
    result = cgmigrate("upgrade", *RELEASES)
    assert result.exit_code == 1
    assert [line.split()[:6] for line in result.stdout.splitlines()] == [
        ["stops", "at", "the", "start", "UPG001", "gone-in-target"],
        ["stops", "at", "the", "start", "UPG101", "norm-epsilon"],
        ["stops", "at", "the", "start", "UPG201", "legacy-tokenizer"],
        ["stops", "at", "the", "start", "UPG209", "hybrid-mlp-ratio"],
        ["warns", "UPG111", "moe-router-padding-for-fp8", "1", "place", "in"],
    ]
    assert "Next: cgmigrate upgrade --fix --from 0.15 --to 0.18 ." in result.stderr


def test_fixes_are_written_and_nothing_is_left_to_fix(project: Path, cgmigrate: Callable[..., Any]) -> None:
    path = write(project / "a.yaml", OLD)
    assert (
        "+    layernorm_epsilon: 1.0e-05  # of RMS norm"
        in cgmigrate("upgrade", *RELEASES, "--diff", "--unsafe-fixes", ".").stdout
    )
    assert path.read_text() == OLD
    assert cgmigrate("upgrade", *RELEASES, "--fix", "--unsafe-fixes", ".").exit_code == 1, "retro_project_dir remains"
    assert path.read_text() == NEW
    cgmigrate("upgrade", *RELEASES, "--fix", "--unsafe-fixes", ".")
    assert path.read_text() == NEW


def test_programs_read_each_diagnostic(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.yaml", OLD)
    document = json.loads(cgmigrate("upgrade", *RELEASES, "--output-format", "json", ".").stdout)
    assert {(one["rule"], one["line"]) for one in document["findings"]} == {
        ("UPG001", 7),
        ("UPG101", 4),
        ("UPG201", 5),
        ("UPG209", 6),
    }


def test_a_target_that_still_has_the_names_changes_nothing(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.yaml", OLD)
    assert cgmigrate("upgrade", "--from", "0.15", "--to", "0.15", ".").exit_code == 0


def test_a_name_that_the_source_has_not_is_somebody_elses(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.yaml", OLD)
    assert cgmigrate("upgrade", "--from", "0.18", "--to", "0.19", ".").exit_code == 0


def test_other_commands_do_not_have_the_rules(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.yaml", OLD)
    assert cgmigrate("check", *RELEASES, ".").exit_code == 0


COMMAND = "torchrun pretrain_gpt.py --num-layers 2 --train-iters 10 --use-megatron-fsdp"


def test_a_default_that_changed_is_written_on_request(project: Path, cgmigrate: Callable[..., Any]) -> None:
    path = write(project / "train.sh", COMMAND + " --eval-interval 5\n")
    options = ("--from", "0.17", "--to", "0.18", "--fix", "--unsafe-fixes", ".")
    assert "`--data-parallel-sharding-strategy` from no_shard" in cgmigrate("upgrade", *options).stdout
    assert path.read_text() == COMMAND + " --eval-interval 5\n"
    assert cgmigrate("upgrade", "--keep-defaults", *options).exit_code == 0
    assert path.read_text() == COMMAND + " --eval-interval 5 --data-parallel-sharding-strategy no_shard\n"


@from_table
def test_a_default_is_not_known_to_count(project: Path, cgmigrate: Callable[..., Any], text: str) -> None:
    write(project / "train.sh", text)
    assert cgmigrate("upgrade", "--from", "0.15", "--to", "0.18", ".").exit_code == 0


def test_a_rule_about_a_default_that_never_changed_is_refused(tmp_path: Path) -> None:
    rule = text_of(Path(upgrade_rules()) / "UPG301-default-of-data-parallel-sharding-strategy.yaml")
    path = write(
        tmp_path / "UPG301-x.yaml",
        rule.replace("keep-default: data_parallel_sharding_strategy", "keep-default: skip_train"),
    )
    with pytest.raises(RuleError, match="keep-default: the default of skip_train is the same in all releases"):
        read(path, folders=(Path(upgrade_rules()),))


MOVED = "from megatron.core.transformer.custom_layers.transformer_engine import (\n    TENorm,  # of the layers\n)\n"


def test_an_import_of_names_that_moved_is_rewritten(project: Path, cgmigrate: Callable[..., Any]) -> None:
    path = write(project / "model.py", MOVED)
    assert cgmigrate("upgrade", "--from", "0.16", "--to", "0.18", "--fix", ".").exit_code == 0
    assert path.read_text() == MOVED.replace("transformer.custom_layers", "extensions")


@from_table
def test_an_import_that_goes_on_working_is_no_matter(project: Path, cgmigrate: Callable[..., Any], text: str) -> None:
    write(project / "model.py", text)
    assert cgmigrate("upgrade", "--from", "0.16", "--to", "0.18", ".").exit_code == 0


def test_a_module_of_the_project_itself_is_not_that_of_a_release(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "megatron/core/transformer/custom_layers/transformer_engine.py", "TENorm = None\n")
    write(project / "tools/model.py", MOVED)
    assert cgmigrate("upgrade", "--from", "0.16", "--to", "0.18", ".").exit_code == 0


def test_the_table_counts_a_fix_of_two_rules_once(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(
        project / "a.yaml", "model:\n  cuda_graph_impl: local\n  cuda_graph_scope: [attn, full_iteration_inference]\n"
    )
    result = cgmigrate("upgrade", "--from", "0.17", "--to", "0.19", ".")
    assert [line.split()[1] for line in result.stdout.splitlines()] == ["CG105"]


def test_unsafe_fixes_alone_say_nothing(project: Path, cgmigrate: Callable[..., Any]) -> None:
    assert cgmigrate("upgrade", "--unsafe-fixes", ".").exit_code == 2


@from_table
def test_the_tables_know_what_is_gone(name: str, reader: str, first: str) -> None:
    [gone] = [one for one in gone_names() if one.setting.name == name]
    assert str(gone.since[reader]) == first


def test_a_name_that_one_reader_keeps_is_not_gone_for_it() -> None:
    since = {one.setting.name: one.since for one in gone_names()}
    assert "bridge" not in since["hybrid_attention_ratio"], "providers of Megatron-Bridge have it"
    assert "ckpt_fully_parallel_save" not in since, "it is an attribute of arguments in every release"


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.stem)
def test_no_entry_contradicts_the_tables(path: Path) -> None:
    EntryFile(path, load_yaml(text_of(path), str(path)), text_of(path)).check()
    check_together(catalogue.load((upgrade_rules(),)).settings, [path.stem])


def test_a_default_is_left_alone_where_another_setting_is_rewritten(
    project: Path, cgmigrate: Callable[..., Any]
) -> None:
    call = "config = TransformerConfig(num_layers=4, hidden_size=64, num_attention_heads=4, {}=True)\n"
    code = "from megatron.core.transformer import TransformerConfig\n\n" + call
    path = write(project / "model.py", code.format("moe_router_padding_for_fp8"))
    script = write(project / "train.sh", COMMAND + " --moe-router-padding-for-fp8\n")
    cgmigrate("upgrade", "--from", "0.12", "--to", "0.19", "--fix", "--unsafe-fixes", ".")
    assert path.read_text() == code.format("moe_router_padding_for_quantization")
    assert script.read_text() == COMMAND + " --moe-router-padding-for-quantization\n"


def test_a_team_may_have_its_own_entry_for_a_setting(project: Path, cgmigrate: Callable[..., Any]) -> None:
    shipped = text_of(Path(upgrade_rules()) / "settings/moe_deepep_num_sms.yaml")
    write(project / "team/settings/moe_deepep_num_sms.yaml", shipped + "rule: TEAM001\n")
    write(project / "a.yaml", "model:\n  tensor_model_parallel_size: 2\n  moe_deepep_num_sms: 24\n")
    result = cgmigrate("upgrade", "--rules", "team", "--from", "0.18", "--to", "0.19", "a.yaml")
    assert result.stdout.split()[1] == "TEAM001"


def test_the_proof_of_a_rule_that_ships_is_not_that_of_a_teams_entry(
    project: Path, cgmigrate: Callable[..., Any]
) -> None:
    shipped = text_of(Path(upgrade_rules()) / "settings/moe_router_padding_for_fp8.yaml")
    swapped = shipped.replace("replaced-by:", "values: [{old: true, new: false}]\nreplaced-by:")
    write(
        project / "a.yaml", "model:\n  tensor_model_parallel_size: 2\n  fp8: e4m3\n  moe_router_padding_for_fp8: true\n"
    )
    options = ("--from", "0.15", "--to", "0.19", "a.yaml")
    assert "1 safe" in cgmigrate("upgrade", *options).stderr
    write(project / "team/settings/moe_router_padding_for_fp8.yaml", swapped)
    assert "1 unsafe" in cgmigrate("upgrade", "--rules", "team", *options).stderr


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def checkout(project: Path) -> Path:
    """A checkout of git with keys of three releases, all committed."""
    write(project / "conf/a.yaml", OLD.replace("    retro_project_dir: /data\n", ""))
    write(project / "conf/b.yaml", "model:\n  tensor_model_parallel_size: 2\n  enable_cuda_graph: true\n")
    _git(project, "init", "-q")
    _git(project, "config", "user.name", "A Person")
    _git(project, "config", "user.email", "person@example.org")
    _git(project, "add", ".")
    _git(project, "commit", "-q", "-m", "Old keys")
    return project


def test_steps_commit_nothing_where_nothing_changes(checkout: Path, cgmigrate: Callable[..., Any]) -> None:
    result = cgmigrate("upgrade", "--fix", "--step", "--commit", "--from", "0.12", "--to", "0.14", ".")
    assert result.exit_code == 0, result.output
    assert _git(checkout, "log", "--format=%s") == "Old keys\n"


def test_each_step_commits_its_sets_with_the_proof(checkout: Path, cgmigrate: Callable[..., Any]) -> None:
    result = cgmigrate(
        "upgrade", "--fix", "--unsafe-fixes", "--step", "--commit", "--from", "0.14", "--to", "0.18", "."
    )
    assert [line for line in result.stderr.splitlines() if "->" in line][:4] == [
        "0.14 -> 0.15",
        "0.15 -> 0.16",
        "0.16 -> 0.17",
        "0.17 -> 0.18",
    ]
    assert _git(checkout, "log", "--reverse", "--format=%s").splitlines() == [
        "Old keys",
        "megatron-core 0.15: enable-cuda-graph in conf/b.yaml",
        "megatron-core 0.16: norm-epsilon in conf/a.yaml",
        "megatron-core 0.17: legacy-tokenizer, hybrid-mlp-ratio in conf/a.yaml",
    ]
    message = _git(checkout, "log", "-1", "--format=%b", "--", "conf/b.yaml")
    assert "- conf/b.yaml:3: `enable_cuda_graph` is deprecated" in message
    assert "  write `cuda_graph_impl: local` (safe: 0.14: whole layers (local) -> 0.15: the same)\n" in message
    assert _git(checkout, "status", "--porcelain") == ""


def test_steps_end_where_something_is_left_to_do(checkout: Path, cgmigrate: Callable[..., Any]) -> None:
    write(checkout / "train.py", "from megatron.training.tokenizer import build_tokenizer\n")
    result = cgmigrate(
        "upgrade",
        "--fix",
        "--unsafe-fixes",
        "--step",
        "--from",
        "0.15",
        "--to",
        "0.19",
        "--output-format",
        "concise",
        ".",
    )
    assert result.exit_code == 1
    assert "of megatron-core 0.17 has no `build_tokenizer`" in result.stdout
    assert "Stopped at 0.17: settle what remains, and go on with --from 0.17\n" in result.stderr
    assert "0.17 -> 0.18" not in result.stderr


def test_an_import_of_a_name_that_the_project_replaces_is_unsafe(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "save.py", "from megatron.training.utils import unwrap_model\n")
    assert json.loads(cgmigrate("upgrade", *RELEASES, "--output-format", "json").stdout)["fixes"][0]["safety"] == "safe"
    write(
        project / "patches.py", "import megatron.training.utils as utils\n\nutils.unwrap_model = lambda model: model\n"
    )
    [fix] = json.loads(cgmigrate("upgrade", *RELEASES, "--output-format", "json").stdout)["fixes"]
    assert (fix["safety"], fix["because"]) == (
        "unsafe",
        ["patches.py:3 may replace `megatron.training.utils.unwrap_model`"],
    )


def test_files_of_one_set_are_one_commit(checkout: Path, cgmigrate: Callable[..., Any]) -> None:
    write(checkout / "conf/c.yaml", "defaults: [b]\nmodel:\n  cuda_graph_scope: full_iteration\n")
    _git(checkout, "add", ".")
    _git(checkout, "commit", "-q", "-m", "A configuration on top of another")
    cgmigrate("upgrade", "--fix", "--commit", "--from", "0.17", "--to", "0.18", "conf/b.yaml", "conf/c.yaml")
    log = _git(checkout, "log", "--format=", "--name-only", "-1").split()
    assert log == ["conf/b.yaml", "conf/c.yaml"], _git(checkout, "log", "--stat")


def test_changes_of_the_user_are_not_committed(checkout: Path, cgmigrate: Callable[..., Any]) -> None:
    write(checkout / "notes.txt", "mine\n")
    result = cgmigrate("upgrade", "--fix", "--commit", *RELEASES, ".")
    assert result.exit_code == 2, result.output
    assert "the checkout has changes of its own; commit or stash them first" in result.stderr
    assert _git(checkout, "diff") == ""


def test_a_file_that_git_ignores_is_written_and_reported(checkout: Path, cgmigrate: Callable[..., Any]) -> None:
    write(checkout / ".git/info/exclude", "own/\n")
    write(checkout / "own/a.yaml", OLD)
    result = cgmigrate("upgrade", "--fix", "--unsafe-fixes", "--commit", *RELEASES, "own/a.yaml")
    assert result.exit_code == 2, result.output
    assert "error: written, but git does not commit own/a.yaml" in result.stderr
    assert (checkout / "own/a.yaml").read_text() == NEW


@from_table
def test_steps_and_commits_are_of_fix(
    project: Path, cgmigrate: Callable[..., Any], options: list[str], reason: str
) -> None:
    result = cgmigrate("upgrade", *options, ".")
    assert result.exit_code == 2, result.output
    assert reason in result.stderr


@from_table
def test_flags_of_a_command_line(project: Path, cgmigrate: Callable[..., Any], flags: str, reported: str) -> None:
    write(project / "run.sh", f"torchrun pretrain_gpt.py --num-layers 2 --eval-interval 5 {flags}\n")
    result = cgmigrate("upgrade", *RELEASES, "--output-format", "concise", ".")
    assert (reported in result.stdout) if reported else (result.stdout == ""), result.stdout


@pytest.mark.parametrize("made", ["TransformerConfig(num_layers=2, {})", "dict({})"])
def test_an_old_name_is_reported_where_it_gives_the_new_one_its_value(
    project: Path, cgmigrate: Callable[..., Any], made: str
) -> None:
    imports = "from megatron.core.transformer import TransformerConfig\nfrom megatron.training import get_args\n"
    write(
        project / "train.py",
        imports + "args = get_args()\n" + made.format("layernorm_epsilon=args.norm_epsilon") + "\n",
    )
    result = cgmigrate("upgrade", *RELEASES, "--output-format", "concise", ".")
    assert "CG603 megatron-core 0.16 has no `norm_epsilon`" in result.stdout


@pytest.mark.parametrize(
    ("field", "is_safe"),
    [("bool = False", True), ("bool = True", False), ("bool", False)],
    ids=["same", "other", "none"],
)
def test_a_key_that_a_class_declares_is_deleted_where_its_default_is_the_same(
    project: Path, cgmigrate: Callable[..., Any], field: str, is_safe: bool
) -> None:
    path = write(project / "a.yaml", "model:\n  tensor_model_parallel_size: 2\n  moe_extended_tp: false\n")
    write(
        project / "schema.py",
        f"from dataclasses import dataclass\n\n\n@dataclass\nclass Model:\n    moe_extended_tp: {field}\n",
    )
    write(
        project / "main.py",
        'import megatron.core\nimport schema\nimport yaml\n\nschema.Model(**yaml.safe_load(open("a.yaml"))["model"])\n',
    )
    cgmigrate("upgrade", "--fix", "--from", "0.16", "--to", "0.17", ".")
    assert ("moe_extended_tp" not in path.read_text()) is is_safe


OWN = """\
from megatron.core.transformer import TransformerConfig


class OwnConfig(TransformerConfig):
    moe_extended_tp: bool = False
"""


def test_a_field_of_the_projects_own_class_works(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "own/config.py", OWN)
    write(project / "own/__init__.py", "")
    write(
        project / "use.py",
        "from megatron.core.transformer import TransformerConfig\n"
        "from own.config import OwnConfig\n"
        "cfg = OwnConfig(moe_extended_tp=True)\n"
        "cfg.moe_extended_tp = False\n"
        "def f(config: OwnConfig):\n    return config.moe_extended_tp\n"
        "other = TransformerConfig(moe_extended_tp=True)\n"
        "def g(config: TransformerConfig):\n    return config.moe_extended_tp\n",
    )
    model = "model:\n  _target_: own.config.{}\n  tensor_model_parallel_size: 2\n  moe_extended_tp: true\n"
    write(project / "own.yaml", model.format("OwnConfig"))
    write(project / "other.yaml", model.format("Other"))
    result = cgmigrate("upgrade", *RELEASES, "--output-format", "concise", ".")
    assert [line.split(": ", 1) for line in result.stdout.splitlines()] == [
        ["other.yaml:4:3", "UPG203 megatron-core 0.17 has no `moe_extended_tp`"],
        [
            "own/config.py:5:5",
            "CG605 the field `moe_extended_tp` of `OwnConfig` has the name of a former setting of megatron-core",
        ],
        ["use.py:7:27", "UPG203 megatron-core 0.17 has no `moe_extended_tp`"],
        ["use.py:9:12", "CG603 megatron-core 0.17 has no `moe_extended_tp`"],
    ]


def test_a_field_of_the_projects_own_class_stays_beside_others(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "own.py", OWN + "cfg = OwnConfig(moe_extended_tp=True, moe_router_padding_for_fp8=True)\n")
    cgmigrate("upgrade", "--fix", "--unsafe-fixes", *RELEASES, ".")
    new = "cfg = OwnConfig(moe_extended_tp=True, moe_router_padding_for_quantization=True)\n"
    assert (project / "own.py").read_text().endswith(new)


def test_the_pin_comes_last(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "requirements.txt", "megatron-core==0.15.0\n")
    write(project / "a.yaml", "model:\n  tensor_model_parallel_size: 2\n  moe_router_padding_for_fp8: true\n")
    pin = "Next: raise requirements.txt:1 (megatron-core==0.15.0) to 0.18"
    assert pin not in cgmigrate("upgrade", "--diff", "--to", "0.18", ".").stderr
    assert cgmigrate("upgrade", "--fix", "--to", "0.18", ".").stderr.count(pin) == 1


def test_every_gone_name_of_a_mapping_is_reported(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.yaml", OLD + "    retro_add_retriever: false\n    retro_encoder_layers: 2\n")
    result = cgmigrate("upgrade", *RELEASES, "--select", "UPG001", "--output-format", "concise", ".")
    assert [line.split()[0] for line in result.stdout.splitlines()] == ["a.yaml:7:5:", "a.yaml:8:5:", "a.yaml:9:5:"]


@pytest.mark.parametrize(("target", "lines"), [("0.16", []), ("0.17", [5, 6, 7, 8])])
def test_code_that_names_what_the_target_still_has(
    project: Path, cgmigrate: Callable[..., Any], target: str, lines: list[int]
) -> None:
    write(
        project / "a.py",
        "from megatron.core import ModelParallelConfig\n"
        "from megatron.core.models.gpt.gpt_layer_specs import get_gpt_layer_local_spec\n"
        "from megatron.training import get_args\n"
        "class Own:\n"
        "    moe_use_legacy_grouped_gemm: bool = False\n"
        "print(get_args().moe_use_legacy_grouped_gemm)\n"
        "get_gpt_layer_local_spec(moe_use_legacy_grouped_gemm=False)\n"
        "ModelParallelConfig(async_tensor_model_parallel_allreduce=True)\n",
    )
    result = cgmigrate("upgrade", "--from", "0.15", "--to", target, "--output-format", "concise", ".")
    assert [int(line.split(":")[1]) for line in result.stdout.splitlines()] == lines


@pytest.mark.parametrize(("last", "reported"), [("vp_stage=None", 1), ("**kwargs", 0)])
def test_a_provider_that_another_file_makes(
    project: Path, cgmigrate: Callable[..., Any], last: str, reported: int
) -> None:
    provider = (
        "def make(args, more):\n"
        "    if more:\n"
        "        def other(pre_process=True, post_process=True, **kwargs):\n            return 1\n"
        "        return other\n"
        f"    def provider(pre_process=True, post_process=True, {last}):\n        return args\n"
        "    return provider\n"
    )
    write(project / "own/__init__.py", "")
    write(project / "own/provider.py", provider)
    use = (
        "from megatron.training.training import get_model\n"
        "from own.provider import make\n"
        "model = get_model(make(1, 2), 3)\n"
    )
    write(project / "use.py", use)
    releases = ("--from", "0.15", "--to", "0.16", "--output-format", "concise", ".")
    assert cgmigrate("upgrade", *releases).stdout.count("use.py:3:19: UPG402 `get_model`") == reported


def test_what_the_source_no_longer_has_is_another_name(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(
        project / "a.py",
        "from megatron.core import mpu\n"
        "def fully_shard(model, preserve_fp32_weights=True):\n    return model\n"
        'ARGS = {"preserve_fp32_weights": True}\n'
        'FLAGS = ["disable-tp-comm-split-ag"]\n',
    )
    write(project / "README.md", "`--retro-add-retriever` was an option.\n")
    releases = ("--output-format", "concise", ".", "--to", "0.19", "--from")
    assert cgmigrate("upgrade", *releases, "0.19").stdout == ""
    assert cgmigrate("upgrade", *releases, "0.15").stdout.count("\n") >= 3


def test_a_name_that_the_default_source_lacks_is_no_silence(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "run.sh", "python pretrain_gpt.py --num-layers 4 --s3-cache-path /cache\n")
    stated, default = (cgmigrate("upgrade", *source, ".").stderr for source in (("--from", "0.17"), ()))
    assert "left unchanged" not in stated, "the name is another one, since the code works there"
    assert "megatron-core 0.12 and older, and the source 0.17 is only the default (--from 0.12):" in default
    assert "  run.sh:1: `--s3-cache-path`" in default


def test_a_setting_in_a_section_is_found_in_a_page(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.md", "Write `train.eval_iters=10`, or `cfg.train.eval_iters=10`.\n")
    result = cgmigrate("upgrade", "--to", "0.19", "--output-format", "full", ".")
    assert "`train.eval_iters`" in result.stdout and "internal error" not in result.stderr


def test_the_name_of_a_file_is_no_setting(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "a.md", "Megatron writes `tokenizer_metadata.json`. Set `tokenizer_metadata`.\n")
    shown = cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", "--output-format", "concise", ".").stdout
    assert shown.count("CG608") == 1


PATTERN = "torchrun pretrain_mamba.py --num-layers 4 --hybrid-{}-pattern {} --seed 1\n"


@pytest.mark.parametrize("value", ["M*M-", '"M*M-"', "MM-"])
def test_a_word_that_the_shell_may_expand_stays_as_it_is(
    project: Path, cgmigrate: Callable[..., Any], value: str
) -> None:
    path = write(project / "run.sh", PATTERN.format("override", value))
    cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", "--fix", ".")
    assert path.read_text() == PATTERN.format("layer", value)


HUGGING_FACE = [
    'config = AutoConfig.from_pretrained("nvidia/Nemotron-H-8B-Base-8K")\n    config.hybrid_override_pattern = "M*"',
    'hf_cfg = {}\n    hf_cfg["hybrid_override_pattern"] = "M*"',
    'pattern = hf_config.pop("hybrid_override_pattern", None)',
    'mapping = [("n_groups", "mamba_num_groups"), ("hybrid_override_pattern", "hybrid_layer_pattern")]',
    'name = "hybrid_override_pattern"\n    hf_cfg["hybrid_override_pattern"] = "M*"',
]


@pytest.mark.parametrize("line", HUGGING_FACE)
def test_a_key_of_hugging_face_is_not_megatrons(project: Path, cgmigrate: Callable[..., Any], line: str) -> None:
    text = f"import megatron.core\nfrom transformers import AutoConfig\n\n\ndef build(hf_config):\n    {line}\n"
    path = write(project / "a.py", text)
    result = cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", "--output-format", "concise", ".")
    assert result.stdout == "" and result.exit_code == 0
    cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", "--fix", "--unsafe-fixes", ".")
    assert path.read_text() == text


def test_a_setting_of_megatron_beside_hugging_face_is_megatrons(project: Path, cgmigrate: Callable[..., Any]) -> None:
    text = (
        "import megatron.core\nfrom transformers import AutoConfig\n\n\ndef build(config):\n"
        '    hf = AutoConfig.from_pretrained("x")\n    config.hybrid_override_pattern = hf.pattern\n'
    )
    write(project / "a.py", text)
    assert "UPG119" in cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", ".").stdout


def test_each_setting_that_is_written_twice_has_its_own_advice(project: Path, cgmigrate: Callable[..., Any]) -> None:
    lines = [
        f"    cfg.{section}.{name} = 0\n"
        for section in ("train", "validation")
        for name in ("eval_interval", "eval_iters")
    ]
    head = "from megatron.bridge.training.config import ConfigContainer\n\n\ndef mend(cfg: ConfigContainer):\n"
    write(project / "a.py", head + "".join(lines))
    shown = cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", "--output-format", "full", ".").stdout
    for name in ("eval_interval", "eval_iters"):
        assert f"help: keep the value that is meant as `validation.{name}`, and delete `train.{name}`" in shown


def test_an_override_of_another_setting_blocks_no_fix(project: Path, cgmigrate: Callable[..., Any]) -> None:
    path = write(project / "conf/a.yaml", "model:\n  seq_length: 4096\ntrain:\n  train_iters: 9\n  eval_iters: 10\n")
    write(project / "test_a.py", 'OVERRIDES = ["model.cuda_graph_impl=none", "model.cuda_graph_scope=[]"]\n')
    cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", "--fix", "--unsafe-fixes", "conf")
    assert "validation:\n  eval_iters: 10\n" in path.read_text()
