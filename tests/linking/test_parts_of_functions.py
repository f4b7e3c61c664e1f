"""The beginning of a function up to a statement that is not followed, and the parts of the rest, by their names."""

from __future__ import annotations

import ast

from cgmigrate.proof.flow.modules import Module, Modules
from cgmigrate.linking.python.pieces import Unit, part_of, parts_around, unit_of

OLD = """
def test_scope():
    cfg = make()
    cfg.model.cuda_graph_scope = "full"
    assert cfg.model.cuda_graph_scope == "full"
    print("shown")
    process(cfg)
    cfg.model.cuda_graph_scope = ["attn"]
"""
EDITED = OLD.replace('    cfg.model.cuda_graph_scope = "full"\n', "")


def module_of(text: str) -> Module:
    module = Modules({"/test_a.py": text}, lambda path, text: None, lambda: ()).read("/test_a.py")
    assert module is not None
    return module


def uses(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Attribute) and part.attr == "cuda_graph_scope" for part in ast.walk(node))


def split(text: str, at: int) -> list[Unit]:
    unit = unit_of(module_of(text), "test_scope#1")
    assert unit is not None and unit.scope is not None
    return parts_around(unit, unit.scope.body[at], uses)


def lines(unit: Unit | None) -> str:
    assert unit is not None
    return "\n".join(ast.unparse(node) for node in unit.nodes)


def test_the_beginning_ends_before_the_statement() -> None:
    beginning, rest = split(OLD, 4)

    assert lines(beginning).endswith("print('shown')")
    assert lines(rest) == "cfg.model.cuda_graph_scope = ['attn']"


def test_the_parts_of_an_edited_text_have_the_same_names() -> None:
    edited = module_of(EDITED)
    beginning, rest = split(OLD, 4)

    assert lines(part_of(edited, beginning.name, uses)) == lines(beginning).replace(
        "cfg.model.cuda_graph_scope = 'full'\n", ""
    )
    assert lines(part_of(edited, rest.name, uses)) == lines(rest)


def test_a_statement_with_a_setting_is_in_the_rest_with_those_before_it() -> None:
    text = OLD + "    cfg.model.cuda_graph_scope = make()\n"
    beginning, rest = split(text, 6)

    assert lines(beginning).endswith("process(cfg)")
    assert lines(rest).startswith("cfg.model.cuda_graph_scope = ['attn']")


def test_a_function_is_not_split_before_its_first_setting() -> None:
    assert split(OLD, 1) == []
