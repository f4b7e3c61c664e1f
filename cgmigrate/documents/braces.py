"""Words that a shell expands to several flags: ``--cuda-graph-{impl=local,scope=full}``. They are reported only."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.documents.command_line_advice import by_hand
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.megatron.catalogue import FLAG_BEGINS, Catalogue
from cgmigrate.text.spans import Span

_BRACES = re.compile(rf"{FLAG_BEGINS}--([\w-]*)\{{([\w=.-]*(?:,[\w=.-]*)+)\}}([\w-]*)", re.ASCII)
_BEFORE_LIST = re.compile(r"\{(?<=[\w-]\{)", re.ASCII)
"""Matches the brace of such a word; it is far cheaper than the pattern, and most scripts have none."""


def brace_problems(text: str, catalogue: Catalogue) -> Iterator[Problem]:
    """Yield the words with braces that a shell expands to deprecated flags; ``key_in_braces`` reads them again."""
    if not _BEFORE_LIST.search(text):
        return
    for match in _BRACES.finditer(text):
        if key := key_in_braces(match.group(), catalogue):
            message = f"`{match.group()}` expands to several flags in a shell, `{key}` among them; it is not rewritten"
            advice = by_hand(key, catalogue)
            yield Problem(ProblemKind.COMMAND_LINE_IN_VALUE, Span(*match.span()), message, advice=advice)


def key_in_braces(word: str, catalogue: Catalogue) -> str:
    """Return the first deprecated flag that a shell expands a word with braces to, empty if there is none."""
    match = _BRACES.fullmatch(word)
    parts = match[2].split(",") if match else []
    flags = (f"--{match[1]}{part}{match[3]}".partition("=")[0] for part in parts if match)
    return next((flag for flag in flags if catalogue.by_key.get(flag, "") in catalogue.deprecated), "")
