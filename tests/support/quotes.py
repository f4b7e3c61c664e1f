"""The text of a fix quotes what the fix writes and deletes, as the file has it after or before it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _below_each_other(quote: str) -> str:
    """A list of YAML in one line, as its text in block style reads with single spaces."""
    name, _, items = quote.rstrip("]").partition(": [")
    return " - ".join([f"{name}:", *items.split(", ")])


def _quotes(fix: str, verbs: str) -> list[str]:
    return re.findall(rf"(?:{verbs}) `([^`]*)`", fix)


def _edited(text: str, edits: Iterable[dict[str, Any]]) -> str:
    starts = [0, *(end.end() for end in re.finditer("\r\n?|\n", text))]
    for edit in sorted(edits, key=lambda edit: (edit["line"], edit["column"]), reverse=True):
        start, end = (starts[edit[f"{at}line"] - 1] + edit[f"{at}column"] - 1 for at in ("", "end_"))
        text = text[:start] + edit["text"] + text[end:]
    return text


def assert_quoted(findings: Iterable[dict[str, Any]], folder: Path) -> int:
    """Check the quotes of all fixes in JSON output, and return their number."""
    seen = 0
    for one in findings:
        if not one["fix"] or not one["fix"]["edits"]:
            continue
        before = (folder / one["path"]).read_bytes().decode("utf-8-sig")
        text, described = _edited(before, one["fix"]["edits"]), one["fix"]["description"]
        after, items = _collapsed(text), _collapsed(re.sub(r"(?m)\s#.*$", "", text))
        for quote in _quotes(described, "write|add"):
            seen += 1
            assert quote.rstrip("…") in after or _below_each_other(quote) in items, one
        for quote in _quotes(described, "delete"):
            seen += 1
            assert quote.rstrip("… ") in _collapsed(before), one
    return seen
