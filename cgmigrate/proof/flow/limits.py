"""Limits of the work of an evaluation: values that are too large are not made, and not followed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import chain

MOST_PARTS = 10_000
"""The parts that a collection has at most, with all that is in them."""
MOST_ITEMS = 256
"""The items of a range that a loop takes at most."""
_MOST_BITS = 4096
_LONGEST = 100_000
_LONGEST_SHOWN = 2000
_COLLECTIONS = (dict, list, tuple, set, frozenset)
_WIDTH = re.compile(r"\d{4}|\*")
"""A width in the format of a text that makes a long one."""


class NotFollowedError(Exception):
    """Code cannot be followed."""


class NotComputedError(Exception):
    """What decides a value is not known."""


def check_size(value: object) -> None:
    """Raise NotFollowedError for a collection with too many parts, also for one that contains itself."""
    if not value or not isinstance(value, _COLLECTIONS):
        return
    waiting, left = [value], MOST_PARTS - 1
    while waiting:
        one = waiting.pop()
        parts: Iterable[object] = chain(one, one.values()) if isinstance(one, dict) else one
        left -= 2 * len(one) if isinstance(one, dict) else len(one)
        if left < 0:
            raise NotFollowedError("it makes a value that is too large")
        waiting += [part for part in parts if isinstance(part, _COLLECTIONS)]


def is_large(value: object) -> bool:
    """Return whether a number or a text is too large to compute with it."""
    if isinstance(value, (str, bytes)):
        return len(value) > _LONGEST
    return isinstance(value, int) and value.bit_length() > _MOST_BITS


def makes_large(operation: str, left: object, right: object) -> bool:
    """Return whether an operation (the name of a node of Python) makes a number, a text or a list that is too large."""
    if operation == "Pow" and isinstance(left, int) and isinstance(right, int):
        return left.bit_length() * abs(right) > _MOST_BITS
    if operation == "Mod" and isinstance(left, (str, bytes)):
        return has_width(left)
    if operation != "Mult":
        return False
    for one, times in ((left, right), (right, left)):
        if isinstance(one, (str, bytes, list, tuple)) and isinstance(times, int):
            return len(one) * times > (_LONGEST if isinstance(one, (str, bytes)) else MOST_PARTS)
    return False


def has_width(text: str | bytes) -> bool:
    """Return whether a format makes a long text of any value."""
    return _WIDTH.search(text if isinstance(text, str) else text.decode("latin-1")) is not None


def short(text: str) -> str:
    """Return a text for the key of a value: a digest of a long one, which is the same for the same text only."""
    return text if len(text) <= _LONGEST_SHOWN else f"#{hashlib.sha256(text.encode(errors='replace')).hexdigest()}"
