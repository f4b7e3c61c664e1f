"""A file that installs an older release itself: a fix of it would run on that release, so it is withheld."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.files import write
from tests.support.tables import table_of

INSTALL = "pip install megatron-core==0.17.0"


FILES = table_of(__name__, "FILES")


@pytest.mark.parametrize(("name", "text"), FILES.values(), ids=FILES)
def test_the_fix_is_withheld_unless_the_release_is_given(project: Path, cgmigrate: Any, name: str, text: str) -> None:
    write(name, text)
    shown = cgmigrate("fix", "--docs", name).stdout
    assert (project / name).read_text(encoding="utf-8") == text
    assert " installs megatron-core 0.1" in shown and "or give `--to 0.19`" in shown
    cgmigrate("fix", "--docs", "--to", "0.19", "--unsafe-fixes", name)
    after = (project / name).read_text(encoding="utf-8")
    assert "cuda-graph-modules" in after and "cuda-graph-scope" not in after


OTHERS = table_of(__name__, "OTHERS")


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_other_commands_withhold_nothing(project: Path, cgmigrate: Any, text: str) -> None:
    write("run.sh", text)
    cgmigrate("fix", "run.sh")
    assert "--cuda-graph-modules attn" in (project / "run.sh").read_text(encoding="utf-8")


def test_what_the_older_release_reads_as_well_is_fixed(project: Path, cgmigrate: Any) -> None:
    write("run.sh", f"{INSTALL}\ntorchrun pretrain_gpt.py --external-cuda-graph\n")
    cgmigrate("fix", "run.sh")
    assert "--cuda-graph-impl transformer_engine" in (project / "run.sh").read_text(encoding="utf-8")
