"""The surroundings of a site: any setting of the catalogue in the configuration that the site belongs to."""

from __future__ import annotations

from textwrap import dedent

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.shell.document import ShellDocument
from cgmigrate.documents.sites import Document
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.linking.inheritance import effective
from cgmigrate.linking.ownership import owned_sites
from cgmigrate.linking.surroundings import SiteSurroundings
from cgmigrate.megatron.settings import Missing, Undecided
from tests.support.tables import from_table

RECIPE = """
model:
  cuda_graph_impl: full_iteration
ddp:
  check_for_nan_in_grad: false
rerun_state_machine:
  check_for_nan_in_loss: false
rng:
  te_rng_tracker: true
train: {}
checkpoint: {}
"""
PYTHON = """
from megatron.bridge.models import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer, RerunStateMachineConfig, RNGConfig
from megatron.bridge.training.config import DistributedDataParallelConfig

cfg = ConfigContainer(
    model=GPTModelProvider(cuda_graph_impl="full_iteration"),
    ddp=DistributedDataParallelConfig(check_for_nan_in_grad=False),
    rerun_state_machine=RerunStateMachineConfig(check_for_nan_in_loss=False),
    rng=RNGConfig(te_rng_tracker=True),
)
"""


def around(document: Document, site: int = 0) -> SiteSurroundings:
    """The surroundings of a site of a document."""
    sites, owners = owned_sites(document.sites, document.top_level, ecosystems.load())
    ecosystem = owners[site].ecosystem
    assert ecosystem is not None
    return SiteSurroundings(document, sites[site], ecosystem, effective(sites)[site])


@pytest.mark.parametrize("document", [YamlDocument(RECIPE), PythonDocument(PYTHON)], ids=["yaml", "python"])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("check_for_nan_in_loss", False),
        ("check_for_nan_in_grad", False),
        ("use_te_rng_tracker", True),
        ("cuda_graph_impl", "full_iteration"),
        ("cuda_graph_modules", Missing.ABSENT),
        ("no_setting", Missing.UNKNOWN),
    ],
)
def test_a_recipe_of_megatron_bridge_has_four_sections(document: Document, name: str, value: object) -> None:
    assert around(document).get(name) == value


@pytest.mark.parametrize("document", [YamlDocument(RECIPE), PythonDocument(PYTHON)], ids=["yaml", "python"])
@from_table
def test_messages_name_a_setting_around_a_site_from_the_top(document: Document, name: str, key: str) -> None:
    assert around(document).key(name) == key


@pytest.mark.parametrize(
    ("old", "new", "name", "value"),
    [
        ("  check_for_nan_in_loss: false\n", "  other: 1\n", "check_for_nan_in_loss", Missing.ABSENT),
        ("in_loss: false", "in_loss: ${NAN}", "check_for_nan_in_loss", Undecided),
        ("te_rng_tracker: true", "seed: 1", "use_te_rng_tracker", Missing.ABSENT),
        ("full_iteration\n", "full_iteration\n  use_te_rng_tracker: true\n", "use_te_rng_tracker", True),
        # The two spellings disagree: Megatron-Bridge turns both on.
        ("full_iteration\n", "full_iteration\n  use_te_rng_tracker: false\n", "use_te_rng_tracker", True),
        ("te_rng_tracker: true", "te_rng_tracker: $X", "use_te_rng_tracker", Undecided),
    ],
)
def test_a_recipe_in_yaml(old: str, new: str, name: str, value: object) -> None:
    assert old in RECIPE
    read = around(YamlDocument(RECIPE.replace(old, new))).get(name)
    assert isinstance(read, Undecided) if value is Undecided else read == value


def test_an_assignment_in_a_recipe() -> None:
    code = """
        from megatron.bridge.recipes.llama import llama3_8b

        def recipe():
            cfg = llama3_8b()
            cfg.model.cuda_graph_impl = "full_iteration"
            cfg.rerun_state_machine.check_for_nan_in_loss = False
            return cfg
        """
    surroundings = around(PythonDocument(dedent(code)))
    assert surroundings.get("check_for_nan_in_loss") is False
    assert surroundings.get("check_for_nan_in_grad") is Missing.UNKNOWN


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("--no-check-for-nan-in-loss-and-grad: true", False),
        ("--no-check-for-nan-in-loss-and-grad:", False),
        ("--no-check-for-nan-in-loss-and-grad: 'True'", False),
        ("--no-check-for-nan-in-loss-and-grad: 'false'", True),
        ("--bf16: true", Missing.ABSENT),
    ],
)
def test_flags_in_yaml(arguments: str, value: object) -> None:
    text = f"MODEL_ARGS:\n  --cuda-graph-impl: full_iteration\n  {arguments}\n"
    assert around(YamlDocument(text)).get("check_for_nan_in_loss") is value


def test_flags_in_a_list() -> None:
    text = "from megatron.training import pretrain\nargs = ['--cuda-graph-impl', 'local', '--te-rng-tracker']\n"
    assert around(PythonDocument(text)).get("use_te_rng_tracker") is True


def test_a_setting_of_another_class_is_not_absent_where_it_cannot_be_written() -> None:
    document = YamlDocument("model:\n  cuda_graph_impl: local\n  hidden_size: 4096\n")
    assert around(document).get("check_for_nan_in_loss") is Missing.UNKNOWN
    assert around(document).get("use_te_rng_tracker") is Missing.ABSENT


