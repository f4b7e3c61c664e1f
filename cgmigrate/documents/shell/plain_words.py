"""Whether a script only passes words on: a fix is safe where nothing counts, picks, cuts or compares them.

Every appearance of a variable with flags is looked at, and the arguments of functions and of ``set --``.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from cgmigrate.documents.shell.fragments import PRINTERS, SEARCHERS, SUBSHELLS, Fragment, FragmentForm
from cgmigrate.documents.shell.tree import ShellTree, nodes_around
from cgmigrate.text.remembered import remembered
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node


def is_output_used(node: Node | None, tree: ShellTree) -> bool:
    """Return whether a command gets what the command around a node prints."""
    child, parent = node, node.parent if node is not None else None
    while child is not None and parent is not None:
        if parent.type in SUBSHELLS[1:]:
            return True
        if parent.type == "pipeline" and any(_reads(one, tree) for one in _behind(child, parent)):
            return True
        if parent.type == "function_definition" and _is_substituted(parent, tree):
            return True
        child, parent = parent, parent.parent
    return False


def _behind(child: Node, pipeline: Node) -> list[Node]:
    """Return the commands of a pipeline behind one of them."""
    return [one for one in pipeline.named_children if one.start_byte >= child.end_byte]


def _reads(command: Node, tree: ShellTree) -> bool:
    """Return whether a command does something else with its input than to print or search it."""
    name = command.child_by_field_name("name")
    return name is None or tree.written(name).rpartition("/")[2] not in PRINTERS | SEARCHERS


def _is_substituted(function: Node, tree: ShellTree) -> bool:
    """Return whether the script expands what a function prints: ``$(graphs)``."""
    name = function.child_by_field_name("name")
    written = re.escape(tree.written(name)) if name is not None else "(?!)"
    return re.search(rf"(?:\$\(|`)\s*{written}(?![\w-])", tree.text) is not None


NOT_PLAIN = "line {line} may count, pick, cut or compare the words of `{variable}`"
_NOT_EXPORTED = "a quoted script expands `${variable}`, which is not exported"
_CUTS = re.compile(r"\$\{[#!]|\$\{\w+(?:\[(?![@*]\])|(?:\[[@*]\])?(?:[#%/^,@]|:(?![-+=?])))|\$\[|\$\(\(")
"""An expansion that is not the value of a variable, or a default for it."""
IF_ANY = r"(?!\}?[\"']?[ ]*(?:(?:-gt|-ne|>|!=)[ ]*[\"']?0|(?:-ge|>=)[ ]*[\"']?1)\b)"
"""Behind the number of arguments: no test whether there are any, which no fix changes."""
PICKS_ARGUMENTS = re.compile(
    rf"(?<![\w-])(?:shift|getopts)(?![\w-])|\$\{{?#{IF_ANY}"
    r"|\$\{?[1-9]|\$\{[@*](?!\})|(?<!\w)for\s+\w+(?:\s+in\s+[\"']?\$\{?[@*]|\s*[;\n])"
)
"""What uses arguments otherwise than all together."""
CUTS_VARIABLE = r"\$\{{(?:[#!]{name}\b|{name}(?:\[(?![@*]\])|(?:\[[@*]\])?(?:[#%/^,@]|:(?![-+=?]))))"
"""An expansion of one variable that is not its value, with the name to put in."""
PICKS_IN_FUNCTION = re.compile(PICKS_ARGUMENTS.pattern.replace("shift|", "").replace(r"\$\{?[1-9]|", ""))
"""The same in a function; how far its numbers reach is known."""
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


# --- words of their own ---------------------------------------------------------------------------

_ONE_WORD = "the script may use `{variable}` as one word"
_NUMBERED = "the function `{function}` reads its arguments by their numbers"
_SHOWN = re.compile(r"(?<![\w.-])(?:echo|printf|eval|-[nz])[ \t][^;|&\n]*")
"""Words that are text for people, a test, or code."""
_QUOTED = re.compile(r'(?<!=)"\$\{?(\w+)[^"\s\[]*"', re.ASCII)
_LOOP = re.compile(r"(?<!\w)for\s+\w+\s+in\s([^;\n]*)")
_VARIABLE = re.compile(r"\$\{?(\w+)\b(?!\[)", re.ASCII)
_SOME_ELEMENTS = re.compile(r"(?<!\w)(\w+)\[(?![@*]\])|\$\{(\w+)\[[@*]\]:(?![-+=?])", re.ASCII)
_ALIAS = re.compile(r"(?<!\w)(\w+)=[\"']?\$\{?(\w+)", re.ASCII)
_UNDIVIDED = re.compile(r"(?<![\w$])IFS=(?!\$?'[^'\n]* |\"?\$\w|\S*[ \t]+read\b)|\A#![^\n]*\bzsh\b")
"""What keeps a shell from dividing the value of a variable at blanks; a separator for one `read` does not."""
_NUMBERS = re.compile(r"\$\{?(?P<number>[1-9]\d*)|(?<![\w-])shift(?![\w-])(?:[ \t]+(?P<count>\d+))?")
_AGAIN = re.compile(r"(?<!\w)(?:while|until|for)(?!\w)")


class SingleWords:
    """What a script uses as one word."""

    def __init__(self, tree: ShellTree, fragments: Sequence[Fragment]) -> None:
        self._tree, self._fragments = tree, fragments

    def reason(self, fragment: Fragment) -> str:
        """Return why a word of a fragment has to remain one, empty if it may become two."""
        variable = fragment.variable
        if not variable:
            function = (fragment.words[0].text or "") if fragment.words else ""
            is_numbered = any(flag.first <= self._reach.get(function, -1) for flag in fragment.flags)
            return _NUMBERED.format(function=function) if is_numbered else ""
        if fragment.form is FragmentForm.ARRAY:
            is_single = variable in self._elements
        else:
            is_single = len(fragment.words) == 1 and (variable in self._single or bool(self._undivided))
        return _ONE_WORD.format(variable=variable) if is_single or variable in self._numbered else ""

    @cached_property
    def _text(self) -> str:
        return _SHOWN.sub("", self._tree.text)

    @cached_property
    def _undivided(self) -> bool:
        return _UNDIVIDED.search(self._tree.text) is not None

    @cached_property
    def _single(self) -> set[str]:
        looped = (name for loop in _LOOP.finditer(self._text) for name in _VARIABLE.findall(loop[1]))
        return self._with_aliases({*_QUOTED.findall(self._text), *looped})

    @cached_property
    def _elements(self) -> set[str]:
        """The arrays of which single elements are used; without an index, that is the first one."""
        return {*_VARIABLE.findall(self._text), *(name for pair in _SOME_ELEMENTS.findall(self._text) for name in pair)}

    @cached_property
    def _numbered(self) -> set[str]:
        """The variables that are arguments which a function reads by their numbers."""
        return self._with_aliases(set(self._numbered_variables()))

    def _numbered_variables(self) -> Iterator[str]:
        for command in self._fragments if self._reach else ():
            name = (command.words[0].text or "") if command.words and not command.variable else ""
            yield from (word.variable for word in command.words[: self._reach.get(name, -1) + 1] if word.variable)

    def _with_aliases(self, names: set[str]) -> set[str]:
        """Return variables with those whose values are in them."""
        inside: defaultdict[str, set[str]] = defaultdict(set)
        for name, value in _ALIAS.findall(self._text):
            inside[name].add(value)
        pending = list(names)
        while pending:
            new = inside[pending.pop()] - names
            names |= new
            pending += new
        return names

    @cached_property
    def _reach(self) -> dict[str, int]:
        """Name of a function → the last of its arguments that it reads by a number."""
        parts = ((node.child_by_field_name("name"), node.child_by_field_name("body")) for node in self._tree.functions)
        written = self._tree.written
        return {written(name): _last_number(written(body)) for name, body in parts if name and body}


def _last_number(code: str) -> int:
    """Return the last argument that the code of a function reads by its number."""
    last = moved = 0
    for match in _NUMBERS.finditer(code):
        if match["number"]:
            last = max(last, moved + int(match["number"]))
        elif _AGAIN.search(code):
            # A loop that reads arguments may read all of them.
            return len(code)
        else:
            moved += int(match["count"] or 1)
    return last
