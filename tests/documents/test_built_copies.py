"""Copies of settings from a configuration that is built into one that a function makes for a part of the model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Applicability, Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from cgmigrate.text.edits import apply
from tests.support.plans import examine
from tests.support.tables import table_of

HEAD = """\
import dataclasses
from dataclasses import dataclass

from megatron.core.transformer.transformer_config import TransformerConfig


@dataclass
class VisionConfig(TransformerConfig):
    patch_size: int = 14


"""
COPY = """\
def vision(hf, config):
    vision = VisionConfig(num_layers=hf.depth, hidden_size=8, num_attention_heads=1)
    vision.enable_cuda_graph = config.enable_cuda_graph
    vision.cuda_graph_warmup_steps = config.cuda_graph_warmup_steps
    vision.external_cuda_graph = config.external_cuda_graph
    vision.cuda_graph_impl = config.cuda_graph_impl
    vision.cuda_graph_scope = config.cuda_graph_scope
    return vision
"""
COPIED = """\
def vision(hf, config):
    vision = VisionConfig(num_layers=hf.depth, hidden_size=8, num_attention_heads=1)
    vision.cuda_graph_warmup_steps = config.cuda_graph_warmup_steps
    vision.cuda_graph_impl = config.cuda_graph_impl
    vision.cuda_graph_modules = config.cuda_graph_modules
    vision.inference_cuda_graph_scope = config.inference_cuda_graph_scope
    return vision
"""
BOOLEANS = """\
def vision(hf, config):
    vision = VisionConfig(num_layers=hf.depth, hidden_size=8, num_attention_heads=1)
    vision.enable_cuda_graph = config.enable_cuda_graph
    vision.external_cuda_graph = config.external_cuda_graph
    if hf.graphs:
        vision.cuda_graph_impl = config.vision_cuda_graph_impl
    else:
        vision.cuda_graph_impl = "none"
    return vision
"""
FROM = Release(0, 17)
END = "    return vision\n"


def fixed(code: str, head: str = HEAD, path: str = "/nowhere/a.py", source: Release = FROM) -> str:
    """The text with its safe fixes."""
    document = PythonDocument(head + code, path)
    plan = examine(document, Context(source, Release(0, 19), load(), ecosystems.load())).plan
    safe = plan.settings(fix.id for fix in plan.fixes if fix.applicability is Applicability.SAFE)
    edits = document.edits(safe)
    text = apply(document.text, edits)
    assert document.check(text, safe) == ""
    return text.removeprefix(head)


def test_the_copies_of_the_booleans_are_deleted_and_a_scope_becomes_two_fields() -> None:
    assert fixed(COPY) == COPIED
    assert fixed(COPIED) == COPIED


def test_the_copies_of_booleans_alone_are_deleted() -> None:
    code = fixed(BOOLEANS)
    assert "enable" not in code and "external" not in code
    assert 'vision.cuda_graph_impl = "none"' in code and "modules" not in code


def test_copies_in_a_condition_are_rewritten() -> None:
    lines = COPY.splitlines(keepends=True)
    inside = [lines[0], lines[1], "    if config is not None:\n", *("    " + line for line in lines[2:-1]), lines[-1]]
    code = fixed("".join(inside))
    assert "        vision.inference_cuda_graph_scope = config.inference_cuda_graph_scope\n    return" in code


UNCHANGED = table_of(__name__, "UNCHANGED")


@pytest.mark.parametrize("code", UNCHANGED.values(), ids=UNCHANGED.keys())
def test_what_the_function_does_not_show_is_not_rewritten(code: str) -> None:
    assert fixed(code) == code


CLASSES = {
    "defers its validation": HEAD.replace("    patch_size: int = 14", "    def __post_init__(self):\n        pass"),
    "is of the project": HEAD.replace("(TransformerConfig)", ""),
    "is of another library": HEAD.replace("megatron.core.transformer.transformer_config", "other")
    + "import megatron\n",
    "has another base": HEAD.replace("(TransformerConfig)", "(Mixin, TransformerConfig)"),
    "is made by a decorator": HEAD.replace("@dataclass", "@lazy"),
}


@pytest.mark.parametrize("head", CLASSES.values(), ids=CLASSES.keys())
def test_a_class_that_may_not_validate_is_not_known_as_built(head: str) -> None:
    assert fixed(COPY, head) == COPY


def test_the_class_may_be_in_another_file(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "vision_config.py").write_text(HEAD)
    head = "import megatron\nfrom vision_config import VisionConfig\n\n\n"
    assert fixed(COPY, head, str(tmp_path / "a.py")) == COPIED
    (tmp_path / "lazy").mkdir()
    (tmp_path / "lazy/.git").mkdir()
    (tmp_path / "lazy/vision_config.py").write_text(CLASSES["defers its validation"])
    assert fixed(COPY, head, str(tmp_path / "lazy/a.py")) == COPY


@pytest.mark.parametrize(
    ("body", "deleted"),
    [("    config.cuda_graph_modules = []\n", True), ("    return config.enable_cuda_graph\n", False), (None, False)],
    ids=["sets modules", "reads a boolean", "is not known"],
)
def test_a_function_that_gets_the_object_must_not_read_the_booleans(body: str | None, deleted: bool) -> None:
    helper = f"def finish(config):\n{body}\n\n" if body else "from somewhere import finish\n"
    code = fixed(BOOLEANS.replace(END, "    finish(vision)\n" + END), HEAD + helper)
    assert ("external" not in code) is deleted


def test_code_that_runs_on_new_releases_is_rewritten_only_by_decision() -> None:
    assert fixed(COPY, source=Release(0, 18)) == COPY


def test_the_copy_has_what_its_source_has_by_executing() -> None:
    pytest.importorskip("megatron.core")
    from megatron.core.transformer.transformer_config import TransformerConfig

    namespace: dict[str, object] = {}
    sys.modules["a_vision_tower"] = type(sys)("a_vision_tower")
    exec("__name__ = 'a_vision_tower'\n" + HEAD + fixed(COPY), namespace)
    vision = namespace["vision"]
    every = [
        {},
        {"cuda_graph_impl": "local"},
        {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn"]},
        {"cuda_graph_impl": "local", "inference_cuda_graph_scope": "block"},
        {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn", "mlp"]},
        {"cuda_graph_impl": "full_iteration"},
        # What was not migrated: megatron-core does it when the configuration is built.
        {"cuda_graph_impl": "local", "cuda_graph_scope": ["attn", "full_iteration_inference"]},
        {"external_cuda_graph": True, "cuda_graph_scope": "attn"},
    ]
    names = ("cuda_graph_impl", "cuda_graph_modules", "inference_cuda_graph_scope")
    for settings in every:
        config = TransformerConfig(
            num_layers=2, hidden_size=8, num_attention_heads=1, hidden_dropout=0.0, attention_dropout=0.0, **settings
        )
        made = vision(type("Hf", (), {"depth": 2}), config)  # type: ignore[operator]
        assert [getattr(made, name) for name in names] == [getattr(config, name) for name in names], settings
