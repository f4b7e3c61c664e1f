"""Uses of names that give the keys of a mapping: a list of keys, or a class with a field for each key.

A use copies the keys of the list, admits them, or fills an object of the class with a mapping. Annotations and tests of
the type are neutral. Any other use is not known.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass

from cgmigrate.documents.python.key_copies import CopyReader
from cgmigrate.documents.python.mapping_paths import filled_with, keys_of
from cgmigrate.documents.python.nodes import walk
from cgmigrate.documents.python.source import Source, dotted

_NEUTRAL_CALLS = ("fields", "isinstance", "get_type_hints", "is_dataclass")
_NEUTRAL_ATTRIBUTES = ("__annotations__", "__dataclass_fields__", "model_fields", "__name__")


@dataclass(frozen=True, slots=True)
class KeyUse:
    """A place that copies or admits the keys of a list, or fills an object with a mapping."""

    keys: tuple[str, ...]
    """The last keys that lead to the mapping, as far as the code shows them."""
    mapping: str
    target: str


def uses_of(name: str, source: Source, *, is_class: bool, is_own: bool) -> list[KeyUse] | None:
    """Return how a file uses a list or class, None if it may use it in another way.

    ``is_own`` says that the file defines it; otherwise it imports it.
    """
    words = [name] if is_own else _local_names(name, source.tree)
    reader = _UseReader(source, is_class)
    return None if words is None else reader.uses(words, is_own=is_own)


def _local_names(name: str, tree: ast.AST) -> Collection[str] | None:
    """Return how a file names what it may import as ``name``: words, and attributes of modules; None if not known."""
    names: dict[str, None] = {}
    modules: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules |= {alias.asname or alias.name for alias in node.names}
            if any(alias.name == "*" for alias in node.names):
                return None
            names |= {alias.asname or name: None for alias in node.names if alias.name == name}
    attributes = (node for node in walk(tree) if isinstance(node, ast.Attribute) and node.attr == name)
    names |= {dotted(node): None for node in attributes if dotted(node.value) in modules}
    return names.keys()


class _UseReader:
    """Reads the uses in one file."""

    def __init__(self, source: Source, is_class: bool) -> None:
        self.copies = CopyReader(source)
        self.tree, self.is_class = source.tree, is_class
        self.names = source.catalogue.name_set

    def uses(self, words: Collection[str], *, is_own: bool) -> list[KeyUse] | None:
        """Return the uses of some words, None if one of them is not known."""
        uses: list[KeyUse] = []
        for word in words:
            loads = self._loads(word, 1 if is_own and not self.is_class else 0)
            if loads is None:
                return None
            for load in loads:
                use = self._of_class(load) if self.is_class else self._of_list(load)
                if use is None:
                    return None
                uses += [use] if isinstance(use, KeyUse) else []
        return uses

    def _loads(self, word: str, stores: int) -> list[ast.expr] | None:
        """Return where the file reads a word or attribute; None if it is stored more often, or named in a string."""
        loads: list[ast.expr] = []
        for node in walk(self.tree):
            match node:
                case ast.Name(ctx=context) | ast.Attribute(ctx=context) if _is(node, word):
                    stores -= not isinstance(context, ast.Load)
                    loads += [node] if isinstance(context, ast.Load) else []
                case ast.arg(arg=other) if other == word:
                    return None
                case ast.Constant(value=str() as text) if text == word.rpartition(".")[2]:
                    if not self.copies.is_exported(node) and not self._is_annotation(node):
                        return None
        return loads if stores >= 0 else None

    def _of_list(self, load: ast.expr) -> KeyUse | None:
        function = self.copies.function_of(load)
        above = self.copies.parent(load)
        match above:
            case ast.BinOp(left=left, op=ast.Sub(), right=right) if right is load:
                return KeyUse(self._keys_in_set(left, function), ast.unparse(left), "a test")
            case ast.Compare(left=left, ops=[ast.LtE()], comparators=[right]) if right is load:
                return KeyUse(self._keys_in_set(left, function), ast.unparse(left), "a test")
        copy = self.copies.copy_of_names(load)
        if copy is None:
            return None
        return KeyUse(keys_of(copy.mapping, function, self.tree), ast.unparse(copy.mapping), copy.target)

    def _keys_in_set(self, node: ast.expr, function: ast.AST | None) -> tuple[str, ...]:
        """Return the keys that lead to the mapping of ``set(mapping)`` or ``mapping.keys()``."""
        match node:
            case ast.Call(func=ast.Name(id="set"), args=[inner]):
                return self._keys_in_set(inner, function)
            case ast.Call(func=ast.Attribute(value=mapping, attr="keys"), args=[]):
                return keys_of(mapping, function, self.tree)
        return keys_of(node, function, self.tree)

    def _of_class(self, load: ast.expr) -> KeyUse | bool | None:
        """Return how an object is filled, or whether the use is neutral; None if it is not known."""
        above = self.copies.parent(load)
        match above:
            case ast.Attribute(attr=attribute):
                if attribute in _NEUTRAL_ATTRIBUTES:
                    return True
                return self._filled(self.copies.parent(above), load)
            case ast.Call(func=func, args=args):
                if func is load:
                    is_plain = not args and all(keyword.arg for keyword in above.keywords)
                    return True if is_plain else self._filled(above, load)
                return True if dotted(func).rpartition(".")[2] in _NEUTRAL_CALLS else None
        return True if self._is_annotation(load) else None

    def _filled(self, call: ast.AST | None, load: ast.expr) -> KeyUse | None:
        made = filled_with(call) if isinstance(call, ast.Call) else None
        named = {keyword.arg for keyword in call.keywords} if isinstance(call, ast.Call) else set()
        if made is None or named & self.names:
            return None
        keys = keys_of(made[1], self.copies.function_of(load), self.tree)
        return KeyUse(keys, ast.unparse(made[1]), made[0])

    def _is_annotation(self, node: ast.AST) -> bool:
        above = self.copies.parent(node)
        while isinstance(above, (ast.Subscript, ast.Tuple, ast.BinOp)):
            node, above = above, self.copies.parent(above)
        match above:
            case ast.arg(annotation=annotation) | ast.AnnAssign(annotation=annotation):
                return annotation is node
            case ast.FunctionDef(returns=returns) | ast.AsyncFunctionDef(returns=returns):
                return returns is node
        return False


def _is(node: ast.AST, word: str) -> bool:
    return isinstance(node, (ast.Name, ast.Attribute)) and dotted(node) == word
