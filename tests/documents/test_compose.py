"""`entrypoint` and `command` of Docker Compose, which divides a text into words, are one command line."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.files import write

SERVICES = {
    "two texts": (
        "entrypoint: torchrun pretrain_gpt.py --cuda-graph-impl transformer_engine\n"
        "command: --cuda-graph-scope attn mlp --bf16\n",
        "torchrun pretrain_gpt.py --cuda-graph-impl transformer_engine --cuda-graph-modules attn mlp --bf16",
    ),
    "a list and a text": (
        'entrypoint: ["torchrun", "pretrain_gpt.py", "--cuda-graph-impl", "local"]\n'
        "command: --lr 1 --cuda-graph-scope full\n",
        "torchrun pretrain_gpt.py --cuda-graph-impl local --lr 1",
    ),
    "a text and a list": (
        "entrypoint: torchrun pretrain_gpt.py --external-cuda-graph\n"
        "command:\n- --bf16\n- --cuda-graph-scope\n- attn\n",
        "torchrun pretrain_gpt.py --cuda-graph-impl transformer_engine --bf16 --cuda-graph-modules attn",
    ),
    "a folded text": (
        "entrypoint: >-\n  torchrun\n  pretrain_gpt.py --cuda-graph-impl local\n"
        'command: "--cuda-graph-scope full --no-x"\n',
        "torchrun pretrain_gpt.py --cuda-graph-impl local --no-x",
    ),
    "flags in the entry point only": (
        "entrypoint: torchrun pretrain_gpt.py --external-cuda-graph\ncommand: --bf16\n",
        "torchrun pretrain_gpt.py --cuda-graph-impl transformer_engine --bf16",
    ),
}
STAY = {
    "the command would be empty": (
        "entrypoint: torchrun pretrain_gpt.py --cuda-graph-impl local\ncommand: --cuda-graph-scope full\n"
    ),
    "two keys that may be two commands": (
        "launcher: torchrun pretrain_gpt.py --cuda-graph-impl local\nargs: --cuda-graph-scope full --lr 1\n"
    ),
}


def words(service: dict[str, Any]) -> list[str]:
    """The words that Compose starts, as its documentation says."""
    both = (service["entrypoint"], service["command"])
    return [word for one in both for word in (shlex.split(one) if isinstance(one, str) else one)]


@pytest.mark.parametrize("name", SERVICES)
def test_both_are_rewritten_as_one_command_line(project: Path, cgmigrate, name: str) -> None:
    text, expected = SERVICES[name]
    write("compose.yaml", text)
    cgmigrate("fix", ".")
    assert words(yaml.safe_load((project / "compose.yaml").read_text())) == expected.split()
    assert cgmigrate("check", ".").exit_code == 0


@pytest.mark.parametrize("name", STAY)
def test_others_stay_and_are_reported(project: Path, cgmigrate, name: str) -> None:
    write("compose.yaml", STAY[name])
    assert cgmigrate("fix", ".").exit_code == 1
    assert (project / "compose.yaml").read_text() == STAY[name]
