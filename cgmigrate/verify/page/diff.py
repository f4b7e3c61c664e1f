"""A configuration diff, line by line, with the look of each."""

from __future__ import annotations


def diff_lines(diff: str) -> tuple[tuple[str, str], ...]:
    """The lines with their class of the style sheet (empty for context); empty where the diff is."""
    if not diff.strip():
        return ()
    # Only line feeds end a line of a diff; splitlines would also break at characters inside a value.
    return tuple((f"{line}\n", _look(line)) for line in diff.removesuffix("\n").split("\n"))


def _look(line: str) -> str:
    if line.startswith(("+++ ", "--- ")):
        return "file"
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "")
