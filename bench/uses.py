"""Count the uses of settings in projects, by role, and compare them with a search for the names.

    python bench/uses.py FOLDER ...

A name that is part of a longer one is no use; every other must be a use or have a reason why it is none.
"""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from pathlib import Path

from cgmigrate.documents.syntax import document_of
from cgmigrate.documents.uses import appearances_in
from cgmigrate.megatron.catalogue import load
from cgmigrate.project.discovery import Discovery
from cgmigrate.project.inputs import InputFile
from cgmigrate.text.encoding import decode


def plain_pattern() -> re.Pattern[str]:
    """Return a pattern for every name and flag of a setting, wherever it is."""
    settings = load().settings.values()
    words = {word for one in settings for word in (one.name, one.flag, one.no_flag) if word}
    return re.compile("|".join(sorted(map(re.escape, words), key=len, reverse=True)))


def count(folder: str) -> None:
    """Print the uses of one project."""
    pattern, counts, files, seconds = plain_pattern(), Counter[str](), 0, 0.0
    for item in Discovery([folder]):
        if not isinstance(item, InputFile) or not item.syntax.is_read:
            continue
        text = decode(item.data)[0]
        document = document_of(item.path, text, item.syntax, load())
        started = time.process_time()
        appearances = document.appearances
        seconds += time.process_time() - started
        files += 1
        counts.update(str(use.role) for use in appearances.uses)
        counts.update(f"no use: {reason.value}" for _, reason in appearances.others)
        named = {name.span.start for name in appearances_in(text, load())}
        assert len(named) == len(appearances.uses) + len(appearances.others)
        for match in pattern.finditer(text):
            start, end = match.span()
            counts["matches of the search"] += 1
            if start in named or start - 2 in named:
                continue
            if re.search(r"\w", text[end : end + 1] + text[max(0, start - 1) : start]):
                counts["matches that are part of a longer name"] += 1
                continue
            line = text.count("\n", 0, start) + 1
            counts["NOT COVERED"] += 1
            print(f"not covered: {item.path}:{line}: {match.group()}", file=sys.stderr)
    print(f"{folder}: {files} files, {seconds:.2f} s for the uses")
    for name, number in sorted(counts.items()):
        print(f"  {number:6} {name}")


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        count(str(Path(argument)))
