"""Comments of a YAML file: what follows a ``#`` outside of scalars."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise

from cgmigrate.documents.comments import LINE_BREAK
from cgmigrate.documents.yaml.tree import Node, nodes_in
from cgmigrate.text.spans import Span


def comments_of(text: str, roots: Sequence[Node]) -> tuple[list[Span], list[Span]]:
    """Return the comments of a YAML file, and the pairs whose value is a scalar of several lines."""
    scalars = sorted((node for node in nodes_in(roots) if node.kind == "scalar"), key=lambda node: node.start)
    solid: list[Span] = []
    joined: list[Span] = []
    for node in scalars:
        start = node.start
        if LINE_BREAK.search(text, node.start, node.end):
            joined.append(Span(node.key.outer if node.key else node.outer, node.end))
            if node.style in ("|", ">"):
                # A comment may follow the bar on its line.
                start = LINE_BREAK.search(text, node.start, node.end).start()  # type: ignore[union-attr]
        solid.append(Span(start, node.end))
    firsts = [span.start for span in solid]

    def is_comment(offset: int) -> bool:
        if offset and text[offset - 1] not in " \t\n\r":
            return False
        at = bisect_right(firsts, offset) - 1
        return at < 0 or offset >= solid[at].end

    comments: list[Span] = []
    bounds = [0, *(match.end() for match in LINE_BREAK.finditer(text)), len(text)]
    for start, end in pairwise(bounds):
        # Comments without a suppression matter between one and the line that it is about.
        if "#" in text[start:end]:
            at = next(
                (match.start() for match in re.finditer("#", text[start:end]) if is_comment(start + match.start())), -1
            )
            if at >= 0:
                comments.append(Span(start + at, start + len(text[start:end].rstrip("\r\n"))))
    return comments, joined
