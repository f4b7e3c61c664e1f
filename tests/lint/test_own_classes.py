"""Keywords of a class of the project that defines the settings as fields: the field decides their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.files import write

CONFIG = """\
from dataclasses import dataclass


@dataclass
class WorkloadBaseConfig:
    gpus: int = 8
    cuda_graph_scope: list[str] | None = None
"""
USES = """\
import dataclasses
from dataclasses import replace

import megatron.core
{imports}

BASE = WorkloadBaseConfig(gpus=8, cuda_graph_scope=["attn"])
LARGE = replace(BASE, cuda_graph_scope=["mlp"])
LARGER = dataclasses.replace(LARGE, gpus=64, cuda_graph_scope=[])
"""


@pytest.mark.parametrize("is_in_file", [True, False])
def test_one_diagnostic_concerns_all_keywords(project: Path, cgmigrate, is_in_file: bool) -> None:
    if is_in_file:
        write(project / "uses.py", USES.format(imports=CONFIG.replace("from dataclasses import dataclass\n", "")))
        text = (project / "uses.py").read_text().replace("import replace", "import dataclass, replace")
        write(project / "uses.py", text)
    else:
        write(project / "utils/config.py", CONFIG)
        write(project / "uses.py", USES.format(imports="from utils.config import WorkloadBaseConfig"))
    output = cgmigrate("check", ".").stdout
    assert output.count("warning[") == 1
    assert (
        "CG605" if is_in_file else "`cuda_graph_scope` is a field of `WorkloadBaseConfig` (utils/config.py:5)"
    ) in output
    assert "replace" in output and "else leave it" in output
    assert "write `cuda_graph_modules" not in output


def test_a_class_without_the_field_is_reported_for_each_keyword(project: Path, cgmigrate) -> None:
    write(project / "utils/config.py", CONFIG.replace("cuda_graph_scope", "other"))
    write(project / "uses.py", USES.format(imports="from utils.config import WorkloadBaseConfig"))
    assert cgmigrate("check", ".").stdout.count("CG006]") == 3
