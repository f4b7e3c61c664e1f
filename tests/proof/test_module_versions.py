"""Modules of edited texts: code that no edit changes is the same node, so that what is known of it holds."""

from __future__ import annotations

from cgmigrate.proof.flow.modules import Module, Modules

PATH = "/recipe.py"
TEXT = """\
from base import base

MODULES = ["attn"]


def first():
    return base(MODULES)


@marked
def second():
    return first()
"""


def read(modules: Modules) -> Module:
    module = modules.read(PATH)
    assert module is not None
    return module


def edited(old: str, new: str, text: str = TEXT) -> tuple[Module, Module, Modules]:
    modules = Modules({PATH: text})
    after = modules.with_texts({PATH: text.replace(old, new)})
    return read(modules), read(after), after


def test_a_function_behind_an_edit_is_the_same_node() -> None:
    before, after, _ = edited("    return base(MODULES)", "    cfg = base(MODULES)\n    return cfg")

    assert after.bindings["second"] is before.bindings["second"]
    assert after.bindings["first"] is not before.bindings["first"]


def test_a_decorator_is_a_part_of_its_function() -> None:
    before, after, _ = edited("@marked", "@other")

    assert after.bindings["second"] is not before.bindings["second"]


def test_two_edited_texts_share_what_both_have() -> None:
    modules = Modules({PATH: TEXT})
    changed = TEXT.replace("return first()", "return first() or None")
    one = read(modules.with_texts({PATH: changed}))
    two = read(modules.with_texts({PATH: changed.replace("MODULES = []", "MODULES = None").replace('["attn"]', "[]")}))

    assert one.bindings["second"] is two.bindings["second"]
    assert one.bindings["MODULES"] is not two.bindings["MODULES"]


def test_statements_on_one_line_are_known_by_no_text() -> None:
    _, after, _ = edited("MODULES = ['mlp']", "MODULES = []", "x = 1; MODULES = ['mlp']\ny = 2; x2 = y\n")

    assert {"x", "MODULES", "y", "x2"} == set(after.bindings)
    assert [node.lineno for node in after.tree.body] == [1, 1, 2, 2]


def test_a_statement_that_occurs_twice_has_two_nodes() -> None:
    _, after, _ = edited("x = 1", "x = 2", "x = 1\nif x:\n    y = 1\nif x:\n    y = 1\n")

    assert len({id(node) for node in after.tree.body}) == 3
