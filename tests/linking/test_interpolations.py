"""Settings that are interpolations of other keys, and those that interpolations read: neither is rewritten safely."""

from __future__ import annotations

from pathlib import Path

from tests.support.capture_judges import fix
from tests.support.files import write
from tests.support.tables import from_table

LAYERS = "policy:\n  megatron_cfg:\n    cuda_graph_impl: transformer_engine\n"


@from_table
def test_a_value_of_another_key_is_reported_and_stays(project: Path, written: str, elsewhere: str) -> None:
    path = write(project / "a.yaml", text := f"{LAYERS}    cuda_graph_scope: {written}\n{elsewhere}")
    assert "CG003" in {one.rule for checked in fix(project).results for one in checked.remaining}
    assert path.read_text() == text


def test_a_value_of_another_file_stays(project: Path) -> None:
    write(project / "keys.yaml", "graphs:\n  scope: [attn, mlp]\n")
    text = f"defaults: keys.yaml\n{LAYERS}    cuda_graph_scope: ${{graphs.scope}}\n"
    path = write(project / "a.yaml", text)
    assert not fix(project).written and path.read_text() == text


def test_a_setting_that_an_interpolation_reads_keeps_its_name(project: Path) -> None:
    text = f"{LAYERS}    cuda_graph_scope: attn\nother:\n  megatron_cfg:\n    cuda_graph_impl: transformer_engine\n"
    path = write(project / "a.yaml", text + "    cuda_graph_scope: ${policy.megatron_cfg.cuda_graph_scope}\n")
    assert not fix(project).written
    assert path.read_text().startswith(f"{LAYERS}    cuda_graph_scope: attn\n")
