"""Texts that surely have mappings at some keys, seen without parsing them, which takes ten times as long."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z_0-9-]*")


def has_plain_mappings(data: bytes, keys: Collection[str]) -> bool:
    """Return whether each place of a YAML text that has one of the keys is a mapping in block style.

    False if that is not sure.
    """
    if b"\\" in data or not all(map(_PLAIN.fullmatch, keys)):
        # A key may be written with escapes.
        return False
    return all(len(_word(key).findall(data)) == len(_block_of(key).findall(data)) for key in keys)


@lru_cache(maxsize=256)
def _word(key: str) -> re.Pattern[bytes]:
    return re.compile(rb"(?<![A-Za-z_0-9-])%b(?![A-Za-z_0-9-])" % re.escape(key.encode()))


@lru_cache(maxsize=256)
def _block_of(key: str) -> re.Pattern[bytes]:
    """Return the pattern of a key with a mapping: the next line with more than a comment is one of its keys."""
    # Other characters in a comment may be ends of lines for YAML.
    nothing = rb"[ ]*(?:#[ -~]*)?\r?\n"
    return re.compile(
        rb"^([ ]*)%b:(?:%b)+(?=\1[ ]+[A-Za-z_]\w*:[ \r\n])" % (re.escape(key.encode()), nothing), re.MULTILINE
    )
