"""The user's cache folder of cgmigrate, and the records in it of sets of files that are being written.

Every command lists these records. That is why this module imports nothing that takes time.
"""

from __future__ import annotations

import os
import sys


def cache_folder() -> str:
    """Return ``$CGMIGRATE_CACHE_DIR``, or else the folder ``cgmigrate`` among the user's caches."""
    if folder := os.environ.get("CGMIGRATE_CACHE_DIR"):
        return folder
    if sys.platform == "linux":
        # As platformdirs does it, which takes longer to import than a small tree takes to check.
        caches = os.environ.get("XDG_CACHE_HOME", "")
        return os.path.join(caches if os.path.isabs(caches) else os.path.expanduser("~/.cache"), "cgmigrate")
    from platformdirs import user_cache_dir

    return user_cache_dir("cgmigrate", appauthor=False)


def records_folder() -> str:
    """Return the folder of the records of sets that are being written, or whose writer was killed."""
    return os.path.join(cache_folder(), "writes")


def records() -> list[str]:
    """Return the paths of these records. This is one listing of a folder that is nearly always missing or empty."""
    folder = records_folder()
    try:
        # The name of a temporary file: nothing else in the folder is touched.
        return [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(".cgmigrate-")]
    except OSError:
        return []
