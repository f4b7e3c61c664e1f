"""Values that a condition chooses: real text in, real text out. No-op cases first."""

from __future__ import annotations

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.megatron.settings import Choice
from tests.support.python_tools import HEADER, check_fixed, check_noop, run
from tests.support.tables import from_table

ENUMS = "from megatron.core.transformer.enums import CudaGraphScope\n"
NEW_ENUMS = "from megatron.core.transformer.enums import CudaGraphModule\n"

# --- nothing to do ----------------------------------------------------------------------------------


@from_table
def test_new_names_are_no_news(value: str) -> None:
    assert not check_noop(f"config = TransformerConfig({value})\n").examined.diagnostics


@from_table
def test_a_choice_that_cannot_be_migrated_is_reported(call: str, message: str) -> None:
    result = check_noop(f"config = TransformerConfig({call})\n")
    assert "CG003" in result.rules and message in result.messages


def test_code_for_several_releases_is_left() -> None:
    result = check_noop(
        'if hasattr(cfg.model, "cuda_graph_modules"):\n    cfg.model.cuda_graph_scope = "full" if x else ["attn"]\n'
    )
    assert "several releases" in result.messages


def test_a_built_object_is_left() -> None:
    result = check_noop(
        'config = TransformerConfig(num_layers=2)\nconfig.cuda_graph_scope = ["attn"] if x else ["mlp"]\n'
    )
    assert "was already built" in result.messages


def test_a_flag_that_code_computes_is_a_condition() -> None:
    result = check_noop("cfg.model.enable_cuda_graph = args.graphs\n")
    assert 'write `cfg.model.cuda_graph_impl = "local" if args.graphs else "none"`' in result.messages
    check_fixed(
        "config = TransformerConfig(external_cuda_graph=flag)\n",
        'config = TransformerConfig(cuda_graph_impl="transformer_engine" if flag else "none")\n',
    )
    check_fixed(
        "config = TransformerConfig(enable_cuda_graph=not packed, cuda_graph_scope='attn')\n",
        "config = TransformerConfig(cuda_graph_impl='local' if not packed else 'none', cuda_graph_modules=['attn'])\n",
    )
    check_fixed(
        "config = TransformerConfig(enable_cuda_graph=graphs, cuda_graph_scope='full_iteration')\n",
        "config = TransformerConfig(cuda_graph_impl='full_iteration' if graphs else 'none')\n",
        unsafe=True,
    )


@pytest.mark.parametrize("flag", ["model.enable_cuda_graph", "options['enable_cuda_graph']", "(on := f())"])
def test_a_flag_that_asks_for_settings_is_not_rewritten(flag: str) -> None:
    result = check_noop(f"config = TransformerConfig(enable_cuda_graph={flag})\n")
    assert "CG003" in result.messages or "computed" in result.messages


# --- migrated ---------------------------------------------------------------------------------------


@from_table
def test_keywords(before: str, after: str) -> None:
    result = check_fixed(f"config = TransformerConfig({before})\n", f"config = TransformerConfig({after})\n")
    assert all(diagnostic.applicability == "safe" for diagnostic in result.examined.diagnostics)


def test_enum_members_in_branches() -> None:
    check_fixed(
        """\
        cfg.model.cuda_graph_impl = "local"
        cfg.model.cuda_graph_scope = (
            [CudaGraphScope.attn]  # dense
            if dense
            else [CudaGraphScope.moe_router, CudaGraphScope.moe_preprocess]  # sparse
        )
        """,
        """\
        cfg.model.cuda_graph_impl = "local"
        cfg.model.cuda_graph_modules = (
            [CudaGraphModule.attn]  # dense
            if dense
            else [CudaGraphModule.moe_router, CudaGraphModule.moe_preprocess]  # sparse
        )
        """,
        header=HEADER + ENUMS,
        after_header=HEADER + NEW_ENUMS,
    )


def test_dicts_and_setattr() -> None:
    check_fixed(
        'config = TransformerConfig(**{"cuda_graph_scope": "full" if x else ["mlp"]})\n',
        'config = TransformerConfig(**{"cuda_graph_modules": [] if x else ["mlp"]})\n',
    )
    check_fixed(
        'cfg.model.cuda_graph_impl = "local"\nsetattr(cfg.model, "cuda_graph_scope", "full" if x else ["mlp"])\n',
        'cfg.model.cuda_graph_impl = "local"\nsetattr(cfg.model, "cuda_graph_modules", [] if x else ["mlp"])\n',
    )


def test_a_boolean_of_an_object_is_rewritten_only_with_unsafe_fixes() -> None:
    text = "cfg.model.enable_cuda_graph = True if x else False\n"
    assert "false keeps that value" in check_noop(text).messages
    check_fixed(text, 'cfg.model.cuda_graph_impl = "local" if x else "none"\n', unsafe=True)


@pytest.mark.parametrize("value", ['"full" if fast else "attn"', '"attn" if fast else "full"'])
def test_a_fix_is_unsafe_if_what_one_branch_captures_changes(value: str) -> None:
    """With the scope attn, 0.15 captures inference too, and 0.19 does not; with the scope full both do."""
    text = f"{HEADER}config = TransformerConfig(enable_cuda_graph=True, cuda_graph_scope={value})\n"
    examined = run(text, source="0.15").examined
    assert not examined.safe
    assert list(examined.unsafe) == [0]
    assert len(examined.diagnostics) == 2
    for diagnostic in examined.diagnostics:
        assert diagnostic.because.startswith(
            "megatron-core 0.15 captures whole layers (local) in training, whole layers"
        )
        assert diagnostic.because.endswith("in training, no graphs in inference")


def test_the_help_describes_the_fix_briefly() -> None:
    result = run(
        HEADER + 'config = TransformerConfig(cuda_graph_impl="local", cuda_graph_scope="full" if x else ["attn"])\n'
    )
    assert [diagnostic.fix_text for diagnostic in result.examined.diagnostics] == [
        'write `cuda_graph_modules=[] if x else ["attn"]`'
    ]


def test_the_condition_is_guarded() -> None:
    text = HEADER + 'config = TransformerConfig(cuda_graph_scope=["attn"] if x else ["mlp"])\n'
    document = PythonDocument(text)
    rewrites = {0: {"cuda_graph_modules": Choice(("", " if x else ", ""), (["attn"], ["mlp"]))}}
    right = text.replace("scope", "modules")
    assert document.check(right, rewrites) == ""
    assert document.check(right.replace("if x", "if y"), rewrites)
    assert document.check(right.replace('["attn"] if x else ["mlp"]', '["mlp"] if x else ["attn"]'), rewrites)
