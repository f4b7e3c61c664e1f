"""A YAML file: sites are mappings that contain CUDA-graph settings.

All is read from a tree of spans over the events of PyYAML's C parser. An edit replaces the characters of a
key, a value or a line; no YAML is generated from a tree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import yaml

from cgmigrate.documents.command_line_advice import brace_problems, by_hand, pattern_in_text
from cgmigrate.documents.sites import Document, Problem, ProblemKind, Site, Use
from cgmigrate.documents.yaml.equivalence import DocumentComparison
from cgmigrate.documents.yaml.keys import (
    AliasPaths,
    MappingNodes,
    defaults_of,
    is_flag,
    neighbours_of,
    prefixes_of,
    settings_in,
    targets_of,
    top_level_words,
)
from cgmigrate.documents.yaml.line_edits import LineEdits, Lines
from cgmigrate.documents.yaml.site_rewriter import YamlSiteRewriter
from cgmigrate.documents.yaml.tree import Node, closing_order, merge_error, merges_in, parse_error, parse_tree
from cgmigrate.documents.yaml.values import value_of, yaml_text
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import Missing, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from cgmigrate.documents.yaml.surroundings import YamlSurroundings

_UNREAD = "a value that is not read as a command line, so it is not rewritten"


def command_lines(nodes: Sequence[Node], text: str, catalogue: Catalogue) -> list[Problem]:
    """Return a problem for each deprecated name that is a flag or override inside a value."""
    pattern, braces = pattern_in_text(catalogue), list(brace_problems(text, catalogue))
    if not braces and not pattern.search(text):
        return []
    every = (value for node in nodes for value in (node.items[1::2] if node.kind == "map" else node.items))
    values = [value for value in every if value.kind == "scalar"]
    problems = [one for one in braces if any(value.start <= one.span.start < value.end for value in values)]
    for value in values:
        for match in pattern.finditer(text, value.start, value.end):
            name = match.group().lstrip("+~").rstrip("=")
            message = f"`{name}` is part of {_UNREAD}"
            kind, advice = ProblemKind.COMMAND_LINE_IN_VALUE, by_hand(name, catalogue, text, match.end())
            problems.append(Problem(kind, Span(*match.span()), message, advice=advice))
    return problems


_MAX_MERGED = 10_000
_TOO_MANY = f"its mappings merge settings at more than {_MAX_MERGED:,} places, so it is not examined"
"""A limit, since mappings that merge one another, each with its own prefix of dotted keys, multiply the places."""


class YamlDocument(Document):
    """A YAML file of one or several YAML documents; see ``sites.Document``.

    Without a catalogue, the settings are those that ship.
    """

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        super().__init__(text, path, catalogue)
        self.skipped: Sequence[tuple[Use, str]] = ()
        self.top_level_words: list[tuple[str, str]] = []
        """Top-level keys, each with a word of its value, which may name a file that this one is merged into."""
        self._places: list[MappingNodes] = []
        self._lines: Lines | None = None
        """Where the lines are; read once, since each fix is also checked by itself."""
        self.roots: list[Node] = []
        self.anchors: list[tuple[int, str]] = []
        """Every anchor in the order of the text, with the number of its document."""
        try:
            self.roots, self.anchors = parse_tree(text)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            self.problems.append(parse_error(text, error))
            return
        self._read()

    # --- reading ----------------------------------------------------------------------------

    def _read(self) -> None:
        for root in self.roots:
            if root.kind == "map":
                self.top_level += [key.value for key, _ in root.pairs() if key.kind == "scalar"]
                self.builds_on = self.builds_on or defaults_of(root, self.text)
                self.top_level_words += top_level_words(root)
        closing = closing_order(self.roots)
        self.problems += command_lines(closing, self.text, self.catalogue)
        if self.catalogue.reads_code:
            from cgmigrate.documents.yaml.code_names import code_names, gone_keys

            self.problems += code_names(closing, self.path)
            self.problems += gone_keys(self.roots)
        merged = merges_in(closing)
        prefixes = prefixes_of(closing, merged, self.catalogue)
        if sum(len(prefixes.get(mapping, ())) for mapping in merged) > _MAX_MERGED:
            self.problems.append(Problem(ProblemKind.TOO_COMPLEX, Span(0, 0), _TOO_MANY))
            return
        neighbours = neighbours_of(closing, prefixes, merged, self.catalogue)
        targets = targets_of(closing) if "_target_" in self.text else {}
        paths = AliasPaths(closing)
        indices: dict[tuple[int, str], int] = {}
        for mapping in sorted((node for node in closing if id(node) in prefixes), key=lambda node: node.outer):
            pairs = settings_in(mapping, self.catalogue)
            blocked_by = paths.unknown(mapping) or (merge_error(mapping) if id(mapping) in merged else "")
            for prefix in prefixes[id(mapping)]:
                place, index = MappingNodes(mapping, prefix), len(self._places)
                indices[id(mapping), prefix] = index
                self._places.append(place)
                site = self._site(index, place, pairs.get(prefix, []), paths, blocked_by)
                beside, classes = neighbours[id(mapping), prefix], targets.get(id(mapping), ())
                self.sites.append(replace(site, neighbours=beside, targets=classes))
        for index, place in enumerate(self._places):
            nodes = merged.get(id(place.mapping), ())
            sources = [indices[key] for node in nodes if (key := (id(node), place.prefix)) in indices]
            if sources:
                unordered = len(sources) if len(sources) > 1 else 0
                self.sites[index] = replace(self.sites[index], inherits=tuple(sources), unordered=unordered)

    def _site(
        self,
        index: int,
        place: MappingNodes,
        pairs: Sequence[tuple[str, Node, Node]],
        paths: AliasPaths,
        blocked_by: str,
    ) -> Site:
        mapping = place.mapping
        written: dict[str, Use] = {}
        for name, key, value in pairs:
            spelled, setting = key.target.value, self.catalogue[name]
            if setting.section and "." not in spelled:
                spelled = f"{setting.section}.{spelled}"
            span = Span(key.start, max(key.end, value.end))
            if name in place.pairs:
                self.problems.append(self._written_twice(spelled, span, place.pairs[name][0]))
                blocked_by = "a setting is written twice"
                del written[name]
            place.pairs[name] = (key, value)
            written[name] = Use(name, spelled, value_of(setting, value, is_flag(spelled)), span)
        inner, others = tuple(filter(None, place.prefix.rstrip(".").split("."))), paths.others(mapping)
        return Site(
            index,
            paths.path(mapping) + inner,
            Span(mapping.start, mapping.end),
            tuple(written.values()),
            flags=any(is_flag(w.key) for w in written.values()),
            alias_paths=tuple(other + inner for other in others) if inner else others,
            blocked_by=blocked_by,
        )

    def _written_twice(self, spelled: str, span: Span, first: Node) -> Problem:
        line = self.text.count("\n", 0, first.start) + 1
        if first.target.value == spelled:
            return Problem(
                ProblemKind.WRITTEN_TWICE, span, f"`{spelled}` is also written on line {line}; YAML keeps the last one"
            )
        message = f"`{spelled}` is also written as `{first.target.value}` on line {line}; which one wins is not known"
        return Problem(ProblemKind.WRITTEN_TWICE, span, message)

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        """Return the comments, and the pairs whose value is a scalar of several lines."""
        from cgmigrate.documents.yaml.comments import comments_of

        return comments_of(self.text, self.roots)

    def value_beside(self, index: int, section: Sequence[str], keys: Sequence[str], /) -> object:
        """Return a value of the configuration that a site belongs to; see ``sites.Document``."""
        place = self._places[index]
        prefix = tuple(filter(None, place.prefix.split(".")))
        value = self._surroundings.value(place.mapping, prefix, section, keys)
        # What is not written may be written in a file that this one is merged into.
        return Missing.UNKNOWN if value is Missing.ABSENT and self.builds_on else value

    def variable_at(self, offset: int, name: str, /) -> object:
        """Return the value of a variable of the environment; see ``sites.Document``."""
        value = self._surroundings.variable(offset, name)
        return Missing.UNKNOWN if value is Missing.ABSENT and self.builds_on else value

    @cached_property
    def _surroundings(self) -> YamlSurroundings:
        from cgmigrate.documents.yaml.surroundings import YamlSurroundings

        return YamlSurroundings(self.roots)

    # --- writing ----------------------------------------------------------------------------

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that make the rewrites; see ``sites.Document``."""
        self._lines = self._lines or Lines(self.text)
        writer = LineEdits(self._lines)
        for index, after in sorted(rewrites.items()):
            YamlSiteRewriter(writer, self.sites[index], self._places[index], self.catalogue).write(after)
        return self._in_order(list(writer.finish()), rewrites)

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        again = self._again = YamlDocument(edited, self.path, self.catalogue)
        known = Counter(problem.kind for problem in self.problems)
        for problem in again.problems:
            known[problem.kind] -= 1
            if known[problem.kind] < 0:
                return f"it would no longer be read: {problem.message}"
        at = DocumentComparison(self, again, self._places, rewrites).first_difference()
        if at is None:
            return ""
        return f"something else in the file would be read differently (line {self.text.count(chr(10), 0, at) + 1})"

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as it would be written at a site; see ``sites.Document``."""
        own = self.sites[site]
        key = self.catalogue[name].flag if own.flags and name not in own.own else own.written_as(name)
        return f"{key}: {yaml_text(value)}"
