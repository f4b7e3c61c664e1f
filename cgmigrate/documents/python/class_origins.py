"""Origins of classes: which class of Megatron a class is derived from that another file of the project defines.

``from .configs import SmallConfig`` says nothing of Megatron; the file ``configs.py`` does, where
``SmallConfig`` is a TransformerConfig. Files are found from the importing file upwards, as Python
would find them from some folder above; they are read for their imports and classes, never run.
"""

from __future__ import annotations

import os
from functools import lru_cache

from cgmigrate.documents.python.name_resolution import MEGATRON, Names, names_of
from cgmigrate.documents.python.nodes import parse
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.files import read_bytes

MAX_STEPS = 8
"""Files that one name is followed through."""
MAX_FOLDERS = 8
"""Folders above a file in which its imports are looked for."""
MAX_BYTES = 1024 * 1024

_SHOW_NOTHING = ("typing", "typing_extensions", "types", "argparse", "omegaconf", "unittest", "collections", "mock")
"""Packages whose classes hold any object's attributes."""
_ANY = ("Any", "Namespace", "SimpleNamespace", "None", "T")


def owner_of(names: Names, name: str) -> str:
    """Return the full name as ``Names.resolve`` does, followed through the classes of the files around this one."""
    full = names.resolve(name)
    return leads_to(full, names, MEGATRON) if names.path else full


def other_class(names: Names, full: str) -> str:
    """Return the full name of a class that is not Megatron's; empty for Megatron's, and where that is not known.

    Files that name settings are read as well: the class may still be derived from Megatron's.
    """
    first, last = full.partition(".")[0], full.rpartition(".")[2]
    if not last[:1].isupper() or first in MEGATRON or first in _SHOW_NOTHING or last in _ANY:
        return ""
    if "." not in full and full not in names.classes and any(name.endswith(".*") for name in names.full.values()):
        return ""  # `from megatron.core.transformer import *`
    following = leads_to(full, names, MEGATRON, settings_too=True) if names.path else full
    return "" if following.partition(".")[0] in MEGATRON else following


def leads_to(full: str, names: Names, known: tuple[str, ...], *, settings_too: bool = False) -> str:
    """Return the name that ``full`` leads to through classes of the files around that of ``names``.

    Ends at a name of a package in ``known`` or at one that no file around defines, which may be ``full``
    itself. Files that name the settings are read only with ``settings_too``.
    """
    path, catalogue = names.path, None if settings_too else names.catalogue
    seen: set[str] = set()
    while full not in seen and len(seen) < MAX_STEPS and full.partition(".")[0] not in known:
        seen.add(full)
        module, _, name = full.rpartition(".")
        # Classes begin with a capital; what a function returns is not known.
        if not module or not name[:1].isupper():
            break
        file = module_file(module, os.path.dirname(os.path.abspath(path)))
        following = _class_in(file, name, catalogue) if file else ""
        if not following:
            break
        full, path = following, file
    return full


@lru_cache(maxsize=1024)
def module_file(module: str, folder: str) -> str:
    """Return the file of a module in a folder or those above it, empty when there is none."""
    tail = os.path.join(*module.split("."))
    for _ in range(MAX_FOLDERS):
        for candidate in (os.path.join(folder, tail + ".py"), os.path.join(folder, tail, "__init__.py")):
            if os.path.isfile(candidate):
                return candidate
        above = os.path.dirname(folder)
        if above == folder or os.path.lexists(os.path.join(folder, ".git")):
            break
        folder = above
    return ""


@lru_cache(maxsize=1024)
def _class_in(file: str, name: str, catalogue: Catalogue | None) -> str:
    """Return the base of a class of a file, or what an import of that name leads to; empty if neither exists.

    A file that names a setting of ``catalogue`` is not read.
    """
    try:
        data = read_bytes(file, MAX_BYTES)
        # The classes of a file that names the settings may have defaults of their own for them, so a call
        # that sets one of two settings does not show the value of the other.
        if name.encode() not in data or (catalogue is not None and catalogue.is_in(data.decode("utf-8", "replace"))):
            return ""
        names = names_of(parse(data), "")
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    full = names.resolve(name)
    return full if full != name and name not in names.shadowed else ""
