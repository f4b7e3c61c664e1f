"""YAML files: sites are mappings that hold CUDA-graph settings.

PyYAML's C parser gives events with exact marks; a small tree of spans over them is all that is
needed, and nothing emits YAML: an edit replaces the characters of a key, a value or a line. Traps of
the marks (found by measuring): they count code points and leave out a byte order mark; a scalar's
mark stands on its anchor or tag; the end of block collections and block scalars runs on to the next
token, and so does the place of a value that is not written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import yaml

from cgmigrate.documents.sites import CannotEditError, Problem, Site, Written
from cgmigrate.documents.yaml.equivalence import Comparison
from cgmigrate.documents.yaml.line_edits import Lines, Writer
from cgmigrate.documents.yaml.reading import command_lines, defaults_of, top_level_words, unreadable
from cgmigrate.documents.yaml.site_rewriter import SiteEditor
from cgmigrate.documents.yaml.tree import Node, Uses, closing_order, input_error_of_merge, merges_in, parse_tree
from cgmigrate.documents.yaml.values import Place, neighbours_of, prefixes_of, settings_in, value_of, yaml_text
from cgmigrate.megatron.settings import Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_MAX_MERGED = 10_000
_TOO_MANY = f"its mappings merge settings at more than {_MAX_MERGED:,} places, so it is not examined"
"""Mappings that merge one another, each with a prefix of dotted keys of its own, multiply places and prefixes."""


class YamlDocument:
    """A YAML file (one document or several) as sites; see ``documents.Document``."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.sites: list[Site] = []
        self.problems: list[Problem] = []
        self.skipped: Sequence[tuple[Written, str]] = ()
        self.top_level: list[str] = []
        self.builds_on = ""
        self.top_level_words: list[tuple[str, str]] = []
        """Top-level keys, each with a word of its value, which may name a file that this one is merged with."""
        self._places: list[Place] = []
        self._again: YamlDocument | None = None
        self._lines: Lines | None = None
        """Where the lines are, once it is asked: each fix is also tried alone."""
        self.roots: list[Node] = []
        self.anchors: list[tuple[int, str]] = []
        """Every anchor in the order of the text, with the number of its document."""
        try:
            self.roots, self.anchors = parse_tree(text)
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            self.problems.append(unreadable(text, error))
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
        self.problems += command_lines(closing, self.text)
        merged = merges_in(closing)
        prefixes = prefixes_of(closing, merged)
        if sum(len(prefixes.get(mapping, ())) for mapping in merged) > _MAX_MERGED:
            self.problems.append(Problem("CG013", Span(0, 0), _TOO_MANY))
            return
        neighbours = neighbours_of(closing, prefixes, merged)
        uses = Uses(closing)
        found: dict[tuple[int, str], int] = {}
        for mapping in sorted((node for node in closing if id(node) in prefixes), key=lambda node: node.outer):
            pairs = settings_in(mapping)
            fixed = uses.input_error(mapping) or (input_error_of_merge(mapping) if id(mapping) in merged else "")
            for prefix in prefixes[id(mapping)]:
                place, index = Place(mapping, prefix), len(self._places)
                found[id(mapping), prefix] = index
                self._places.append(place)
                site = self._site(index, place, pairs.get(prefix, []), uses, fixed)
                self.sites.append(replace(site, neighbours=neighbours[id(mapping), prefix]))
        for index, place in enumerate(self._places):
            nodes = merged.get(id(place.mapping), ())
            sources = [found[key] for node in nodes if (key := (id(node), place.prefix)) in found]
            if sources:
                self.sites[index] = replace(self.sites[index], inherits=tuple(sources))

    def _site(self, index: int, place: Place, pairs: Sequence[tuple[str, Node, Node]], uses: Uses, fixed: str) -> Site:
        mapping = place.mapping
        written: dict[str, Written] = {}
        for name, key, value in pairs:
            spelled = key.target.value
            span = Span(key.start, max(key.end, value.end))
            if name in place.pairs:
                self.problems.append(self._written_twice(spelled, span, place.pairs[name][0]))
                fixed = "a setting is written twice"
                del written[name]
            place.pairs[name] = (key, value)
            written[name] = Written(name, spelled, value_of(name, value, spelled.startswith("--")), span)
        inner, others = tuple(filter(None, place.prefix.rstrip(".").split("."))), uses.others(mapping)
        return Site(
            index,
            uses.path(mapping) + inner,
            Span(mapping.start, mapping.end),
            tuple(written.values()),
            flags=any(w.key.startswith("--") for w in written.values()),
            alias_paths=tuple(other + inner for other in others) if inner else others,
            blocked_by=fixed,
        )

    def _written_twice(self, spelled: str, span: Span, first: Node) -> Problem:
        line = self.text.count("\n", 0, first.start) + 1
        if first.target.value == spelled:
            return Problem("CG005", span, f"`{spelled}` is also written on line {line}; YAML keeps the last one")
        message = f"`{spelled}` is also written as `{first.target.value}` on line {line}; which one counts is not known"
        return Problem("CG005", span, message)

    # --- writing ----------------------------------------------------------------------------

    def risk(self, index: int) -> str:
        """See ``documents.Document``; files that are merged with this one are ``builds_on``."""
        return ""

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that give each site the rewrites own settings; see ``documents.Document``."""
        self._lines = self._lines or Lines(self.text)
        writer = Writer(self._lines)
        for index, after in sorted(rewrites.items()):
            SiteEditor(writer, self.sites[index], self._places[index]).write(after)
        result = sorted(writer.finish(), key=lambda edit: (edit.start, edit.end))
        if any(left.end > right.start for left, right in pairwise(result)):
            raise CannotEditError(min(rewrites), "two changes concern the same text")
        return result

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text again; return what differs beyond ``rewrites``, empty when nothing."""
        again = self._again = YamlDocument(edited)
        known = Counter(problem.rule for problem in self.problems)
        for problem in again.problems:
            known[problem.rule] -= 1
            if known[problem.rule] < 0:
                return f"it would no longer be read: {problem.message}"
        at = Comparison(self, again, self._places, rewrites).first_difference()
        if at is None:
            return ""
        return f"something else in the file would be read differently (line {self.text.count(chr(10), 0, at) + 1})"

    def quotes(self, rewrites: Mapping[int, Settings]) -> Mapping[int, Mapping[str, str]]:
        """How settings read in the text that was checked last; see ``documents.Document``."""
        from cgmigrate.documents.quotes import quotes_of

        return quotes_of(self, self._again, rewrites) if self._again else {}

    def spelled(self, site: int, name: str, value: object) -> str:
        """A setting as it would be written at a site; see ``documents.Document``."""
        return f"{self.sites[site].written_as(name)}: {yaml_text(value)}"
