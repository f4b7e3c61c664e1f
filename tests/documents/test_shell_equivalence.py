"""Equality of scripts apart from some flags and comments."""

from __future__ import annotations

import pytest

from cgmigrate.documents.shell.equivalence import same_apart_from_flags
from cgmigrate.documents.shell.tree import parse
from cgmigrate.text.spans import Span

FLAG = "--cuda-graph-scope full"
SCRIPT = "if true; then\n  python train.py {} \\\n    --lr '1 2'  # one\nfi\n"


def without(text: str) -> list[Span]:
    at = text.find(FLAG)
    return [Span(at, at + len(FLAG))] if at >= 0 else []


@pytest.mark.parametrize(
    ("after", "is_same"),
    [
        (SCRIPT.format(FLAG), True),
        (SCRIPT.format(""), True),
        (SCRIPT.format(FLAG).replace("# one", "# two"), True),
        (SCRIPT.format(FLAG).replace(" \\\n   ", ""), True),
        (SCRIPT.format(FLAG).replace("1 2", "12"), False),
        (SCRIPT.format(FLAG).replace("'1 2'", "1 2"), False),
        (SCRIPT.format(FLAG).replace("--lr", "--rl"), False),
        (SCRIPT.format(FLAG).replace("train.py", ""), False),
        (SCRIPT.format(FLAG) + "true\n", False),
    ],
)
def test_only_flags_and_comments_may_differ(after: str, is_same: bool) -> None:
    before = SCRIPT.format(FLAG)
    assert same_apart_from_flags(parse(before), without(before), parse(after), without(after)) is is_same
