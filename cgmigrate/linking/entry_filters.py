"""Code that treats the entries of a mapping, or the attributes of an object, by their values or by their keys.

It has no name of a setting in it, and sees that a fix writes another one: `[k for k, v in vars(cfg).items() if v]`.
Code that copies entries without looking at them sees nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from cgmigrate.documents.python.source import dotted

_OF_OBJECTS = ("vars", "asdict", "dataclasses.asdict")


def filters_in(text: str) -> Iterator[tuple[int, str, bool]]:
    """Yield the line of each loop over entries that does so, what it loops over, and whether that is an object's."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(tree):
        match node:
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                for one in node.generators:
                    body: Sequence[ast.AST] = [child for child in ast.iter_child_nodes(node) if child is not one]
                    yield from _filter(node.lineno, one.target, one.iter, one.ifs, body)
            case ast.For(target=target, iter=iterated, body=body):
                tests = [one.test for part in body for one in ast.walk(part) if isinstance(one, (ast.If, ast.IfExp))]
                yield from _filter(node.lineno, target, iterated, tests, body)


def _filter(
    line: int, target: ast.expr, iterated: ast.expr, tests: Sequence[ast.expr], body: Sequence[ast.AST]
) -> Iterator[tuple[int, str, bool]]:
    match target, iterated:
        case ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=value)]), ast.Call(
            func=ast.Attribute(attr="items", value=of), args=[]
        ):
            of_object = dotted(of).endswith("__dict__") or (isinstance(of, ast.Call) and dotted(of.func) in _OF_OBJECTS)
            if any(_is_about(test, value) for test in tests) or _spells_flags(key, body):
                yield line, f"{ast.unparse(iterated)}", of_object


def _is_about(test: ast.expr, value: str) -> bool:
    """Return whether a condition is about a value being true or false."""
    match test:
        case ast.Name(id=name):
            return name == value
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _is_about(operand, value)
        case ast.BoolOp(values=parts):
            return any(_is_about(one, value) for one in parts)
        case ast.Compare(left=ast.Name(id=name), comparators=[ast.Constant(value=bool())]):
            return name == value
    return False


def _spells_flags(key: str, body: Sequence[ast.AST]) -> bool:
    """Return whether code makes flags of keys: `"--" + key.replace("_", "-")`."""
    nodes = [one for part in body for one in ast.walk(part)]
    dashes = any(isinstance(one, ast.Constant) and one.value == "--" for one in nodes)
    return dashes and any(isinstance(one, ast.Call) and dotted(one.func) == f"{key}.replace" for one in nodes)
