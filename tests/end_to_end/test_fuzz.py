"""Generated projects through the whole program, for 20 seconds; `python tests/fuzz.py --minutes N` runs longer."""

from __future__ import annotations

import time

import pytest

from cgmigrate.megatron.types import Reader
from tests import fuzz
from tests.support.tables import from_table

SECONDS = 20
LEAST = 50
"""Cases that are run even where the machine is slow."""

BEFORE = """\
from megatron.core.transformer import TransformerConfig
config = TransformerConfig(
    num_layers=2,  # why
    enable_cuda_graph=True,
)
"""
AFTER = BEFORE.replace("enable_cuda_graph=True", 'cuda_graph_impl="local"')
YAML = "a: 1  # one\npolicy:\n  megatron_cfg:\n    external_cuda_graph: true\n"


def test_generated_projects_are_handled_without_a_traceback_or_a_wrong_edit() -> None:
    end = time.monotonic() + SECONDS
    tally = fuzz.fuzz(lambda tally: tally.failures > 0 or (time.monotonic() > end and tally.cases >= LEAST))
    print(tally)
    assert tally.failures == 0, "\n".join(tally.shown)
    assert tally.rewritten >= LEAST // 10


@from_table
def test_the_judges_of_python_see_damage(after: str) -> None:
    fuzz.judge_python(BEFORE, AFTER, safe=True)
    with pytest.raises(fuzz.WrongEditError):
        fuzz.judge_python(BEFORE, after, safe=True)


@pytest.mark.parametrize(
    "damage", [("transformer_engine", "none"), ("a: 1", "a: 2"), ("  # one", ""), ("policy", "teacher")]
)
def test_the_judges_of_yaml_see_damage(damage: tuple[str, str]) -> None:
    after = YAML.replace("external_cuda_graph: true", "cuda_graph_impl: transformer_engine")
    fuzz.judge_yaml(YAML, after, safe=True)
    with pytest.raises(AssertionError):
        fuzz.judge_yaml(YAML, after.replace(*damage), safe=True)


def test_an_internal_error_counts_as_a_traceback() -> None:
    line = "error: file3.py: internal error (KeyError: 'x', at run.py:1); please report this"
    assert fuzz.internal(f"note: a\n{line}\n") == {"file3.py": line}


def test_settings_that_capture_something_else_are_refused() -> None:
    fuzz.same_capture({"enable_cuda_graph": True}, {"cuda_graph_impl": "local"}, Reader.CONFIG, "here")
    with pytest.raises(fuzz.WrongEditError):
        fuzz.same_capture({"enable_cuda_graph": True}, {}, Reader.CONFIG, "here")
