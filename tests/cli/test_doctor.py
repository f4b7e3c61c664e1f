"""`cgmigrate doctor`: the logs of jobs, and the errors that the real megatron-core raises."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cgmigrate.lint.job_messages import findings_in
from cgmigrate.lint.rules import load
from cgmigrate.megatron.rule_data import load_yaml, rules_folder, text_of
from tests.support.files import write
from tests.support.tables import from_table, table_of

SIZES: dict[str, Any] = {"num_layers": 2, "hidden_size": 8, "num_attention_heads": 2}
BROKEN: list[tuple[str, dict[str, Any]]] = table_of(__name__, "BROKEN")


def codes(text: str) -> list[str]:
    return [one.explanation.code for one in findings_in("log", text.splitlines(), load())]


@pytest.mark.parametrize(("code", "settings"), BROKEN, ids=lambda value: value if isinstance(value, str) else "")
def test_the_error_of_the_real_class_is_explained(code: str, settings: dict[str, Any]) -> None:
    config = pytest.importorskip("megatron.core.transformer.transformer_config").TransformerConfig
    with warnings.catch_warnings(), pytest.raises((AssertionError, ValueError, TypeError)) as raised:
        warnings.simplefilter("ignore")
        config(**SIZES, **settings)
    line = f"[rank0]: {raised.type.__name__}: {raised.value}"
    assert codes(line) == [code], line


def test_a_log_without_a_known_message_says_nothing(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "log", "iteration 1/10 | lm loss: 2.1 | grad norm: 1.0\n")
    result = cgmigrate("doctor", "log")
    assert (result.exit_code, result.stdout) == (0, "")


def test_a_message_of_all_ranks_is_one_cause(project: Path, cgmigrate: Callable[..., Any]) -> None:
    line = "[rank{}]: AssertionError: full scope cannot be used with other scopes.\n"
    write(project / "log", "start\n" + "".join(map(line.format, range(8))))
    result = cgmigrate("doctor", "log")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[0].startswith("log:2: CG204 [rank0]: AssertionError")
    assert result.stdout.splitlines()[-1] == "  seen 8 times, on 8 ranks"


@from_table
def test_names_that_a_release_does_not_have(line: str, code: str, cause: str) -> None:
    [one] = findings_in("log", [line], load())
    assert one.explanation.code == code
    assert cause in one.explanation.cause


@from_table
def test_names_of_others_are_not_explained(line: str) -> None:
    assert codes(line) == []


def test_every_rule_of_the_messages_is_there_and_has_help() -> None:
    path = rules_folder() / "messages/jobs.yaml"
    data = load_yaml(text_of(path), str(path))
    rules = load()
    assert all(code in rules and rules[code].fields for code in data["rules"])
    texts = [text for every in data["rules"].values() for text in every] + [one["text"] for one in data["causes"]]
    assert len(texts) == len(set(texts))


def test_a_log_that_is_no_utf8_and_one_that_is_not_there(project: Path, cgmigrate: Callable[..., Any]) -> None:
    (project / "log").write_bytes(b"\xff\xfe full scope cannot be used with other scopes.\n")
    result = cgmigrate("doctor", "log", "gone.log")
    assert result.exit_code == 2
    assert "CG204" in result.stdout
    assert "gone.log" in result.stderr


def test_programs_read_the_causes(project: Path, cgmigrate: Callable[..., Any]) -> None:
    write(project / "log", "[rank3]: RuntimeError: operation not permitted when stream is capturing\n")
    [one] = json.loads(cgmigrate("doctor", "log", "--output-format", "json").stdout)
    assert (one["line"], one["count"], one["ranks"]) == (1, 1, [3])
    assert one["explanation"]["setting"] == "cuda_graph_modules"
