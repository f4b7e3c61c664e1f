"""What the words of the page mean, each once; a page of the level ``config`` needs only some of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cgmigrate.verify.page.badges import ALL, Badge
from cgmigrate.verify.page.times import REPEATS

_ALWAYS = (
    ("legacy", "The old text: the configuration before migration. It is read on its own release and on the new one."),
    ("migrated", "The configuration after migration, on the new release."),
    ("graph", "A CUDA graph: kernels that are captured once and from then on replayed as one."),
)
_OF_RUNS = (
    ("arm", "One run of a small model of the same structure, in a process of its own, from one saved initial state."),
    ("eager", "An arm without graphs. “Eager again” is the same arm once more: it shows whether runs repeat."),
    ("census", "What an arm captured: how many graphs, of which modules, with how many kernels, replayed how often."),
    (
        "equal to the last bit",
        "Not one bit differs, at any step, on any process. The same letter in a row marks equal values.",
    ),
    ("digest", "A checksum of many numbers, shown in short: equal digests mean equal numbers."),
    (
        "difference from eager",
        "The loss of an arm minus that of eager on the same release, in nats. 0 is no difference.",
    ),
    (
        "time",
        "The median of the steps after the last capture, and in brackets the shortest and the longest of them. The "
        "first half of all steps does not count; of several processes the slowest is shown.",
    ),
    (
        "eager’s speed",
        "The time of eager over that of the arm. It is given only where two eager runs differ by "
        f"{100 * REPEATS:.0f} % or less.",
    ),
)
_OF_READINGS = (
    (
        "as the releases read it",
        "The real megatron-core builds its configuration, or parses its command line, on a CPU. Nothing is run.",
    ),
    ("effective", "The settings that the release keeps once it has checked and completed them."),
)


@dataclass(frozen=True, slots=True)
class Terms:
    """Words with their meanings, and the badges that the page shows."""

    words: tuple[tuple[str, str], ...]
    badges: tuple[Badge, ...]


def terms_of_runs(badges: Iterable[Badge]) -> Terms:
    """The terms of a page of runs."""
    return _terms((*_ALWAYS, *_OF_RUNS), badges)


def terms_of_readings(badges: Iterable[Badge]) -> Terms:
    """The terms of a page of the level ``config``."""
    return _terms((*_ALWAYS, *_OF_READINGS), badges)


def _terms(words: Sequence[tuple[str, str]], badges: Iterable[Badge]) -> Terms:
    shown = set(badges)
    return Terms(tuple(words), tuple(badge for badge in ALL if badge in shown))
