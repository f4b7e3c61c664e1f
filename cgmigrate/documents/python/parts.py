"""Command lines in strings of a Python file, as parts in the syntax of a shell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.documents.code import CannotMapError, Code
from cgmigrate.documents.nesting import Part
from cgmigrate.documents.python.command_strings import CommandString, Division, command_strings
from cgmigrate.documents.python.deprecation_tests import deprecation_test_around
from cgmigrate.documents.python.document import PythonDocument
from cgmigrate.documents.python.fix_risks import PROGRAM_UNKNOWN
from cgmigrate.documents.python.flag_uses import own_option
from cgmigrate.documents.python.programs import PROGRAM
from cgmigrate.documents.python.release_checks import release_check_around
from cgmigrate.documents.python.source import Source
from cgmigrate.documents.python.string_code import Literal, literals, script_code, string_code, words_of, written_in
from cgmigrate.documents.uses import Appearance, appearances_in
from cgmigrate.text.edits import Edit

_FLAG = re.compile(r"--[a-z]+-")
"""Begins a flag of Megatron-LM; others have options with underscores."""
_SCRIPT, _ARGS = "string.sh", "string.args"
_EXPORTED = "`{}` is a name of the module, which other files can import"
_OF_TESTS = frozenset(("pytest", "unittest", "mock"))
_IN_TEST = "the file is a test, which may compare what is run"
_PASSED_ON = "other code may add arguments to this list, or read them from it"


@dataclass(frozen=True, eq=False, slots=True)
class StringPart(Part):
    """A string as a part, with its quotes. ``literals`` are those that it consists of."""

    literals: Sequence[Literal] = ()

    def has(self, offset: int) -> bool:
        """Return whether a character is one of the part: all of its literals are, since they are read as a whole."""
        return any(one.span.start <= offset < one.span.end for one in self.literals)

    def edit(self, edit: Edit, file: str) -> Edit:
        """Return the edit of the file that makes an edit of the part. Raises CannotMapError."""
        if len(self.literals) == 1:
            return self._in_one(edit, file)
        text, start, end = self.code.text, edit.start, edit.end
        if not edit.text and start < end and text[start] == " " and text[end : end + 1] in (" ", ""):
            # The blank in front of a word is often that of the literal above.
            edit = Edit(start + 1, min(end + 1, len(text)), "")
        written = self._in_one(edit, file)
        empty = [at for at, one in enumerate(self.literals) if (one.start, one.end) == (written.start, written.end)]
        return self._without(empty[0], file) if empty and not written.text else written

    def _in_one(self, edit: Edit, file: str) -> Edit:
        # Zero-argument super() does not work in a dataclass with slots.
        return Part.edit(self, edit, file)

    def _without(self, at: int, file: str) -> Edit:
        """Return the edit that deletes a literal with the line that it is on. Raises CannotMapError."""
        first, last = (at - 1, at) if at else (at, at + 1)
        spans = self.literals[first].span, self.literals[last].span
        start, end = (spans[0].end, spans[1].end) if at else (spans[0].start, spans[1].start)
        if "#" in file[spans[0].end : spans[1].start]:
            raise CannotMapError("a comment is between the parts of the string")
        return Edit(start, end, "")


def parts_of(document: PythonDocument, numbers: Collection[int] | None) -> list[Part]:
    """Return the command lines in strings: those with some numbers, or those with flags of settings."""
    source = document.source
    if source is None or (numbers is None and not any(flag in source.text for flag in source.catalogue.flags.values())):
        return []
    names = {one.span.start: one.setting for one in _flags(source)}
    if (not names and numbers is None) or document.copies_keys():
        return []
    parts = []
    for number, string in enumerate(command_strings(source.tree, document.names)):
        span = source.span(string.node)
        is_requested = any(span.start <= name < span.end for name in names) if numbers is None else number in numbers
        part = _part(number, string, document, names) if is_requested else None
        parts += [part] if part is not None else []
    return parts


def _part(number: int, string: CommandString, document: PythonDocument, names: Mapping[int, str]) -> Part | None:
    source = document.source
    assert source is not None
    span = source.span(string.node)
    settings = {setting for start, setting in names.items() if span.start <= start < span.end}
    is_script = string.division is Division.SHELL
    code = script_code(string.node, source) if is_script else string_code(string.node, source)
    if code is not None and not is_script:
        code = words_of(code, list(names), quoted=string.division is Division.QUOTES)
    if code is None:
        return None
    is_arguments = code.text.lstrip().startswith("-")
    return StringPart(
        number,
        span,
        code,
        _ARGS if is_arguments else _SCRIPT,
        is_whole=string.is_complete and not is_arguments,
        has_comments=False,
        escaped=written_in(string.node, source),
        blocked_by=_blocked_by(string, settings, source),
        risk=_risk(string, code, settings, document),
        literals=literals(string.node, source),
    )


def _flags(source: Source) -> Iterator[Appearance]:
    return (one for one in appearances_in(source.text, source.catalogue) if _FLAG.match(one.key))


def _blocked_by(string: CommandString, settings: Collection[str], source: Source) -> str:
    """Return why a string stays: it is for several releases, tests the deprecation, or is for a parser of the file."""
    why = release_check_around(string.node, source) or deprecation_test_around(string.node, source)
    return why or ("" if string.is_complete else own_option(settings, source))


def _risk(string: CommandString, code: Code, settings: Collection[str], document: PythonDocument) -> str:
    """Return why the fix of a string is not safe."""
    if string.exported:
        return _EXPORTED.format(string.exported)
    if reason := document.risk_of_flags(string.node, settings):
        return reason
    if not string.is_complete:
        return _PASSED_ON
    if not _OF_TESTS.isdisjoint(document.top_level):
        return _IN_TEST
    return "" if any(map(PROGRAM.fullmatch, code.text.split())) else PROGRAM_UNKNOWN
