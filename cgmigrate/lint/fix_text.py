"""A fix in short: what it writes and what it deletes, each as the text reads."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from cgmigrate.documents.changes import Add, Change, Remove, Rename, Revalue
from cgmigrate.documents.sites import Document, Site, Use
from cgmigrate.megatron.settings import Undecided

LONGEST = 160
"""Characters of a quoted text that are shown."""


def fix_text(document: Document, site: Site, written: Use, planned: Iterable[Change], quotes: Mapping[str, str]) -> str:
    """Return the part of a fix that concerns one setting; ``quotes`` is how the site's settings read afterwards."""
    own = {one.setting: one for one in site.written}
    parts: list[str] = []
    deleted: list[str] = []
    for change in planned:
        match change:
            case Rename(old=old, new=new, value=value) if old == written.setting:
                parts += _rewritten(
                    _text_of(document, written), quotes.get(new, ""), document, (site.index, new, value)
                )
            case Revalue(name=name, value=value):
                spelled = (site.index, name, value)
                parts += _rewritten(_text_of(document, own[name]), quotes.get(name, ""), document, spelled)
            case Add(name=name, value=value, after=beside) if beside == written.setting:
                parts.append(f"add {quoted(quotes.get(name) or document.spelled(site.index, name, value))}")
            case Remove(name=name) if name == written.setting:
                deleted.append(f"delete {_shortened(_text_of(document, written))}")
    return ", ".join([*parts, *deleted])


def _text_of(document: Document, written: Use) -> str:
    return document.text[written.span.start : written.span.end]


def _rewritten(before: str, after: str, document: Document, spelled: tuple[int, str, object]) -> list[str]:
    """Return what is written and deleted when one text becomes the other.

    A list of YAML in block style is shown as it would be written in one line; ``spelled`` are its site, its name and
    its value. Of brackets with comments, and where the value is not known, the lines that change are shown.
    """
    if not after or (_in_block_style(after) and not isinstance(spelled[2], Undecided)):
        return [f"write {quoted(document.spelled(*spelled))}"]
    if not _by_lines(after):
        return [f"write {quoted(after)}"]
    old, new = _lines(before), _lines(after)
    # The first line holds the name, which is written anew.
    written = [line for line in new if line not in old]
    deleted = [line for line in old[1:] if line not in new]
    return [f"write {quoted(line)}" for line in written] + [f"delete {quoted(line)}" for line in deleted]


def _shortened(text: str) -> str:
    """Return a deleted text for display; of several lines, the first."""
    if not _by_lines(text):
        return quoted(text)
    first = _lines(text)[0]
    return quoted(f"{first.partition(' #')[0] if _in_block_style(text) else first} …")


def _by_lines(text: str) -> bool:
    """Return whether line breaks mean something: a list of YAML in block style, or a comment inside brackets."""
    lines = _lines(text)
    return _in_block_style(text) or (len(lines) > 1 and any("#" in line for line in lines))


def _in_block_style(text: str) -> bool:
    """Return whether the value begins below the name, as a list of YAML in block style does."""
    lines = _lines(text)
    return len(lines) > 1 and re.fullmatch(r"[^\[({]*:(\s+#.*)?", lines[0]) is not None


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def quoted(text: str) -> str:
    """Return a text in backticks, in one line."""
    shown = " ".join(text.split())
    return f"`{shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + '…'}`"
