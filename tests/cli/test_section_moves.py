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
from tests.support.tables import from_table

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


@from_table
def test_others_have_a_section_of_this_name(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], text: str
) -> None:
    write(project / "conf/a.yaml", text)
    assert cgmigrate("check", *proved, "conf").stdout == ""


@from_table
def test_lines_move_with_their_comments(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], old: str, new: str
) -> None:
    (project / "conf").mkdir()
    (project / "conf/a.yaml").write_bytes(old.encode())
    cgmigrate("fix", *proved, "conf")
    assert (project / "conf/a.yaml").read_bytes().decode() == new


@from_table
def test_text_that_no_line_can_leave(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], text: str
) -> None:
    write(project / "conf/a.yaml", text)
    assert "TEAM001" in cgmigrate("fix", *proved, "conf", "--output-format", "concise").stdout
    assert (project / "conf/a.yaml").read_text() == text


@from_table
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


@from_table
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


@from_table
def test_the_tables_know_the_sections(
    project: Path, cgmigrate: Callable[..., Any], proved: tuple[str, ...], change: tuple[str, str], reason: str
) -> None:
    entry = project / "pack/settings/train.eval_interval.yaml"
    entry.write_text(entry.read_text().replace(*change))
    assert reason in cgmigrate("rules", "test", "pack").stderr
