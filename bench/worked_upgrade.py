"""Compares `cgmigrate upgrade` with an upgrade that somebody made by hand.

``python bench/worked_upgrade.py CLONE COMMIT FROM TO [PATH ...]`` exports the parent of a commit. It prints of the
lines of YAML whose key the commit removed: how many `upgrade` reports, how many `--fix --unsafe-fixes` rewrites, and
the keys of the others. Lines of Python that it removed are printed with what is reported there, to be read. A branch
is ``BASE..COMMIT``; with paths, only these are exported.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path

_KEY = re.compile(r"[-+]\s*-?\s*([\w.]+)\s*:")
_PLACE = re.compile(r"([^:]+):(\d+):\d+: (\S+)")
Line = tuple[str, int]


def main() -> None:
    """Print the comparison."""
    clone, commits, source, target = Path(sys.argv[1]), *sys.argv[2:5]
    base, _, commit = commits.rpartition("..")
    base = base or f"{commit}^"
    with tempfile.TemporaryDirectory() as folder:
        _export(clone, base, sys.argv[5:], Path(folder))
        releases = ("--from", source, "--to", target, ".")
        report = _run(sys.executable, "-m", "cgmigrate", "upgrade", "--output-format", "concise", *releases, at=folder)
        places = {(match[1], int(match[2])): match[3] for match in map(_PLACE.match, report.splitlines()) if match}
        diff = _run("git", "-C", str(clone), "diff", "-U0", base, commit, "--", *sys.argv[5:])
        removed = dict(_removed_keys(diff))
        old = {path: _lines(Path(folder) / path) for path, _ in removed}
        _run(sys.executable, "-m", "cgmigrate", "upgrade", "--fix", "--unsafe-fixes", *releases, at=folder)
        changed = {(path, line) for path in old for line in _changed(old[path], _lines(Path(folder) / path))}
    listed, rewritten = removed.keys() & places.keys(), removed.keys() & changed
    print(f"removed {len(removed)}, listed {len(listed)}, rewritten {len(rewritten)}")
    print("silent:", dict(Counter(key for line, key in removed.items() if line not in places)))
    for (path, line), text in _removed_lines(diff, "py"):
        print(f"{places.get((path, line), ''):8}{path}:{line}: {text[1:].strip()}")


def _export(clone: Path, commit: str, paths: list[str], folder: Path) -> None:
    archive = subprocess.run(["git", "-C", str(clone), "archive", commit, *paths], stdout=subprocess.PIPE, check=True)
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)


def _run(*words: str, at: str = ".") -> str:
    return subprocess.run(words, cwd=at, stdout=subprocess.PIPE, check=False).stdout.decode("utf-8", "replace")


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n") if path.is_file() else []


def _changed(before: list[str], after: list[str]) -> Iterator[int]:
    for kind, start, end, _, _ in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        if kind in ("replace", "delete"):
            yield from range(start + 1, end + 1)


def _removed_keys(diff: str) -> Iterator[tuple[Line, str]]:
    """Yield the lines of YAML files whose key the new file has nowhere that changed, each with the key."""
    for part in re.split(r"^diff --git ", diff, flags=re.MULTILINE):
        added = {match[1] for match in map(_KEY.match, part.splitlines()) if match and match.string[0] == "+"}
        for line, text in _removed_lines(part, "ya?ml"):
            if (key := _KEY.match(text)) and key[1] not in added:
                yield line, key[1]


def _removed_lines(diff: str, suffix: str) -> Iterator[tuple[Line, str]]:
    """Yield the lines that a diff removes from files with a suffix, each with its text."""
    path, number = "", 0
    for line in diff.splitlines():
        if header := re.match(r"--- (?:a/(.+)|/dev/null)$", line):
            path = header[1] or ""
        elif hunk := re.match(r"@@ -(\d+)", line):
            number = int(hunk[1])
        elif line.startswith("-"):
            if re.search(rf"\.{suffix}$", path):
                yield (path, number), line
            number += 1


if __name__ == "__main__":
    main()
