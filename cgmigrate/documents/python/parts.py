"""Command lines in strings of a Python file, as parts in the syntax of a shell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from cgmigrate.documents.code import Code
from cgmigrate.documents.nesting import Part
from cgmigrate.documents.python.command_strings import CommandString, Division, command_strings
from cgmigrate.documents.python.deprecation_tests import deprecation_test_around
from cgmigrate.documents.python.document import PythonDocument
from cgmigrate.documents.python.fix_risks import PROGRAM, PROGRAM_UNKNOWN
from cgmigrate.documents.python.flag_uses import own_option
from cgmigrate.documents.python.release_checks import release_check_around
from cgmigrate.documents.python.source import Source
from cgmigrate.documents.python.string_code import script_code, string_code, words_of, written_in
from cgmigrate.documents.uses import Appearance, appearances_in

_FLAG = re.compile(r"--[a-z]+-")
"""Begins a flag of Megatron-LM; others have options with underscores."""
_SCRIPT, _ARGS = "string.sh", "string.args"
_EXPORTED = "`{}` is a name of the module, which other files can import"
_OF_TESTS = frozenset(("pytest", "unittest", "mock"))
_IN_TEST = "the file is a test, which may compare what is run"
_PASSED_ON = "other code may add arguments to this list, or read them from it"


@dataclass(frozen=True, eq=False, slots=True)
class StringPart(Part):
    """A string as a part, with its quotes."""

    def has(self, _offset: int) -> bool:
        """Return whether a character of the span is one of the part: all are, since the string is read as a whole."""
        return True


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
