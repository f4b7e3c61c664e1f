"""TOML as plain data, and parts of it if they have the expected type."""

from __future__ import annotations

import sys
from typing import Any


def load_toml(text: str) -> dict[str, Any]:
    """Return the data of a TOML text. Raises ValueError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    return tomllib.loads(text)


def table(parent: object, key: str) -> dict[str, Any]:
    """Return the table at a key; empty if there is none."""
    value = parent.get(key) if isinstance(parent, dict) else None
    return value if isinstance(value, dict) else {}


def strings(value: object) -> list[str]:
    """Return the strings in a list; empty if the value is not a list."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
