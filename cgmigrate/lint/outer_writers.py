"""What sets the objects of code from outside of it: data files that are merged into them, and overrides.

Such a setting has to change together with the code, since a release refuses both forms of one object.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable

from cgmigrate.documents.sites import Document
from cgmigrate.documents.syntax import is_documentation
from cgmigrate.linking.overrides import Overrides
from cgmigrate.megatron.capture import capture_of
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.settings import Settings
from cgmigrate.megatron.types import Reader, Rejected
from cgmigrate.project.paths import is_test, shown_path
from cgmigrate.text.files import line_of_match, text_if_readable

MODEL = "model"
"""The key of a configuration that has the settings, in the configurations of Megatron-Bridge."""
_YAML = (".yaml", ".yml")
_TABLES = (".csv", ".tsv", ".txt", ".lst", ".ini", ".cfg", ".conf", ".env", ".properties")
_SUFFIXES = (*_YAML, ".json", ".jsonl", ".json5", ".toml", *_TABLES)
DATA = (*(f"*{suffix}" for suffix in _SUFFIXES), "*.env.*")
_JSON = r"""(?<!\\)"([\w-]+\.)*({0})"\s*[:,\]}}]|^\s*'?({0})'?\s*:"""
_TOML = r"""(?<![\w\\])["']?({0})["']?\s*="""
_TABLE = r"""(^|[\s,;"'.\[{{(]|__)({0})["']?[ \t]*([=:,;\t\]}})]|$)"""
"""A key of a file, or a field, with the names to put in.

JSON5 has keys without quotes, too; an escaped quote is text.
"""
_OF_OTHERS = frozenset(("enable_cuda_graph",))
"""Names that other programs have, too: in YAML they count only under ``model``."""


def data_words(catalogue: Catalogue) -> list[str]:
    """Return words of which each data file has one that names a deprecated setting, in any spelling."""
    camel = {name.title().replace("_", "") for name in catalogue.deprecated}
    words = {word for name in catalogue.deprecated for word in (name, name.replace("_", "-"), name.upper())}
    return sorted(words | camel | {name[0].lower() + name[1:] for name in camel})


def data_writer(
    paths: Iterable[str], document_of: Callable[[str], Document | None], catalogue: Catalogue, release: Release
) -> str:
    """Return a data file that may set a deprecated setting of a configuration, with its place; empty if none does.

    ``release`` is the one that reads it now: what it refuses, such as a description of the setting, sets nothing.
    """
    words = data_words(catalogue)
    for path in sorted(paths):
        if path.endswith(_YAML):
            if (document := document_of(path)) is not None and (at := _site_in(document, catalogue, release)) >= 0:
                return f"{shown_path(path)}:{document.text.count(chr(10), 0, at) + 1}"
        elif line := _line_of_key(path, words):
            return f"{shown_path(path)}:{line}"
    return ""


def _site_in(document: Document, catalogue: Catalogue, release: Release) -> int:
    """Return where the first deprecated setting of a YAML file is that a configuration may get, -1 without one."""
    for site in document.sites:
        named = catalogue.deprecated & site.own.keys()
        is_own = site.path[-1:] == (MODEL,) or not named <= _OF_OTHERS
        if named and is_own and not _is_refused(site.own, release):
            return site.span.start
    return -1


def _is_refused(own: Settings, release: Release) -> bool:
    try:
        return isinstance(capture_of(own, release, Reader.BRIDGE), Rejected)
    except ValueError:
        return False


def _line_of_key(path: str, names: Collection[str]) -> int:
    """Return the line of a data file with a key of some names, 0 if it has none; text in a value is no key."""
    form = _TOML if path.endswith(".toml") else _JSON if ".json" in path.rpartition("/")[2] else _TABLE
    pattern = re.compile(form.format("|".join(map(re.escape, names))), re.MULTILINE)
    return line_of_match(pattern, text_if_readable(path) or "")


def override_writer(paths: Iterable[str], catalogue: Catalogue) -> str:
    """Return the first override of a deprecated setting of a configuration, with its place; empty if there is none.

    Documentation runs nothing, and what tests override is evaluated with them.
    """
    run = [path for path in paths if not is_documentation(path) and not is_test(os.path.realpath(path))]
    for one in Overrides(catalogue, run).every():
        if one.keys[-1:] == (MODEL,) and one.setting in catalogue.deprecated:
            return str(one)
    return ""
