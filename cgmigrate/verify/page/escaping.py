"""Characters that a page cannot show, or that would turn its text around, replaced by signs."""

from __future__ import annotations

import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
"""What HTML forbids (controls, halves of surrogate pairs, noncharacters) and what would turn the text's direction."""


def visible(text: str) -> str:
    """The text with every character that a page cannot hold replaced by a sign: ESC becomes ␛."""
    return _UNSEEN.sub(lambda match: _picture(ord(match[0])), text)


def _picture(code: int) -> str:
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"
