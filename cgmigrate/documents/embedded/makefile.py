"""A makefile: its recipes run commands, with variables that the file sets.

Recipes are read after the whole file, as make does it: what they expand are the values at its end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from cgmigrate.documents.code import Code
from cgmigrate.documents.embedded.document import EmbeddedDocument
from cgmigrate.documents.embedded.layout import Layout, Unread
from cgmigrate.documents.embedded.make_environment import exported
from cgmigrate.documents.embedded.make_references import names_in, shell_code
from cgmigrate.documents.embedded.parts import in_shell, is_broken, is_shell, possibly
from cgmigrate.documents.embedded.statements import Assignment, Definition, Statements, command_lines, statements_of
from cgmigrate.megatron.settings import Missing
from cgmigrate.text.spans import Span

_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_OF_SHELL = re.compile(r"\$\$\{?(\w+)|(?<![\w$({.-])(\w+)\+?=", re.ASCII)
"""A variable that the shell of a recipe expands or sets."""
_SPECIAL = re.compile(r'["`\\](?!\n)')
_LOADED = re.compile(r"\$[({]eval\b")
_TWICE = "`{name}` is set more than once, so the file does not show what a command gets"
_BY_RULE = "a rule sets `{name}` for its own targets"
_BY_SHELL = "make and the shell both have a variable `{name}`"
_SHARED = "several commands expand `{name}` ({lines}), and a change would be for all of them"
_ELSEWHERE = "line {line} expands `{name}` and is not read"
_DEFINED = "the file does not show all that commands get which expand `{name}`"


class MakeDocument(EmbeddedDocument):
    """A makefile; see ``sites.Document``."""

    @staticmethod
    def layout_of(text: str, _names: Collection[int]) -> Layout:
        """Return the layout of a text."""
        return _Makefile(text, statements_of(text)).layout()

    def variable_at(self, offset: int, name: str, /) -> object:
        """Return the value of a variable of the environment of a command; see ``sites.Document``."""
        own = super().variable_at(offset, name)
        return exported(name, self.text) if own is Missing.ABSENT else own


@dataclass
class _Makefile:
    text: str
    statements: Statements
    unread: list[Unread] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)
    blocked_spans: list[tuple[Span, str]] = field(default_factory=list)
    _reach: dict[str, Counter[str]] = field(default_factory=dict)

    def layout(self) -> Layout:
        """Return the layout of the text."""
        statements = self.statements
        self._block()
        script = Code.joined([*self._variables(), *self._commands(), *self._definitions()])
        spans = {one.span for one in statements.assignments}
        spans |= {one.span for one in statements.commands} | {one.span for one in statements.definitions}
        in_order = sorted(spans, key=lambda span: span.start)
        ends = [span.start for span, _ in statements.rules[1:]] + [len(self.text) + 1]
        self.unread += [Unread(span, "a line that is no command and sets no variable") for span in statements.others]
        return Layout(
            script if self._has_shell else Code(),
            unread=self.unread,
            comments=statements.comments,
            joined=[span for span in in_order if "\n" in self.text[span.start : span.end]],
            places=[(Span(rule.start, end), name) for (rule, name), end in zip(statements.rules, ends, strict=False)],
            blocked=self.blocked,
            blocked_spans=self.blocked_spans,
        )

    @cached_property
    def _has_shell(self) -> bool:
        """Whether recipes begin with a tab and are run by a shell whose code is read."""
        shells = [one.value.text for one in self.statements.assignments if one.name == "SHELL"]
        others = [one for one in self.statements.assignments if one.name == ".RECIPEPREFIX"]
        return not others and all(map(is_shell, shells))

    @cached_property
    def _by_name(self) -> dict[str, list[Assignment]]:
        """The assignments to each variable whose value is text."""
        result: dict[str, list[Assignment]] = {}
        for one in self.statements.assignments:
            if _NAME.fullmatch(one.name) and one.operator != "!=":
                result.setdefault(one.name, []).append(one)
        return result

    # --- what is not rewritten ------------------------------------------------------------------------

    def _block(self) -> None:
        """Note the variables whose flags are not rewritten, with reasons."""
        for name, assignments in self._by_name.items():
            if sum(one.is_certain and one.operator != "+=" for one in assignments) > 1:
                self.blocked[name] = _TWICE.format(name=name)
        for one in self.statements.assignments:
            if one.operator.startswith(":") or one.operator == "!=":
                # It has what the variables were at this line.
                changed = (name for name in names_in(one.value.text) if len(self._by_name.get(name, ())) > 1)
                self.blocked |= {name: _TWICE.format(name=name) for name in changed}
        self.blocked |= {name: _BY_RULE.format(name=name) for name in self.statements.local}
        for command in self.statements.commands:
            names = {match[1] or match[2] for match in _OF_SHELL.finditer(command.code.text)}
            self.blocked |= {name: _BY_SHELL.format(name=name) for name in names & self._by_name.keys()}
        for span in self.statements.others:
            self._leave(span, "")
        for name, lines in self._lines_of_uses.items():
            if len(lines) > 1:
                shown = ", ".join(f"line {line}" for line in sorted(set(lines)))
                self.blocked.setdefault(name, _SHARED.format(name=name, lines=shown))

    @cached_property
    def _lines_of_uses(self) -> dict[str, list[int]]:
        """The lines of the commands that expand each variable, also through others."""
        uses: dict[str, list[int]] = {}
        codes = [(one.code, one.span) for one in self.statements.commands]
        codes += [(line, one.span) for one in self.statements.definitions for line in one.lines]
        for code, span in codes:
            for name, count in self._expanded(code.text).items():
                uses.setdefault(name, []).extend([self._line(span)] * count)
        return uses

    def _expanded(self, text: str) -> Counter[str]:
        """Return the variables that a text expands, also through others; each counts at most twice."""
        result: Counter[str] = Counter()
        for name in names_in(text):
            result.update({name: 1} | self._expanded_by(name))
        return Counter({name: min(count, 2) for name, count in result.items()})

    def _expanded_by(self, name: str) -> Counter[str]:
        """Return the variables that the values of a variable expand."""
        if name not in self._reach:
            # A variable that contains itself ends there.
            self._reach[name] = Counter()
            self._reach[name] = self._expanded(" ".join(one.value.text for one in self._by_name.get(name, ())))
        return self._reach[name]

    def _line(self, span: Span) -> int:
        return self.text.count("\n", 0, span.start) + 1

    def _leave(self, span: Span, what: str) -> None:
        """Note a part that is not read, and the variables that it expands."""
        if what:
            self.unread.append(Unread(span, what))
        for name in names_in(self.text[span.start : span.end]):
            self.blocked.setdefault(name, _ELSEWHERE.format(line=self._line(span), name=name))

    # --- the script -----------------------------------------------------------------------------------

    def _variables(self) -> Iterator[Code]:
        """Yield the assignments, those of the variables that a value expands before it."""
        done: set[str] = set()
        for name in self._by_name:
            yield from self._variable(name, done)

    def _variable(self, name: str, done: set[str]) -> Iterator[Code]:
        if name in done or name not in self._by_name:
            return
        done.add(name)
        for one in self._by_name[name]:
            for other in names_in(one.value.text):
                yield from self._variable(other, done)
        for one in self._by_name[name]:
            code = Code.added(f'{name}+=" ' if one.operator == "+=" else f'{name}="') + self._quoted(one.value)
            code += Code.added('"\n')
            if is_broken(code.text):
                self._leave(one.span, "a value that is not read")
            else:
                yield code if one.is_certain else possibly(code)

    def _quoted(self, value: Code) -> Code:
        """Return a value as the text between quotes."""
        code = shell_code(value, self._by_name)
        parts, start = [], 0
        for match in _SPECIAL.finditer(code.text):
            parts += [code[start : match.start()], Code.added("\\")]
            start = match.start()
        return Code.joined([*parts, code[start:]])

    def _commands(self) -> Iterator[Code]:
        is_one_shell = any(name == ".ONESHELL" for _, name in self.statements.rules)
        rules: dict[int, list[Code]] = {}
        for number, command in enumerate(self.statements.commands):
            code = shell_code(command.code, self._by_name)
            if not is_one_shell and is_broken(code.text):
                self._leave(command.span, "a command that the grammar of the shell does not cover")
            else:
                rules.setdefault(command.rule if is_one_shell else number, []).append(code + Code.added("\n"))
        for parts in rules.values():
            yield in_shell(Code.joined(parts))

    def _definitions(self) -> Iterator[Code]:
        for one in self.statements.definitions:
            lines = [shell_code(line, self._by_name) for line in command_lines(one)]
            is_flags = any(line.text.lstrip().startswith("-") for line in one.lines)
            if is_flags or _LOADED.search(self.text) or any(is_broken(line.text) for line in lines):
                self._leave(one.span, "a `define`")
                continue
            if not self._is_used_alone(one):
                self.blocked_spans.append((one.span, _DEFINED.format(name=one.name)))
            yield from (in_shell(line) for line in lines)

    def _is_used_alone(self, definition: Definition) -> bool:
        """Return whether whole commands, and nothing else, are made from a definition."""
        name = re.escape(definition.name)
        uses = re.findall(rf"\$[({{](?:call[ \t]+)?{name}\b", self.text)
        whole = re.compile(rf"\$(?:\((?:call[ \t]+)?{name}(?:,[^()]*)?\)|\{{(?:call[ \t]+)?{name}(?:,[^{{}}]*)?\}})\s*")
        return 0 < len(uses) == sum(bool(whole.fullmatch(one.code.text)) for one in self.statements.commands)
