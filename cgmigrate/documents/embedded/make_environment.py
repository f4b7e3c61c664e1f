"""Environment variables that a makefile exports to the commands of its recipes.

A value is known if the file sets the variable once, under no condition and for all targets. What is set without
`export` reaches a command only if make itself was started with the variable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from cgmigrate.documents.embedded.statements import Assignment, statements_of
from cgmigrate.megatron.settings import Missing, Undecided

_OTHER_FILES = re.compile(r"^ *[-s]?include\b", re.MULTILINE)
_ALL = re.compile(r"^ *(?:export[ \t]*(?:#.*)?$|\.EXPORT_ALL_VARIABLES[ \t]*:)", re.MULTILINE)
_NAMED = re.compile(r" *export[ \t]+(?P<names>[\w \t]+)")
_CONDITION = re.compile(r" *if(?:eq|neq|def|ndef)\b")
_SETS = ("=", ":=", "::=", ":::=")
_COMPUTED = "a value that make computes"


def exported(name: str, text: str) -> object:
    """Return the value of a variable that a makefile exports: text, ``Undecided`` or ``Missing``."""
    if _OTHER_FILES.search(text):
        return Missing.UNKNOWN
    if name not in text:
        return Missing.ABSENT
    statements = statements_of(text)
    others = [text[span.start : span.end].strip() for span in statements.others]
    exports = [match["names"].split() for one in others if (match := _NAMED.fullmatch(one))]
    defined = [text[one.span.start : one.span.end] for one in statements.definitions]
    rest = [one for one in defined if name in one]
    rest += [one for one in others if not _NAMED.fullmatch(one) and re.search(rf"\b{name}\b|unexport", one)]
    assignments = [one for one in statements.assignments if one.name == name]
    if rest or not _is_one(assignments) or (exports and any(map(_CONDITION.match, others))):
        return Missing.UNKNOWN
    is_exported = _ALL.search(text) or any(name in names for names in exports)
    return next((_value(one) for one in assignments if is_exported or _exports(one, text)), Missing.ABSENT)


def _is_one(assignments: Sequence[Assignment]) -> bool:
    """Whether a file sets a variable at most once, in any case."""
    plain = [one for one in assignments if one.is_certain and one.operator in _SETS]
    return plain == assignments and len(plain) < 2


def _exports(assignment: Assignment, text: str) -> bool:
    return text[assignment.span.start : assignment.span.end].lstrip().startswith("export")


def _value(assignment: Assignment) -> object:
    value = assignment.value.text
    return Undecided(value, _COMPUTED) if "$" in value else value
