"""The list of lines that a fix leaves in Megatron-Bridge, and what judges trees by it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "bench"))

from left_lines import LIST, Line, Lines, judged_lines, legacy_lines, problems_of

JUDGED = """\
# A comment.
must stay: the option of a harness
  harness.py
    2  "--cuda_graph_scope",

issue J: documentation
  a.md
    1  `cuda_graph_scope`

must move: a reader
  model.py
    1  config.enable_cuda_graph

may come: a keyword of the harness
  model.py
    1  cuda_graph_scope=cuda_graph_module_names(model)
"""
BEFORE = {
    "harness.py": '"--cuda_graph_scope",\n  "--cuda_graph_scope",\n',
    "a.md": "`cuda_graph_scope`\n",
    "model.py": "config.enable_cuda_graph\ncfg.cuda_graph_scope = []\n",
}


def _lines(folder: Path, texts: dict[str, str]) -> Lines:
    folder.mkdir()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return legacy_lines(folder)


def _problems(tmp_path: Path, after: dict[str, str]) -> dict[str, list[str]]:
    before, texts = _lines(tmp_path / "before", BEFORE), {**BEFORE, **after}
    problems = problems_of(judged_lines(JUDGED), before, _lines(tmp_path / "after", texts))
    return {what: [str(line) for line in lines.elements()] for what, lines in problems if lines}


def test_a_tree_in_which_everything_moved(tmp_path: Path) -> None:
    assert not _problems(
        tmp_path, {"model.py": 'config.cuda_graph_impl == "local"\n', "a.md": "`cuda_graph_modules`\n"}
    )


def test_a_line_that_may_come(tmp_path: Path) -> None:
    assert not _problems(tmp_path, {"model.py": "cuda_graph_scope=cuda_graph_module_names(model)\n"})


def test_lines_that_are_left(tmp_path: Path) -> None:
    assert _problems(tmp_path, {}) == {
        "must move and is left": ["model.py: config.enable_cuda_graph"],
        "is not judged": ["model.py: cfg.cuda_graph_scope = []"],
    }


def test_lines_that_should_have_stayed(tmp_path: Path) -> None:
    after = {"harness.py": '"--cuda_graph_scope",\n"--cuda_graph_modules",\n', "model.py": ""}
    assert _problems(tmp_path, after) == {"must stay and has changed": ['harness.py: "--cuda_graph_scope",']}


def test_another_tree(tmp_path: Path) -> None:
    missing = judged_lines(JUDGED.replace("a.md", "b.md"))
    first = next(problems_of(missing, _lines(tmp_path / "before", BEFORE), Lines()))
    assert first == ("the tree before lacks a line of the list", Lines([Line("b.md", "`cuda_graph_scope`")]))


@pytest.mark.parametrize(
    "text",
    [
        "vision_cuda_graph_scope",
        "VALID_CUDA_GRAPH_SCOPES",
        "--external-cuda-graph",
        "CudaGraphScope.attn",
        'cfg.cuda_graph_modules = ["full_iteration"]',
        '{"cuda_graph_modules": "full"}',
    ],
)
def test_old_names(tmp_path: Path, text: str) -> None:
    assert _lines(tmp_path / "tree", {"a.txt": text}).total() == 1


@pytest.mark.parametrize(
    "text",
    [
        "inference_cuda_graph_scope",
        "--inference-cuda-graph-scope",
        "InferenceCudaGraphScope",
        'cuda_graph_modules = "attn"',
    ],
)
def test_new_names(tmp_path: Path, text: str) -> None:
    assert not _lines(tmp_path / "tree", {"a.txt": text})


def test_the_list_is_read() -> None:
    totals = {judgement: lines.total() for judgement, lines in judged_lines(LIST.read_text(encoding="utf-8")).items()}
    assert totals == {"must stay": 131, "issue J": 39, "to decide": 24, "must move": 22, "may come": 3}


def test_a_list_that_is_damaged() -> None:
    with pytest.raises(ValueError, match="line 2 of the list"):
        judged_lines("must move: a reader\n    1  config.enable_cuda_graph\n")
