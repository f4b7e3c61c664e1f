"""Paths at which the collections of a file are used: where they are written, and through aliases."""

from __future__ import annotations

from collections.abc import Sequence

from cgmigrate.documents.yaml.tree import Node, contains, is_merge

_MAX_USES = 1_000
"""Paths of one collection; aliases of aliases multiply them, and beyond this number the owner is not decided."""


_MAX_PATHS = 100_000
"""Paths that aliases add in one file; many aliases of a collection with many mappings multiply them."""


class _Path:
    """A name and the path of what encloses it, since tuples of all names would need too much memory in deep files."""

    __slots__ = ("known", "name", "outer")

    def __init__(self, outer: _Path | None, name: str) -> None:
        self.outer, self.name = outer, name
        self.known: tuple[str, ...] | None = None
        """All names, once they were read."""

    def names(self) -> tuple[str, ...]:
        """All names, the outermost first: one tuple, however many texts are used at the path."""
        if self.known is None:
            names, path = [self.name], self.outer
            while path is not None:
                names.append(path.name)
                path = path.outer
            self.known = tuple(reversed(names))
        return self.known


class AliasPaths:
    """The paths at which each collection is used: its own, and through aliases of it or of what encloses it."""

    def __init__(self, closing: Sequence[Node]) -> None:
        self._own: dict[int, _Path | None] = {}
        self._others: dict[int, list[_Path | None]] = {}
        self._crowded: set[int] = set()
        self._added = 0
        # A collection closes before all that enclose or name it, so in reverse order its paths are complete.
        for node in reversed(closing):
            path, others = self._own.get(id(node)), self._others.get(id(node), [])
            crowded = id(node) in self._crowded or len(others) > _MAX_USES
            if crowded:
                others = self._others[id(node)] = others[:_MAX_USES]
                self._crowded.add(id(node))
            for child in node.items[1::2] if node.kind == "map" else node.items:
                if child.target.kind in ("map", "seq"):
                    self._enter(child, path, others, crowded)

    def _enter(self, child: Node, path: _Path | None, others: Sequence[_Path | None], crowded: bool) -> None:
        if child.key is not None and not is_merge(child.key):
            name = child.key.target.value if child.key.target.kind == "scalar" else "?"
            self._added += len(others)
            if self._added > _MAX_PATHS:
                crowded, others = crowded or bool(others), ()
            path, others = _Path(path, name), [_Path(other, name) for other in others]
        target = child.target
        if child.kind != "alias":
            self._own[id(child)] = path
        elif not contains(target, child):
            others = [path, *others]
        else:
            return
        if others:
            known = self._others.setdefault(id(target), [])
            # One more than the most shows that there are too many.
            known += others[: _MAX_USES + 1 - len(known)]
        if crowded:
            self._crowded.add(id(target))

    def path(self, node: Node) -> tuple[str, ...]:
        """Return the keys that lead to a node where it is written."""
        path = self._own.get(id(node))
        return path.names() if path else ()

    def others(self, node: Node) -> tuple[tuple[str, ...], ...]:
        """Return the other paths at which a node is used."""
        paths = self._others.get(id(node), ())
        return tuple(dict.fromkeys([(path.known or path.names()) if path else () for path in paths]))

    def unknown(self, node: Node) -> str:
        """Return why not all paths of a node are known, empty when they are."""
        if id(node) not in self._crowded:
            return ""
        if self._added > _MAX_PATHS:
            return f"aliases use the texts of this file at more than {_MAX_PATHS:,} places"
        return f"its text is used at more than {_MAX_USES:,} places"
