"""A fix in short: what it writes and what it deletes, each as the text reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from cgmigrate.documents.changes import Add, Change, Remove, Rename, Revalue
from cgmigrate.documents.sites import Document, Site, Use

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
                after = quotes.get(new) or document.spelled(site.index, new, value)
                parts += _rewritten(_text_of(document, written), after)
            case Revalue(name=name, value=value):
                after = quotes.get(name) or document.spelled(site.index, name, value)
                parts += _rewritten(_text_of(document, own[name]), after)
            case Add(name=name, value=value, after=beside) if beside == written.setting:
                parts.append(f"add {quoted(quotes.get(name) or document.spelled(site.index, name, value))}")
            case Remove(name=name) if name == written.setting:
                deleted.append(f"delete {_shortened(_text_of(document, written))}")
    return ", ".join([*parts, *deleted])


def _text_of(document: Document, written: Use) -> str:
    return document.text[written.span.start : written.span.end]


def _rewritten(before: str, after: str) -> list[str]:
    """Return what is written and deleted when one text becomes the other; of several lines those that change."""
    old, new = _lines(before), _lines(after)
    if not _by_lines(after):
        return [f"write {quoted(after)}"]
    # The first line holds the name, which is written anew.
    written = [line for line in new if line not in old]
    deleted = [line for line in old[1:] if line not in new]
    return [f"write {quoted(line)}" for line in written] + [f"delete {quoted(line)}" for line in deleted]


def _shortened(text: str) -> str:
    """Return a deleted text for display; of several lines, the first."""
    return quoted(_lines(text)[0] + " …") if _by_lines(text) else quoted(text)


def _by_lines(text: str) -> bool:
    """Return whether line breaks mean something: a list of YAML in block style, or a comment inside brackets."""
    lines = _lines(text)
    return len(lines) > 1 and (lines[0].endswith(":") or any("#" in line for line in lines))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines() if line.strip()]


def quoted(text: str) -> str:
    """Return a text in backticks, in one line."""
    shown = " ".join(text.split())
    return f"`{shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + '…'}`"
