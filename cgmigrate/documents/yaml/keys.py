"""Keys that name settings, also dotted ones, and the other pairs beside them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cgmigrate.documents.changes import together
from cgmigrate.documents.yaml.tree import Node, contains, is_merge
from cgmigrate.documents.yaml.values import scalar_value
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Undecided

_PREFIX = re.compile(r"[\w\-+/@.]+")


class MappingNodes:
    """The nodes of one site: its mapping, the prefix of its dotted keys, and the pair of each setting."""

    __slots__ = ("mapping", "pairs", "prefix")

    def __init__(self, mapping: Node, prefix: str) -> None:
        self.mapping = mapping
        self.prefix = prefix
        self.pairs: dict[str, tuple[Node, Node]] = {}


def is_flag(key: str) -> bool:
    """Return whether a key is a flag: ``--cuda-graph-scope``, or without the dashes, which a launcher adds."""
    return "-" in key.rpartition(".")[2]


def split_key(key: Node, catalogue: Catalogue) -> tuple[str, str] | None:
    """Return the prefix of a dotted key and the setting that the key names; None if it names none."""
    key = key.target
    if key.kind != "scalar" or key.style in ("|", ">"):
        return None
    prefix, dot, last = key.value.rpartition(".")
    if sections := catalogue.in_sections:
        outer, outer_dot, section = prefix.rpartition(".")
        if (moved := sections.get(section, {}).get(last)) and _PREFIX.fullmatch(prefix):
            return outer + outer_dot, moved
    name = catalogue.by_key.get(last) or (catalogue.by_key.get(f"--{last}") if is_flag(last) else None)
    if name is None or (dot and (last.startswith("-") or not _PREFIX.fullmatch(prefix))):
        return None
    return prefix + dot, name


def settings_in(mapping: Node, catalogue: Catalogue) -> dict[str, list[tuple[str, Node, Node]]]:
    """Return for each prefix of dotted keys (field, key, value) of each setting, in the order of the text."""
    settings: dict[str, list[tuple[str, Node, Node]]] = {}
    sections = catalogue.in_sections
    own = sections.get(mapping.key.value, {}) if sections and mapping.key is not None else {}
    for key, value in mapping.pairs():
        if (split := split_key(key, catalogue)) and key.value not in own:
            settings.setdefault(split[0], []).append((split[1], key, value))
        elif sections and key.value in sections and value.kind == "map":
            inside = sections[key.value]
            moved = [(inside[inner.value], inner, one) for inner, one in value.pairs() if inner.value in inside]
            settings.setdefault("", []).extend(moved) if moved else None
    return settings


def section_of(mapping: Node, name: str) -> tuple[Node, Node] | None:
    """Return the key and the value of a section, None if the mapping has none of this name."""
    return next((pair for pair in mapping.pairs() if pair[0].kind == "scalar" and pair[0].value == name), None)


def prefixes_of(
    closing: Sequence[Node], merged: Mapping[int, Sequence[Node]], catalogue: Catalogue
) -> dict[int, list[str]]:
    """Return the prefixes of the settings that each mapping (by id) has, its own and those of what it merges.

    A mapping that only merges others is a place as well: what it merges must keep its meaning there.
    """
    prefixes_by_mapping: dict[int, list[str]] = {}
    for mapping in closing:
        if mapping.kind == "map":
            prefixes = list(settings_in(mapping, catalogue))
            if id(mapping) in merged:
                prefixes.append("")
            for source in merged.get(id(mapping), ()):
                prefixes += prefixes_by_mapping.get(id(source), ())
            if prefixes:
                prefixes_by_mapping[id(mapping)] = list(dict.fromkeys(prefixes))
    return prefixes_by_mapping


def neighbours_of(
    closing: Sequence[Node],
    prefixes: Mapping[int, Sequence[str]],
    merged: Mapping[int, Sequence[Node]],
    catalogue: Catalogue,
) -> dict[tuple[int, str], dict[str, object]]:
    """Return the other values beside the settings of each prefix of a mapping (by id), including merged ones."""
    needed = {*prefixes, *(id(source) for sources in merged.values() for source in sources)}
    values: dict[tuple[int, str], dict[str, object]] = {}
    for mapping in closing:
        if id(mapping) not in needed:
            continue
        own = plain_pairs(mapping, catalogue)
        sources = merged.get(id(mapping), ())
        inherited = [prefix for source in sources for prefix in prefixes.get(id(source), ())]
        for prefix in dict.fromkeys((*prefixes.get(id(mapping), ()), "", *own, *inherited)):
            merged_values = together([values.get((id(source), prefix), {}) for source in sources])
            values[id(mapping), prefix] = merged_values | own.get(prefix, {})
    return values


def targets_of(closing: Sequence[Node]) -> dict[int, tuple[str, ...]]:
    """Return the `_target_`s of each mapping (by id) and of those around it, outermost first."""
    targets: dict[int, tuple[str, ...]] = {}
    # In the opposite order, what is around comes first.
    for node in reversed(closing):
        own = targets.get(id(node), ())
        if node.kind == "map":
            pairs = [(key.target, value.target) for key, value in node.pairs()]
            own += tuple(value.value for key, value in pairs if (key.value, value.kind) == ("_target_", "scalar"))
        targets[id(node)] = own
        targets.update((id(child), own) for child in node.items)
    return targets


def plain_pairs(mapping: Node, catalogue: Catalogue) -> dict[str, dict[str, object]]:
    """Return for each prefix the pairs of a mapping that are not settings of the capture model."""
    own: dict[str, dict[str, object]] = {}
    for key, value in mapping.pairs():
        if key.target.kind != "scalar" or is_merge(key):
            continue
        setting = split_key(key, catalogue)
        if setting is None or setting[1] not in catalogue.captures:
            prefix, dot, _ = key.target.value.rpartition(".")
            own.setdefault(prefix + dot, {})[key.target.value] = _neighbour_value(value.target)
        if key.target.value in catalogue.in_sections and value.kind == "map":
            inside = (f"{key.target.value}.{inner.value}" for inner, _ in value.pairs() if inner.kind == "scalar")
            own.setdefault("", {}).update((name, Undecided(name, "a setting of a section")) for name in inside)
    return own


def _neighbour_value(node: Node) -> object:
    match node.kind:
        case "map":
            return Undecided("{…}", "a mapping")
        case "seq":
            return Undecided("[…]", "a list")
    return scalar_value(node)


# --- references to other files --------------------------------------------------------------------


def defaults_of(root: Node, text: str) -> str:
    """Return the files that a Hydra or OmegaConf ``defaults:`` names, empty when there are none but ``_self_``."""
    for key, value in root.pairs():
        if key.kind == "scalar" and key.value == "defaults":
            value = value.target
            items = value.items if value.kind == "seq" else [value]
            named = [item for item in items if not (item.kind == "scalar" and item.value in ("_self_", ""))]
            if value.kind in ("scalar", "seq") and named:
                return ", ".join(" ".join(text[item.start : item.end].split()) for item in named)
    return ""


def top_level_words(root: Node) -> list[tuple[str, str]]:
    """Return each top-level key with a value of one word, or with each word of a list, which may name another file."""
    result: list[tuple[str, str]] = []
    for key, value in root.pairs():
        value = value.target
        items = value.items if value.kind == "seq" else [value]
        if key.kind == "scalar":
            words = [item.value for item in items if item.kind == "scalar"]
            result += [(key.value, word) for word in words if word and not any(sign.isspace() for sign in word)]
    return result


# --- paths through aliases ------------------------------------------------------------------------

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
