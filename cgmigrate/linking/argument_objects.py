"""Objects that other files give to a function: one with the deprecated settings only lacks those that a fix reads."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Collection, Iterator

from cgmigrate.documents.python.class_origins import MAX_BYTES
from cgmigrate.documents.python.definitions import Definitions, module_of
from cgmigrate.documents.python.name_resolution import names_of, package_of
from cgmigrate.documents.python.nodes import parsed, walk
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import INFERENCE, MODULES, SCOPE
from cgmigrate.text.files import read_text

_SCOPE = re.compile(rf"(?<!\w){SCOPE}(?!\w)")


def caller_with_old_object(function: str, path: str, files: Collection[str], catalogue: Catalogue) -> str:
    """Return the first of some files that uses a function of a file and names the scope, but not what it became.

    What such a file gives the function may be an object of its own, as tests have, without the new settings.
    """
    own = os.path.realpath(path)
    others = [file for file in dict.fromkeys(map(os.path.realpath, files)) if file != own]
    return next((file for file in others if _gives(file, function, own, catalogue, others)), "")


def _gives(file: str, function: str, own: str, catalogue: Catalogue, others: Collection[str]) -> bool:
    try:
        text = read_text(file, MAX_BYTES)
        if function not in text or not _SCOPE.search(text) or (MODULES in text and INFERENCE in text):
            return False
    except (OSError, UnicodeDecodeError):
        return True
    tree = parsed(text)
    if tree is None:
        return True
    names = names_of(tree, package_of(file))
    names.path, names.catalogue = file, catalogue
    definition = Definitions(module_of(tree, names, file, text)).of(function)
    # A function of the same name in another file is not the one.
    if definition is None:
        return not _imports_another(tree, function, own, others)
    return os.path.realpath(definition.module.path) == own


def _imports_another(tree: ast.Module, function: str, own: str, others: Collection[str]) -> bool:
    """Return whether code has a function of this name only from files of the project that define one themselves."""
    modules = list(_modules_of(tree, function))
    return bool(modules) and all(_is_defined(module, function, own, others) for module in modules)


def _modules_of(tree: ast.Module, function: str) -> Iterator[str]:
    for node in walk(tree):
        match node:
            case ast.ImportFrom(module=str() as module, names=names, level=0) if any(n.name == function for n in names):
                yield module
            case ast.ImportFrom(names=names) if any(one.name in (function, "*") for one in names):
                yield ""
            case ast.Attribute(attr=name) if name == function:
                # It may be that of any module.
                yield ""


def _is_defined(module: str, function: str, own: str, others: Collection[str]) -> bool:
    end = f"/{module.replace('.', '/')}.py"
    paths = [path for path in (own, *others) if module and path.endswith(end)]
    return len(paths) == 1 and paths[0] != own and _defines(paths[0], function)


def _defines(path: str, function: str) -> bool:
    try:
        tree = parsed(read_text(path, MAX_BYTES))
    except (OSError, UnicodeDecodeError):
        return False
    return tree is not None and any(isinstance(one, ast.FunctionDef) and one.name == function for one in tree.body)
