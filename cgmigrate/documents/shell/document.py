"""A shell script: sites are command lines with CUDA-graph flags.

A site has the flags that come together in one command: those of the command, and those of the arrays and strings that
it expands. Edits are spans of the text; the edited script is parsed again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING

from cgmigrate.documents.command_line_advice import (
    brace_problems,
    by_hand,
    instead_of_key,
    override_start,
    pattern_in_text,
)
from cgmigrate.documents.comments import LINE_BREAK
from cgmigrate.documents.overrides import ELSEWHERE, keys_of, value_beside
from cgmigrate.documents.python.programs import PROGRAM
from cgmigrate.documents.shell.environment import command_at, variable_of
from cgmigrate.documents.shell.equivalence import same_apart_from_flags
from cgmigrate.documents.shell.fragments import PRINTERS, SEARCHERS, Fragment, FragmentReader
from cgmigrate.documents.shell.heredocs import Heredoc, heredocs
from cgmigrate.documents.shell.objects import CommandLine, command_lines
from cgmigrate.documents.shell.overrides import OverrideLine, OverrideRewriter, override_lines
from cgmigrate.documents.shell.overrides import spelled as override_spelled
from cgmigrate.documents.shell.plain_words import PlainWords, SingleWords, is_output_used
from cgmigrate.documents.shell.quoted import is_exported
from cgmigrate.documents.shell.site_rewriter import edits_of, program_edits, programs_in, spelled, without_hybrid
from cgmigrate.documents.shell.started_commands import PASSED_ON, commands_of, passed_on, script_named
from cgmigrate.documents.shell.tree import ShellTree, nodes_around, parse
from cgmigrate.documents.sites import PROSE, WORDS_ALONE, Document, Problem, ProblemKind, Role, Site, Use
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, Missing, Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

if TYPE_CHECKING:
    from tree_sitter import Node

    from cgmigrate.documents.nesting import NestedText
    from cgmigrate.documents.uses import Appearance

HARNESS = "a program with options of its own, spelled with underscores"
"""Owner of ``--cuda_graph_scope``, such as Megatron-Bridge's performance scripts."""
NOT_READ = "a text that is not read as a command line"
OWN_OPTION = "the script's own option or variable"
_IMPLEMENTATIONS = frozenset((IMPL, ENABLE, EXTERNAL))
_JOINED_WORDS = re.compile(r"(?<!\\)(?:\\\\)*\\[ \t]+-")
_BLANK = "a backslash in front of a blank makes the blank a part of the next word"
_DELETES = "deletes a key, which has to have this name in the configuration"
_UNPARSED = "cgmigrate cannot parse line {line} as shell, so the words around it are not certain"
_TOO_DEEP = "commands are nested too deeply for cgmigrate to read the script"
_UNREAD_VALUE = "a variable of the command may have the flags on line {line}, which are not rewritten"
_OF_EXPANSION = "`{flag}` is in the expansion of a variable, which may or may not add it"
_OTHER_PROGRAM = "`{program}` gets the same flags, and may not take the new ones"
_MORE_WORDS = "`xargs` or `parallel` adds words to the command, and the script has flags in another text"
SEARCHED = "line {line} searches a text for the deprecated flag"
"""Why a fix of a script is not safe."""
_OF_VARIABLE = "`${variable}` has the value, and code that sets the variable has to use the values of the new flag"
_WHERE_SET = "an expansion of a variable, which takes effect only if the variable is set"
_ADDS_WORDS = re.compile(r"(?<![\w.-])(?:xargs|parallel)(?![\w.-])")
_SOME_ARGUMENT = re.compile(r"\$\{[@*\d]")
_ALTERNATIVE = re.compile(r"\$\{\w+(?:\[[@*]\])?:?\+")
"""An expansion that gives something where its variable is set: ``${X:+--enable-cuda-graph}``."""
_SEARCHED = re.compile(r"\$\{\w+(?:\[[@*]\])?[/#%]")
"""An expansion with a pattern, such as ``${ARGS/--cuda-graph-scope full/}``."""
_PLACES = {
    "heredoc_body": "a here-document",
    "raw_string": "a string that is not a word of a command line",
    "string": "a string that is not a word of a command line",
    "expansion": "the default of a variable, which takes effect only if the variable is not set",
    "command_substitution": "words that a command prints",
    "comment": "a comment",
}


