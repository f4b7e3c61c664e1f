"""Edits of flags: renames, new values, deletion with lines and backslashes, and new flags beside others."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence

from cgmigrate.documents.changes import Add, Change, Remove, Rename, Revalue, changes, same
from cgmigrate.documents.shell.flags import Flag, written
from cgmigrate.documents.shell.fragments import Fragment, FragmentForm
from cgmigrate.documents.shell.objects import CommandLine
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.megatron.catalogue import Catalogue
from cgmigrate.megatron.hybrid_models import PATTERN, PROGRAMS, SPEC_FLAG
from cgmigrate.megatron.settings import Settings, Undecided
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span, line_end, line_start

_REST = re.compile(r"[ \t]*(?P<backslash>\\?)(?=\r?\n|\Z)")
"""What may follow the last flag of a line."""
_REST_OF_STRING = re.compile(r"[ \t]*(?P<backslash>\\{0,2})(?=\r?\n|\Z)")
"""The same in a string: of two backslashes, the shell that runs its text gets one."""
_CONTINUED = re.compile(r"[ \t]*(?P<backslash>\\)\r?\n[ \t]*\Z")
_CONTINUED_STRING = re.compile(r"[ \t]*(?P<backslash>(?<!\\)\\{1,2})\r?\n[ \t]*\Z")
_ALIGNED = re.compile(r"[ \t]{2,}(?=\S)")
_BEFORE_END = ")\"'`"
_QUOTES = "\"'"


class ShellSiteRewriter:
    """Rewrites the flags of one object."""

    def __init__(self, text: str, index: int, fragments: Sequence[Fragment], catalogue: Catalogue) -> None:
        self.text, self.index, self.catalogue = text, index, catalogue
        self.places: dict[str, tuple[Fragment, Flag]] = {}
        for fragment in fragments:
            for flag in fragment.flags:
                self.places[flag.use.setting] = (fragment, flag)

    def edits(self, own: Settings, after: Settings) -> list[Edit]:
        """Return the edits that turn the settings of the object into others. Raises CannotEditError."""
        planned = changes(own, after, self.catalogue)
        edits = [edit for change in planned for edit in self._of(change)]
        removed = self._removals({change.name for change in planned if isinstance(change, Remove)})
        # Blanks behind a flag need no column where what follows them is deleted.
        kept = [one for one in edits if one.text.strip() or not any(_is_inside(one, other) for other in removed)]
        return [*kept, *removed]

    def _of(self, change: Change) -> list[Edit]:
        match change:
            case Rename(old=old, new=new, value=value):
                flag = self.places[old][1]
                return self._renamed(flag, new, value)
            case Revalue(name=name, value=value):
                flag = self.places[name][1]
                return self._aligned(flag, self._with_value(flag, self._words(name, value)))
            case Add(name=name, value=value, after=after):
                flag = self.places[after][1]
                return [Edit(flag.span.end, flag.span.end, f" {self._beside(flag, name, value)}")]
        return []

    def _words(self, name: str, value: object) -> list[str]:
        words = written(self.catalogue[name], value)
        if words is None:
            flag = self.catalogue[name].flag
            reason = f"a command line cannot set `{flag}` to {_shown(value)}"
            raise CannotEditError(self.index, reason)
        return words

    def _beside(self, _flag: Flag, name: str, value: object) -> str:
        """Return a new setting as it is written beside another one."""
        return " ".join([self.catalogue[name].flag, *self._words(name, value)])

    def _renamed(self, flag: Flag, new: str, value: object) -> list[Edit]:
        name = self.catalogue[new].flag
        # Words that the shell computes, such as the pattern `M*`, stay as they are.
        is_kept = bool(flag.values) and isinstance(value, Undecided) and value == flag.use.value
        words = [] if is_kept else self._words(new, value)
        if not flag.values:
            # The value is a word of its own, quoted as the flag is.
            quote = self.text[flag.span.start] if flag.span.start < flag.name.start else ""
            name = f"{quote} {quote}".join([name, *words])
        edits = [Edit(flag.name.start, flag.name.end, name)]
        if flag.values and not is_kept and not same(flag.use.value, value) and [flag.use.value] != words:
            edits += self._with_value(flag, words)
        return self._aligned(flag, edits)

    def _with_value(self, flag: Flag, words: Sequence[str]) -> list[Edit]:
        start, end = flag.values[0].start, flag.values[-1].end
        if self.text[flag.name.end : flag.name.end + 1] == "=" and len(words) != 1:
            raise CannotEditError(self.index, f"`{flag.use.key}=` takes one word")
        new, quote = " ".join(words), self.text[start]
        if len(flag.values) == 1 and len(words) == 1 and quote in "\"'" and self.text[end - 1] == quote:
            new = f"{quote}{new}{quote}"
        return [Edit(start, end, new)]

    def _aligned(self, flag: Flag, edits: list[Edit]) -> list[Edit]:
        """Return the edits of a flag, with the blanks behind it changed so that what follows keeps its column."""
        ends = [flag.name.end, flag.span.end]
        for end in dict.fromkeys(ends):
            match = _ALIGNED.match(self.text, end)
            if match and " " * len(match.group()) == match.group() and self.text[end - 1] not in "\r\n":
                before = [edit for edit in edits if edit.end <= end]
                grown = sum(len(edit.text) - (edit.end - edit.start) for edit in before)
                width = max(1, len(match.group()) - grown)
                edits = [*edits, Edit(*match.span(), " " * width)] if grown else edits
        return edits

    # --- deletion and insertion -------------------------------------------------------------------

    def _removals(self, names: set[str]) -> list[Edit]:
        edits = []
        by_fragment: dict[int, list[Flag]] = {}
        fragments: dict[int, Fragment] = {}
        for name in names:
            fragment, flag = self.places[name]
            fragments[id(fragment)] = fragment
            by_fragment.setdefault(id(fragment), []).append(flag)
        for key, flags in by_fragment.items():
            flags.sort(key=lambda flag: flag.first)
            at = 0
            while at < len(flags):
                last = at
                while last + 1 < len(flags) and flags[last + 1].first == flags[last].last + 1:
                    last += 1
                edits.append(self._removal(fragments[key], flags[at], flags[last]))
                at = last + 1
        return edits

    def _removal(self, fragment: Fragment, one: Flag, other: Flag) -> Edit:
        """Return the deletion of adjacent flags, from one to another."""
        start, end = one.span.start, other.span.end
        first = line_start(self.text, start)
        rest = self._rest(fragment, end)
        is_first, is_last = not self.text[first:start].strip(), rest is not None
        if is_first and rest is not None:
            continued = self._continued(fragment, start) if not rest["backslash"] else None
            if continued and fragment.form is not FragmentForm.ARRAY:
                # The line before was continued by this one only.
                return Edit(continued.start(), rest.end(), "")
            return Edit(first, line_end(self.text, rest.end()), "")
        blanks = self._blanks_behind(end)
        before = self.text[:start].rstrip(" \t")
        # A quote is that of a word beside it, unless the flag is the first or last one in a string.
        is_opened = before[-1:] == "(" or (one.first == 0 and before[-1:] in _QUOTES)
        is_closed = other.last == len(fragment.words) - 1 and self.text[blanks : blanks + 1] in _BEFORE_END
        if is_first and is_closed and fragment.form is not FragmentForm.ARRAY:
            # What closes the words comes behind those of the line before.
            continued = self._continued(fragment, start)
            return Edit(continued.start() if continued else start, end, "")
        if is_first or is_opened:
            return Edit(start, end if is_closed else blanks, "")
        if is_last and rest is not None and rest["backslash"] and blanks - end > 1:
            return Edit(len(before), end, " " * (end - len(before)))
        return Edit(len(before), end, "")

    def _rest(self, fragment: Fragment, end: int) -> re.Match[str] | None:
        return (_REST_OF_STRING if fragment.form is FragmentForm.STRING else _REST).match(self.text, end)

    def _continued(self, fragment: Fragment, start: int) -> re.Match[str] | None:
        """Return the end of the line before a place, if a backslash joins the two."""
        return (_CONTINUED_STRING if fragment.form is FragmentForm.STRING else _CONTINUED).search(self.text, 0, start)

    def _blanks_behind(self, offset: int) -> int:
        while self.text[offset : offset + 1] in (" ", "\t"):
            offset += 1
        return offset


def _is_inside(edit: Edit, other: Edit) -> bool:
    return other.start <= edit.start and edit.end <= other.end


def _shown(value: object) -> str:
    return "an empty list" if value == [] else value.text if isinstance(value, Undecided) else str(value)


def spelled(catalogue: Catalogue, name: str, value: object) -> str:
    """Return a setting as a flag with its value."""
    words = written(catalogue[name], value)
    return " ".join([catalogue[name].flag, *(map(shlex.quote, words) if words is not None else [_shown(value)])])


def edits_of(
    text: str,
    fragments: Mapping[int, Sequence[Fragment]],
    own: Mapping[int, Settings],
    rewrites: Mapping[int, Settings],
    catalogue: Catalogue,
) -> list[Edit]:
    """Return the edits that make rewrites, by the index of the object, in the order of the text."""
    edits: list[Edit] = []
    for index, after in sorted(rewrites.items()):
        edits += ShellSiteRewriter(text, index, fragments[index], catalogue).edits(own[index], after)
    return sorted(edits, key=lambda edit: (edit.start, edit.end))


# --- programs of hybrid models --------------------------------------------------------------------

_PROGRAM = re.compile(rf"(?:{'|'.join(map(re.escape, (*PROGRAMS, *PROGRAMS.values())))})(?![\w.])")
_OTHER = "the command line starts `{}` in a string, a variable or another command: write the hybrid form by hand"


def without_hybrid(own: Settings, after: Settings) -> Settings:
    """Return settings without those that are written behind the program."""
    is_new = SPEC_FLAG in after and SPEC_FLAG not in own
    return {name: value for name, value in after.items() if not is_new or name not in (PATTERN, SPEC_FLAG)}


def program_edits(text: str, index: int, line: CommandLine, after: Settings) -> Iterator[Edit]:
    """Yield the edits that start the program of a hybrid model. Raises CannotEditError."""
    spec = after[SPEC_FLAG]
    assert isinstance(spec, list)
    words = " ".join(["--hybrid-layer-pattern", shlex.quote(str(after[PATTERN])), "--spec", *map(str, spec)])
    for command in dict.fromkeys(line.commands):
        span = _program_of(text, command) if command.form is FragmentForm.COMMAND else None
        if span is None:
            raise CannotEditError(index, _OTHER.format(next(iter(PROGRAMS))))
        old = next(name for name in PROGRAMS if text.startswith(name, span.start))
        yield Edit(span.start, span.start + len(old), PROGRAMS[old])
        yield Edit(span.end, span.end, f" {words}")
    if not line.commands:
        raise CannotEditError(index, _OTHER.format(next(iter(PROGRAMS))))


def programs_in(text: str) -> list[Span]:
    """Return where the programs of both kinds of models are named."""
    return [Span(*match.span()) for match in _PROGRAM.finditer(text)]


def _program_of(text: str, command: Fragment) -> Span | None:
    """Return the program that a command starts, up to the end of its word; None if it is none with a hybrid form."""
    for word in command.words:
        written = text[word.start : word.end].rstrip("\"'")
        name = next((one for one in PROGRAMS if re.search(rf"(?:^|[/\"']){re.escape(one)}$", written)), "")
        if name:
            return Span(word.start + len(written) - len(name), word.end)
    return None
