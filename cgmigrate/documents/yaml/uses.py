"""The uses of settings in a YAML file, each with its role: a key, a word of a value, or a comment."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.sites import Role, Use
from cgmigrate.documents.uses import Appearance, NoUse
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.text.spans import Span

_INTERPOLATION = re.compile(r"\$\{[^{}]*$")


@dataclass(slots=True)
class YamlRoleReader:
    """Decides the role of each name.

    ``written`` are the settings of sites by the offset of their keys, ``comments`` the spans of comments.
    """

    text: str
    roots: Sequence[Node]
    written: Mapping[int, Use]
    comments: Sequence[Span]
    _scalars: list[tuple[Node, str]] = field(default_factory=list)
    """Each scalar, with what it is: a key, a value, or an item of a list."""
    _starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        stack = [(root, "value") for root in self.roots]
        while stack:
            node, what = stack.pop()
            if node.kind == "scalar":
                self._scalars.append((node, what))
            names = ("key", "value") if node.kind == "map" else ("item", "item")
            stack += [(child, names[at % 2]) for at, child in enumerate(node.items)]
        self._scalars.sort(key=lambda pair: pair[0].start)
        self._starts = [node.start for node, _ in self._scalars]

    def __call__(self, appearance: Appearance) -> Use | NoUse:
        """Return the use that a name is, or why it is none."""
        at = bisect_right(self._starts, appearance.span.start) - 1
        node, what = self._scalars[at] if at >= 0 else (None, "")
        if node is None or appearance.span.start >= node.end:
            in_comment = any(span.start <= appearance.span.start < span.end for span in self.comments)
            return appearance.use(Role.MENTION) if in_comment else NoUse.ANCHOR
        if what == "key":
            return self.written.get(node.start) or appearance.use(Role.WRITE)
        return appearance.use(self._of_value(node, what, appearance))

    def _of_value(self, node: Node, what: str, appearance: Appearance) -> Role:
        before, behind = self.text[node.start : appearance.span.start], self.text[appearance.span.end :]
        if _INTERPOLATION.search(before):
            return Role.READ
        if appearance.key.startswith("--") or behind.startswith("="):
            return Role.WRITE
        return Role.DEFINE if what == "item" and node.value == appearance.key else Role.MENTION
