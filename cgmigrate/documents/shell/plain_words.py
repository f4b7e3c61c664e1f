"""Whether a script only passes words on: a fix is safe where nothing counts, picks, cuts or compares them.

Every appearance of a variable with flags is looked at, and the arguments of functions and of ``set --``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.fragments import PRINTERS, SEARCHERS, Fragment
from cgmigrate.documents.shell.printed_text import is_output_used
from cgmigrate.documents.shell.tree import ShellTree, nodes_around
from cgmigrate.text.remembered import remembered
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node

NOT_PLAIN = "line {line} may count, pick, cut or compare the words of `{variable}`"
_NOT_EXPORTED = "a quoted script expands `${variable}`, which is not exported"
_CUTS = re.compile(r"\$\{[#!]|\$\{\w+(?:\[(?![@*]\])|(?:\[[@*]\])?(?:[#%/^,@]|:(?![-+=?])))|\$\[|\$\(\(")
"""An expansion that is not the value of a variable, or a default for it."""
PICKS_ARGUMENTS = re.compile(
    r"(?<![\w-])(?:shift|getopts)(?![\w-])|\$\{?#|\$\{?[1-9]|\$\{[@*](?!\})|(?<!\w)for\s+\w+(?:\s+in\s+[\"']?\$\{?[@*]|\s*[;\n])"
)
"""What uses arguments otherwise than all together."""
CUTS_VARIABLE = r"\$\{{(?:[#!]{name}\b|{name}(?:\[(?![@*]\])|(?:\[[@*]\])?(?:[#%/^,@]|:(?![-+=?]))))"
"""An expansion of one variable that is not its value, with the name to put in."""
PICKS_IN_FUNCTION = re.compile(PICKS_ARGUMENTS.pattern.replace("shift|", "").replace(r"\$\{?[1-9]|", ""))
"""The same in a function; how far its numbers reach is known (``single_words``)."""
_LOOKS = re.compile(r"--|[*?~<>]|\$\(|\[\[?[^]]*\[|=\s*[\"']?\$")
"""A test that more than the whole value of a variable decides; without it, only a value without flags is equal."""
_IS_EMPTY = re.compile(r"-[nz]\s+[\"']?\$\{?\Z")
_DECLARES = re.compile(r"\b(?:export|local|readonly|declare|typeset)\b(?!\s+-\w*n)[^\n;|&]*\Z")
_COUNTERS = frozenset(("expr", "wc", "let"))
_TEXTS = frozenset(("string_content", "raw_string", "heredoc_body", "heredoc_content", "string", "comment"))
_LOOKED_AT = frozenset(("for_statement", "case_statement", "test_command", "herestring_redirect", "unset_command"))


class PlainWords:
    """What a script does with words."""

    def __init__(self, tree: ShellTree, fragments: Sequence[Fragment], not_exported: Collection[str]) -> None:
        self._tree, self._fragments, self._not_exported = tree, fragments, not_exported
        self._functions = {
            tree.written(name): node
            for node in tree.functions
            if (name := node.child_by_field_name("name")) is not None
        }

    def reason(self, fragments: Iterable[Fragment]) -> str:
        """Return why some fragments may be more to the script than words that it passes on, empty if they are not."""
        carriers = self._carriers(fragments)
        for variable in sorted({one.variable for one in carriers if one.variable}):
            if variable in self._not_exported:
                return _NOT_EXPORTED.format(variable=variable)
            if (at := self._appearance(variable.partition("@")[0])) >= 0:
                return self._reason(at, variable.partition("@")[0])
        for one in carriers:
            name = (one.words[0].text or "") if one.words and not one.variable else ""
            if (at := self._argument(one, name)) >= 0:
                return self._reason(at, "$@")
        return ""

    def _reason(self, at: int, variable: str) -> str:
        return NOT_PLAIN.format(line=self._tree.text.count("\n", 0, at) + 1, variable=variable)

    def _carriers(self, fragments: Iterable[Fragment]) -> list[Fragment]:
        """Return fragments with all that expand their variables."""
        carriers = list(fragments)
        names, new = set[str](), {one.variable for one in carriers} - {""}
        while new:
            names |= new
            more = [one for one in self._fragments if any(word.variable in new for word in one.words)]
            carriers += more
            new = {one.variable for one in more} - names - {""}
        return carriers

    def _argument(self, fragment: Fragment, name: str) -> int:
        """Return where the arguments that a fragment sets are used otherwise than all together, -1 if nowhere."""
        text = self._tree.text
        if name == "set":
            match = PICKS_ARGUMENTS.search(text, fragment.span.end)
        elif name in self._functions:
            span = self._tree.span(self._functions[name])
            match = PICKS_IN_FUNCTION.search(text, span.start, span.end)
        else:
            return -1
        return match.start() if match else -1

    @remembered
    def _appearance(self, variable: str) -> int:
        """Return the first appearance of a variable that is no plain expansion, -1 if there is none."""
        return next(self._other_uses(variable), -1)

    def _other_uses(self, variable: str) -> Iterator[int]:
        for match in re.finditer(rf"(?<![\w./-]){re.escape(variable)}(?![\w.])", self._tree.text):
            if self._is_other_use(*match.span()):
                yield match.start()

    def _is_other_use(self, start: int, end: int) -> bool:
        text = self._tree.text
        sign = max(text.rfind("$", max(0, start - 3), start), -1)
        is_expanded = sign >= 0 and text[sign + 1 : start] in ("", "{", "{#", "{!")
        node = self._tree.at(Span(start, end))
        kinds = [one.type for one in nodes_around(node)]
        if "comment" in kinds:
            return False
        if not is_expanded:
            return self._is_named(start, end, kinds)
        if _CUTS.match(text, sign):
            return True
        if _IS_EMPTY.search(text, max(0, start - 8), start):
            return False
        return self._is_looked_at(node)

    def _is_named(self, start: int, end: int, kinds: Sequence[str]) -> bool:
        """Return whether a name without a sign is more than the target of an assignment, or a word of a text."""
        text = self._tree.text
        if re.compile(r"\+?=(?!=)").match(text, end):
            return False
        is_text = not _TEXTS.isdisjoint(kinds) and text[end : end + 1] != "["
        line = text.rfind("\n", 0, start) + 1
        return not is_text and not _DECLARES.search(text, line, start)

    def _is_looked_at(self, node: Node | None) -> bool:
        """Return whether an expansion is in a loop over words, a test, or a command that reads or cuts text."""
        child = node
        for one in nodes_around(node):
            if one.type == "test_command" and not _LOOKS.search(self._tree.written(one)):
                return False
            if one.type in _LOOKED_AT and (child is None or child.type not in ("do_group", "case_item")):
                return True
            if one.type == "command":
                name = one.child_by_field_name("name")
                written = self._tree.written(name).rpartition("/")[2] if name is not None else ""
                if written in SEARCHERS | _COUNTERS or (written in PRINTERS and is_output_used(one, self._tree)):
                    return True
                if written in PRINTERS:
                    return False
            child = one
        return False
