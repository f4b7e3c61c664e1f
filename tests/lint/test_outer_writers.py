"""Files that are no Python and may set or read the objects of code: each prevents proofs, and prose does not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cgmigrate.lint.outer_writers import code_writer, data_writer
from cgmigrate.megatron.catalogue import load
from cgmigrate.megatron.releases import LAST_OLD
from tests.support.files import write


def cell(source: str) -> str:
    """Return a notebook with one cell of code."""
    return json.dumps({"cells": [{"cell_type": "code", "source": source.splitlines(keepends=True)}]})


KEYS = {
    "a.json": '{"model": {"cuda_graph_scope": ["attn"]}}',
    "b.json": '{"cudaGraphScope": ["attn"]}',
    "c.json": '{"model.cuda_graph_scope": "attn"}',
    "d.json": '["enable_cuda_graph", "cuda_graph_scope"]',
    "a.jsonl": '{"name": "cuda_graph_scope", "value": "attn"}\n',
    "a.toml": '[model]\ncuda_graph_scope = "attn"\n',
    "a.csv": "recipe,setting,value\nstart,cuda_graph_scope,attn\n",
    "b.csv": "recipe,cuda_graph_scope\nstart,attn\n",
    "a.tsv": "start\tcuda_graph_scope\tattn\n",
    "a.ini": "[model]\ncuda_graph_scope = attn\n",
    ".env": "MODEL__CUDA_GRAPH_SCOPE=attn\n",
    "a.txt": "model.cuda_graph_scope=attn\n",
}
PROSE = {
    "a.json": '{"question": "What does cuda_graph_scope do?"}',
    "a.txt": "The setting `cuda_graph_scope` names the modules.\n",
    "a.csv": "question,What does cuda_graph_scope do?\n",
    "a.toml": 'text = "cuda_graph_scope"\n',
}
CODE = {
    "a.ipynb": '{"cells": [{"source": ["cfg.model.cuda_graph_scope = [\'mlp\']\\n"]}]}',
    "b.ipynb": '{"cells": [{"source": ["setattr(model, \'cuda_graph_\' + name, 1)\\n"]}]}',
    "c.ipynb": '{"cells": [{"cell_type": "markdown", "source": ["text"]},\n'
    ' {"cell_type": "code", "source": "cfg.model.cuda_graph_scope = 1"}]}',
    "a keyword.ipynb": cell("q = replace(p, cuda_graph_scope=['mlp'])"),
    "a keyword in a line.ipynb": cell("q = replace(p,\ncuda_graph_scope=['mlp'])"),
    "a file that it writes.ipynb": cell("%%writefile o.yaml\ncuda_graph_scope: [mlp]"),
    "a name.ipynb": cell("cuda_graph_scope = ['mlp']\nset_all(p, globals())"),
    "no cells.ipynb": '{"cells": [], "worksheets": [{"input": ["p.cuda_graph_scope"]}]}',
    "another kind.ipynb": '{"cells": [{"cell_type": "Code", "source": ["p.cuda_graph_scope = 1"]}]}',
    "an old cell.ipynb": '{"cells": [{"cell_type": "code", "source": [], "input": ["p.cuda_graph_scope"]}]}',
    "keyword.sh": "python - <<EOF\nq = replace(p, cuda_graph_scope=1)\nEOF\n",
    "run.sh": "python - <<EOF\nprint(cfg.model.cuda_graph_scope)\nEOF\n",
    "recipe.py.j2": "cfg.model.cuda_graph_scope = {{ scope }}\n",
}
NO_CODE = {
    "run.sh": "torchrun pretrain_gpt.py --cuda-graph-scope attn\nSCOPE=cuda_graph_scope\n",
    "a.ipynb": '{"cells": [{"cell_type": "markdown", "source": ["cuda_graph_config:\\n", "`x.cuda_graph_scope`"]}]}',
    "flags.ipynb": cell("!torchrun train.py --cuda-graph-scope attn --enable-cuda-graph"),
    "b.ipynb": cell("%%writefile trt.yaml\ncuda_graph_config:\n  max_batch_size: 1"),
    "a.md": "`cfg.model.cuda_graph_scope`\n",
    "a.patch": "+cfg.model.cuda_graph_scope = 1\n",
}


def data_place(path: Path) -> str:
    return data_writer([str(path)], lambda _: None, load(), LAST_OLD)


@pytest.mark.parametrize("name", KEYS)
def test_a_key_of_a_data_file_counts(name: str, tmp_path: Path) -> None:
    assert data_place(write(tmp_path / name, KEYS[name]))


@pytest.mark.parametrize("name", PROSE)
def test_a_text_of_a_data_file_does_not(name: str, tmp_path: Path) -> None:
    assert not data_place(write(tmp_path / name, PROSE[name]))


@pytest.mark.parametrize("name", CODE)
def test_code_of_other_files_counts(name: str, tmp_path: Path) -> None:
    assert code_writer([str(write(tmp_path / name, CODE[name]))])


def test_a_cell_of_code_has_its_line(tmp_path: Path) -> None:
    assert code_writer([str(write(tmp_path / "c.ipynb", CODE["c.ipynb"]))]).endswith("c.ipynb:2")


@pytest.mark.parametrize("name", NO_CODE)
def test_flags_and_prose_do_not(name: str, tmp_path: Path) -> None:
    assert not code_writer([str(write(tmp_path / name, NO_CODE[name]))])
