"""The plain answer on top of the page: in how many comparisons the migration changed nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cgmigrate.verify.compare import DIFFERENT, EQUIVALENT, EQUIVALENT_BUT

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")


@dataclass(frozen=True, slots=True)
class Judged:
    """A comparison of either level, as the top of the page needs it.

    ``changes`` are those of ``release_changes``; ``anchor`` is the id of the comparison's section.
    """

    name: str
    workload: str
    verdict: str
    reason: str
    changes: tuple[str, ...]
    anchor: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The question, its answer in a sentence, and how the sentence looks: a class of the style sheet."""

    question: str
    sentence: str
    look: str


def answer(question: str, judged: Sequence[Judged]) -> Answer:
    """Count the verdicts: ``Yes in 11 of 11; five differ between the releases themselves.``"""
    verdicts = [item.verdict for item in judged]
    yes = sum(verdict in (EQUIVALENT, EQUIVALENT_BUT) for verdict in verdicts)
    no = verdicts.count(DIFFERENT)
    if not judged:
        return Answer(question, "Nothing was compared.", "open")
    look = "bad" if no else "good" if yes == len(judged) else "open"
    return Answer(question, f"{_counts(yes, no, len(judged))}{_asides(judged)}.", look)


def _counts(yes: int, no: int, total: int) -> str:
    unclear = total - yes - no
    parts = [(yes, "yes"), (no, "no"), (unclear, "not known")]
    words = [f"{word} in {count}" for count, word in parts if count]
    # The total is said once, with the first count.
    first = f"{words[0]} of {total}"
    return ", ".join([first[0].upper() + first[1:], *words[1:]])


def _asides(judged: Sequence[Judged]) -> str:
    """What else to know of the comparisons that were counted."""
    changed = sum(bool(item.changes) for item in judged)
    reserved = sum(item.verdict == EQUIVALENT_BUT and not item.changes for item in judged)
    between = f"; {_word(changed)} {'differs' if changed == 1 else 'differ'} between the releases themselves"
    other = f"; {_word(reserved)} with {'another' if changed else 'a'} reservation"
    return (between if changed else "") + (other if reserved else "")


def _word(count: int) -> str:
    return _NUMBERS[count] if count < len(_NUMBERS) else str(count)
