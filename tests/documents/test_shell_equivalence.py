"""Equality of scripts apart from some flags and comments."""

from __future__ import annotations

from cgmigrate.documents.shell.equivalence import same_apart_from_flags
from cgmigrate.documents.shell.tree import parse
from cgmigrate.text.spans import Span
from tests.support.tables import from_table

FLAG = "--cuda-graph-scope full"
SCRIPT = "if true; then\n  python train.py {} \\\n    --lr '1 2'  # one\nfi\n"


def without(text: str) -> list[Span]:
    at = text.find(FLAG)
    return [Span(at, at + len(FLAG))] if at >= 0 else []


@from_table
def test_only_flags_and_comments_may_differ(after: str, is_same: bool) -> None:
    before = SCRIPT.format(FLAG)
    assert same_apart_from_flags(parse(before), without(before), parse(after), without(after)) is is_same
