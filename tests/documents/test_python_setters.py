"""Rewrites that call a project's own functions for the modules, and their imports."""

from __future__ import annotations

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.python.setters import Setters
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.text.edits import apply
from tests.support.tables import from_table

SETTERS = Setters("megatron.bridge.utils.cuda_graph", "set_cuda_graph_modules", "clear_cuda_graph_modules")
CLEARED = {"cuda_graph_scope": None}


def rewritten(text: str, *settings: dict[str, object]) -> str:
    """Return a text whose sites get settings, after the check of the document."""
    document = PythonDocument(text)
    document.setters = SETTERS
    rewrites = {index: {**one, **CLEARED} for index, one in enumerate(settings)}
    edited = apply(text, document.edits(rewrites))
    assert not document.check(edited, rewrites)
    return edited


def test_a_scope_becomes_a_call() -> None:
    text = """\
from megatron.bridge.training.config import ConfigContainer


def recipe() -> ConfigContainer:
    cfg = base()
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["attn", "mlp"]  # of each layer
    return cfg
"""
    settings = {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn", "mlp"]}
    assert (
        rewritten(text, settings)
        == """\
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.utils.cuda_graph import set_cuda_graph_modules


def recipe() -> ConfigContainer:
    cfg = base()
    cfg.model.cuda_graph_impl = "transformer_engine"
    set_cuda_graph_modules(cfg.model, ["attn", "mlp"])  # of each layer
    return cfg
"""
    )


def test_a_scope_without_modules_is_cleared() -> None:
    text = """\
from megatron.bridge.utils.cuda_graph import set_cuda_graph_modules

# A line as long as this one shows that the file has lines of more than eighty-eight columns: ninety-six.
cfg.model.cuda_graph_impl = 'none'
cfg.model.cuda_graph_scope = 'full'
"""
    settings = {"cuda_graph_impl": "none", "cuda_graph_modules": []}
    assert (
        rewritten(text, settings)
        == """\
from megatron.bridge.utils.cuda_graph import clear_cuda_graph_modules, set_cuda_graph_modules

# A line as long as this one shows that the file has lines of more than eighty-eight columns: ninety-six.
cfg.model.cuda_graph_impl = 'none'
clear_cuda_graph_modules(cfg.model)
"""
    )


def test_members_of_the_old_class_become_those_of_the_new_one() -> None:
    text = (
        "from megatron.core.transformer.enums import CudaGraphScope\nmodel.cuda_graph_scope = [CudaGraphScope.attn]\n"
    )
    assert rewritten(text, {"cuda_graph_modules": ["attn"]}) == (
        "from megatron.bridge.utils.cuda_graph import set_cuda_graph_modules\n"
        "from megatron.core.transformer.enums import CudaGraphModule\n"
        "set_cuda_graph_modules(model, [CudaGraphModule.attn])\n"
    )


@from_table
def test_the_import_is_where_a_sorter_would_put_it(before: str, after: str) -> None:
    names = {"module": SETTERS.module, "name": "set_cuda_graph_modules"}
    edited = rewritten(before.format(**names) + "m.cuda_graph_scope = ['attn']\n", {"cuda_graph_modules": ["attn"]})
    assert edited == after.format(**names) + "set_cuda_graph_modules(m, ['attn'])\n"


def test_line_breaks_are_those_of_the_file() -> None:
    text = "import os\r\n\r\nm.cuda_graph_scope = ['attn']\r\n"
    edited = rewritten(text, {"cuda_graph_modules": ["attn"]})
    assert edited.count("\r\n") == edited.count("\n") == 4


@from_table
def test_what_cannot_call_a_setter_is_not_written(text: str) -> None:
    document = PythonDocument(text)
    document.setters = SETTERS
    with pytest.raises(CannotEditError):
        document.edits({0: {"cuda_graph_modules": ["attn"], **CLEARED}})


def test_a_text_with_another_change_is_refused() -> None:
    text = "m.cuda_graph_scope = ['attn']\nx = 1\n"
    document = PythonDocument(text)
    document.setters = SETTERS
    rewrites = {0: {"cuda_graph_modules": ["attn"], **CLEARED}}
    edited = apply(text, document.edits(rewrites))
    assert document.check(edited.replace("x = 1", "x = 2"), rewrites)
    assert document.check(edited.replace("'attn'", "'mlp'"), rewrites)
