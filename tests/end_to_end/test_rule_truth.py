"""Random configurations, judged by the installed megatron-core: a small run of bench/rule_truth.py, always the same."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec

import pytest

from tests.support.nightly import generated
from tests.support.paths import FETCHED, ROOT

sys.path.insert(0, str(ROOT / "bench"))

from sweeping import run
from sweeping.cases import READERS, Reader

BRIDGE = FETCHED / "megatron-bridge-0.6.2"


@pytest.mark.parametrize(
    "reader",
    sorted((one for one in READERS if one.judge != "nemo-rl"), key=lambda one: one.judge),
    ids=lambda one: one.name,
)
def test_what_the_release_refuses_is_reported_and_nothing_else(reader: Reader) -> None:
    if find_spec("torch") is None or find_spec("megatron") is None:
        pytest.skip("the judge is the installed megatron-core")
    if reader.judge == "bridge" and not BRIDGE.is_dir():
        pytest.skip("Megatron-Bridge is not fetched")
    options = argparse.Namespace(count=generated(40, 600), seed=20261124, judges={"0.19": sys.executable})

    comparison = run.compared(reader, "0.19", argparse.Namespace(bridge=BRIDGE, **vars(options)))

    assert len(comparison.refused()) == len(comparison.accepted()) == options.count // 2
    recall, precision = (float(share) for share in comparison.scores(warnings=False, preview=False))
    assert min(recall, precision) >= 0.99, comparison.details(warnings=False, examples=None)
