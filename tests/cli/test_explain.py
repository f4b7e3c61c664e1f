"""`explain` for a field or a flag: what each release accepts, from the tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from cgmigrate.megatron.releases import KNOWN, Release
from cgmigrate.megatron.tables import load
from cgmigrate.report.release_tables import names, setting_text

TABLES = load()


def test_a_field_is_shown_with_its_owner_its_releases_and_its_flag(project: Path, cgmigrate) -> None:
    lines = cgmigrate("explain", "moe_deepep_num_sms").stdout.splitlines()
    assert lines[0] == "TransformerConfig.moe_deepep_num_sms"
    assert lines[1] == "  0.13 to 0.18  int; default 20"
    assert "--moe-deepep-num-sms" in lines
    assert lines[-1] == "Flags are known since 0.17."


def test_a_flag_is_shown_by_its_own_name(project: Path, cgmigrate) -> None:
    result = cgmigrate("explain", "--cuda-graph-impl")
    assert result.stdout.startswith(
        "--cuda-graph-impl\n"
        "  0.17          one of none, local, transformer_engine; sets cuda_graph_impl; default none\n"
        "  0.18 to "
    )
    assert "TransformerConfig" not in result.stdout


def test_an_entry_that_is_gone_is_no_longer_there() -> None:
    lines = setting_text("--inference-dynamic-batching-cuda-graph-max-tokens", TABLES).splitlines()
    assert lines[1].startswith("  0.17  ") and lines[2].startswith("  0.18") and lines[2].endswith("no longer there")


@pytest.mark.parametrize(
    ("name", "similar"),
    [("moe_deepep_num_sm", "moe_deepep_num_sms"), ("--cuda-graph-imp", "--cuda-graph-impl"), ("CG10", "CG101")],
)
def test_an_unknown_name_gets_the_nearest_ones(project: Path, cgmigrate, name: str, similar: str) -> None:
    result = cgmigrate("explain", name)
    assert result.exit_code == 2
    assert f"no rule or setting {name}; did you mean " in result.stderr and similar in result.stderr


@pytest.mark.parametrize("release", KNOWN, ids=str)
def test_the_line_of_a_release_has_its_default(release: Release) -> None:
    shown = 0
    for name, entry in TABLES.fields("ModelParallelConfig", release).items():
        lines = setting_text(name, TABLES).split("\n\n")[0].splitlines()[1:]
        (line,) = [line for line in lines if _covers(line.split("  ")[1], release)]
        if entry.init and not entry.required and not entry.expression:
            shown += 1
            assert line.endswith(f"; default {entry.default if entry.default != '' else repr('')}"), line
    assert shown > 30


def _covers(releases: str, release: Release) -> bool:
    first, _, last = releases.strip().partition(" to ")
    return Release(*map(int, first.split("."))) <= release <= Release(*map(int, (last or first).split(".")))


def test_every_name_is_explained() -> None:
    assert len(names(TABLES)) > 1500
    assert all(setting_text(name, TABLES) for name in names(TABLES))
