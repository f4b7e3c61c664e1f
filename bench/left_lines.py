"""Judge every line of a project that still names a deprecated setting after a fix, by a committed list.

    python bench/left_lines.py TREE_BEFORE TREE_AFTER

TREE_BEFORE is a checkout of Megatron-Bridge at 067f987d, TREE_AFTER a copy of it on which `cgmigrate fix` ran.
The list has four judgements: a line must stay, is a matter of issue J (documentation, comments, flags in tables), is to
be decided by a person since no rewriting keeps what the project does, or must move. It also has lines that may come
when others move. A line counts by its path and its text without
indentation, so a list holds when lines above it change.
The exit status is 1 if a line that must move is left, a line that must stay has changed, a line is not judged, or
TREE_BEFORE lacks a line of the list.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).parent / "left_lines/megatron-bridge-067f987d.txt"
JUDGEMENTS = ("must stay", "issue J", "to decide", "must move", "may come")
STAY, LATER, DECIDE, MOVE, COME = JUDGEMENTS
COLUMNS = 120
"""How much of a line the list holds."""
LEGACY = re.compile(
    r"(?i:(?:enable|external)[_-]cuda[_-]graph|(?<!inference[_-])cuda[_-]graph[_-]scope)"
    r"|\bCudaGraphScope\b"
    r"|cuda_graph_modules\W{1,6}(?:full|full_iteration|full_iteration_inference)\b"
)
"""An old name, also inside another one, and an old value under the new name."""
_HEADING = re.compile(rf"({'|'.join(JUDGEMENTS)}): \S")
_COUNTED = re.compile(r" {4}(\d+)  (.+)")


@dataclass(frozen=True)
class Line:
    """A line that names a deprecated setting."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


Lines = Counter[Line]


def legacy_lines(tree: Path) -> Lines:
    """Return the lines of all text files of a tree that name a deprecated setting."""
    result = Lines()
    for path in _files(tree):
        try:
            text = path.read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            continue
        name = path.relative_to(tree).as_posix()
        result.update(Line(name, _shown(line)) for line in text.splitlines() if LEGACY.search(line))
    return result


def _files(tree: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(tree):
        folders[:] = [name for name in folders if name != ".git"]
        yield from (path for name in names if not (path := Path(folder, name)).is_symlink())


def _shown(line: str) -> str:
    return line.strip()[:COLUMNS].rstrip()


def judged_lines(text: str) -> dict[str, Lines]:
    """Return the lines of a list by their judgements. Raises ValueError."""
    result = {judgement: Lines() for judgement in JUDGEMENTS}
    judgement = path = ""
    for number, line in enumerate(text.splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        if heading := _HEADING.match(line):
            judgement, path = heading[1], ""
        elif judgement and path and (counted := _COUNTED.fullmatch(line)):
            result[judgement][Line(path, counted[2])] += int(counted[1])
        elif judgement and re.match(r" {2}\S", line):
            path = line.strip()
        else:
            raise ValueError(f"line {number} of the list is neither a judgement, a path nor a counted line: {line}")
    return result


def problems_of(judged: dict[str, Lines], before: Lines, after: Lines) -> Iterator[tuple[str, Lines]]:
    """Yield what is wrong and where. Equal lines of one file count for `must stay` first."""
    may_be_left = judged[STAY] + judged[LATER] + judged[DECIDE]
    yield "the tree before lacks a line of the list", may_be_left + judged[MOVE] - before
    yield "must stay and has changed", judged[STAY] - after
    rest = after - may_be_left
    yield "must move and is left", rest & judged[MOVE]
    yield "is not judged", rest - judged[MOVE] - judged[COME]


def summary(judged: dict[str, Lines], after: Lines) -> str:
    """Return how many lines are left, and how many of each judgement."""
    counts = (f"{(after & lines).total()} {judgement}" for judgement, lines in judged.items())
    return f"{after.total()} lines name a deprecated setting: {', '.join(counts)}"


def _rows(what: str, lines: Lines) -> Iterable[str]:
    return (f"{what}: {line}" + (f" ({count} times)" if count > 1 else "") for line, count in lines.items())


def main() -> int:
    """Print the lines that are wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("before", type=Path, metavar="TREE_BEFORE")
    parser.add_argument("after", type=Path, metavar="TREE_AFTER")
    options = parser.parse_args()
    judged = judged_lines(LIST.read_text(encoding="utf-8"))
    before, after = legacy_lines(options.before), legacy_lines(options.after)
    rows = [row for what, lines in problems_of(judged, before, after) for row in _rows(what, lines)]
    print(*rows, summary(judged, after), sep="\n")
    return 1 if rows else 0


if __name__ == "__main__":
    sys.exit(main())
