"""The YAML files that command lines, code, tests and documentation name: a run may start with each of them.

Files are searched by text. The name of a file decides, not its folder, which a program may compute.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

from cgmigrate.documents.python.source import lines_with
from cgmigrate.linking.file_references import has_suffix
from cgmigrate.text.files import read_bytes

if TYPE_CHECKING:
    from cgmigrate.linking.yaml_files import YamlFiles

WORDS = (".yaml", ".yml", "config-name", "config_name", "--config")
"""Every file that names a configuration has one of these words."""
_MOST_BYTES = 1024 * 1024
_NAME = re.compile(
    r"(?<![\w.-])([\w.-]+)\.ya?ml\b|config[-_]name[\"']?[= ,:]+[\"']?([\w./-]+)|--config[= ]+[\"']?([\w./-]+)"
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#[^\n]*")


@dataclass
class StartedFiles:
    """The names, without suffix, that some files have of YAML files; they are read once."""

    paths: Iterable[str]
    """The files to search."""
    files: YamlFiles

    def has(self, path: str) -> bool:
        """Return whether a file is named."""
        return os.path.basename(path).rpartition(".")[0] in self._names

    @cached_property
    def _names(self) -> frozenset[str]:
        return frozenset(name for path in sorted(set(self.paths)) for name in self._names_in(path))

    def _names_in(self, path: str) -> Iterator[str]:
        try:
            data = read_bytes(path)
        except OSError:
            return
        if len(data) > _MOST_BYTES or not any(word.encode() in data for word in WORDS):
            return
        text = data.decode("utf-8", "replace")
        if not has_suffix(path):
            yield from _named(text)
            return
        # A file that builds on another does not start it.
        references = self.files.references(path)
        words = [word for entry in references.defaults for word in entry.names]
        words += [word for _, named in references.others for word in named]
        yield from Counter(_named(_COMMENT.sub("", text))) - Counter(_named("\n".join(words)))


def _named(text: str) -> Iterator[str]:
    """Yield the names, without suffix, of the configurations that a text names."""
    for match in chain.from_iterable(_NAME.finditer(line) for _, line in lines_with(text, WORDS)):
        name = os.path.basename(next(filter(None, match.groups()), ""))
        yield name.rpartition(".")[0] if has_suffix(name) else name
