"""The folder of the shipped rules, settings and ecosystems, and the reader of its YAML files."""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class RuleError(ValueError):
    """A rule file that cannot be used; the message says where and what is expected."""


def rules_path() -> str:
    """Return the folder of the shipped rules: inside the wheel, or beside the package. Raises RuleError without it."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    every = (os.path.join(package, "_rules"), os.path.join(os.path.dirname(package), "rules"))
    if not (folder := next(filter(os.path.isdir, every), "")):
        raise RuleError(f"{package}: the shipped rules are missing; install cgmigrate again")
    return folder


def rules_folder() -> Path:
    """Return `rules_path` as a Path."""
    # Discovery reads no rule, and pathlib takes time to import.
    from pathlib import Path

    return Path(rules_path())


def upgrade_rules() -> str:
    """Return the folder of the rules of `cgmigrate upgrade`, which other commands do not read."""
    return os.path.join(rules_path(), "upgrade")


def is_of_upgrade(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder is that of `upgrade_rules`."""
    return os.path.abspath(folder) == upgrade_rules()


def proof_of(path: Path, *names: str) -> str:
    """Return what releases were found to do with an entry or a rule that ships, empty for one of a team.

    ``scripts/proofs.py`` wrote it, by the name of the setting or the code of the rule.
    """
    if not any(map(is_of_upgrade, path.parents[:2])):
        return ""
    return next((proof for name in names if (proof := _proofs().get(name))), "")


@cache
def _proofs() -> Mapping[str, str]:
    import json

    proofs: Mapping[str, str] = json.loads((rules_folder() / "proofs.json").read_text("utf-8"))
    return proofs


def text_of(path: Path) -> str:
    """Return the text of a file of data. Raises RuleError."""
    from cgmigrate.text.files import read_text

    try:
        return read_text(path)
    except OSError as error:
        raise RuleError(f"{path}: cannot be read: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise RuleError(f"{path}:1: not UTF-8: {error.reason}") from error


def load_yaml(text: str, path: str) -> Any:
    """Return YAML as plain data. Raises RuleError with file, line and reason."""
    import yaml

    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise RuleError(f"{path}{line}: not valid YAML: {getattr(error, 'problem', error)}") from error
