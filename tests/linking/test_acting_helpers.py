"""Helpers that set nothing, and act on a setting that they read: they change together with what sets it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkouts import staged
from tests.support.tables import table_of

RECIPE = """\
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer


def base():
    cfg = ConfigContainer(model=GPTModelProvider(num_layers=2))
    cfg.model.cuda_graph_impl = "transformer_engine"
    cfg.model.cuda_graph_scope = ["attn"]
    return cfg
"""
HELPER = """\
from counters import count


def act(cfg):
    {}
    return None
"""
MAIN = """\
from helper import act
from megatron.bridge.training.pretrain import pretrain
from recipe import base


def main():
    cfg = base()
    {}
    pretrain(cfg)
"""
FOLLOWED = table_of(__name__, "FOLLOWED")
NOT_FOLLOWED = {
    "the truth of a value": "if not cfg.model.cuda_graph_scope: return None\n    count(cfg)",
    "names in a loop": "for name in ('cuda_graph_scope',):\n        if getattr(cfg.model, name, None): count(cfg)",
    "a table of attributes": "if vars(cfg.model).get('cuda_graph_scope'): count(cfg)",
    "a pattern": "match cfg.model.cuda_graph_scope:\n        case ['attn']: count(cfg)",
}


NEITHER = "cfg.dataset.seen = True"
CALLS = ("act(cfg)", "for hook in (act,):\n        hook(cfg)", "list(map(act, [cfg]))")


def _fixed(project: Path, cgmigrate: Callable[..., Any], helper: str, call: str = CALLS[0]) -> tuple[str, str]:
    """Return the recipe and the helper after `fix`."""
    texts = {"recipe.py": RECIPE, "helper.py": HELPER.format(helper), "main.py": MAIN.format(call)}
    for name, text in texts.items():
        (project / name).write_text(text)
    staged(project)
    cgmigrate("fix", ".")
    return (project / "recipe.py").read_text(), (project / "helper.py").read_text()


def test_a_helper_that_reads_no_setting_stays(project: Path, cgmigrate: Callable[..., Any]) -> None:
    recipe, helper = _fixed(project, cgmigrate, NEITHER)
    assert "cuda_graph_scope" not in recipe
    assert helper == HELPER.format(NEITHER)


@pytest.mark.parametrize("code", FOLLOWED.values(), ids=FOLLOWED)
def test_what_acts_on_a_setting_changes_with_it(project: Path, cgmigrate: Callable[..., Any], code: str) -> None:
    recipe, helper = _fixed(project, cgmigrate, code)
    assert recipe == RECIPE.replace("cuda_graph_scope", "cuda_graph_modules")
    assert helper == HELPER.format(code.replace("cuda_graph_scope", "cuda_graph_modules"))


@pytest.mark.parametrize("call", CALLS)
def test_it_changes_with_it_however_it_is_called(project: Path, cgmigrate: Callable[..., Any], call: str) -> None:
    recipe, helper = _fixed(project, cgmigrate, FOLLOWED["a test"], call)
    assert ("cuda_graph_scope" in recipe) is ("cuda_graph_scope" in helper)


@pytest.mark.parametrize("code", NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_what_is_not_followed_keeps_both(project: Path, cgmigrate: Callable[..., Any], code: str) -> None:
    assert _fixed(project, cgmigrate, code) == (RECIPE, HELPER.format(code))


DRAFT = """\
from megatron.bridge.models.gpt_provider import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer


def base():
    cfg = ConfigContainer(model=GPTModelProvider(num_layers=2))
    cfg.model.cuda_graph_impl = "{impl}"
    cfg.model.cuda_graph_scope = "{scope}"
    return cfg


def draft(main):
    cfg = ConfigContainer(model=GPTModelProvider(num_layers=1))
    cfg.model.cuda_graph_impl = main.model.cuda_graph_impl
    return cfg
"""


@pytest.mark.parametrize(("impl", "scope"), [("transformer_engine", "attn"), ("local", "full_iteration")])
def test_an_implementation_that_another_provider_copies_keeps_its_meaning(
    project: Path, cgmigrate: Callable[..., Any], impl: str, scope: str
) -> None:
    before = DRAFT.format(impl=impl, scope=scope)
    (project / "recipe.py").write_text(before)
    staged(project)
    cgmigrate("fix", ".")
    # `full_iteration` in place of `local` would be full-iteration graphs of the draft, too.
    assert ((project / "recipe.py").read_text() == before) is (impl == "local")
