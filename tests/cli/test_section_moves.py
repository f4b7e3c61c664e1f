"""Settings that move from one section of a configuration to another, as `train.eval_iters` to `validation.eval_iters`.

An entry with a dotted name says so; `proved` is a team's own, whose fix is safe where nothing else uses the key.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.megatron.rule_data import upgrade_rules
from tests.support.files import write

ENTRY = Path(upgrade_rules()) / "settings/train.eval_interval.yaml"
TRAIN = "model:\n  tensor_model_parallel_size: 2\ntrain:\n  train_iters: 100\n"
OLD = TRAIN + "  # often\n  eval_interval: 10   # steps\nlogger:\n  log_interval: 1\n"
NEW = TRAIN + "validation:\n  # often\n  eval_interval: 10   # steps\nlogger:\n  log_interval: 1\n"
LOADS = 'import yaml\nc = yaml.safe_load(open("conf/a.yaml"))\n'


@pytest.fixture
def proved(project: Path) -> tuple[str, ...]:
    """A pack with the entry, whose fix is proved."""
    text = re.sub("(?m)^unsafe: .*$", "proved-by: both are read alike", ENTRY.read_text("utf-8"))
    write(project / "pack/settings/train.eval_interval.yaml", text.replace("UPG120", "TEAM001"))
    return ("--rules", "pack", "--from", "0.16", "--to", "0.19")


def test_the_new_section_stays(project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...]) -> None:
    write(project / "conf/a.yaml", NEW)
    assert cgmigrate("check", *proved, "conf").stdout == ""


@pytest.mark.parametrize(
    "text",
    [
        "train:\n  eval_interval: 10\nmodel: gpt2\n",
        "trainer:\n  eval_interval: 10\n  train_iters: 4\n",
        "eval_interval: 10\ntrain_iters: 4\n",
    ],
    ids=["another system", "another section", "no section"],
)
def test_others_have_a_section_of_this_name(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], text: str
) -> None:
    write(project / "conf/a.yaml", text)
    assert cgmigrate("check", *proved, "conf").stdout == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (OLD, NEW),
        (OLD.replace("\n", "\r\n"), NEW.replace("\n", "\r\n")),
        (OLD + "validation:\n    a: 4 \n",
         TRAIN + "logger:\n  log_interval: 1\nvalidation:\n    a: 4 \n    # often\n    eval_interval: 10   # steps\n"),
        ("tensor_model_parallel_size: 2\ntrain:  # steps\n  eval_interval: 4\n",
         "tensor_model_parallel_size: 2\ntrain: {}  # steps\nvalidation:\n  eval_interval: 4\n"),
        (OLD.replace("eval_interval", '"eval_interval"'), NEW.replace("eval_interval", '"eval_interval"')),
    ],
    ids=["new section", "CRLF", "behind other keys", "nothing is left", "quotes"],
)  # fmt: skip
def test_lines_move_with_their_comments(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], old: str, new: str
) -> None:
    (project / "conf").mkdir()
    (project / "conf/a.yaml").write_bytes(old.encode())
    cgmigrate("fix", *proved, "conf")
    assert (project / "conf/a.yaml").read_bytes().decode() == new


@pytest.mark.parametrize(
    "text",
    [
        OLD + "validation:\n  eval_interval: 7\n",
        OLD + "validation: {eval_iters: 7}\n",
        OLD.replace("train:", "train: &t") + "other: *t\n",
        OLD.replace("train:\n", "train:\n  <<: {exit_interval: 3}\n"),
        OLD + "last: ${train.eval_interval}\n",
    ],
    ids=["both are written", "braces", "an anchor", "a merge key", "an interpolation"],
)
def test_text_that_no_line_can_leave(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], text: str
) -> None:
    write(project / "conf/a.yaml", text)
    assert "TEAM001" in cgmigrate("fix", *proved, "conf", "--output-format", "concise").stdout
    assert (project / "conf/a.yaml").read_text() == text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.py", LOADS + 'print(c["train"]["eval_interval"])\n'),
        ("m.py", LOADS + "t = c.train\nprint(t.eval_interval)\n"),
        ("m.py", LOADS + 'print(getattr(c.train, "eval_" + "interval"))\n'),
        ("m.py", LOADS + 'for k, v in c["train"].items():\n    setattr(cfg.train, k, v)\n'),
        ("m.py", LOADS + 'Train(**c["train"])\n'),
        ("run.sh", "python run.py --config conf/a.yaml train.eval_interval=20\n"),
        ("README.md", "Write `train.eval_interval=20` to validate less:\n\n    run.py train.eval_interval=20\n"),
        ("get.sh", "yq .train.eval_interval conf/a.yaml\n"),
        ("set.sh", "sed -i 's/eval_interval: 10/eval_interval: 3/' conf/a.yaml\n"),
        ("conf/b.yaml", "defaults: [a, _self_]\nvalidation:\n  eval_interval: 100\n"),
    ],
)
def test_what_uses_the_key_withholds_the_move(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], name: str, text: str
) -> None:
    write(project / "conf/a.yaml", OLD)
    write(project / name, text)
    cgmigrate("fix", *proved, "conf")
    assert (project / "conf/a.yaml").read_text() == OLD


def test_code_that_uses_other_keys_does_not(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...]
) -> None:
    write(project / "conf/a.yaml", OLD)
    write(project / "m.py", LOADS + 'print(c["train"]["train_iters"])\nmegatron.train()\n')
    cgmigrate("fix", *proved, "conf")
    assert (project / "conf/a.yaml").read_text() == NEW


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("r.py", "import megatron.bridge\ndef f(cfg):\n    cfg.train.eval_iters = 3  # few\n",
         "import megatron.bridge\ndef f(cfg):\n    cfg.validation.eval_iters = 3  # few\n"),
        ("run.sh", "torchrun run.py train.eval_iters=3 train.train_iters=5\n",
         "torchrun run.py validation.eval_iters=3 train.train_iters=5\n"),
        ("a.yaml", OLD, NEW),
    ],
)  # fmt: skip
def test_recipes_of_the_bridge_may_set_the_old_one(
    project: Path, cgmigrate: Callable[..., Any], name: str, old: str, new: str
) -> None:
    write(project / name, old)
    releases = ("--from", "0.16", "--to", "0.19", ".")
    cgmigrate("upgrade", "--fix", *releases)
    assert (project / name).read_text() == old
    cgmigrate("upgrade", "--fix", "--unsafe-fixes", *releases)
    assert (project / name).read_text() == new


@pytest.mark.parametrize("code", ["print(cfg.train.eval_iters)", "TrainingConfig(eval_iters=4)"])
def test_code_is_reported(project: Path, cgmigrate: Callable[..., Any], code: str) -> None:
    write(project / "r.py", f"from megatron.bridge.training.config import TrainingConfig\ndef f(cfg):\n    {code}\n")
    result = cgmigrate("upgrade", "--from", "0.16", "--to", "0.19", "--output-format", "concise", ".")
    assert "r.py:3" in result.stdout


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("validation.eval_interval", "validation.eval_every"), "has no validation.eval_every in any release"),
        (("validation.eval_interval", "valid.eval_interval"), "has no valid.eval_interval in any release"),
        (('deprecated-in: "0.17"', 'deprecated-in: "0.16"'), "validation.eval_interval is there since 0.17, not 0.16"),
    ],
)
def test_the_tables_know_the_sections(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], change: tuple[str, str], reason: str
) -> None:
    entry = project / "pack/settings/train.eval_interval.yaml"
    entry.write_text(entry.read_text().replace(*change))
    assert reason in cgmigrate("rules", "test", "pack").stderr