NEMO_RL = """
policy:
  megatron_cfg:
    cuda_graph_impl: local
    env_vars: {PYTORCH_CUDA_ALLOC_CONF: "expandable_segments:True"}
  sequence_packing: {enabled: true}
"""
TEST_CASE = """
ENV_VARS:
  PYTORCH_CUDA_ALLOC_CONF: expandable_segments:True
MODEL_ARGS:
  --cuda-graph-impl: local
"""


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (NEMO_RL, "sequence_packing", True),
        (NEMO_RL, "allocator", "expandable_segments:True"),
        (NEMO_RL, "nccl_graph_register", Missing.ABSENT),
        # A configuration of a part of the model is not the one that packing is about.
        (NEMO_RL.replace("policy:", "critic:"), "sequence_packing", Missing.UNKNOWN),
        (TEST_CASE, "allocator", "expandable_segments:True"),
        (TEST_CASE, "nccl_graph_register", Missing.ABSENT),
        (TEST_CASE.replace("MODEL_ARGS", "MODEL_ARGS_2"), "allocator", "expandable_segments:True"),
    ],
)
def test_what_is_around_the_section_of_an_ecosystem(text: str, name: str, value: object) -> None:
    assert around(YamlDocument(text)).get(name) == value


# --- defaults ---------------------------------------------------------------------------------------

CALL = """
from functools import partial
from megatron.core.transformer import TransformerConfig
from megatron.bridge.models import GPTModelProvider
"""


@pytest.mark.parametrize(
    "document",
    [
        ShellDocument("torchrun pretrain_gpt.py --num-layers 2 --cuda-graph-impl local\n"),
        ShellDocument('ARGS="--num-layers 2 --cuda-graph-impl local"\ntorchrun tools/pretrain_vlm.py $ARGS\n'),
        YamlDocument("MODEL_ARGS:\n  --num-layers: 2\n  --cuda-graph-impl: local\n"),
        PythonDocument('run(["torchrun", "pretrain_gpt.py", "--cuda-graph-impl", "local", "--num-layers", "2"])\n'),
        PythonDocument(CALL + 'TransformerConfig(num_layers=2, cuda_graph_impl="local")\n'),
        PythonDocument(CALL + 'GPTModelProvider(num_layers=2, cuda_graph_impl="local")\n'),
    ],
)
def test_a_setting_that_is_not_written_has_its_default(document: Document) -> None:
    assert around(document).get("num_moe_experts") is Missing.ABSENT
    assert around(document).default("num_moe_experts") is None
    assert around(document).default("moe_layer_freq") == 1


@pytest.mark.parametrize(
    "document",
    [
        # A program that passes its arguments on, a program of one's own, one that is not known.
        ShellDocument("./run.sh --num-layers 2 --cuda-graph-impl local --te-rng-tracker\n"),
        ShellDocument("python train.py --num-layers 2 --cuda-graph-impl local --te-rng-tracker\n"),
        ShellDocument('ARGS="--num-layers 2 --cuda-graph-impl local --te-rng-tracker"\n$RUN $ARGS\n'),
        ShellDocument("torchrun pretrain_gpt.py --num-layers 2 --cuda-graph-impl local --use-checkpoint-args\n"),
        YamlDocument("MODEL_ARGS:\n  --num-layers: 2\n  --cuda-graph-impl: local\n  --yaml-cfg: a.yaml\n"),
        YamlDocument("TRAINING_ARGS:\n  --num-layers: 2\n  --cuda-graph-impl: local\n"),
        YamlDocument("model:\n  cuda_graph_impl: local\n  hidden_size: 16\n"),
        YamlDocument(RECIPE),
        # A part of a command line.
        ShellDocument("torchrun pretrain_gpt.py --cuda-graph-impl local --te-rng-tracker\\n"),
        PythonDocument(CALL + 'partial(TransformerConfig, num_layers=2, cuda_graph_impl="local")\n'),
        PythonDocument(CALL + 'class A(TransformerConfig):\n    pass\nA(cuda_graph_impl="local")\n'),
        PythonDocument(CALL + 'def f(config: TransformerConfig):\n    config.cuda_graph_impl = "local"\n'),
    ],
)
def test_elsewhere_a_setting_may_come_from_other_code(document: Document) -> None:
    assert around(document).default("num_moe_experts") is Missing.UNKNOWN


@pytest.mark.parametrize("more", ['"$@"', "$EXTRA_ARGS", "$(extra)"])
def test_a_command_line_that_may_have_more_is_not_known(more: str) -> None:
    assert around(ShellDocument(f"torchrun pretrain_gpt.py --cuda-graph-impl local {more}\n")).get(
        "num_moe_experts"
    ) is (Missing.UNKNOWN)


@pytest.mark.parametrize("program", ["./run.sh", "bash scripts/train.sh", "sbatch job.slurm"])
def test_a_script_may_give_more_to_what_it_starts(program: str) -> None:
    document = ShellDocument(f"{program} --num-experts 8 --te-rng-tracker --cuda-graph-impl full_iteration\n")
    assert around(document).get("num_moe_experts") == "8"
    assert around(document).get("check_for_nan_in_loss") is Missing.UNKNOWN


def test_a_program_gets_no_more_than_its_command_line_has() -> None:
    document = ShellDocument("python train.py --te-rng-tracker --cuda-graph-impl full_iteration\n")
    assert around(document).get("check_for_nan_in_loss") is Missing.ABSENT