class ShellDocument(Document):
    """A shell script; see ``sites.Document``. Without a catalogue, the settings are those that ship."""

    def __init__(self, text: str, path: str = "", catalogue: Catalogue | None = None) -> None:
        super().__init__(text, path, catalogue)
        self.skipped: list[tuple[Use, str]] = []
        self._is_arguments = path.lower().endswith(".args")
        self._tree: ShellTree = parse(text)
        self._fragments: Sequence[Fragment] = ()
        self._lines: list[CommandLine] = []
        self._overrides: Sequence[OverrideLine] = ()
        self._names: list[Appearance] = []
        if self._tree.is_too_deep:
            self.problems.append(Problem(ProblemKind.TOO_COMPLEX, Span(0, 0), _TOO_DEEP))
            return
        reader = FragmentReader(self._tree, self.catalogue)
        self._names = self._appearances()
        starts = [appearance.span.start for appearance in self._names]
        self._fragments = reader.of_arguments() if self._is_arguments else reader.fragments(starts)
        self._not_exported = reader.not_exported
        self._lines = command_lines(self._fragments, reader.plain_variables)
        for number in () if self._is_arguments else passed_on(self._lines, text, reader.functions):
            self._lines[number].blocked_by = self._lines[number].blocked_by or PASSED_ON
        self._overrides = override_lines(self._fragments, text, self.catalogue)
        self._commands = commands_of(self._overrides, self._fragments, reader) if self._overrides else {}
        self._read()

    # --- reading ------------------------------------------------------------------------------------

    def _read(self) -> None:
        self.sites = [self._site(index, line) for index, line in enumerate(self._lines)]
        self.sites += [self._of_overrides(index, one) for index, one in enumerate(self._overrides, len(self._lines))]
        written = [flag.span for line in self._lines for one in line.fragments for flag in one.flags]
        written += [one.span for line in self._overrides for one in line.overrides]
        written.sort(key=attrgetter("start"))
        at = end = 0
        for appearance in self._names:
            # Both are in the order of the text; a flag in a string may be inside the value of another one.
            while at < len(written) and written[at].start <= appearance.span.start:
                end = max(end, written[at].end)
                at += 1
            if appearance.span.start >= end:
                self._read_other(appearance)

        self._read_defaults()
        self.problems += (one for one in brace_problems(self.text, self.catalogue) if not self._is_prose(one.span))

    def _read_defaults(self) -> None:
        """Report the flags at the beginning of a default, such as ``${ARGS:---cuda-graph-scope attn}``."""
        known = {problem.span.start for problem in self.problems}
        for match in _default_flags(self.catalogue).finditer(self.text):
            if match.start("flag") in known:
                continue
            place = _WHERE_SET if match["sign"] == "+" else _PLACES["expansion"]
            other = "nothing" if match["sign"] == "+" else "its value"
            message = f"`{match['flag']}` is part of {place}; the other meaning is {other}"
            self.problems.append(
                Problem(
                    ProblemKind.COMMAND_LINE_IN_VALUE,
                    Span(*match.span("flag")),
                    message,
                    advice=by_hand(match["flag"], self.catalogue, self.text, match.end("flag")),
                )
            )

    def _is_prose(self, span: Span) -> bool:
        """Return whether a place is in a comment or in what a command prints."""
        node = self._tree.at(span)
        is_comment = "comment" in _kinds_around(node) or self._is_disabled(span.start)
        return is_comment or (self._is_argument_of(node, PRINTERS) and not is_output_used(node, self._tree))

    def _appearances(self) -> list[Appearance]:
        from cgmigrate.documents.uses import appearances_in

        return list(appearances_in(self.text, self.catalogue, named_only=True))

    def _site(self, index: int, line: CommandLine) -> Site:
        written = tuple(flag.use for one in line.fragments for flag in one.flags)
        names = {use.setting for use in written}
        is_part = bool(line.linked)
        first = line.fragments[0]
        return Site(
            index,
            (first.variable or first.program or WORDS_ALONE,),
            Span(min(use.span.start for use in written), max(use.span.end for use in written)),
            written,
            flags=True,
            neighbours=line.possible,
            blocked_by=self._blocked_by(line, written),
            overrides=is_part or (line.is_open and not names & _IMPLEMENTATIONS),
            linked=tuple(sorted(line.linked)),
            uncertain=is_part,
            programs=line.programs,
            meets=self._meets(line),
        )

    def _adds_words(self, command: Fragment) -> bool:
        """Return whether a program that adds words starts a command."""
        return _ADDS_WORDS.search(self.text, self.text.rfind("\n", 0, command.start) + 1, command.span.end) is not None

    def _meets(self, line: CommandLine) -> frozenset[str]:
        bare = {name.partition("@")[0] or name for name in line.unknown} | ({""} if self._is_arguments else set())
        names = {"@" if name.isdigit() or name[:1] in ("@", "*") else name for name in bare}
        names |= {"@"} if "" in names and _SOME_ARGUMENT.search(self.text) else set()
        names |= {""} if any(self._adds_words(one) for one in line.commands) else set()
        names |= {name for one in line.commands for word in one.words if (name := script_named(word.text or ""))}
        return frozenset(names | {one.variable for one in line.fragments if is_exported(one.variable, self.text)})

    def _of_overrides(self, index: int, line: OverrideLine) -> Site:
        written = tuple(one.use for one in line.overrides)
        fragments = CommandLine([line.fragment], {}, {}, frozenset([""]), ())
        return Site(
            index,
            tuple(filter(None, line.prefix.split("."))),
            Span(written[0].span.start, max(use.span.end for use in written)),
            written,
            blocked_by=self._blocked_by(fragments, written),
            overrides=True,
            neighbours=keys_of(line.texts),
            commands=self._commands.get(index - len(self._lines), ()),
            elsewhere=ELSEWHERE.format(prefix=line.prefix or written[0].key),
        )

    def _line_of(self, index: int) -> CommandLine | OverrideLine:
        return self._lines[index] if index < len(self._lines) else self._overrides[index - len(self._lines)]

    def _blocked_by(self, line: CommandLine, written: Sequence[Use]) -> str:
        if self.is_broken and not self._is_arguments:
            return self._unparsed
        if reason := next(filter(None, map(self._single_words.reason, line.fragments)), ""):
            return reason
        if self._may_join_words and any(
            _JOINED_WORDS.search(self.text, one.span.start, one.span.end) for one in line.fragments
        ):
            return _BLANK
        if reason := line.blocked_by or next((one.blocked_by for one in line.fragments if one.blocked_by), ""):
            return reason
        counts = Counter(use.setting for use in written)
        twice = next((use.key for use in written if counts[use.setting] > 1), "")
        return f"`{twice}` is written twice; the last one takes effect" if twice else ""

    @cached_property
    def _may_join_words(self) -> bool:
        """Whether the text has a backslash in front of a blank: a search for a word is fast, a pattern not."""
        return "\\ " in self.text or "\\\t" in self.text

    @cached_property
    def _single_words(self) -> SingleWords:
        return SingleWords(self._tree, self._fragments)

    @cached_property
    def _plain_words(self) -> PlainWords:
        return PlainWords(self._tree, self._fragments, self._not_exported)

    def _read_other(self, appearance: Appearance) -> None:
        """Note an appearance that is no flag of a site: a problem, or a name that belongs to something else."""
        start = appearance.span.start
        node = self._tree.at(appearance.span)
        kinds, expansion = _kinds_around(node), self._expansion_around(node)
        match = pattern_in_text(self.catalogue).match(self.text, override_start(self.text, start))
        if "comment" in kinds or self._is_disabled(start):
            self.skipped.append((appearance.use(Role.MENTION), PROSE))
        elif match is None or not match.start() <= start < match.end():
            self._read_name(appearance, is_in_text="heredoc_body" in kinds)
        elif "case_item" in kinds[:2]:
            self.skipped.append((appearance.use(Role.MENTION), OWN_OPTION))
        elif "test_command" in kinds or self._is_argument_of(node, SEARCHERS) or _SEARCHED.match(expansion):
            self._problem(match, ProblemKind.READ, "is searched for in a text, which no fix changes")
        elif self._is_argument_of(node, PRINTERS) and not is_output_used(node, self._tree):
            self.skipped.append((appearance.use(Role.MENTION), PROSE))
        else:
            what = next((_PLACES[kind] for kind in kinds if kind in _PLACES), "a word that is not a flag of a command")
            what = _WHERE_SET if what == _PLACES["expansion"] and _ALTERNATIVE.match(expansion) else what
            why = self._why_not_read(start) if "heredoc_body" in kinds else ""
            self._problem(match, ProblemKind.COMMAND_LINE_IN_VALUE, f"is part of {what}, which is not rewritten{why}")

    def _read_name(self, appearance: Appearance, *, is_in_text: bool) -> None:
        """Note a name that is no deprecated flag; ``is_in_text`` says that it is in a here-document."""
        key, name = appearance.key, appearance.setting
        start = override_start(self.text, appearance.span.start)
        if self.text.startswith("~", start) and name in self.catalogue.deprecated:
            message = f"`{self.text[start : appearance.span.end]}` {_DELETES}"
            advice = instead_of_key(name, self.catalogue)
            self.problems.append(Problem(ProblemKind.COMMAND_LINE_IN_VALUE, appearance.span, message, advice=advice))
            return
        if key.startswith("--") and "_" in key:
            owner = HARNESS
        elif is_in_text and name in self.catalogue.deprecated and self._is_megatron(appearance):
            message = f"`{key}` is part of a here-document, which is not rewritten"
            message += self._why_not_read(appearance.span.start)
            advice = instead_of_key(name, self.catalogue)
            kind = ProblemKind.COMMAND_LINE_IN_VALUE
            self.problems.append(Problem(kind, appearance.span, message, advice=advice))
            return
        else:
            owner = NOT_READ if is_in_text or key.startswith("--") else OWN_OPTION
        self.skipped.append((appearance.use(Role.WRITE), owner))

    def _is_megatron(self, appearance: Appearance) -> bool:
        """Return whether a setting in a here-document is surely Megatron's: others have one of them, too."""
        if appearance.setting != ENABLE:
            return True
        start = appearance.span.start
        span = next((one.span for one in self.heredocs if one.span.start <= start < one.span.end), appearance.span)
        names = (one.setting for one in self._names if span.start <= one.span.start < span.end)
        return any(name != ENABLE for name in names) or "megatron" in self.text[span.start : span.end].lower()

    def _why_not_read(self, start: int) -> str:
        """Return why the here-document with an offset is not read."""
        reasons = (one.reason for one in self.heredocs if one.span.start <= start < one.span.end)
        reason = next(reasons, "") or (self._unparsed if self.is_broken else "")
        return f": {reason}" if reason else ""

    def _problem(self, match: re.Match[str], kind: ProblemKind, message: str) -> None:
        name = match.group().lstrip("+~").rstrip("=")
        self.problems.append(
            Problem(
                kind,
                Span(*match.span()),
                f"`{name}` {message}",
                advice=by_hand(name, self.catalogue, self.text, match.end()),
            )
        )

    def _is_disabled(self, offset: int) -> bool:
        """Whether a name is in a line of a string or file of arguments that somebody turned off with a ``#``."""
        before = self.text[self.text.rfind("\n", 0, offset) + 1 : offset].lstrip()
        return before.startswith("#") if self._is_arguments else before.endswith("#")

    def _expansion_around(self, node: Node | None) -> str:
        """Return the nearest expansion around a place as it is written, empty without one."""
        return next((self._tree.written(one) for one in nodes_around(node) if one.type == "expansion"), "")

    def _is_argument_of(self, node: Node | None, programs: Collection[str]) -> bool:
        """Whether a place is among the words of a command that writes no file, and that is one of some programs."""
        node = next((one for one in nodes_around(node) if one.type == "command"), None)
        name = node.child_by_field_name("name") if node is not None else None
        if node is None or name is None or self._tree.written(name).rpartition("/")[2] not in programs:
            return False
        return node.parent is None or node.parent.type != "redirected_statement"

    @property
    def is_broken(self) -> bool:
        """Whether the grammar of the shell does not cover a part of the script."""
        return bool(self._tree.errors)

    @property
    def _unparsed(self) -> str:
        return _UNPARSED.format(line=self._tree.errors[0].start_point.row + 1)

    def has_setting(self, span: Span) -> bool:
        """Whether a part of the text has the name of a setting."""
        return any(span.start <= name.span.start < span.end for name in self._names)

    def _read_comments(self) -> tuple[list[Span], list[Span]]:
        """Return the comments, and the commands and strings of several lines, inside which no comment can be."""
        comments = [self._tree.span(node) for node in self._tree.comments]
        spans = [one.span for one in self._fragments if one.form.value != "an array"]
        joined = [self._whole_lines(span) for span in spans if LINE_BREAK.search(self.text, span.start, span.end)]
        return comments, joined

    def _whole_lines(self, span: Span) -> Span:
        match = LINE_BREAK.search(self.text, span.end)
        return Span(self.text.rfind("\n", 0, span.start) + 1, match.start() if match else len(self.text))

    def enclosing(self, offset: int, /) -> str:
        """Return the function around an offset, empty where there is none."""
        names = []
        for node in self._tree.functions:
            span = self._tree.span(node)
            if span.start <= offset < span.end and (name := node.child_by_field_name("name")) is not None:
                names.append(self._tree.written(name))
        return ".".join(names)

    def value_beside(self, index: int, section: Sequence[str], keys: Sequence[str], /) -> object:
        """Return the value of another flag of the command line; see ``sites.Document``."""
        line = self._line_of(index)
        if isinstance(line, OverrideLine):
            return value_beside(line.texts, line.prefix, section, keys)
        if section:
            return Missing.UNKNOWN
        if keys[-1] in line.options:
            return line.options[keys[-1]]
        return Missing.UNKNOWN if line.is_open or line.linked or keys[-1] in line.possible else Missing.ABSENT

    def variable_at(self, offset: int, name: str, /) -> object:
        """Return the value of a variable of the environment of a command; see ``sites.Document``."""
        if self._is_arguments:
            return Missing.ABSENT
        starts = [offset]
        for site in self.sites:
            if any(use.span.start == offset for use in site.written):
                line = self._line_of(site.index)
                fragments = (line.fragment,) if isinstance(line, OverrideLine) else line.commands
                starts = [one.start for one in fragments if not one.variable]
        nodes = (self._tree.at(Span(start, start + 1)) for start in starts)
        commands = [command for node in nodes if (command := command_at(node)) is not None]
        return variable_of(name, commands, self._tree)

    @cached_property
    def heredocs(self) -> Sequence[Heredoc]:
        """The here-documents, in the order of the text."""
        if self._is_arguments or "<<" not in self.text:
            return ()
        starts = [name.span.start for name in self._names]
        return heredocs(self._tree, starts, self._variables_with_flags)

    @property
    def _variables_with_flags(self) -> frozenset[str]:
        """The variables that contain flags of settings, also those of other variables."""
        assigned = [one for one in self._fragments if one.variable]
        names = {one.variable for one in assigned if one.flags}
        while new := {
            one.variable
            for one in assigned
            if one.variable not in names and any(word.variable in names for word in one.words)
        }:
            names |= new
        return frozenset(names)

    def is_override(self, index: int) -> bool:
        """Return whether a site consists of overrides."""
        return len(self._lines) <= index < len(self.sites)

    # --- writing --------------------------------------------------------------------------------------

    def risk(self, index: int, /) -> str:
        """Return why a fix is not safe: a test reads a command line, or another file may set its variable."""
        if self.is_override(index):
            return ""
        read = next((problem for problem in self.problems if problem.kind is ProblemKind.READ), None)
        if read is not None:
            return SEARCHED.format(line=self.text.count("\n", 0, read.span.start) + 1)
        return self._risk_of(self._lines[index]) if index >= 0 else ""

    def _unread_value(self, line: CommandLine) -> int | None:
        """Return where flags that are not read may get into a command line by a variable, None if nowhere.

        What the shell computes otherwise has no name, and may be any of them, as the arguments of the script may.
        """
        is_any = not line.unknown.isdisjoint(("", "@"))
        names = "|".join(name for name in line.unknown if name.isidentifier())
        assigned = re.compile("" if is_any else rf"\b(?:{names})\+?=")
        for problem in self.problems if names or is_any else ():
            start = self.text.rfind("\n", 0, problem.span.start) + 1
            before = self.text[start : problem.span.start]
            if problem.kind is ProblemKind.COMMAND_LINE_IN_VALUE and assigned.search(before):
                return problem.span.start
        return None

    def _flag_of_expansion(self, line: CommandLine) -> re.Match[str] | None:
        """Return a flag that a command has only where a variable is set, or is not: ``${X:+--cuda-graph-impl $X}``."""
        flags = _default_flags(self.catalogue, deprecated=False)
        every = (flags.search(self.text, one.span.start, one.span.end) for one in line.commands)
        return next(filter(None, every), None)

    def _risk_of(self, line: CommandLine) -> str:
        """Return why the words of a command line may be more than words of one command."""
        if reason := next((one.risk for one in line.fragments if one.risk), ""):
            return reason
        if (self.skipped or self.problems) and any(map(self._adds_words, line.commands)):
            return _MORE_WORDS
        if match := self._flag_of_expansion(line):
            return _OF_EXPANSION.format(flag=match["flag"])
        if (at := self._unread_value(line)) is not None:
            return _UNREAD_VALUE.format(line=self.text.count("\n", 0, at) + 1)
        if reason := self._plain_words.reason(line.fragments) or _other_program(line):
            return reason
        flags = [flag for one in line.fragments for flag in one.flags]
        variable = next((flag.variable for flag in flags if flag.variable), "")
        return _OF_VARIABLE.format(variable=variable) if variable else ""

    def edits(self, rewrites: Mapping[int, Settings]) -> list[Edit]:
        """Return the edits that make the rewrites; see ``sites.Document``."""
        own = {index: self.sites[index].own for index in rewrites}
        of_flags = {
            index: without_hybrid(own[index], after) for index, after in rewrites.items() if index < len(self._lines)
        }
        fragments = {index: self._lines[index].fragments for index in of_flags}
        result = edits_of(self.text, fragments, own, of_flags, self.catalogue)
        for index in of_flags:
            if len(of_flags[index]) != len(rewrites[index]):
                result += program_edits(self.text, index, self._lines[index], rewrites[index])
        for index in rewrites.keys() - of_flags.keys():
            line = self._overrides[index - len(self._lines)]
            result += OverrideRewriter(self.text, index, line, self.catalogue).edits(own[index], rewrites[index])
        return self._in_order(result, rewrites)

    def check(self, edited: str, rewrites: Mapping[int, Settings]) -> str:
        """Read the edited text; return how it differs beyond ``rewrites``, empty when it does not."""
        again = self._again = type(self)(edited, self.path, self.catalogue)
        if len(again._tree.errors) > len(self._tree.errors):
            return "it would no longer be valid shell code"
        if name := _emptied(self.text, edited):
            return f"without words, `{name}` would be an empty argument where it is expanded"
        expected = [own for site in self.sites if (own := dict(rewrites.get(site.index, site.own)))]
        if expected != [site.own for site in again.sites]:
            return "the flags would be read differently"
        if len(again.problems) != len(self.problems):
            return "other flags would be read differently"
        if self._is_arguments:
            return self._other_arguments(again)
        spans, spans_after = self._spans(), again._spans()
        if any(len(without_hybrid(self.sites[index].own, after)) != len(after) for index, after in rewrites.items()):
            spans, spans_after = (
                sorted(own + programs_in(one.text), key=attrgetter("start"))
                for own, one in ((spans, self), (spans_after, again))
            )
        same = same_apart_from_flags(self._tree, spans, again._tree, spans_after)
        return "" if same else "something else in the script would be read differently"

    def _other_arguments(self, again: ShellDocument) -> str:
        return "" if self._other_words() == again._other_words() else "another argument would be read differently"

    def _other_words(self) -> list[str]:
        spans = self._spans()
        words = [word.span for one in self._fragments for word in one.words]
        kept = [span for span in words if not any(one.start <= span.start < one.end for one in spans)]
        return [self.text[span.start : span.end] for span in kept]

    def _spans(self) -> list[Span]:
        return sorted((use.span for site in self.sites for use in site.written), key=lambda span: span.start)

    def spelled(self, site: int, name: str, value: object) -> str:
        """Return a setting as a flag or an override; see ``sites.Document``."""
        line = self._line_of(site)
        if isinstance(line, OverrideLine):
            return override_spelled(line, name, value)
        return spelled(self.catalogue, name, value)


