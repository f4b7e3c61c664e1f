"""Unified diffs as git shows them."""

from __future__ import annotations

import os


def unified_diff(path: str, before: str, after: str) -> str:
    """Return the change to one file as ``git diff`` shows it, empty when there is none.

    Lines end at ``\\n`` only, as for git: a carriage return is part of its line. ``git apply`` turns
    ``before`` into ``after`` with it, to the byte.
    """
    if before == after:
        return ""
    import difflib

    lines = difflib.unified_diff(_lines(before), _lines(after), _header_name("a/", path), _header_name("b/", path))
    return "".join(line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines)


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
