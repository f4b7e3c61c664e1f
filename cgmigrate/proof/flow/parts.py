"""Parts of the names of settings in texts of code, of which it may make these names: `"cuda_graph_" + kind`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Iterator

from cgmigrate.documents.python.nodes import walk
from cgmigrate.megatron.settings import DEPRECATED
from cgmigrate.megatron.source_trees import is_part_of_megatron
from cgmigrate.project.paths import is_test
from cgmigrate.proof.flow.modules import Module, Modules
from cgmigrate.proof.flow.words import ANY_SPELLING

_WORD = re.compile(r"\w+")
_PATH = re.compile(rf"\w\.({'|'.join(DEPRECATED)})$")
"""A key that sets an attribute of a part of an object."""
_DEPRECATED = re.compile(rf"\b({'|'.join(DEPRECATED)})\b")
_LOOKING = ("get", "startswith", "pop", "add", "discard")
_SHOWN = re.compile(r"\s")


def parts_of_names(files_with: Callable[[Collection[str]], Iterable[str]], modules: Modules) -> dict[str, list[int]]:
    """Return the lines of each file with parts of deprecated names; files of tests have no objects for other code."""
    result: dict[str, list[int]] = {}
    for path in files_with((*_parts(), ANY_SPELLING)):
        module = None if is_test(path) or is_part_of_megatron(path) else modules.read(path)
        if module is not None and (lines := sorted(_lines(module.tree))):
            result[path] = lines
    return result


def _parts() -> frozenset[str]:
    """Return what is left of a name where a text ends between two letters or words of it: two words or more."""
    parts = set[str]()
    for name in DEPRECATED:
        words = name.split("_")
        for at in range(1, len(words)):
            first, last = "_".join(words[:at]), "_".join(words[at:])
            parts |= {first, f"{first}_", last, f"_{last}"}
    return frozenset(part for part in parts if "_" in part and part != "cuda_graph")


_PARTS = _parts()


def _lines(tree: ast.Module) -> Iterator[int]:
    for node in walk(tree):
        match node:
            case ast.Constant(value=str() as text) if "_" in text and not _SHOWN.search(text):
                if not _PARTS.isdisjoint(_WORD.findall(text)):
                    yield node.lineno
            case ast.Dict(keys=keys):
                texts = [one.value for one in keys if isinstance(one, ast.Constant) and isinstance(one.value, str)]
                if any(_PATH.search(text) for text in texts):
                    yield node.lineno


def names_deprecated(module: Module) -> bool:
    """Return whether a module has a deprecated name."""
    return _DEPRECATED.search(module.text) is not None


def kept_in_tests(module: Module) -> Iterator[int]:
    """Yield the lines of tests that no fix can break.

    They assert that a deprecated setting is None, which no fix sets; or have the text of an override, which the release
    reads by its old name.
    """
    for node in walk(module.tree):
        match node:
            case ast.Assert(test=ast.Compare(left=ast.Attribute(attr=name), ops=[ast.Is()], comparators=[other])):
                if name in DEPRECATED and isinstance(other, ast.Constant) and other.value is None:
                    yield node.lineno
            case ast.Constant(value=str() as text) if "=" in text and _PATH.search(text.partition("=")[0]):
                yield node.lineno


def of_records(module: Module) -> Iterator[int]:
    """Yield the lines of tests that assert settings of records which the same test makes: `SimpleNamespace(...)`."""
    for function in walk(module.tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        records = {name for one in walk(function) for name in _record(one)}
        for one in walk(function) if records else ():
            if isinstance(one, ast.Assert) and records & {node.id for node in walk(one) if isinstance(node, ast.Name)}:
                yield from range(one.lineno, (one.end_lineno or one.lineno) + 1)


def _record(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=ast.Name(id="SimpleNamespace"))):
            yield name


def read_paths(module: Module) -> Iterator[int]:
    """Yield the lines that look for a path with a deprecated name among texts: `overrides.get("model.x")`."""
    for node in walk(module.tree) if names_deprecated(module) else ():
        match node:
            case ast.Call(func=ast.Attribute(attr=name), args=[ast.Constant(value=str() as text), *_]):
                if name in _LOOKING and _PATH.search(text.rstrip(".")):
                    yield node.lineno
