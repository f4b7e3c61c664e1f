"""Dotted names of Megatron's modules and of what is in them, as texts have them."""

from __future__ import annotations

import os
import re
from functools import cache

PATH = re.compile(r"megatron(?:\.\w+){2,}\Z")
"""A text that is the path of a module or of a name in one, as `mock.patch` and `_target_` take it."""
_PACKAGE = "megatron."
_SOURCES = ("", "src")
"""Folders below a project in which its own modules are."""


def is_of_megatron(module: str, path: str) -> bool:
    """Return whether a module that a file at ``path`` names is Megatron's, and not one of the project itself."""
    return module.startswith(_PACKAGE) and not _is_own(os.path.dirname(path), module)


@cache
def _is_own(folder: str, module: str) -> bool:
    """Return whether a module is that of the project itself, in a folder or in one above it."""
    for source in _SOURCES:
        path = os.path.join(folder, source, *module.split("."))
        if os.path.isfile(path + ".py") or os.path.isdir(path):
            return True
    above = os.path.dirname(folder)
    return above != folder and _is_own(above, module)
