"""Deprecated names in command lines inside values, which are not rewritten."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.documents.command_line_advice import by_hand, pattern_in_text
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.text.spans import Span

_UNREAD = "a value that is not read as a command line, so it is not rewritten"


def command_lines(nodes: Sequence[Node], text: str, catalogue: Catalogue) -> list[Problem]:
    """Return a problem for each deprecated name that is a flag or override inside a value."""
    pattern = pattern_in_text(catalogue)
    if not pattern.search(text):
        return []
    values = [value for node in nodes for value in (node.items[1::2] if node.kind == "map" else node.items)]
    problems: list[Problem] = []
    for value in values:
        if value.kind == "scalar":
            for match in pattern.finditer(text, value.start, value.end):
                name = match.group().lstrip("+~").rstrip("=")
                message = f"`{name}` is part of {_UNREAD}"
                kind, advice = ProblemKind.COMMAND_LINE_IN_VALUE, by_hand(name, catalogue)
                problems.append(Problem(kind, Span(*match.span()), message, advice=advice))
    return problems
