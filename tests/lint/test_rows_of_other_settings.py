"""Rows of the executed tables whose outcome other settings decide: rules report what the release refuses there."""

from __future__ import annotations

import collections
from typing import Any

import pytest

from cgmigrate.megatron.releases import Release
from tests.lint.test_companions import judged, reported
from tests.megatron.test_capture import decided_elsewhere, needs_truth, rows
from tests.support.tables import table_of

DEFAULTS: dict[str, Any] = {"num_moe_experts": None, "attention_dropout": 0.1, "hidden_dropout": 0.1}
"""What a row's configuration has by default. A file that does not say it may belong to any model."""
CONTEXTS: dict[str, dict[str, Any]] = table_of(__name__, "CONTEXTS")
"""The settings beside those of a row, as far as the name of its context says; the release judges whether they are."""


@needs_truth
def test_rules_report_the_rows_that_other_settings_decide(capsys: pytest.CaptureFixture[str]) -> None:
    kept = [row for row in rows("config", "0.19.2") if "skipped" not in row and decided_elsewhere(row)]
    known = [row for row in kept if row.get("ctx", "main") in CONTEXTS]
    configurations = [row["in"] | DEFAULTS | CONTEXTS[row.get("ctx", "main")] for row in known]
    counts: collections.Counter[str] = collections.Counter()
    counts["the context is rejected without graphs, or not known"] = len(kept) - len(known)
    silent = []
    for row, settings, said in zip(known, configurations, judged(configurations, ""), strict=True):
        if row["err"][1][:60] not in said:
            counts["the settings of the context are not these"] += 1
        elif reported(settings, Release(0, 19)):
            counts["reported"] += 1
        else:
            silent.append((said[:80], settings))
    with capsys.disabled():
        print(f"\nrows of 0.19.2 that other settings decide: {dict(counts)}, not reported {len(silent)}")
    # A row that does not write the modules, or a mode, has the default of its release, which no rule guesses.
    assert len(silent) <= 45
    assert counts["reported"] >= 827