@lru_cache(maxsize=8)
def _default_flags(catalogue: Catalogue, *, deprecated: bool = True) -> re.Pattern[str]:
    flags = catalogue.alternatives(deprecated=deprecated, flags=True)
    between = "" if deprecated else r"[^{}\n]*?"
    return re.compile(rf"\$\{{\w+:?(?P<sign>[-+=]){between}(?P<flag>{flags})(?![\w-])")


def _other_program(line: CommandLine) -> str:
    """Return why flags that several programs get may not fit one of them."""
    programs = sorted({one.program for one in line.commands if one.program.endswith(".py")})
    other = next((one for one in programs if not PROGRAM.fullmatch(one)), "") if len(programs) > 1 else ""
    return _OTHER_PROGRAM.format(program=other) if other else ""


def parts_of(document: ShellDocument, numbers: Collection[int] | None) -> list[NestedText]:
    """Return the here-documents of a script that are read: those with some numbers, or those with settings."""
    if document.is_broken:
        return []
    parts = [one.part(number) for number, one in enumerate(document.heredocs) if not one.reason]
    return [one for one in parts if (document.has_setting(one.span) if numbers is None else one.number in numbers)]


def _kinds_around(node: Node | None) -> list[str]:
    """Return the types of a node and of those around it, nearest first."""
    return [one.type for one in nodes_around(node)]


_EMPTY = re.compile(r"(?<!\w)(\w+)\+?=\(\s*\)")


def _emptied(text: str, edited: str) -> str:
    """Return an array that loses all its words, or has none, and whose expansion is one empty word: ``"${A[@]:-}"``.

    An empty word behind a flag that goes was one of its values.
    """
    every = Counter(_EMPTY.findall(edited))
    names = every - Counter(_EMPTY.findall(text))
    names.update(one for one in every if not re.search(rf"(?<!\w){one}\+?=\(\s*[^\s)]", edited))
    return next((one for one in sorted(names) if re.search(rf'"\$\{{{one}\[(?:@\]:?-|\*\])', edited)), "")
