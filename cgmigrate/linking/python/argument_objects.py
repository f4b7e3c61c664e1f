"""Objects that other files give to a function: one with the deprecated settings only lacks those that a fix reads."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable

from cgmigrate.documents.python.class_origins import MAX_BYTES
from cgmigrate.documents.python.definitions import Definitions, module_of
from cgmigrate.documents.python.name_resolution import names_of, package_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import INFERENCE, MODULES, SCOPE
from cgmigrate.text.files import read_bytes

_SCOPE = re.compile(rf"(?<!\w){SCOPE}(?!\w)")


def caller_with_old_object(function: str, path: str, files: Iterable[str], catalogue: Catalogue) -> str:
    """Return the first of some files that uses a function of a file and names the scope, but not what it became.

    What such a file gives the function may be an object of its own, as tests have, without the new settings.
    """
    own = os.path.realpath(path)
    return next(
        (file for file in files if os.path.realpath(file) != own and _gives(file, function, own, catalogue)), ""
    )


def _gives(file: str, function: str, own: str, catalogue: Catalogue) -> bool:
    try:
        text = read_bytes(file, MAX_BYTES).decode("utf-8")
        if function not in text or not _SCOPE.search(text) or (MODULES in text and INFERENCE in text):
            return False
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    names = names_of(tree, package_of(file))
    names.path, names.catalogue = file, catalogue
    definition = Definitions(module_of(tree, names, file, text)).of(function)
    # A function of the same name in another file is not the one.
    return definition is None or os.path.realpath(definition.module.path) == own
