"""The last check of an edited YAML file, with planted differences: edits of settings are accepted, nothing else."""

from __future__ import annotations

import pytest

from cgmigrate.documents.yaml import YamlDocument
from tests.support.tables import from_table, table_of

TEXT = """\
%YAML 1.1
---
# A model
defaults: &defaults
  num_layers: 2
  name: "small"
  ratio: 0.5
  layers: !list [1, 2, {a: b}]
  note: |
    first
    second
  folded: >-
    one
    two
model: &model
  <<: *defaults
  cuda_graph_impl: local
  cuda_graph_scope: full_iteration
  text.cuda_graph_impl: none
  vision.cuda_graph_scope: attn
  vision.hidden_size: 64
  hidden_size: 64
  empty:
  cuda_graph_warmup_steps: 3
again: *model
other:
  cuda_graph_impl: none
  enable_cuda_graph: false
...
---
second: document
cuda_graph_modules: [attn, mlp]
"""
MODEL = {"cuda_graph_impl": "full_iteration"}
FIXED = TEXT.replace(
    "  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\n", "  cuda_graph_impl: full_iteration\n"
)


def model_of(document: YamlDocument) -> int:
    return next(site.index for site in document.sites if site.own.get("cuda_graph_scope") == "full_iteration")


def refused(text: str, before: str = TEXT) -> str:
    """Why the check refuses a text as what `cuda_graph_impl: local` with its scope becomes; empty if it does not."""
    document = YamlDocument(before)
    return document.check(text, {model_of(document): MODEL})


def test_the_intended_change_is_accepted() -> None:
    assert FIXED != TEXT
    assert refused(FIXED) == ""
    document = YamlDocument(TEXT)
    assert document.check(TEXT, {}) == ""
    assert document.check(TEXT, {index: site.own for index, site in enumerate(document.sites)}) == ""


@from_table
def test_comments_and_blanks_are_no_content(old: str, new: str) -> None:
    """Edits leave them alone by construction: they replace spans, and this check is about what is read."""
    assert refused(FIXED.replace(old, new, 1)) == ""


CHANGES = table_of(__name__, "CHANGES")


@pytest.mark.parametrize(("old", "new"), CHANGES, ids=[f"{old.strip()} - {new.strip()}"[:60] for old, new in CHANGES])
def test_what_is_no_setting_of_the_site_may_not_change(old: str, new: str) -> None:
    assert old in FIXED
    assert refused(FIXED.replace(old, new, 1)) != ""


def test_an_alias_must_lead_to_the_same_node() -> None:
    """Both anchors have one name; the alias means the nearest one above."""
    before = "a: &x {n: 1}\nb: &x {n: 1}\nmodel:\n  cuda_graph_impl: local\n  cuda_graph_scope: full_iteration\nc: *x\n"
    after = "a: &x {n: 1}\nc: *x\nb: &x {n: 1}\nmodel:\n  cuda_graph_impl: full_iteration\n"
    assert refused(after, before) != ""
    assert refused(before.replace("impl: local\n  cuda_graph_scope: full", "impl: full"), before) == ""


def test_an_alias_of_a_setting_that_goes_may_not_lead_to_another_node() -> None:
    before = "a: &x 1\nmodel:\n  cuda_graph_impl: local\n  cuda_graph_scope: &x full_iteration\nc: *x\n"
    assert refused("a: &x 1\nmodel:\n  cuda_graph_impl: full_iteration\nc: *x\n", before) != ""


def test_an_alias_may_not_read_the_new_value_of_a_setting() -> None:
    """Its text is the same, and so are all anchors; but what it refers to was text, and is a list now."""
    document = YamlDocument("model:\n  cuda_graph_impl: local\n  cuda_graph_scope: &x attn\nc: *x\n")
    after = "model:\n  cuda_graph_impl: local\n  cuda_graph_modules: &x [attn]\nc: *x\n"
    assert document.check(after, {0: {"cuda_graph_impl": "local", "cuda_graph_modules": ["attn"]}}) != ""


def test_a_rewrite_that_was_not_made_is_refused() -> None:
    assert refused(TEXT) != ""
    document = YamlDocument(TEXT)
    assert document.check(FIXED, {}) != ""


@pytest.mark.parametrize("values", [{}, {"cuda_graph_modules": ["attn"]}, {"cuda_graph_impl": "none"}])
def test_other_values_than_those_meant_are_refused(values: dict[str, object]) -> None:
    document = YamlDocument(TEXT)
    assert document.check(FIXED, {model_of(document): values}) != ""


SPELLINGS = [
    ('"cuda_graph_scope": attn', '"cuda_graph_modules": attn', "cuda_graph_modules: attn"),
    ("'cuda_graph_scope': attn", "'cuda_graph_modules': attn", '"cuda_graph_modules": attn'),
    ("--cuda-graph-scope: attn", "--cuda-graph-modules: attn", "cuda_graph_modules: attn"),
    ("model.cuda_graph_scope: attn", "model.cuda_graph_modules: attn", "cuda_graph_modules: attn"),
]


@pytest.mark.parametrize(("old", "new", "otherwise"), SPELLINGS)
def test_a_new_key_is_spelled_as_the_old_one(old: str, new: str, otherwise: str) -> None:
    document = YamlDocument(f"{old}\nnum_layers: 2\n")
    (site,) = document.sites
    rewrites = {0: {"cuda_graph_modules": site.own["cuda_graph_scope"]}}
    assert document.check(f"{new}\nnum_layers: 2\n", rewrites) == ""
    assert document.check(f"{otherwise}\nnum_layers: 2\n", rewrites) != ""
