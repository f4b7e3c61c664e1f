"""Patterns as in ``.gitignore``, each as one regular expression that is matched in near-linear time.

A ``*`` in the middle of a name may take the first text that fits: what it takes more can never make the rest fit. So
each part between two stars is found once and never tried again, as the file that holds the pattern may be hostile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_LENGTH = 4096
"""A longer pattern can match no path that a system opens."""

_POSIX = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_NEVER = "(?!)"
_STAR = None
"""Between pieces of a name: any text without a slash."""


class PatternError(ValueError):
    """A pattern that can match nothing."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line. ``include`` is false for a line that takes back what earlier ones exclude (``!``)."""

    include: bool
    folders_only: bool
    by_name: bool
    """Whether the name alone is matched, in whatever folder it is."""
    expression: re.Pattern[str]

    def matches(self, path: str, folder: bool) -> bool:
        """Whether a path (without a slash at its end) is matched itself, not by a folder around it."""
        if self.folders_only and not folder:
            return False
        return self.expression.fullmatch(path.rpartition("/")[2] if self.by_name else path) is not None


def parse(line: str) -> Pattern | None:
    """The pattern of a line; None for an empty line or a comment. Raises PatternError."""
    text = _without_trailing_blanks(line)
    if not text or text.startswith("#"):
        return None
    include = not text.startswith("!")
    body = text if include else text[1:]
    folders_only = body.endswith("/")
    body = body.removesuffix("/")
    by_name = "/" not in body
    body = body.removeprefix("/")
    if not body or len(body) > MAX_LENGTH:
        raise PatternError(f"{line[:80]!r} matches no path")
    expression = _Translation().of_name(body) if by_name else _Translation().of_path(body)
    return Pattern(include, folders_only, by_name, re.compile(expression, re.DOTALL))


def valid(lines: Iterable[str]) -> Iterator[Pattern]:
    """The patterns of an ignore file; git passes over a line that means nothing."""
    for line in lines:
        try:
            pattern = parse(line)
        except PatternError:
            continue
        if pattern is not None:
            yield pattern


def _without_trailing_blanks(line: str) -> str:
    text = line.rstrip(" ")
    slashes = len(text) - len(text.rstrip("\\"))
    # An escaped blank at the end is part of the name.
    return text + " " if slashes % 2 and len(text) < len(line) else text


class _Translation:
    """From one pattern to a regular expression; counts the groups that it needs."""

    def __init__(self) -> None:
        self._groups = 0

    def of_path(self, body: str) -> str:
        """A pattern with slashes: names, and ``**`` for any number of folders."""
        parts: list[list[str]] = [[]]
        for name in body.split("/"):
            if len(name) > 1 and not name.strip("*"):
                parts += [[]] if len(parts) == 1 or parts[-1] else []
            else:
                parts[-1].append(name)
        first, *others = parts
        expression = "/".join(map(self.of_name, first))
        if not others:
            return expression
        expression += "/" if first else ""
        for part in others[:-1]:
            expression += self._once("(?:[^/]+/)*?" + "".join(self.of_name(name) + "/" for name in part))
        if not others[-1]:
            return expression + ".+"
        return expression + "(?:[^/]+/)*?" + "/".join(map(self.of_name, others[-1]))

    def of_name(self, name: str) -> str:
        """One name, without a slash."""
        pieces = _pieces(name)
        if pieces is None:
            return _NEVER
        parts: list[list[str]] = [[]]
        for piece in pieces:
            if piece is _STAR:
                parts.append([])
            else:
                parts[-1].append(piece)
        first, *others = ("".join(part) for part in parts)
        if not others:
            return first
        middle = [self._once(f"[^/]*?{part}") for part in others[:-1] if part]
        return f"{first}{''.join(middle)}[^/]*{others[-1]}"

    def _once(self, inner: str) -> str:
        """An expression that is matched once and never tried again (an atomic group, which Python has since 3.11)."""
        self._groups += 1
        name = f"g{self._groups}"
        return f"(?=(?P<{name}>{inner}))(?P={name})"


def _pieces(name: str) -> list[str | None] | None:
    """The expressions of the characters of a name, `_STAR` for a star; None where it can match nothing."""
    found: list[str | None] = []
    at = 0
    while at < len(name):
        char = name[at]
        at += 1
        match char:
            case "*":
                found += [] if found and found[-1] is _STAR else [_STAR]
            case "?":
                found.append("[^/]")
            case "[":
                read = _class(name, at)
                if read is None:
                    return None
                piece, at = read
                found.append(piece)
            case "\\":
                if at == len(name):
                    return None
                found.append(re.escape(name[at]))
                at += 1
            case _:
                found.append(re.escape(char))
    return found


def _class(name: str, at: int) -> tuple[str, int] | None:
    """A class of characters (``[a-z]``), and where it ends; None where it is not closed."""
    negated = name[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while name[at : at + 1] != "]" or first:
        first = False
        posix = re.compile(r"\[:([a-z]*):\]").match(name, at)
        if posix:
            if posix[1] not in _POSIX:
                return None
            items.append(_POSIX[posix[1]])
            at = posix.end()
            continue
        low = _member(name, at)
        if low is None:
            return None
        char, at = low
        high = _member(name, at + 1) if name[at : at + 1] == "-" and name[at + 1 : at + 2] != "]" else None
        if high is None:
            items.append(re.escape(char))
            continue
        last, at = high
        if char <= last:
            items.append(f"{re.escape(char)}-{re.escape(last)}")
    inside = "".join(items)
    if not inside:
        return ("[^/]" if negated else _NEVER), at + 1
    return (f"(?!/)[^{inside}]" if negated else f"(?!/)[{inside}]"), at + 1


def _member(name: str, at: int) -> tuple[str, int] | None:
    """One character of a class, and where the next one begins; None at the end of the name."""
    if name[at : at + 1] == "\\":
        at += 1
    return (name[at], at + 1) if at < len(name) else None
