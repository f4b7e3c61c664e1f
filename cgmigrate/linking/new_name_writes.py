"""Code that gives settings with new names values of its own: a file that gets such a name may replace them, or lose.

With ``external_cuda_graph: true`` in the file, ``config | {"cuda_graph_impl": "none"}`` captures: the flag decides.
Once the file names the implementation, the value in the code counts instead. Code that copies the value of the same
name sets none of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import PythonSource
from cgmigrate.linking.name_reads import is_read_at_once
from cgmigrate.linking.name_texts import names_in_texts
from cgmigrate.linking.new_names import new_names
from cgmigrate.megatron.catalogue import Catalogue


def new_names_set(text: str, catalogue: Catalogue) -> Iterator[tuple[str, int]]:
    """Yield the new names to which Python text gives values of its own, each with the line.

    Code that cannot be parsed may set each name that it has.
    """
    names = new_names(catalogue)
    if not any(name in text for name in names):
        return
    try:
        source = PythonSource(text, catalogue)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        yield from ((name, 1) for name in sorted(names) if name in text)
        return
    for node in source.walk():
        name, value = _set_by(node, source)
        if name in names and value is not None and not _copies(value, name):
            yield name, getattr(node, "lineno", 1)
        yield from names_in_texts(node, source, names)


def _set_by(node: ast.AST, source: PythonSource) -> tuple[str, ast.expr | None]:
    """Return the name that a node sets, and its value; no value if it sets none."""
    above = source.parent(node)
    match node:
        case ast.Attribute(attr=name, ctx=ast.Store()) | ast.Name(id=name, ctx=ast.Store()):
            return name, None if _is_defined_around(node, name, source) else _assigned(above)
        case ast.keyword(arg=str() as name, value=value):
            is_whole = isinstance(above, ast.Call) and all(one.arg for one in above.keywords)
            return name, None if is_whole and is_read_at_once(above, name, source) else value
        case ast.Constant(value=str() as path):
            return path.rpartition(".")[2], _beside(node, above, source)
    return "", None


def _is_defined_around(node: ast.AST, name: str, source: PythonSource) -> bool:
    """Return whether the class around a node defines the setting: it is the configuration, as megatron-core has it."""
    around = next((above for above in source.ancestors(node) if isinstance(above, ast.ClassDef)), None)
    return around is not None and any(
        isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and one.target.id == name
        for one in around.body
    )


def _assigned(statement: ast.AST | None) -> ast.expr | None:
    return statement.value if isinstance(statement, (ast.Assign, ast.AugAssign)) else None


def _beside(key: ast.Constant, above: ast.AST | None, source: PythonSource) -> ast.expr | None:
    """Return the value that code gives to a key, None if it gives it none."""
    match above:
        case ast.Dict(keys=keys, values=values) if key in keys:
            return values[keys.index(key)]
        case ast.Subscript(ctx=ast.Store()):
            return _assigned(source.parent(above))
        case ast.Call(func=ast.Name(id="setattr"), args=[_, named, value]) if named is key:
            return value
        case ast.Call(func=ast.Attribute(attr="setdefault"), args=[named, value]) if named is key:
            return value
        case ast.Tuple(elts=[first, value]) | ast.List(elts=[first, value]) if first is key:
            is_name = isinstance(value, ast.Constant) and value.value in source.catalogue.names
            return None if is_name else value
    return None


def _copies(value: ast.expr, name: str) -> bool:
    """Return whether a value uses the same name."""
    for node in walk(value):
        match node:
            case ast.Attribute(attr=word) | ast.Name(id=word) | ast.Constant(value=str() as word):
                if word.rpartition(".")[2] == name:
                    return True
    return False
