"""Whether a pin is what a package declares to its users: such a package has to run on every release that it admits.

An application runs on one release, whatever its requirements admit: a lock file, an environment or a container image
says which.
"""

from __future__ import annotations

import re
from pathlib import Path

from cgmigrate.project.pins.files import Pin
from cgmigrate.project.pins.toml_tables import load_toml, table
from cgmigrate.text.files import read_text

_PACKAGING = ("pyproject.toml", "setup.cfg", "setup.py")


def is_declared_to_users(pin: Pin) -> bool:
    """Return whether a pin is a requirement of a package that others install."""
    folder, name = pin.path.parent, pin.path.name
    if re.fullmatch(r"requirements.*\.txt", name) or folder.name == "requirements":
        # Packages read their requirements from these files.
        above = folder.parent if folder.name == "requirements" else folder
        return any(_is_package(above / other) for other in _PACKAGING)
    return name in _PACKAGING and _is_package(pin.path)


def _is_package(path: Path) -> bool:
    """Return whether a file of packaging describes a package that is built."""
    if not path.is_file():
        return False
    if path.name != "pyproject.toml":
        return True
    try:
        document = load_toml(read_text(path))
    except (OSError, ValueError):
        return False
    tools = table(document, "tool")
    is_built = (
        table(tools, "uv").get("package") is not False and table(tools, "poetry").get("package-mode") is not False
    )
    return is_built and any(
        table(*parts) for parts in ((document, "project"), (document, "build-system"), (tools, "poetry"))
    )
