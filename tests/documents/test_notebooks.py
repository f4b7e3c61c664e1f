"""Notebooks: generated ones are fixed like the script that their cells amount to, and no other byte changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cgmigrate.documents.notebook.cells import code_cells
from cgmigrate.documents.syntax import Syntax, document_of
from cgmigrate.lint.plan import plan_alone
from tests.support.files import write
from tests.support.nightly import examples
from tests.support.yaml_judges import context

CONTEXT = context()
IMPORT = "from megatron.core.transformer import TransformerConfig\n"
CODE = (
    'config = TransformerConfig(\n    cuda_graph_impl="local",\n    cuda_graph_scope="full_iteration_inference",\n)',
    'config = TransformerConfig(num_layers=2, enable_cuda_graph=True)  # "graphs" \\ é\n',
    "config = TransformerConfig(\n    external_cuda_graph=True, cuda_graph_scope=['attn', 'mlp'])\nprint(config)",
    'import os\nos.system("torchrun pretrain_gpt.py --external-cuda-graph")\n',
    "import subprocess\n\nsubprocess.run(['torchrun', 'pretrain_gpt.py', '--enable-cuda-graph', '--bf16'])",
    "config = TransformerConfig(num_layers=2, enable_cuda_graph=False)\nx = 1",
)
OTHERS = ("x = 'é \U0001f600 \\n'\n", "print('\"')", "", "\n", "def f():\n\treturn 1\n", "y = '''\n%d\n'''")
IPYTHON = ("%matplotlib inline\nz = 1", "files = !ls\nfiles", "?print\n", "!ls \\\n  -l\n", "%%time\nw = 2\n", "print?")
SHELL = (
    "!torchrun pretrain_gpt.py --enable-cuda-graph --lr {lr}\n",
    "%%bash\ntorchrun pretrain_gpt.py \\\n    --cuda-graph-impl local \\\n    --cuda-graph-scope full\n",
    "if True:\n    !torchrun pretrain_gpt.py \\\n        --external-cuda-graph \\\n        --bf16\nprint()",
)  # fmt: skip
FORMS = ({"indent": 1}, {"indent": 2}, {"indent": "\t"}, {}, {"indent": 1, "ensure_ascii": False})


def notebook(cells: list[str], form: dict[str, Any], *, as_lists: bool) -> str:
    made = [
        {
            "cell_type": "code",
            "execution_count": 1,
            "metadata": {},
            "outputs": [{"output_type": "stream", "text": ["cuda_graph_scope=['attn'] \u001b[0m"]}],
            "source": cell.splitlines(keepends=True) if as_lists and cell else cell,
        }
        for cell in cells
    ]
    text = {"cell_type": "markdown", "metadata": {}, "source": ['Set `cuda_graph_scope`: "full"']}
    kernel = {"kernelspec": {"name": "python3", "language": "python"}}
    return json.dumps({"cells": [text, *made, text], "metadata": kernel, "nbformat": 4}, **form) + "\n"


def fixed(name: str, text: str, syntax: Syntax) -> str:
    """Return a text with all of its fixes."""
    plan = plan_alone(name, document_of(f"/p/{name}", text, syntax, CONTEXT.catalogue), CONTEXT)
    edited = plan.edited([fix.id for fix in plan.fixes])
    return edited[0].text if edited else text


def sources(text: str) -> list[str]:
    return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]


def without_sources(text: str) -> object:
    root = json.loads(text)
    for cell in root["cells"]:
        cell.pop("source") if cell["cell_type"] == "code" else None
    return root


@settings(max_examples=examples(150), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cells=st.lists(st.sampled_from((*CODE, *CODE, *OTHERS)), min_size=1, max_size=5),
    form=st.sampled_from(FORMS),
    as_lists=st.booleans(),
)
def test_python_is_fixed_like_a_script(cells: list[str], form: dict[str, Any], as_lists: bool) -> None:
    before = notebook([IMPORT, *cells], form, as_lists=as_lists)
    after = fixed("a.ipynb", before, Syntax.NOTEBOOK)
    script = "\n".join([IMPORT, *cells, ""])
    assert "\n".join([*sources(after), ""]) == fixed("a.py", script, Syntax.PYTHON)
    assert without_sources(after) == without_sources(before)
    assert json.dumps(json.loads(after), **form) + "\n" == after, "another byte changed"
    assert fixed("a.ipynb", after, Syntax.NOTEBOOK) == after


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    cells=st.lists(st.sampled_from((*SHELL, *IPYTHON, *OTHERS)), min_size=1, max_size=4),
    form=st.sampled_from(FORMS),
    as_lists=st.booleans(),
)
def test_commands_are_fixed_where_they_are(cells: list[str], form: dict[str, Any], as_lists: bool) -> None:
    before = notebook(cells, form, as_lists=as_lists)
    after = fixed("a.ipynb", before, Syntax.NOTEBOOK)
    expected = [
        cell.replace("--enable-cuda-graph", "--cuda-graph-impl local")
        .replace("--external-cuda-graph", "--cuda-graph-impl transformer_engine")
        .replace(" \\\n    --cuda-graph-scope full", "")
        for cell in cells
    ]
    assert sources(after) == expected
    assert without_sources(after) == without_sources(before)
    assert json.dumps(json.loads(after), **form) + "\n" == after, "another byte changed"


@pytest.mark.parametrize("cell", CODE)
def test_every_code_is_rewritten(cell: str) -> None:
    text = notebook([IMPORT + cell], {"indent": 1}, as_lists=True)
    assert fixed("a.ipynb", text, Syntax.NOTEBOOK) != text


def test_a_new_statement_is_a_new_string_of_its_own_cell() -> None:
    before = [
        "from megatron.bridge.models import GPTModelProvider\nconfig = GPTModelProvider()\n",
        'config.cuda_graph_impl = "local"\nconfig.cuda_graph_scope = "full_iteration_inference"',
        "x = 1",
    ]
    after = fixed("a.ipynb", notebook(before, {"indent": 1}, as_lists=True), Syntax.NOTEBOOK)
    new = 'config.cuda_graph_modules = []\nconfig.inference_cuda_graph_scope = "block"'
    cells = [before[0], f'config.cuda_graph_impl = "local"\n{new}', before[2]]
    assert after == notebook(cells, {"indent": 1}, as_lists=True)


@pytest.mark.parametrize("cell", IPYTHON)
def test_a_cell_with_lines_of_ipython_is_read_as_python(cell: str) -> None:
    cells = code_cells(notebook([cell], {}, as_lists=True))
    assert cells and cells[0].python is not None


LEFT = {
    "a cell in another language": "%%javascript\nvar cuda_graph_scope = 1;",
    "a cell that is written to a file": "%%writefile a.py\nconfig.cuda_graph_scope = 'full'",
    "invalid Python": "config.cuda_graph_scope = = 'full'",
}


@pytest.mark.parametrize("cell", LEFT.values(), ids=LEFT)
def test_a_cell_that_is_not_read_is_reported(cell: str) -> None:
    text = notebook([cell], {"indent": 1}, as_lists=True)
    document = document_of("/p/a.ipynb", text, Syntax.NOTEBOOK, CONTEXT.catalogue)
    assert [problem.message for problem in document.problems] == [
        "`cuda_graph_scope` is in a cell that is not read: it is neither Python nor a command of a shell"
    ]


def test_python_is_left_where_a_cell_with_a_setting_is_not_read() -> None:
    text = notebook([IMPORT + CODE[1], LEFT["invalid Python"]], {"indent": 1}, as_lists=True)
    assert fixed("a.ipynb", text, Syntax.NOTEBOOK) == text


NO_NOTEBOOKS = {
    "no JSON": '{"cells": [',
    "other JSON": '{"enable_cuda_graph": true}',
    "another kernel": notebook([CODE[1]], {}, as_lists=True).replace('"language": "python"', '"language": "julia"'),
}


@pytest.mark.parametrize("text", NO_NOTEBOOKS.values(), ids=NO_NOTEBOOKS)
def test_other_files_have_no_sites_and_no_problems(text: str) -> None:
    document = document_of("/p/a.ipynb", text, Syntax.NOTEBOOK, CONTEXT.catalogue)
    assert (document.sites, document.problems) == ([], [])


def test_settings_in_several_cells_are_fixed_unsafely(project: Any, cgmigrate: Any) -> None:
    cells = [IMPORT, CODE[1], "config.cuda_graph_impl"]
    write("a.ipynb", notebook(cells, {"indent": 1}, as_lists=True))
    result = cgmigrate("check", "a.ipynb")
    assert "because: the cells may run in another order than they are written in" in result.stdout
    line = next(at for at, one in enumerate((project / "a.ipynb").read_text().splitlines(), 1) if "enable_cuda" in one)
    assert f"a.ipynb:{line}:" in result.stdout


def test_a_comment_in_a_cell_suppresses(project: Any, cgmigrate: Any) -> None:
    cell = "config = TransformerConfig(enable_cuda_graph=True)  # cgmigrate: ignore[CG101] old\n"
    write("a.ipynb", notebook([IMPORT + cell], {"indent": 1}, as_lists=True))
    assert cgmigrate("check", "a.ipynb").exit_code == 0


def test_no_suppression_is_written(project: Any, cgmigrate: Any) -> None:
    text = notebook([IMPORT + CODE[1]], {"indent": 1}, as_lists=True)
    write("a.ipynb", text)
    cgmigrate("check", "--add-ignore", "a.ipynb")
    assert (project / "a.ipynb").read_text(encoding="utf-8") == text


@pytest.mark.parametrize("line", ["!!{}", "%sx {}", "%system {}", "files = %sx {}"])
def test_other_lines_with_a_command_are_read(line: str) -> None:
    before = notebook([line.format("torchrun pretrain_gpt.py --external-cuda-graph")], {}, as_lists=True)
    after = line.format("torchrun pretrain_gpt.py --cuda-graph-impl transformer_engine")
    assert sources(fixed("a.ipynb", before, Syntax.NOTEBOOK)) == [after]


@pytest.mark.parametrize(
    "line",
    [
        "%run pretrain_gpt.py --enable-cuda-graph",
        "%time c = f(enable_cuda_graph=True)",
        "print(1)\n%env A=--enable-cuda-graph",
    ],
)
def test_a_name_in_another_line_for_ipython_is_reported(line: str) -> None:
    document = document_of("/p/a.ipynb", notebook([line], {}, as_lists=True), Syntax.NOTEBOOK, CONTEXT.catalogue)
    assert [problem.message.split("` ")[1] for problem in document.problems] == [
        "is in a line for IPython, which is not read"
    ]


def test_a_line_of_a_string_is_no_command() -> None:
    command = "!torchrun pretrain_gpt.py --external-cuda-graph \\\n  --bf16"
    before = notebook([f"!ls \\\n  -l\nx = '''\n{command}\n'''\n{command}\n"], {"indent": 1}, as_lists=True)
    [after] = sources(fixed("a.ipynb", before, Syntax.NOTEBOOK))
    new = command.replace("--external-cuda-graph", "--cuda-graph-impl transformer_engine")
    assert after == f"!ls \\\n  -l\nx = '''\n{command}\n'''\n{new}\n"
