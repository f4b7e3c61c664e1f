"""A plain ``fix`` must not break a project: what other code can see is rewritten on request only."""

from __future__ import annotations

import pytest

from cgmigrate.lint.diagnostics import Applicability
from tests.support.python_tools import Result, run
from tests.support.tables import from_table, table_of

HEADER = """\
from dataclasses import dataclass
from functools import partial

from megatron.bridge.models import GPTModelProvider
from megatron.bridge.training.config import ConfigContainer
from megatron.bridge.training.pretrain import pretrain
from megatron.core.transformer import TransformerConfig

"""


def plain(text: str, path: str = "") -> Result:
    """What `fix` without options does."""
    return run(HEADER + text, path=path, exposed=False)


def because(result: Result) -> str:
    return "\n".join(
        f.because for f in result.examined.diagnostics if f.applicability == Applicability.UNSAFE and f.because
    )


EXPOSED = table_of(__name__, "EXPOSED")


@pytest.mark.parametrize("name", EXPOSED)
def test_what_other_code_sees_is_rewritten_on_request_only(name: str) -> None:
    text, reason = EXPOSED[name]
    result = plain(text)
    assert result.after == result.text
    assert reason in because(result)
    assert run(HEADER + text, unsafe=True).after != HEADER + text, "the fix is still offered"


def test_a_condition_that_is_cut_in_a_message_shows_it() -> None:
    test = "get_te_min_version() >= PkgVersion('0.18.0') and config.model.training_is_on"
    result = plain(f"def f(config):\n    if {test}:\n        config.model.cuda_graph_scope = None\n")
    assert [f"`{test[:59]}…`" in diagnostic.blocked_by for diagnostic in result.examined.diagnostics] == [True]


def test_one_of_two_constructors_is_rewritten() -> None:
    text = (
        "def f(deep):\n    if deep:\n        print('deep')\n        c = TransformerConfig(cuda_graph_impl='local')\n"
        "    else:\n        c = TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=['attn'])\n"
    )
    result = plain(text)
    assert because(result) == ""
    assert result.after == HEADER + text.replace("cuda_graph_scope", "cuda_graph_modules")


@from_table
def test_what_a_constructor_validates_is_rewritten_whoever_gets_it(text: str) -> None:
    """The old names are moved to the new ones there, so that code which gets the object sees no difference."""
    old, new = (f"cuda_graph_impl='local', cuda_graph_{word}=['attn']" for word in ("scope", "modules"))
    result = plain(text.format(old))
    assert result.after == HEADER + text.format(new)


def test_a_reader_of_an_object_that_others_set_is_rewritten_on_request_only() -> None:
    text = (
        "from megatron.core.transformer.enums import CudaGraphScope\n\n\n"
        "def f(cfg):\n    return CudaGraphScope.attn in cfg.model.cuda_graph_scope\n"
    )
    result = plain(text)
    assert result.after == result.text and "`cfg` is a parameter of `f`" in because(result)


# --- objects of others ------------------------------------------------------------------------------


@from_table
def test_objects_of_other_classes_are_not_megatrons(text: str) -> None:
    result = run(HEADER + text, unsafe=True)
    assert result.after == result.text
    assert "CG006" in result.rules or any("another system" in owner for _, owner in result.examined.skipped)


@pytest.mark.parametrize(
    "annotation", ["TransformerConfig", "'TransformerConfig'", "TransformerConfig | None", "Any", "T", "dict[str, Any]"]
)
def test_an_annotation_that_may_be_megatrons_is_no_other_class(annotation: str) -> None:
    text = f"from typing import Any\ndef e(config: {annotation}):\n    config.cuda_graph_scope = ['attn']\n"
    assert "`config` is a parameter of `e`" in because(plain(text))
