"""Modules of edited texts: code that no edit changes is the same node, so that what is known of it holds."""

from __future__ import annotations

from cgmigrate.linking.python.evaluation import Code
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


def test_code_is_the_same_if_what_it_uses_is() -> None:
    before, _, after = edited("return first()", "return None")
    uses_first, uses_second, uses_all = Code(), Code(), Code()
    uses_first.use_name(PATH, "first")
    uses_second.use_name(PATH, "second")
    uses_all.use_file(PATH)

    assert uses_first.is_same({PATH: before}, after)
    assert not uses_second.is_same({PATH: before}, after)
    assert not uses_all.is_same({PATH: before}, after)


def test_a_function_that_is_evaluated_has_to_stay() -> None:
    before, _, after = edited("return first()", "return None")
    first, second = Code(), Code()
    first.use_function(PATH, before.tree.body[2])
    second.use_function(PATH, before.tree.body[3])

    assert first.is_same({PATH: before}, after)
    assert not second.is_same({PATH: before}, after)


def test_a_name_that_an_edit_imports_is_other_code() -> None:
    before, _, after = edited("from base import base\n", "from base import base\nfrom setters import clear\n")
    code = Code()
    code.use_name(PATH, "clear")

    assert not code.is_same({PATH: before}, after)
