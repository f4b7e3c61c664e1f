"""Unified diffs as git shows them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence

_CONTEXT = 3
"""Unchanged lines around a change."""


def unified_diff(path: str, before: str, after: str) -> str:
    """Return the change to one file as ``git diff`` shows it, empty when there is none.

    Lines end at ``\\n`` only, as for git: a carriage return is part of its line. ``git apply`` turns
    ``before`` into ``after`` with it, to the byte.
    """
    if before == after:
        return ""
    lines = _unified(_lines(before), _lines(after), _header_name("a/", path), _header_name("b/", path))
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


_Change = tuple[str, int, int, int, int]
"""What ``difflib`` calls an opcode: its kind, and the lines of both texts."""


def _unified(before: Sequence[str], after: Sequence[str], old: str, new: str) -> Iterator[str]:
    """Yield what ``difflib.unified_diff`` yields, which takes time quadratic in the number of changes."""
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, "", "")
    matcher.opcodes = list(_changes(before, after))  # type: ignore[attr-defined]
    yield f"--- {old}\n"
    yield f"+++ {new}\n"
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        (_, a, _, b, _), (_, _, a_end, _, b_end) = group[0], group[-1]
        yield f"@@ -{_range(a, a_end)} +{_range(b, b_end)} @@\n"
        for kind, a, a_end, b, b_end in group:
            if kind == "equal":
                yield from (" " + line for line in before[a:a_end])
                continue
            yield from ("-" + line for line in before[a:a_end])
            yield from ("+" + line for line in after[b:b_end])


def _changes(before: Sequence[str], after: Sequence[str]) -> Iterator[_Change]:
    """Yield the changes, in parts between lines that both texts have once."""
    equal: _Change = ("equal", 0, 0, 0, 0)
    for kind, a, a_end, b, b_end in _changes_of_parts(before, after):
        if kind == "equal":
            equal = ("equal", equal[1], a_end, equal[3], b_end)
            continue
        if equal[1] < equal[2]:
            yield equal
        yield kind, a, a_end, b, b_end
        equal = ("equal", a_end, a_end, b_end, b_end)
    if equal[1] < equal[2]:
        yield equal


def _changes_of_parts(before: Sequence[str], after: Sequence[str]) -> Iterator[_Change]:
    from difflib import SequenceMatcher

    a = b = 0
    for a_next, b_next in (*_common(before, after), (len(before), len(after))):
        part = SequenceMatcher(None, before[a:a_next], after[b:b_next])
        for kind, first, end, new, new_end in part.get_opcodes():
            yield kind, a + first, a + end, b + new, b + new_end
        if a_next < len(before):
            yield "equal", a_next, a_next + 1, b_next, b_next + 1
        a, b = a_next + 1, b_next + 1


def _common(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the places of lines that each text has once, in the order of both."""
    counts, others = Counter(before), Counter(after)
    places = {line: number for number, line in enumerate(after) if others[line] == 1}
    last = -1
    for number, line in enumerate(before):
        if counts[line] == 1 and places.get(line, -1) > last:
            last = places[line]
            yield number, last


def shared_ends(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Return how many lines two texts share where they begin, and how many of the others where they end."""
    least = min(len(before), len(after))
    start = next((at for at in range(least) if before[at] != after[at]), least)
    end = next((at for at in range(least - start) if before[-1 - at] != after[-1 - at]), least - start)
    return start, end


def _range(first: int, end: int) -> str:
    """Return lines as a diff counts them: the line before, of none."""
    if end - first == 1:
        return str(first + 1)
    return f"{first + (end > first)},{end - first}"


def _lines(text: str) -> list[str]:
    # str.splitlines would also split at \r, NEL and U+2028.
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _header_name(prefix: str, path: str) -> str:
    """Return a file name for a diff's header, quoted where git quotes it."""
    name = prefix + path.lstrip("/")
    from cgmigrate.text.escaping import in_line

    surrogate = any("\ud800" <= char <= "\udfff" for char in name)
    if in_line(name) == name and not surrogate and '"' not in name and "\\" not in name:
        # For git and patch, the name ends at the tab and not at the space.
        return name + "\t" if " " in name else name
    return '"' + "".join(map(_quoted_byte, os.fsencode(name))) + '"'


_LETTERS = dict(zip(b'\a\b\t\n\v\f\r"\\', 'abtnvfr"\\', strict=True))


def _quoted_byte(byte: int) -> str:
    """Return a byte of a name as git writes it between double quotes."""
    if byte in _LETTERS:
        return "\\" + _LETTERS[byte]
    return chr(byte) if 0x20 <= byte <= 0x7E else f"\\{byte:03o}"
