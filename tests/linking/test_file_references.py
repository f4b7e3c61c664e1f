"""What a YAML file says of other files: the entries of `defaults:`, other keys, and Hydra's header."""

from __future__ import annotations

import pytest

from cgmigrate.linking.file_references import DefaultsEntry, references_of
from tests.support.tables import from_table

HEAD = "lr: 1\nmodel: {num_layers: 2}\n"


@pytest.mark.parametrize("value", ["", " ~", " null", " []"])
def test_empty_defaults_name_no_file(value: str) -> None:
    references = references_of(f"defaults:{value}\n{HEAD}")
    assert (references.defaults, references.unclear) == ((), "")


@pytest.mark.parametrize(
    ("item", "entry"),
    [
        ("base", DefaultsEntry("base", names=("base",))),
        ("policy: base", DefaultsEntry("policy: base", "policy", ("base",))),
        ("policy: ~", DefaultsEntry("policy: ~", "policy", ())),
        (
            "policy: [base, large]",
            DefaultsEntry("policy: [base, large]", "policy", ("base", "large"), is_list=True),
        ),
        (
            "override /policy@model: base",
            DefaultsEntry("override /policy@model: base", "/policy", ("base",), "model", False, True),
        ),
        ("optional policy: base", DefaultsEntry("optional policy: base", "policy", ("base",), None, True)),
        (
            "{policy: base, optional: true}",
            DefaultsEntry("{policy: base, optional: true}", "policy", ("base",), None, True),
        ),
    ],
)
def test_an_entry(item: str, entry: DefaultsEntry) -> None:
    references = references_of(f"defaults:\n- {item}\n{HEAD}")
    assert (references.defaults, references.unclear) == ((entry,), "")


@pytest.mark.parametrize("item", ["{policy: base, model: large}", "[base, large]", "{policy: {name: [base, large]}}"])
def test_any_word_of_an_entry_that_is_not_known_may_name_a_file(item: str) -> None:
    references = references_of(f"defaults:\n- {item}\n{HEAD}")
    assert {"base", "large"} <= {name for entry in references.defaults for name in entry.names}
    assert references.unclear == "an entry of `defaults:` has a form that is not known"


@from_table
def test_the_header_is_in_the_comments_at_the_top(top: str, package: str | None) -> None:
    assert references_of(top + HEAD).package == package


def test_any_key_whose_value_is_a_word_may_name_a_file() -> None:
    references = references_of(f"extends: base.yaml\nfiles: [one.yaml, two.yaml]\nabout: a long text\n{HEAD}")
    assert references.others == (("extends", ("base.yaml",)), ("files", ("one.yaml", "two.yaml")), ("lr", ("1",)))
