"""Sites that override settings of another object: a setting that is deleted there leaves the other value in effect."""

from __future__ import annotations

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.documents.sites import Document
from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.plans import Examined, examine
from tests.support.tables import from_table

RECIPE = """\
from megatron.bridge.recipes.llama import llama3_8b

def recipe():
    cfg = llama3_8b()
"""
RESETS = "it resets the deprecated setting of an object on which it may be set"


def examined(document: Document) -> Examined:
    return examine(document, Context(Release(0, 17), Release(0, 19), load(), ecosystems.load()))


def overwritten(*lines: str) -> Examined:
    """What happens to settings in NeMo's ``overwritten_attributes``, which another file's model has as well."""
    return examined(YamlDocument("model:\n  overwritten_attributes:\n" + "".join(f"    {line}\n" for line in lines)))


@pytest.mark.parametrize("lines", [("enable_cuda_graph: true",), ("cuda_graph_scope: attn",)])
def test_a_setting_with_a_new_name_overrides_as_before(lines: tuple[str, ...]) -> None:
    result = overwritten(*lines)
    assert result.safe and not result.unsafe


@from_table
def test_a_false_may_turn_graphs_of_another_file_off(lines: tuple[str, ...], after: dict[str, str]) -> None:
    result = overwritten(*lines)
    assert not result.safe and result.unsafe == {0: after}
    assert result.diagnostics[0].because == (
        "it overrides settings of another file, and a false may turn one of them off"
    )


def assigned(*lines: str) -> Examined:
    """What happens to assignments to a recipe that another file builds."""
    return examined(PythonDocument(RECIPE + "".join(f"    {line}\n" for line in (*lines, "return cfg"))))


def test_none_on_the_scope_still_resets_what_is_captured() -> None:
    result = assigned("cfg.model.cuda_graph_scope = None")
    assert result.unsafe == {0: {"cuda_graph_modules": []}}
    assert RESETS not in result.diagnostics[0].because


def test_none_on_the_scope_beside_modules_is_deleted() -> None:
    result = assigned("cfg.model.cuda_graph_scope = None", "cfg.model.cuda_graph_modules = ['attn']")
    assert result.unsafe == {0: {"cuda_graph_modules": ["attn"]}}
    assert RESETS in result.diagnostics[0].because
