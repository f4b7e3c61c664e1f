"""Command lines as objects: which fragments of a script come together in one command.

A command gets its own words and those of the variables that it expands. What the script shows is followed: assignments
before the command, in their order, with the branches that they are in. A variable that the script does not set, and
the script's own arguments, may have further flags.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.shell.flags import same_options
from cgmigrate.documents.shell.fragments import Fragment, Path, exclude_each_other, is_certain

_MOST_PARTS = 256
"""A limit for the parts of one command, since variables that contain one another multiply them."""


@dataclass(frozen=True, slots=True)
class Part:
    """A fragment that a command gets, and whether it always does."""

    fragment: Fragment
    certain: bool


@dataclass(frozen=True, slots=True)
class Words:
    """What a command or a variable has: its parts, and whether it may have words that the script does not show."""

    parts: tuple[Part, ...] = ()
    is_open: bool = False

    def perhaps(self) -> Words:
        """Return the same words, none of which is certain."""
        return Words(tuple(Part(part.fragment, False) for part in self.parts), self.is_open)

    def __add__(self, other: Words) -> Words:
        return Words((*self.parts, *other.parts)[:_MOST_PARTS], self.is_open or other.is_open)


@dataclass(slots=True)
class CommandLine:
    """Fragments with settings that always come together; they are one object.

    ``options`` are those of the whole commands that get them. ``linked`` are others that a command may get as well.
    """

    fragments: list[Fragment]
    options: dict[str, object]
    is_open: bool
    programs: tuple[str, ...]
    linked: set[int] = field(default_factory=set)


def command_lines(fragments: Sequence[Fragment]) -> list[CommandLine]:
    """Return the objects of a script, in the order of its text."""
    return _Assembly(fragments).command_lines()


class _Assembly:
    def __init__(self, fragments: Sequence[Fragment]) -> None:
        self.fragments = fragments
        self.assigned: defaultdict[str, list[Fragment]] = defaultdict(list)
        for fragment in fragments:
            if fragment.variable:
                self.assigned[fragment.variable].append(fragment)
        self.known: dict[tuple[str, int, Path], Words] = {}

    def command_lines(self) -> list[CommandLine]:
        consumers = self._consumers()
        by_fragment: defaultdict[Fragment, list[tuple[int, bool]]] = defaultdict(list)
        for number, words in enumerate(consumers):
            for part in words.parts:
                if part.fragment.flags:
                    by_fragment[part.fragment].append((number, part.certain))
        groups: dict[object, list[Fragment]] = {}
        for fragment in self.fragments:
            if fragment.flags:
                uses = by_fragment[fragment]
                numbers = tuple(number for number, _ in uses)
                together = bool(uses) and all(certain for _, certain in uses) and len(set(numbers)) == len(numbers)
                groups.setdefault(numbers if together else fragment, []).append(fragment)
        result = []
        for members in groups.values():
            numbers = tuple(dict.fromkeys(number for number, _ in by_fragment[members[0]]))
            result.append(self._command_line(members, [consumers[number] for number in numbers]))
        _link(result, consumers)
        return result

    def _command_line(self, members: list[Fragment], consumers: Sequence[Words]) -> CommandLine:
        first = consumers[0] if consumers else None
        if first is not None:
            order = [part.fragment for part in first.parts]
            members.sort(key=order.index)
        options = [_options(words) for words in consumers] or [members[0].options]
        programs = [part.fragment.program for words in consumers for part in words.parts]
        return CommandLine(
            members,
            same_options(options),
            first is None or any(words.is_open for words in consumers),
            tuple(dict.fromkeys(filter(None, programs))),
        )

    def _consumers(self) -> list[Words]:
        """Return the words of each command, and of each variable that no command of the script expands."""
        commands = [self._expanded(one) for one in self.fragments if not one.variable]
        used = {part.fragment for words in commands for part in words.parts}
        rest: list[Words] = []
        for fragment in reversed(self.fragments):
            if fragment.variable and fragment not in used:
                end = Words((), True)
                words = self._value(fragment.variable, fragment.start + 1, fragment.path) + end
                used |= {part.fragment for part in words.parts}
                rest.append(words)
        return commands + rest

    def _expanded(self, fragment: Fragment) -> Words:
        """Return the words of a fragment with those of the variables in it."""
        result = Words()
        after_option = False
        for word in fragment.words:
            if word.text is None and word.variable in self.assigned:
                result += self._value(word.variable, fragment.start, fragment.path)
            elif word.text is None and not after_option:
                result += Words((), True)
            after_option = word.text is not None and word.text.startswith("-")
        own = Part(fragment, True)
        return Words((own, *result.parts) if not result.parts else self._in_order(fragment, result), result.is_open)

    def _in_order(self, fragment: Fragment, expanded: Words) -> tuple[Part, ...]:
        """Return the parts of a fragment: those that its variables expand to before or behind its own flags."""
        own = Part(fragment, True)
        if not fragment.flags:
            return (own, *expanded.parts)
        first = fragment.flags[0].first
        before = Words()
        for word in fragment.words[:first]:
            if word.text is None and word.variable in self.assigned:
                before += self._value(word.variable, fragment.start, fragment.path)
        count = len(before.parts)
        return (*expanded.parts[:count], own, *expanded.parts[count:])

    def _value(self, variable: str, start: int, path: Path) -> Words:
        """Return what a variable has at a place: by the assignments before it that may run before it."""
        key = (variable, start, path)
        if key in self.known:
            return self.known[key]
        words = Words((), True)
        for fragment in self.assigned[variable]:
            if fragment.start >= start:
                break
            if exclude_each_other(fragment.path, path):
                continue
            own = self._expanded(fragment)
            certain = is_certain(fragment.path, path)
            if fragment.appends:
                words = words + (own if certain else own.perhaps())
            else:
                words = own if certain else words.perhaps() + own.perhaps()
        self.known[key] = words
        return words


def _options(words: Words) -> dict[str, object]:
    options: dict[str, object] = {}
    for part in words.parts:
        if part.certain:
            options |= part.fragment.options
    return options


def _link(lines: Sequence[CommandLine], consumers: Iterable[Words]) -> None:
    """Link the objects of which one command may get several."""
    number_of = {fragment: number for number, line in enumerate(lines) for fragment in line.fragments}
    for words in consumers:
        parts = list({number_of[part.fragment]: part.fragment for part in words.parts if part.fragment.flags}.items())
        for at, (one, fragment) in enumerate(parts):
            for other, beside in parts[at + 1 :]:
                if not exclude_each_other(fragment.path, beside.path):
                    lines[one].linked.add(other)
                    lines[other].linked.add(one)
