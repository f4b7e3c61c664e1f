"""What sets the objects of code from outside of it: data files that are merged into them, and overrides of commands.

Such a setting has to change together with the code, since a release refuses both forms of one object.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import is_documentation
from cgmigrate.linking.overrides import Overrides
from cgmigrate.linking.python.modules import is_test
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.project.paths import shown_path
from cgmigrate.text.files import read_bytes

MODEL = "model"
"""The key of a configuration that has the settings, in the configurations of Megatron-Bridge."""
DATA = ("*.yaml", "*.yml", "*.json", "*.toml")
_JSON = r"""(?<!\\)"({0})"\s*:|^\s*'?({0})'?\s*:"""
_TOML = r"""(?<![\w\\])["']?({0})["']?\s*="""
"""A key of a file, with the names to put in. JSON5 has keys without quotes, too; an escaped quote is text."""


def data_writer(
    paths: Iterable[str], document_of: Callable[[str], Document | None], catalogue: Catalogue, release: Release
) -> str:
    """Return a data file that may set a deprecated setting of a configuration, with its place; empty if none does.

    ``release`` is the one that reads it now: what it refuses, such as a description of the setting, sets nothing.
    """
    for path in sorted(paths):
        if path.endswith((".yaml", ".yml")):
            document = document_of(path)
            for site in document.sites if document is not None else ():
                own = site.own
                if site.path[-1:] == (MODEL,) and catalogue.deprecated & own.keys() and not _is_refused(own, release):
                    line = document.text.count("\n", 0, site.span.start) + 1 if document is not None else 0
                    return f"{shown_path(path)}:{line}"
        elif line := _line_of_key(path, catalogue.deprecated):
            return f"{shown_path(path)}:{line}"
    return ""


def _is_refused(own: Settings, release: Release) -> bool:
    try:
        return isinstance(capture_of(own, release, Reader.BRIDGE), Rejected)
    except ValueError:
        return False


def _line_of_key(path: str, names: Collection[str]) -> int:
    """Return the line of a JSON or TOML file with a key of some names, 0 if it has none; text in a value is no key."""
    try:
        text = read_bytes(path).decode("utf-8", "replace")
    except OSError:
        return 0
    every = "|".join(map(re.escape, sorted(names)))
    match = re.search((_TOML if path.endswith(".toml") else _JSON).format(every), text, re.MULTILINE)
    return text.count("\n", 0, match.start()) + 1 if match else 0


def override_writer(paths: Iterable[str], catalogue: Catalogue) -> str:
    """Return the first override of a deprecated setting of a configuration, with its place; empty if there is none.

    Documentation runs nothing, and what tests override is evaluated with them.
    """
    run = [path for path in paths if not is_documentation(path) and not is_test(os.path.realpath(path))]
    for one in Overrides(catalogue, run).every():
        if one.keys[-1:] == (MODEL,) and one.setting in catalogue.deprecated:
            return str(one)
    return ""
