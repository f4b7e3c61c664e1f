"""The objects of a file as text: their settings and origins, captures, edit set, and diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cgmigrate.lint.diagnostics import LintDiagnostic
from cgmigrate.lint.objects import CapturesOf, ExplainedObject, FileLine, SetOfObject, SettingInEffect, SettingOrigin
from cgmigrate.report import readable
from cgmigrate.text.columns import width
from cgmigrate.text.plurals import counted

MOST_PLACES = 10
"""Places of one list that are shown."""


def object_text(one: ExplainedObject) -> str:
    """Return an object with everything that the plan has of it."""
    lines = [_title(one)]
    sections = (
        ("Settings in effect:", list(_settings(one.settings))),
        ("Captures:", list(_captures(one.captures))),
        ("By layer:", list(one.layers)),
        (_set_title(one.edit_set), list(_members(one.edit_set)) if one.edit_set else []),
        ("Diagnostics:", list(_diagnostics(one.diagnostics))),
        ("Notes:", list(one.advice)),
    )
    for title, content in sections:
        if content:
            lines += ["", title, *(f"  {line}" for line in content)]
    return "\n".join(lines) + "\n"


def object_line(one: ExplainedObject) -> str:
    """Return an object in two lines: where it is, and what happens to it."""
    codes = ", ".join(dict.fromkeys(diagnostic.rule for _, diagnostic in one.diagnostics))
    return f"{_title(one)}\n  {'; '.join(filter(None, [_outcome(one), codes]))}\n"


def _title(one: ExplainedObject) -> str:
    lines = str(one.first.number) if one.last == one.first.number else f"{one.first.number}-{one.last}"
    owner = f" ({one.owner})" if one.owner else ""
    return f"{readable(one.first.path)}:{lines}: {one.name}{owner}"


def _outcome(one: ExplainedObject) -> str:
    """Return what happens to an object: its edit set, and its captures if all entry points have the same."""
    if one.edit_set is None:
        text = "no fix" if one.diagnostics else "nothing to change"
    else:
        text = f"fix {one.edit_set.id} ({_state(one.edit_set)})"
        others = sorted({readable(path) for path in one.edit_set.files} - {readable(one.first.path)})
        text += f" together with {_list(others)}" if others else ""
    if len({captures.entry_points for captures in one.captures}) == 1:
        text += "".join(f"; {captures.text}" for captures in one.captures)
    return text


def _settings(settings: Sequence[SettingInEffect]) -> Iterator[str]:
    longest = max((width(one.origin.text) for one in settings), default=0)
    for one in settings:
        padding = " " * (longest - width(one.origin.text))
        yield f"{one.origin.text}{padding}  {_origin(one.origin)}"
        yield from (f"  overrides {other.text}  {_origin(other)}" for other in one.overrides)


def _origin(origin: SettingOrigin) -> str:
    return f"{_place(origin.line)}{f' ({origin.how})' if origin.how else ''}"


def _place(line: FileLine) -> str:
    return f"{readable(line.path)}:{line.number}"


def _captures(captures: Sequence[CapturesOf]) -> Iterator[str]:
    for one in captures:
        yield one.text
        yield from (f"  {place}" for place in _shortened(list(map(_place, one.entry_points))))


def _set_title(edit_set: SetOfObject | None) -> str:
    return f"Edit set {edit_set.id} ({_state(edit_set)}):" if edit_set else ""


def _state(edit_set: SetOfObject) -> str:
    return "withheld" if edit_set.withheld else edit_set.applicability


def _members(edit_set: SetOfObject) -> Iterator[str]:
    for member in edit_set.members[:MOST_PLACES]:
        yield f"{_place(member.line)}: {member.name}"
        if member.writes is None:
            yield "  stays as it is"
        yield from (f"  writes {' '.join(text.split())}" for text in member.writes or ())
        if member.fix:
            yield f"  fix: {member.fix}"
        elif member.writes == ():
            yield "  deletes its settings"
    if (more := len(edit_set.members) - MOST_PLACES) > 0:
        yield f"and {counted(more, 'more place')}"
    yield from (f"because: {text}" for text in ([] if edit_set.withheld else edit_set.because))
    yield from (f"{label}: {text}" for label, text in zip(("withheld", "help"), edit_set.withheld, strict=False))


def _diagnostics(diagnostics: Sequence[tuple[int, LintDiagnostic]]) -> Iterator[str]:
    for line, one in diagnostics:
        yield f"{one.rule} on line {line}: {_in_one_line(one.message)}"
        # The edit set says why a fix is unsafe.
        yield from (f"  {label}: {_in_one_line(text)}" for label, text in one.remarks if label != "because")


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _shortened(texts: Sequence[str]) -> list[str]:
    more = len(texts) - MOST_PLACES
    return [*texts[:MOST_PLACES], *([f"and {more} more"] if more > 0 else [])]


def _list(texts: Sequence[str]) -> str:
    return ", ".join(_shortened(texts))
