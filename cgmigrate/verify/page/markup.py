"""HTML elements whose text is escaped because there is no other way to put text into them."""

from __future__ import annotations

import html
import re

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\u202a-\u202e\u2066-\u2069]")
"""What HTML forbids (controls, halves of surrogate pairs, noncharacters) and what would turn the text's direction."""

_VOID = {"meta", "wbr"}


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def visible(text: str) -> str:
    """The text with every character that a page cannot hold replaced by a sign: ESC becomes ␛."""
    return _UNSEEN.sub(lambda match: _picture(ord(match[0])), text)


def _picture(code: int) -> str:
    return chr(0x2400 + code) if code < 0x20 else "\u2421" if code == 0x7F else "\ufffd"


def escaped(text: str) -> Markup:
    """The text as HTML, for content and for attributes in double quotes."""
    return text if isinstance(text, Markup) else Markup(html.escape(visible(text)))


def element(name: str, *children: str, **attributes: str | float | None) -> Markup:
    """An element. Children are text, escaped unless they are Markup; attributes that are None are omitted.

    ``class_`` stands for ``class``, ``aria_label`` for ``aria-label``.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{together(*children)}</{name}>")


def together(*parts: str) -> Markup:
    """The parts one after another, text escaped."""
    return Markup("".join(map(escaped, parts)))
