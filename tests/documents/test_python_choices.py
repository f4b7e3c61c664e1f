# ruff: noqa: E501 - source text on one line reads better than split
"""Values that a condition chooses: real text in, real text out. No-op cases first."""

from __future__ import annotations

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.megatron.settings import Choice
from tests.support.python_tools import HEADER, check_fixed, check_noop, run

ENUMS = "from megatron.core.transformer.enums import CudaGraphScope\n"
NEW_ENUMS = "from megatron.core.transformer.enums import CudaGraphModule\n"

# --- nothing to do ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        'cuda_graph_modules=["attn"] if moe else ["mlp"]',
        'cuda_graph_impl="local" if x else "none"',
        'cuda_graph_impl="local" if x else "none", cuda_graph_modules=["attn"] if y else []',
    ],
)
def test_new_names_are_no_news(value: str) -> None:
    assert not check_noop(f"config = TransformerConfig({value})\n").examined.diagnostics


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            'cuda_graph_impl="local", cuda_graph_scope="full_iteration" if x else ["attn"]',
            "where `cuda_graph_scope` is full_iteration, different",
        ),
        (
            'cuda_graph_impl="local", cuda_graph_scope=["attn"] if x else ["full_iteration_inference"]',
            "where `cuda_graph_scope` is [full_iteration_inference], different",
        ),
        (
            'cuda_graph_impl="local", cuda_graph_scope=["attn"] if x else ["full", "mlp"]',
            "where `cuda_graph_scope` is [full, mlp]: ",
        ),
        ('cuda_graph_scope=["attn"] if x else scopes()', "whose branch `scopes()` is a value computed at run time"),
        (
            'cuda_graph_scope=["attn"] if is_mcore_min_version("0.18") else "full"',
            "several releases (`is_mcore_min_version",
        ),
        (
            'cuda_graph_scope=["attn"] if base.cuda_graph_scope else "full"',
            "reads these settings itself (`base.cuda_graph_scope`)",
        ),
        ('cuda_graph_scope="full" if x else []', "all its branches set the same value"),
        ("enable_cuda_graph=False if x else False", "all its branches set the same value"),
        ("enable_cuda_graph=True if x else True", "all its branches set the same value"),
        ("enable_cuda_graph=a if b else c", "whose branch `a` is a value computed at run time"),
        ('enable_cuda_graph=True if x else False, cuda_graph_impl="local"', "where `enable_cuda_graph` is True"),
        (
            "enable_cuda_graph=True if x else False, external_cuda_graph=True if y else False",
            "where `enable_cuda_graph` is True and `external_cuda_graph` is True: ",
        ),
        (
            'cuda_graph_impl="local" if a else "none" if b else "transformer_engine", cuda_graph_scope=["attn"] if c else ["mlp"] if d else []',
            "more than 8 combinations",
        ),
    ],
)
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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            'cuda_graph_scope=["attn"] if moe else ["attn", "mlp"]',
            'cuda_graph_modules=["attn"] if moe else ["attn", "mlp"]',
        ),
        (
            'cuda_graph_impl="local", cuda_graph_scope=("full" if x else ["attn"])',
            'cuda_graph_impl="local", cuda_graph_modules=([] if x else ["attn"])',
        ),
        (
            "cuda_graph_scope='attn,mlp' if f(x, 'full') else None",
            "cuda_graph_modules=['attn', 'mlp'] if f(x, 'full') else []",
        ),
        (
            'cuda_graph_scope=["attn"] if a else "full" if b else ["full"]',
            'cuda_graph_modules=["attn"] if a else [] if b else []',
        ),
        (
            'cuda_graph_scope=("full" if a else ["mlp"]) if b else ["attn"]',
            'cuda_graph_modules=([] if a else ["mlp"]) if b else ["attn"]',
        ),
        (
            'cuda_graph_impl="local" if x else "none", cuda_graph_scope=["attn"]',
            'cuda_graph_impl="local" if x else "none", cuda_graph_modules=["attn"]',
        ),
        (
            'cuda_graph_impl="local" if x else "transformer_engine", cuda_graph_scope="full" if y else ["attn"]',
            'cuda_graph_impl="local" if x else "transformer_engine", cuda_graph_modules=[] if y else ["attn"]',
        ),
        ("enable_cuda_graph=True if x else False", 'cuda_graph_impl="local" if x else "none"'),
        ("enable_cuda_graph=(False if x else True)", 'cuda_graph_impl=("none" if x else "local")'),
        ("external_cuda_graph=True if x else False", 'cuda_graph_impl="transformer_engine" if x else "none"'),
        (
            'enable_cuda_graph=True if x else False, cuda_graph_scope="full"',
            'cuda_graph_impl="local" if x else "none", cuda_graph_modules=[]',
        ),
        (
            "enable_cuda_graph=True, cuda_graph_scope=['attn'] if x else 'full'",
            "cuda_graph_impl='local', cuda_graph_modules=['attn'] if x else []",
        ),
    ],
)
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
