# ruff: noqa: E501 - source text on one line reads better than split
"""Code that reads, defines or lists the old names."""

from __future__ import annotations

from typing import Any

import pytest

from cgmigrate.lint import rules
from cgmigrate.lint.rule_tests import KEYS
from cgmigrate.megatron import catalogue
from tests.support.python_tools import HEADER, check_fixed, check_noop, run
from tests.support.tables import from_table

ENUMS = "from megatron.core.transformer.enums import CudaGraphScope\n"
BOTH = HEADER + ENUMS
MODULE = HEADER + ENUMS.replace("Scope", "Module")

SETTINGS = catalogue.load()
EXAMPLES = [
    (rule.id, example)
    for rule in rules.load().values()
    for example in rule.examples
    # Examples of files as such are tested with the rules, and so are settings that the capture model does not have.
    if example["syntax"] == "python"
    and example.keys().isdisjoint(KEYS)
    and not SETTINGS.captures.isdisjoint(rule.fields)
]


@pytest.mark.parametrize(("rule", "example"), EXAMPLES)
def test_examples_of_the_rules(rule: str, example: dict[str, Any]) -> None:
    releases = {"source": example.get("from", "0.17"), "target": example.get("to", "0.19")}
    result = run(example["before"], **releases, unsafe="unsafe-after" in example and "after" not in example)
    assert (rule in result.rules) is example.get("reported", True)
    expected = example.get("after", example.get("unsafe-after"))
    after = result.after.lstrip("\n") if expected else result.after
    assert after == (expected or example["before"])
    assert run(result.after, **releases).after == result.after


@from_table
def test_a_use_that_has_no_fix_is_reported(text: str) -> None:
    result = check_noop(text)
    assert len(result.examined.diagnostics) == 1, result.messages


@from_table
def test_what_an_expression_evaluates_to(text: str, message: str) -> None:
    assert message in check_noop(text).messages


@from_table
def test_names_of_the_files_own(text: str) -> None:
    result = check_noop(text)
    assert not result.examined.diagnostics and result.examined.skipped


@from_table
def test_names_of_a_configuration_read_through_self(text: str) -> None:
    result = check_noop(text)
    assert result.rules == ["CG603"] and not result.examined.skipped
    (span,) = [diagnostic.span for diagnostic in result.examined.diagnostics]
    assert result.text[span.start : span.end] == text.split("return ")[1].split(" ")[0].rstrip()


@from_table
def test_full_iteration(before: str, after: str) -> None:
    before, after = (text.replace("c.cuda", "self.config.cuda") for text in (before, after))
    check_fixed(before, after, header=BOTH, after_header=HEADER)


def test_full_iteration_in_code_for_inference_may_be_the_block() -> None:
    text = "x = inference_context and CudaGraphScope.full_iteration in config.cuda_graph_scope\n"
    assert (
        "write `config.inference_cuda_graph_scope == InferenceCudaGraphScope.block`"
        in check_noop(text, header=BOTH, unsafe=True).messages
    )


def test_full_iteration_alone_was_also_true_under_none() -> None:
    result = check_noop("x = CudaGraphScope.full_iteration in config.cuda_graph_scope\n", header=BOTH)
    assert "nothing was captured" in result.messages
    check_fixed(
        "x = CudaGraphScope.full_iteration in config.cuda_graph_scope\n",
        'x = config.cuda_graph_impl == "full_iteration"\n',
        header=BOTH,
        after_header=HEADER,
        unsafe=True,
    )


def test_modules() -> None:
    check_fixed(
        "x = CudaGraphScope.attn in config.cuda_graph_scope or CudaGraphScope.mlp not in config.cuda_graph_scope\n",
        "x = CudaGraphModule.attn in config.cuda_graph_modules or CudaGraphModule.mlp not in config.cuda_graph_modules\n",
        header=BOTH,
        after_header=MODULE,
    )


def test_the_objects_must_be_the_same() -> None:
    result = check_noop(
        'x = a.cuda_graph_impl == "local" and CudaGraphScope.full_iteration in config.cuda_graph_scope\n', header=BOTH
    )
    assert result.rules == ["CG601"]


def test_guarded_code_is_left() -> None:
    result = check_noop(
        'if hasattr(config, "cuda_graph_scope") and CudaGraphScope.attn in config.cuda_graph_scope:\n    pass\n',
        header=BOTH,
    )
    assert "several releases" in result.messages


def test_an_own_copy_of_the_scope_is_reported() -> None:
    result = check_noop(
        "class Engine:\n    def f(self):\n        return CudaGraphScope.attn in self.cuda_graph_scope\n", header=BOTH
    )
    assert result.rules == ["CG603"]
    assert "`self.cuda_graph_scope` is a copy made elsewhere in this file" in result.messages


def test_code_that_runs_on_0_18_is_rewritten_on_request() -> None:
    text = 'x = config.cuda_graph_impl == "local" and CudaGraphScope.full_iteration in config.cuda_graph_scope\n'
    check_noop(text, header=BOTH, source="0.18")
    assert not check_noop(text, header=BOTH, source="0.15", target="0.17").examined.diagnostics


def test_an_expression_is_not_rewritten_by_halves() -> None:
    before = "if not config.cuda_graph_scope or CudaGraphScope.attn in config.cuda_graph_scope:\n    f()\n"
    result = check_noop(before, header=BOTH)
    assert "has to change with it" in result.messages and "not empty" in result.messages
    after = "if not config.cuda_graph_modules or CudaGraphModule.attn in config.cuda_graph_modules:\n    f()\n"
    check_fixed(before, after, header=BOTH, after_header=MODULE, unsafe=True)


IN_A_CLASS = """
class Graphs({base}):
    def attention(self):
        return CudaGraphScope.attn in self.cuda_graph_scope
"""


@pytest.mark.parametrize("base", ["TransformerConfig", "Middle", "ModelParallelConfig"])
def test_self_in_a_class_of_configurations_is_one(base: str) -> None:
    header = (
        "from megatron.core.model_parallel_config import ModelParallelConfig\n"
        "from megatron.core.transformer import TransformerConfig\n"
        "from megatron.core.transformer.enums import CudaGraphScope\n\n\n"
        "class Middle(TransformerConfig):\n    pass\n\n"
    )
    result = run(header + IN_A_CLASS.format(base=base))
    assert result.rules == ["CG602"]
    after = IN_A_CLASS.format(base=base).replace("Scope.attn", "Module.attn").replace("graph_scope", "graph_modules")
    assert result.after == header.replace("CudaGraphScope", "CudaGraphModule") + after


@pytest.mark.parametrize("base", ["object", "Engine", "MegatronModule"])
def test_self_in_another_class_is_a_copy(base: str) -> None:
    header = (
        "from megatron.core.transformer.enums import CudaGraphScope\n"
        "from megatron.core.transformer.module import MegatronModule\n"
    )
    result = check_noop(IN_A_CLASS.format(base=base), header=header)
    assert result.rules == ["CG603"]
    assert "`self.cuda_graph_scope` is a copy made elsewhere" in result.messages


@pytest.mark.parametrize("function", ["print", "logger.warning", "MyError", "errors.ScopeWarning"])
def test_text_that_a_program_shows_to_people_is_not_reported(function: str) -> None:
    result = check_noop(f'shown = {function}(f"cuda_graph_scope: {{config}}")\n')
    assert not result.examined.diagnostics and result.examined.skipped


def test_text_that_is_passed_on_is_reported() -> None:
    assert check_noop('shown = render(f"cuda_graph_scope: {config}")\n').rules == ["CG604"]
