"""Keys of the files that a file builds on do not show whose settings its own mappings have."""

from __future__ import annotations

from pathlib import Path

from tests.support.capture_judges import fix
from tests.support.files import write
from tests.support.fixed_files import Run


def test_a_mapping_whose_owner_only_its_base_shows_stays_and_is_reported(project: Path, cgmigrate: Run) -> None:
    write(project / "base.yaml", "model_config:\n  num_layers: 2\n  num_attention_heads: 4\n")
    write(project / "own.yaml", "extends: base.yaml\nmodel_config:\n  enable_cuda_graph: true\n")
    assert not fix(project).written
    assert "own.yaml:3" in cgmigrate("check", ".").output
