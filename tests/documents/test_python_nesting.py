"""Settings of several sites that are nested in one another are rewritten in one run."""

from __future__ import annotations

from pathlib import Path

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.project.options import RunOptions
from tests.support.tables import from_table

IMPORT = "from megatron.core.transformer import TransformerConfig as T\n"
NESTED = (
    "x = T(enable_cuda_graph=False, sub=T(external_cuda_graph=True), "
    'cuda_graph_impl="local", cuda_graph_scope=["mlp"])\n'
)


def fixed(path: Path, text: str) -> str:
    path.write_text(text)
    (checked,) = Run([str(path)], RunOptions(unsafe=True))
    assert isinstance(checked, FileResult)
    assert checked.remaining == ()
    path.write_text(checked.after or "")
    for again in Run([str(path)], RunOptions(unsafe=True)):
        assert isinstance(again, FileResult)
        assert again.after is None
    return path.read_text()


def test_nested_calls_whose_settings_interleave(tmp_path: Path) -> None:
    after = 'x = T(sub=T(cuda_graph_impl="transformer_engine"), cuda_graph_impl="local", cuda_graph_modules=["mlp"])\n'
    assert fixed(tmp_path / "a.py", IMPORT + NESTED) == IMPORT + after


def test_overrides_of_two_models_that_interleave(tmp_path: Path) -> None:
    text = (
        'o = ["a.model.enable_cuda_graph=false", "b.model.external_cuda_graph=true", '
        '"a.model.cuda_graph_impl=local", "a.model.cuda_graph_scope=[mlp]"]\n'
    )
    after = fixed(tmp_path / "a.py", IMPORT + text)
    assert '"b.model.cuda_graph_impl=transformer_engine"' in after
    assert '"a.model.cuda_graph_impl=local", "a.model.cuda_graph_modules=[mlp]"]' in after


def test_statements_for_two_objects_that_interleave(tmp_path: Path) -> None:
    text = (
        "model.config.enable_cuda_graph = False\n"
        "draft.config.external_cuda_graph = True\n"
        'model.config.cuda_graph_impl = "local"\n'
        'model.config.cuda_graph_scope = ["mlp"]\n'
    )
    after = fixed(tmp_path / "a.py", IMPORT + text)
    assert 'draft.config.cuda_graph_impl = "transformer_engine"\nmodel.config.cuda_graph_impl = "local"' in after


@from_table
def test_no_blank_is_left_at_the_end_of_a_line(tmp_path: Path, text: str, after: str) -> None:
    path = tmp_path / "a.py"
    path.write_bytes((IMPORT + text).encode())
    (checked,) = Run([str(path)], RunOptions(unsafe=True))
    assert isinstance(checked, FileResult)
    assert checked.after == IMPORT + after
