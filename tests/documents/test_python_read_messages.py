"""What is said of code that reads the old names: true of the object that is read, and of what reads it."""

from __future__ import annotations

from pathlib import Path

from cgmigrate.documents.python import PythonDocument
from cgmigrate.linking import ecosystems
from cgmigrate.lint.diagnostics import Context
from cgmigrate.lint.rules import load
from cgmigrate.megatron.releases import Release
from tests.support.plans import Examined, examine
from tests.support.tables import from_table

HEAD = "from megatron.training import get_args\nfrom megatron.core.transformer import TransformerConfig\n"
BRIDGE = "from megatron.bridge import AutoBridge\n"


def examined(code: str, head: str = HEAD) -> Examined:
    document = PythonDocument(head + code, "/nowhere/a.py")
    return examine(document, Context(Release(0, 17), Release(0, 19), load(), ecosystems.load()))


def said(code: str, head: str = HEAD) -> str:
    diagnostics = examined(code, head).diagnostics
    return "\n".join(f"{f.rule}: {f.message} [{f.blocked_by}] [{f.help}]" for f in diagnostics)


@from_table
def test_what_a_read_gives(code: str, message: str) -> None:
    assert message in said(code)


def test_an_argument_is_not_said_to_be_false_or_none() -> None:
    text = said("if args.enable_cuda_graph or args.cuda_graph_scope != 'full': pass\n")
    assert " false " not in text and "None" not in text and "always" not in text


def test_what_a_recipe_has_assigned_is_what_it_reads_back() -> None:
    code = "def r():\n    cfg = base()\n    cfg.model.cuda_graph_impl = 'transformer_engine'\n"
    code += "    cfg.model.cuda_graph_scope = ['attn']\n    if 'attn' in cfg.model.cuda_graph_scope:\n        pass\n"
    text = said(code)
    assert "`cfg.model.cuda_graph_scope` is deprecated; this read is right only as long as line 6 sets it" in text
    assert "[line 6 assigns `cuda_graph_scope`; both have to change together]" in text
    assert "TypeError" not in text


@from_table
def test_only_what_asks_for_settings_is_a_release_guard(code: str, guarded: bool) -> None:
    (diagnostic,) = examined(code).diagnostics
    assert ("several releases" in diagnostic.blocked_by or "for another release" in diagnostic.blocked_by) is guarded


def test_a_copy_of_settings_is_one_diagnostic() -> None:
    (diagnostic,) = examined(
        "c.config.cuda_graph_impl = m.config.cuda_graph_impl\nc.config.cuda_graph_scope = m.config.cuda_graph_scope\n"
    ).diagnostics
    assert diagnostic.message.startswith("`cuda_graph_impl` and `cuda_graph_scope` are copied from `m.config`")
    assert "copy `cuda_graph_impl`, `cuda_graph_modules` and `inference_cuda_graph_scope`" in diagnostic.help


def test_a_scope_of_none_beside_modules_is_deleted() -> None:
    settings = "cuda_graph_impl='transformer_engine', cuda_graph_scope=None, cuda_graph_modules=['attn']"
    result = examined(f"c = TransformerConfig({settings})\n")
    assert list(result.safe.values()) == [{"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]}]
    # On an object from elsewhere it may reset a scope.
    code = "config.cuda_graph_impl = 'transformer_engine'\nconfig.cuda_graph_scope = None\n"
    result = examined(code + "config.cuda_graph_modules = ['attn']\n")
    assert not result.safe and result.unsafe


@from_table
def test_the_configuration_of_a_built_model_is_not_validated_again(code: str, reported: bool) -> None:
    diagnostics = examined(code, BRIDGE).diagnostics
    assert [diagnostic.rule for diagnostic in diagnostics] == (["CG501"] if reported else [])


@from_table
def test_what_reads_a_name_is_reported_where_the_owner_is_not_known(code: str) -> None:
    result = examined(code, "import os\n")
    assert [diagnostic.rule for diagnostic in result.diagnostics] == ["CG604"]
    assert not result.skipped
    # A neighbour has names of its own.
    result = examined(code, "import deepspeed\n")
    assert not result.diagnostics
    assert [owner for _, owner in result.skipped] == ["another system (nothing in the file is Megatron's)"]


def test_an_owner_that_is_not_known_is_called_so(project: Path, cgmigrate) -> None:
    (project / "a.py").write_text("x = args.cuda_graph_scope\n# cuda_graph_scope\n")
    result = cgmigrate("check", "a.py")
    assert "left unchanged, since its owner is not known" in result.stderr
    assert "another system" not in result.stderr and "comment" not in result.stderr
    assert "belongs to a comment, docstring or message" in cgmigrate("check", "-v", "a.py").stderr


def test_a_field_that_pydantic_was_given_is_a_current_name() -> None:
    result = examined("if 'cuda_graph_scope' in recipe.model_fields_set: pass\n")
    assert not result.diagnostics and len(result.skipped) == 1
