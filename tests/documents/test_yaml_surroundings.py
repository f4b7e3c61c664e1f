"""What surrounds a setting in YAML: the same mapping and others of the same configuration."""

from __future__ import annotations

from textwrap import dedent

import pytest

from cgmigrate.documents.yaml import YamlDocument
from cgmigrate.megatron.settings import Missing, Undecided

LOSS = ("rerun_state_machine", "check_for_nan_in_loss")


def beside(text: str, keys: tuple[str, ...] = LOSS, section: tuple[str, ...] = ("model",), site: int = 0) -> object:
    """The value that surrounds a site of a text."""
    return YamlDocument(dedent(text)).value_beside(site, section, keys)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("model: {cuda_graph_impl: local}\nrerun_state_machine: {check_for_nan_in_loss: false}\n", False),
        ("rerun_state_machine: {check_for_nan_in_loss: true}\nmodel: {cuda_graph_impl: local}\n", True),
        ("model: {cuda_graph_impl: local}\n", Missing.ABSENT),
        ("model: {cuda_graph_impl: local}\nrerun_state_machine: {}\n", Missing.ABSENT),
        ("model: {cuda_graph_impl: local}\nrerun_state_machine:\n", Missing.ABSENT),
        ("model: {cuda_graph_impl: local}\nrerun_state_machine: [1]\n", Undecided),
        ("model: {cuda_graph_impl: local}\nrerun_state_machine: ${x}\n", Undecided),
        ("model: {cuda_graph_impl: local}\nrerun_state_machine: {check_for_nan_in_loss: '${x}'}\n", Undecided),
        ("other: {cuda_graph_impl: local}\nrerun_state_machine: {check_for_nan_in_loss: false}\n", Missing.UNKNOWN),
        ("cuda_graph_impl: local\nrerun_state_machine: {check_for_nan_in_loss: false}\n", Missing.UNKNOWN),
        ("model.cuda_graph_impl: local\nrerun_state_machine.check_for_nan_in_loss: false\n", False),
        ("model.cuda_graph_impl: local\nrerun_state_machine: {check_for_nan_in_loss: false}\n", False),
        ("model: {cuda_graph_impl: local}\nrerun_state_machine.check_for_nan_in_loss: false\n", False),
        ("a.model: {cuda_graph_impl: local}\na.rerun_state_machine: {check_for_nan_in_loss: false}\n", False),
        ("a.model: {cuda_graph_impl: local}\nrerun_state_machine: {check_for_nan_in_loss: false}\n", Missing.ABSENT),
        # The last of two equal keys counts.
        (
            "model: {cuda_graph_impl: local}\n"
            "rerun_state_machine: {check_for_nan_in_loss: true, check_for_nan_in_loss: false}\n",
            False,
        ),
        # What another file may write is not known to be absent.
        ("defaults: base.yaml\nmodel: {cuda_graph_impl: local}\n", Missing.UNKNOWN),
        (
            "defaults: b\nmodel: {cuda_graph_impl: local}\nrerun_state_machine: {check_for_nan_in_loss: false}\n",
            False,
        ),
    ],
)
def test_value_of_another_section(text: str, value: object) -> None:
    read = beside(text)
    assert isinstance(read, Undecided) if value is Undecided else read is value


def test_values_of_the_same_mapping() -> None:
    text = """
        base: &base {hidden_size: 4096, seeds: [1, 2]}
        model: {<<: *base, cuda_graph_impl: local, check: 0.5}
        """
    assert beside(text, ("check",), ()) == 0.5
    assert beside(text, ("hidden_size",), ()) == 4096
    assert beside(text, ("seeds",), ()) == [1, 2]
    assert beside(text, ("ddp",), ()) is Missing.ABSENT


def test_each_item_of_a_list_has_its_own_surroundings() -> None:
    text = """
        recipes:
          - model: {cuda_graph_impl: local}
            rerun_state_machine: {check_for_nan_in_loss: false}
          - model: {cuda_graph_impl: local}
            rerun_state_machine: {check_for_nan_in_loss: true}
          - model: {cuda_graph_impl: local}
        """
    assert [beside(text, site=site) for site in range(3)] == [False, True, Missing.ABSENT]


