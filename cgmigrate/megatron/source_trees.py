"""Source trees of megatron-core: where one is, which files belong to it, and which release its features are.

A tree is recognised by the files that megatron-core has, never by the words of a path: a project may keep its own
code in ``backends/megatron/core``. Its version number can be wrong (trees that call themselves 0.16.0rc0 or 0.18.0 have
the settings of 0.17), so its settings decide. Files are read as text; nothing is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cgmigrate.megatron.releases import IMPL_SINCE, LAST_OLD, OLDEST, SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import IMPL, MODULES, UPSTREAM
from cgmigrate.text.files import read_bytes

_NUMBER, _CONFIG, _ENUMS = "package_info.py", "transformer/transformer_config.py", "transformer/enums.py"
_BESIDE_CORE = frozenset(("training", "legacy", "inference", "rl", "post_training"))
"""Megatron-LM's packages beside ``megatron/core``."""
_OF_TRAINING = ("arguments.py", "training.py", "global_vars.py")
"""Files of ``megatron/training``, which some projects keep a copy of without megatron-core."""
_PLACES = ("", "Megatron-LM", "3rdparty/Megatron-LM", "src")
"""Where a project, a workspace or a submodule keeps ``megatron/core``."""


def is_core(folder: str) -> bool:
    """Whether a folder is the package ``megatron.core``."""
    return all(os.path.isfile(os.path.join(folder, name)) for name in (_NUMBER, _CONFIG))


def is_part_of_megatron(path: str) -> bool:
    """Whether a file belongs to megatron-core, or to a package of Megatron-LM beside it, which define the settings."""
    return _is_inside(os.path.dirname(path))


@cache
def _is_inside(folder: str) -> bool:
    parent, name = os.path.split(folder)
    if not name:
        return False
    if is_core(folder):
        return True
    if os.path.basename(parent) == "megatron" and name in _BESIDE_CORE and _defines_flags(parent):
        return True
    return _is_inside(parent)


def _defines_flags(megatron: str) -> bool:
    if is_core(os.path.join(megatron, "core")):
        return True
    return all(os.path.isfile(os.path.join(megatron, "training", name)) for name in _OF_TRAINING)


def core_in(folder: Path) -> Path | None:
    """Return the package ``megatron/core`` that a folder holds, or a Megatron-LM that it holds."""
    for place in _PLACES:
        core = folder / place / "megatron" / "core"
        # What a pin file calls a path may be none, which Path.is_file raises for.
        if os.path.isfile(core / _NUMBER):
            return core
    return None


def environments_in(folder: Path) -> Iterator[Path]:
    """Yield the packages ``megatron/core`` that the virtual environments of a project hold."""
    for name in (".venv", "venv"):
        for library in sorted((folder / name).glob("lib/python3*/site-packages/megatron/core")):
            if is_core(str(library)):
                yield library


def features(core: Path) -> tuple[Release, Release] | None:
    """Return the oldest and the newest release whose settings a tree has; None where it cannot be read."""
    config = _text(core / _CONFIG)
    if config is None:
        return None
    if MODULES in config:
        return SPLIT_IN, UPSTREAM
    scopes = re.search(r"^class CudaGraphScope\b.*?(?=^\S|\Z)", _text(core / _ENUMS) or "", re.MULTILINE | re.DOTALL)
    if scopes is not None:
        release = LAST_OLD if "full_iteration_inference" in scopes[0] else SCOPE_LIST_SINCE
        return release, release
    if re.search(rf"^[ \t]+{IMPL}\b", config, re.MULTILINE):
        return IMPL_SINCE, IMPL_SINCE
    return OLDEST, Release(IMPL_SINCE.major, IMPL_SINCE.minor - 1)


def _text(path: Path) -> str | None:
    try:
        return read_bytes(path).decode("utf-8", "replace")
    except OSError:
        return None
