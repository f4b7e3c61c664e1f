"""Source trees of megatron-core: their folder, their files, and the release whose settings they have.

A tree is recognised by the files of megatron-core, not by its path: a project may keep its own code in
``backends/megatron/core``. The version number can be wrong (trees of version 0.16.0rc0 or 0.18.0 have the settings of
0.17), so the settings decide. Files are read as text; nothing is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cgmigrate.megatron.releases import IMPL_SINCE, LAST_OLD, OLDEST, SCOPE_LIST_SINCE, SPLIT_IN, UPSTREAM, Release
from cgmigrate.megatron.settings import IMPL, MODULES
from cgmigrate.text.files import text_if_readable

_VERSION, _CONFIG, _ENUMS = "package_info.py", "transformer/transformer_config.py", "transformer/enums.py"
_MEGATRON_LM_PACKAGES = frozenset(("training", "legacy", "inference", "rl", "post_training", "elastification"))
"""Megatron-LM's packages next to ``megatron/core``."""
_TRAINING_FILES = ("arguments.py", "training.py", "global_vars.py")
"""Files of ``megatron/training``; some projects have a copy of it without megatron-core."""
_LOCATIONS = ("", "Megatron-LM", "3rdparty/Megatron-LM", "src")
"""Folders of a project, a workspace or a submodule that can contain ``megatron/core``."""


def is_core(folder: str) -> bool:
    """Return whether a folder is the package ``megatron.core``."""
    return all(os.path.isfile(os.path.join(folder, name)) for name in (_VERSION, _CONFIG))


def is_part_of_megatron(path: str) -> bool:
    """Return whether a file belongs to megatron-core or Megatron-LM, which define the settings."""
    return _is_inside(os.path.dirname(path))


@cache
def _is_inside(folder: str) -> bool:
    parent, name = os.path.split(folder)
    if not name:
        return False
    if is_core(folder):
        return True
    if os.path.basename(parent) == "megatron" and name in _MEGATRON_LM_PACKAGES and _defines_flags(parent):
        return True
    return _is_inside(parent)


def _defines_flags(megatron: str) -> bool:
    if is_core(os.path.join(megatron, "core")):
        return True
    return all(os.path.isfile(os.path.join(megatron, "training", name)) for name in _TRAINING_FILES)


def core_in(folder: Path) -> Path | None:
    """Return the package ``megatron/core`` in a folder, or in a Megatron-LM in the folder; None if there is none."""
    for location in _LOCATIONS:
        core = folder / location / "megatron" / "core"
        # The folder comes from a pin file and may be no valid path, for which Path.is_file raises.
        if os.path.isfile(core / _VERSION):
            return core
    return None


def environments_in(folder: Path) -> Iterator[Path]:
    """Yield the packages ``megatron/core`` in the virtual environments of a project."""
    for name in (".venv", "venv"):
        for library in sorted((folder / name).glob("lib/python3*/site-packages/megatron/core")):
            if is_core(str(library)):
                yield library


def features(core: Path) -> tuple[Release, Release] | None:
    """Return the oldest and the newest release whose settings a tree has; None if it cannot be read."""
    config = text_if_readable(core / _CONFIG)
    if config is None:
        return None
    if MODULES in config:
        return SPLIT_IN, UPSTREAM
    enums = text_if_readable(core / _ENUMS) or ""
    scopes = re.search(r"^class CudaGraphScope\b.*?(?=^\S|\Z)", enums, re.MULTILINE | re.DOTALL)
    if scopes is not None:
        release = LAST_OLD if "full_iteration_inference" in scopes[0] else SCOPE_LIST_SINCE
        return release, release
    if re.search(rf"^[ \t]+{IMPL}\b", config, re.MULTILINE):
        return IMPL_SINCE, IMPL_SINCE
    return OLDEST, Release(IMPL_SINCE.major, IMPL_SINCE.minor - 1)
