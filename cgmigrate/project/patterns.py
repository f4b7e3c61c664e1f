"""Patterns as in ``.gitignore``, each as one regular expression that is matched in near-linear time.

A ``*`` in the middle of a name matches the shortest text possible: a longer one never makes the rest match. So each
part between two stars is searched once, without backtracking, since the file with the pattern may be hostile.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

MAX_LENGTH = 4096
"""Longer patterns match no path that a system can open."""

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
_TOKEN = re.compile(
    r"(?P<star>\*+)|\?|\\(?P<escaped>.)"
    r"|\[(?P<not>[!^]?)(?P<members>\]?(?:\\.|\[:[a-z]*:\]|(?!\[:[a-z]*:\])[^]\\])*)\]|(?P<char>.)",
    re.DOTALL,
)
"""A character of a name, an escaped one, a class of characters (``[a-z]``), or stars."""
_MEMBER = re.compile(r"\[:([a-z]*):\]|(\\.|[^\\])(?:-(\\.|[^\\]))?", re.DOTALL)


class PatternError(ValueError):
    """A pattern that can match nothing."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """One line. ``include`` is false for a line (``!``) that includes again what earlier lines exclude."""

    include: bool
    folders_only: bool
    by_name: bool
    """Whether only the last name of a path is matched, in any folder."""
    expression: re.Pattern[str]

    def matches(self, path: str, folder: bool) -> bool:
        """Return whether the pattern matches a path (without a slash at its end), not a folder that contains it."""
        if self.folders_only and not folder:
            return False
        return self.expression.fullmatch(path.rpartition("/")[2] if self.by_name else path) is not None


def parse(line: str) -> Pattern | None:
    """Return the pattern of a line; None for an empty line or a comment. Raises PatternError."""
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
    """Yield the patterns of an ignore file; like git, skip lines that match nothing."""
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
    """The translation of one pattern into a regular expression; counts the groups that it needs."""

    def __init__(self) -> None:
        self._groups = 0

    def of_path(self, body: str) -> str:
        """Return the expression of a pattern with slashes; ``**`` is any number of folders."""
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
        """Return the expression of one name, without a slash."""
        parts = [""]
        for token in _TOKEN.finditer(name):
            piece = _of_token(token)
            if piece is None:
                return _NEVER
            if token["star"]:
                parts.append("")
            else:
                parts[-1] += piece
        first, *others = parts
        if not others:
            return first
        middle = [self._once(f"[^/]*?{part}") for part in others[:-1] if part]
        return f"{first}{''.join(middle)}[^/]*{others[-1]}"

    def _once(self, inner: str) -> str:
        """Return an expression that does not backtrack (an atomic group; Python 3.10 has no syntax for it)."""
        self._groups += 1
        name = f"g{self._groups}"
        return f"(?=(?P<{name}>{inner}))(?P={name})"


def _of_token(token: re.Match[str]) -> str | None:
    """Return the expression of a character of a name; None for a backslash or bracket that nothing ends."""
    if token["char"]:
        return None if token["char"] in "[\\" else re.escape(token["char"])
    if token["members"] is None:
        return re.escape(token["escaped"]) if token["escaped"] else "[^/]"
    items = []
    for kind, low, high in _MEMBER.findall(token["members"]):
        if kind and kind not in _POSIX:
            return None
        # Git tries the first character of a range by itself, too.
        end = f"-{re.escape(high[-1])}" if high and low[-1] <= high[-1] else ""
        items.append(_POSIX[kind] if kind else re.escape(low[-1]) + end)
    return f"(?!/)[{'^' if token['not'] else ''}{''.join(items)}]" if items else None
