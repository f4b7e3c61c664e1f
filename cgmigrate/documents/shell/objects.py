"""Command lines as objects: which fragments of a script come together in one command.

A command gets its own words and those of the variables that it expands. What the script shows is followed: assignments
before the command, in their order, with the branches that they are in. A variable that the script does not set, and
the script's own arguments, may have further flags.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field

from cgmigrate.documents.shell.flags import same_options
from cgmigrate.documents.shell.fragments import FUNCTION, Fragment, Path, exclude_each_other, is_certain, may_run_again
from cgmigrate.documents.shell.words import Word
from cgmigrate.megatron.tables import switches

_MOST_PARTS = 256
"""A limit for the parts of one command, since variables that contain one another multiply them."""


TOO_MANY = f"the variables of a command have more than {_MOST_PARTS} parts, which is not followed"


class _TooManyPartsError(Exception):
    pass


@dataclass(frozen=True, slots=True)
class PassedFragment:
    """A fragment that a command gets, and the assignments that have to run for that, each by where it begins.

    One that must not run, since it would replace the fragment, is the complement of that number.
    """

    fragment: Fragment
    conditions: frozenset[int] = frozenset()

    def may_come_with(self, other: PassedFragment) -> bool:
        """Return whether a command may get both."""
        if any(~condition in other.conditions for condition in self.conditions):
            return False
        return not exclude_each_other(self.fragment.path, other.fragment.path)


_ARGUMENTS = re.compile(r"[@*].*|\w*(?:ARGS?|ARGUMENTS|FLAGS|OPTS|OPTIONS|EXTRAS?|OTHERS?)", re.IGNORECASE)
"""Variables of any number of arguments, such as all those of a script."""


@dataclass(frozen=True, slots=True)
class CommandWords:
    """What a command or a variable has: its parts, and what in it may be words that the script does not show.

    ``unknown`` are variables (``@`` for the arguments of the script), empty for what else the shell computes.
    """

    parts: tuple[PassedFragment, ...] = ()
    unknown: frozenset[str] = frozenset()

    def only_if(self, condition: int) -> CommandWords:
        """Return the same words under one more condition."""
        parts = (PassedFragment(part.fragment, part.conditions | {condition}) for part in self.parts)
        return CommandWords(tuple(parts), self.unknown)

    def __add__(self, other: CommandWords) -> CommandWords:
        if len(self.parts) + len(other.parts) > _MOST_PARTS:
            raise _TooManyPartsError
        return CommandWords((*self.parts, *other.parts), self.unknown | other.unknown)


@dataclass(slots=True)
class CommandLine:
    """Fragments with settings that always come together; they are one object.

    ``options`` are those that each command has that gets them, and ``possible`` all that one may have. ``linked`` are
    others that a command may get as well. ``commands`` are the words of the commands themselves.
    """

    fragments: list[Fragment]
    options: dict[str, object]
    possible: dict[str, object]
    unknown: frozenset[str]
    """What may add words that the script does not show; see ``CommandWords``."""
    programs: tuple[str, ...]
    linked: set[int] = field(default_factory=set)
    blocked_by: str = ""
    commands: tuple[Fragment, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether it may have words that the script does not show."""
        return bool(self.unknown)


def command_lines(fragments: Sequence[Fragment], plain_variables: Container[str]) -> list[CommandLine]:
    """Return the objects of a script, in the order of its text; ``plain_variables`` contain no flags."""
    try:
        return _Assembly(fragments, plain_variables).command_lines()
    except _TooManyPartsError:
        # Each fragment is reported by itself.
        alone = [one for one in fragments if one.flags]
        return [CommandLine([one], one.options, one.options, frozenset([""]), (), blocked_by=TOO_MANY) for one in alone]


def users_of(fragments: Sequence[Fragment], plain_variables: Container[str]) -> list[list[Fragment]]:
    """Return the fragments of each command, and of each variable that no command of the script expands.

    A command of which a branch decides what it gets is not among them.
    """
    try:
        consumers = _Assembly(fragments, plain_variables).consumers()
    except _TooManyPartsError:
        return []
    certain = (words.parts for words in consumers if not any(part.conditions for part in words.parts))
    return [[part.fragment for part in parts] for parts in certain]


