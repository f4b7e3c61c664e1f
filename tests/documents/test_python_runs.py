"""Assignments to attributes: which object they set, what is known of it, and when it is finished. No-op cases first."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from cgmigrate.documents.python import PythonDocument
from tests.support.python_tools import check_fixed, check_noop, run
from tests.support.tables import from_table

CONFIG = "from megatron.core.transformer.transformer_config import TransformerConfig\n\n"
BRIDGE = "from megatron.bridge.recipes.common import _pretrain_common\n\n"
PAIR = 'cfg.model.cuda_graph_impl = "transformer_engine"\ncfg.model.cuda_graph_scope = ["attn"]\n'
SCOPE_ONLY = 'cfg.model.cuda_graph_scope = ["attn"]\n'


def recipe(body: str) -> str:
    """A recipe whose body has these lines."""
    return "def recipe(flag):\n    cfg = _pretrain_common()\n" + indent(dedent(body), "    ") + "    return cfg\n"


# --- code for several releases ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "guard",
    ['if __version__ < "0.18":', 'while is_te_min_version("2.0"):', 'if hasattr(cfg.model, "cuda_graph_modules"):'],
)
@pytest.mark.parametrize(
    "inner",
    ["", "if flag:", "while flag:", "for _ in range(2):", "with context():", "try:", "if flag:\n    while flag:"],
)
def test_what_is_nested_in_a_release_guard_is_guarded(guard: str, inner: str) -> None:
    suite = PAIR
    for head in reversed(inner.splitlines()):
        suite = f"{head.strip()}\n{indent(suite, '    ')}"
        suite += "except ValueError:\n    pass\n" if head == "try:" else ""
    result = check_noop(recipe(f"{guard}\n{indent(suite, '    ')}"), header=BRIDGE)
    assert "so it is written for several releases" in str(result.examined.diagnostics)


def test_what_follows_a_release_guard_is_not_guarded() -> None:
    body = f'if __version__ < "0.18":\n    cfg.train.steps = 2\n{PAIR}'
    assert run(BRIDGE + recipe(body)).after == BRIDGE + recipe(body.replace("graph_scope", "graph_modules"))


# --- objects that are finished ------------------------------------------------------------------------------


@from_table
def test_what_is_set_on_a_finished_configuration_is_not_rewritten(body: str) -> None:
    """It had no effect in the old release, and `finalize` has already checked the settings in the new one."""
    start = 'cfg.model.cuda_graph_impl = "transformer_engine"\n'
    result = check_noop(recipe(start + body + SCOPE_ONLY), header=BRIDGE)
    assert "CG106" in result.rules
    assert not result.examined.safe


def test_a_configuration_that_only_a_branch_sets_and_finishes_is_finished() -> None:
    body = f"if flag:\n{indent(PAIR, '    ')}    cfg.model.finalize()\n{PAIR}"
    result = run(BRIDGE + recipe(body))
    assert result.after == result.text
    assert not result.examined.safe


def test_what_is_set_on_a_new_object_of_that_name_is_rewritten() -> None:
    body = f"if flag:\n    cfg.model.finalize()\n    cfg = _pretrain_common()\ncfg = _pretrain_common()\n{PAIR}"
    assert run(BRIDGE + recipe(body)).after == BRIDGE + recipe(body.replace("graph_scope", "graph_modules"))


# --- which object it is --------------------------------------------------------------------------------------


@from_table
def test_names_that_are_bound_say_nothing_of_other_objects(between: str) -> None:
    """A TransformerConfig has checked its settings when it was made: what is assigned later changes nothing."""
    settings = 'config.cuda_graph_impl = "local"\nconfig.cuda_graph_scope = ["attn"]\n'
    body = "config = TransformerConfig(num_layers=2)\n" + between + settings
    result = check_noop(body, header=CONFIG)
    assert not result.examined.safe and not result.examined.unsafe


@pytest.mark.parametrize(
    "anew",
    ["config = make()\n", "for config in configs:\n    pass\n", "with made() as config:\n    pass\n"],
)
def test_a_name_that_is_bound_anew_is_another_object(anew: str) -> None:
    settings = 'config.cuda_graph_impl = "local"\nconfig.cuda_graph_scope = ["attn"]\n'
    known = check_noop("config = TransformerConfig(num_layers=2)\n" + settings, header=CONFIG)
    other = run(CONFIG + "config = TransformerConfig(num_layers=2)\n" + anew + settings)
    assert str(known.examined.diagnostics) != str(other.examined.diagnostics)


# --- `self` ----------------------------------------------------------------------------------------------------


def test_another_object_in_a_method_of_a_configuration_is_not_that_configuration() -> None:
    result = check_noop(
        """\
        class MyConfig(TransformerConfig):
            def __post_init__(self):
                self.inner.cuda_graph_impl = "local"
                self.inner.cuda_graph_scope = ["attn"]
                other.cuda_graph_impl = "local"
                other.cuda_graph_scope = ["attn"]
        """,
        header=CONFIG,
    )
    assert result.rules == ["CG006", "CG006"]


def test_self_in_another_class_is_not_megatrons() -> None:
    result = check_noop(
        """\
        class Engine(Base):
            def setup(self):
                self.cuda_graph_impl = "local"
                self.cuda_graph_scope = ["attn"]
        """,
        header=CONFIG,
    )
    assert result.rules == ["CG006"]


@pytest.mark.parametrize("bases", ["TransformerConfig", "Mixin, TransformerConfig", "Middle", "Mixin, Middle"])
@pytest.mark.parametrize(("method", "owner"), [("__post_init__", "self"), ("make", "cls")])
def test_self_in_a_configuration_class_is_that_configuration(bases: str, method: str, owner: str) -> None:
    """`Mixin` is from nowhere that is known, `Middle` is a class of the file that leads to Megatron."""
    text = f"""\
        from mixins import *


        class Middle(TransformerConfig):
            pass


        class MyConfig({bases}):
            def {method}({owner}):
                {owner}.cuda_graph_impl = "local"
                {owner}.cuda_graph_scope = ["attn"]
                other.cuda_graph_scope = ["attn"]
        """
    check_fixed(text, text.replace(f"{owner}.cuda_graph_scope", f"{owner}.cuda_graph_modules"), header=CONFIG)


# --- branches and loops ----------------------------------------------------------------------------------------


@from_table
@pytest.mark.parametrize("scope", ['"full_iteration"', '["attn", "full_iteration"]'])
def test_a_full_iteration_behind_a_branch_is_withheld(body: str, scope: str) -> None:
    """It becomes an implementation, which the branch may have set."""
    result = check_noop(recipe(f"{body}cfg.model.cuda_graph_scope = {scope}\n"), header=BRIDGE)
    assert not result.examined.safe and not result.examined.unsafe
    if "attn" not in scope:
        assert "depends on the branches and loops above" in str(result.examined.diagnostics)


def test_modules_behind_a_branch_are_renamed() -> None:
    body = f'if flag:\n    cfg.model.cuda_graph_impl = "none"\n{SCOPE_ONLY}'
    assert run(BRIDGE + recipe(body)).after == BRIDGE + recipe(body.replace("graph_scope", "graph_modules"))


@from_table
def test_a_name_that_is_bound_again_is_no_longer_of_the_class_that_was_assigned_to_it(statement: str) -> None:
    text = f"def f(configs):\n    config.model = Tokenizer()\n    {statement}\n"
    (site,) = PythonDocument(text, "x.py").sites
    assert site.origin is not None and not site.origin.foreign and not site.origin.callee
