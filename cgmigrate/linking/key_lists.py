"""Lists of keys at the top of files: code is followed only if no other file may use its lists in another way."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from cgmigrate.documents.python.key_copies import KeyCopier
from cgmigrate.linking.key_code import KeyCode
from cgmigrate.linking.key_readers import ProjectCode
from cgmigrate.text.files import MAX_GENERATED, read_bytes


def own_copiers(code: KeyCode, project: ProjectCode) -> list[KeyCopier]:
    """Return what copies keys by the code of a file, without lists that another file imports."""
    constants = {of_list.constant for one in code.copiers for of_list in one.lists} - {""}
    imported = {name for name in constants if any(_importers(name, code.path, project))}
    return [one for one in code.copiers if not any(of_list.constant in imported for of_list in one.lists)]


def _importers(name: str, path: str, project: ProjectCode) -> Iterator[bytes]:
    """Yield the Python files other than ``path`` that may import a name."""
    from cgmigrate.project.checkout import tracked_files

    tracked = tracked_files(project.top, [name], "*.py") if project.top else ()
    untracked = (other for other, data in project.texts.items() if name.encode() in data)
    word = re.escape(name.encode())
    pattern = re.compile(rb"[.]%b\b|^\s*(?:from\b[^#]*)?import\b[^#]*\b%b\b|import [*]" % (word, word), re.MULTILINE)
    for other in dict.fromkeys(map(os.path.realpath, (*tracked, *untracked))):
        if other != os.path.realpath(path):
            try:
                data = project.texts.get(other) or read_bytes(other, MAX_GENERATED)
            except OSError:
                data = b"from unreadable import *"
            if pattern.search(data):
                yield data