class _Assembly:
    def __init__(self, fragments: Sequence[Fragment], plain_variables: Container[str]) -> None:
        self.fragments, self.plain_variables = fragments, plain_variables
        self.assigned: defaultdict[str, list[Fragment]] = defaultdict(list)
        for fragment in fragments:
            if fragment.variable:
                self.assigned[fragment.variable].append(fragment)
        self.open_variables: set[str] = set()
        """Variables whose assignments are being expanded, which may contain each other in a loop."""
        self.known: dict[tuple[str, int, Path], CommandWords] = {}

    def command_lines(self) -> list[CommandLine]:
        consumers = self.consumers()
        places: defaultdict[Fragment, list[tuple[int, frozenset[int]]]] = defaultdict(list)
        for number, words in enumerate(consumers):
            for part in words.parts:
                if part.fragment.flags:
                    places[part.fragment].append((number, part.conditions))
        groups: defaultdict[frozenset[tuple[int, frozenset[int]]], list[Fragment]] = defaultdict(list)
        for fragment in self.fragments:
            if fragment.flags:
                # Fragments in the same commands under the same conditions always come together.
                groups[frozenset(places[fragment])].append(fragment)
        result = [_command_line(members, at, consumers) for at, members in groups.items()]
        _link(result, consumers)
        return result

    def consumers(self) -> list[CommandWords]:
        """Return the words of each command, and of each variable that no command of the script expands."""
        commands = [self._expanded(one) for one in self.fragments if not one.variable]
        used = {part.fragment for words in commands for part in words.parts}
        rest: list[CommandWords] = []
        for fragment in reversed(self.fragments):
            if fragment.variable and fragment not in used:
                end = CommandWords((), frozenset([fragment.variable]))
                words = self._value(fragment.variable, fragment.start + 1, fragment.path) + end
                used |= {part.fragment for part in words.parts}
                rest.append(words)
        return commands + rest

    def _expanded(self, fragment: Fragment) -> CommandWords:
        """Return the words of a fragment with those of the variables in it."""
        result = CommandWords()
        option = ""
        for word in fragment.words:
            # A word behind an option is its value, unless its name says that it is any number of arguments, or the
            # option has no value.
            is_value = bool(option) and not _ARGUMENTS.fullmatch(word.variable)
            if is_value and word.text is None:
                is_value = option not in switches()
            if value := self._value_of(word, fragment):
                result += CommandWords(value.parts) if is_value else value
            elif word.text is None and not (word.script or is_value or word.variable in self.plain_variables):
                result += CommandWords((), frozenset([word.variable]))
            option = word.text if word.text is not None and word.text.startswith("-") else ""
        own = PassedFragment(fragment)
        return CommandWords(
            (own, *result.parts) if not result.parts else self._in_order(fragment, result), result.unknown
        )

    def _in_order(self, fragment: Fragment, expanded: CommandWords) -> tuple[PassedFragment, ...]:
        """Return the parts of a fragment: those that its variables expand to before or behind its own flags."""
        own = PassedFragment(fragment)
        if not fragment.flags:
            return (own, *expanded.parts)
        first = fragment.flags[0].first
        before = CommandWords()
        for word in fragment.words[:first]:
            if value := self._value_of(word, fragment):
                before += value
        count = len(before.parts)
        return (*expanded.parts[:count], own, *expanded.parts[count:])

    def _value_of(self, word: Word, fragment: Fragment) -> CommandWords | None:
        """Return what an expanded variable has in a fragment, perhaps if the word has a part of it; None for others."""
        if word.variable in self.assigned:
            return self._value(word.variable, fragment.start, fragment.path)
        if word.of in self.assigned:
            value = self._value(word.of, fragment.start, fragment.path)
            return value.only_if(word.start) + CommandWords((), frozenset([word.of]))
        return None

    def _value(self, variable: str, start: int, path: Path) -> CommandWords:
        """Return what a variable has at a place: by the assignments before it that may run before it."""
        key = (variable, start, path)
        if key in self.known:
            return self.known[key]
        words = CommandWords((), frozenset([variable]))
        for fragment in self.assigned[variable]:
            if fragment.start >= start:
                words += self._later(fragment, path)
                continue
            if exclude_each_other(fragment.path, path):
                continue
            own = self._expanded(fragment)
            certain = is_certain(fragment.path, path)
            if fragment.appends:
                words = words + (own if certain else own.only_if(fragment.start))
            else:
                # Where the assignment does not run, the variable keeps what it had.
                kept = words.only_if(~fragment.start)
                words = own if certain else kept + own.only_if(fragment.start)
        self.known[key] = words
        return words

    def _later(self, fragment: Fragment, path: Path) -> CommandWords:
        """Return what an assignment below a place may add at it: the place may be in a loop or function."""
        block = may_run_again(path)
        is_in_block = fragment.path[: len(block)] == block
        if not block or not (is_in_block or (block[-1][1] == FUNCTION and not may_run_again(fragment.path))):
            return CommandWords()
        if fragment.variable in self.open_variables:
            return CommandWords((), frozenset([fragment.variable]))
        self.open_variables.add(fragment.variable)
        words = self._expanded(fragment).only_if(fragment.start)
        self.open_variables.discard(fragment.variable)
        return words


def _command_line(
    members: list[Fragment], places: Iterable[tuple[int, frozenset[int]]], consumers: Sequence[CommandWords]
) -> CommandLine:
    """Return the object of fragments that come together at some places: commands, each with its conditions."""
    at = sorted(places, key=lambda place: (place[0], sorted(place[1])))
    commands = [consumers[number] for number in dict.fromkeys(number for number, _ in at)]
    order = [part.fragment for part in commands[0].parts]
    members.sort(key=order.index)
    options = [_options(part for part in consumers[number].parts if part.conditions <= known) for number, known in at]
    parts = [part for words in commands for part in words.parts]
    programs = filter(None, (part.fragment.program for part in parts))
    return CommandLine(
        members,
        same_options(options),
        _options(parts),
        frozenset[str]().union(*(words.unknown for words in commands)),
        tuple(dict.fromkeys(programs)),
        commands=tuple(part.fragment for part in parts if not part.fragment.variable),
    )


def _options(parts: Iterable[PassedFragment]) -> dict[str, object]:
    options: dict[str, object] = {}
    for part in parts:
        options |= part.fragment.options
    return options


def _link(lines: Sequence[CommandLine], consumers: Iterable[CommandWords]) -> None:
    """Link the objects of which one command may get several."""
    number_of = {fragment: number for number, line in enumerate(lines) for fragment in line.fragments}
    for words in consumers:
        parts = [part for part in words.parts if part.fragment.flags]
        for at, one in enumerate(parts):
            for other in parts[at + 1 :]:
                left, right = number_of[one.fragment], number_of[other.fragment]
                if left != right and one.may_come_with(other):
                    lines[left].linked.add(right)
                    lines[right].linked.add(left)