def test_each_document_of_a_file_has_its_own_surroundings() -> None:
    text = (
        "model: {cuda_graph_impl: local}\n---\n"
        "model: {cuda_graph_impl: local}\nrerun_state_machine: {check_for_nan_in_loss: false}\n"
    )
    assert [beside(text, site=site) for site in range(2)] == [Missing.ABSENT, False]


def test_a_merged_section_counts_and_an_own_one_replaces_it() -> None:
    merged = """
        base: &base
          rerun_state_machine: {check_for_nan_in_loss: false}
        recipe:
          <<: *base
          model: {cuda_graph_impl: local}
        """
    assert beside(merged, site=1) is False
    own = "  rerun_state_machine: {other: 1}\n"
    assert beside(dedent(merged) + own, site=1) is Missing.ABSENT


def test_a_text_in_several_configurations_has_the_value_that_all_of_them_have() -> None:
    text = """
        shared: &model {cuda_graph_impl: local}
        one: {model: *model, rerun_state_machine: {check_for_nan_in_loss: false}}
        two: {model: *model, rerun_state_machine: {check_for_nan_in_loss: SECOND}}
        """
    assert beside(text.replace("SECOND", "false")) is False
    assert beside(text.replace("SECOND", "true")) is Missing.UNKNOWN


def test_a_configuration_that_is_merged_into_another_has_the_value_of_both() -> None:
    text = """
        base: &base
          model: {cuda_graph_impl: local}
          rerun_state_machine: {check_for_nan_in_loss: false}
        recipe:
          <<: *base
          OWN
        """
    assert beside(text.replace("OWN", "ddp: {}")) is False
    assert beside(text.replace("OWN", "rerun_state_machine: {check_for_nan_in_loss: true}")) is Missing.UNKNOWN
    # The model of the recipe is another one.
    own = "model: {}\n          rerun_state_machine: {check_for_nan_in_loss: true}"
    assert beside(text.replace("OWN", own)) is False


def test_mappings_that_merge_one_another_end() -> None:
    assert beside("a: &a {<<: *a, model: {cuda_graph_impl: local}}\n") in (Missing.UNKNOWN, Missing.ABSENT)
    assert beside("model: &m\n  cuda_graph_impl: local\n  model: *m\n", section=("model", "model")) is Missing.UNKNOWN


def test_a_text_with_too_many_configurations_is_not_known() -> None:
    uses = "".join(f"u{at}: {{model: *m}}\n" for at in range(200))
    assert beside("shared: &m {cuda_graph_impl: local}\n" + uses) is Missing.UNKNOWN


@pytest.mark.parametrize(
    ("first", "second", "value"),
    [
        ("{check: 1}", "{check: 1}", 1),
        ("{check: 1}", "{check: 2}", Missing.UNKNOWN),
        ("{check: 1}", "{check: true}", Missing.UNKNOWN),
        ("{other: 1}", "{check: 2}", 2),
        ("{ddp: {}}", "{ddp: {check: 2}}", Missing.UNKNOWN),
        ("{ddp: {}}", "{ddp: {}}", Missing.ABSENT),
    ],
)
def test_of_several_merged_mappings_none_has_precedence(first: str, second: str, value: object) -> None:
    """PyYAML 6.0.4 prefers the last of a list, older ones the first."""
    keys = ("ddp", "check") if "ddp" in first else ("check",)
    for order in ("<<: [*a, *b]", "<<: [*b, *a]", "<<: *a\n  <<: *b"):
        text = f"a: &a {first}\nb: &b {second}\nc:\n  {order}\n  model: {{cuda_graph_impl: local}}\n"
        document = YamlDocument(text)
        (index,) = (site.index for site in document.sites if site.own)
        assert document.value_beside(index, ("model",), keys) == value
