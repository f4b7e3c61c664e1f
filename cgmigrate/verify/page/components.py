"""What the parts of the page share: an arm in its role, and small elements."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cgmigrate.verify import metrics
from cgmigrate.verify.arms import DONE, EAGER, EAGER_AGAIN, EAGER_SOURCE, TRAINING, Rank, Result
from cgmigrate.verify.page.markup import Markup, element, together

NOTHING = "–"
"""Shown where there is no metric."""


@dataclass(frozen=True, slots=True)
class ArmView:
    """An arm in its role; ``result`` is None where the results do not hold it, ``same_as`` names the arm it repeats."""

    role: str
    release: str
    result: Result | None
    same_as: str = ""

    @property
    def name(self) -> str:
        """The arm in words: ``legacy on 0.17.1``."""
        return metrics.label(self.role, self.release)

    @property
    def is_eager(self) -> bool:
        """Whether the arm captures nothing by its role."""
        return self.role in (EAGER, EAGER_AGAIN, EAGER_SOURCE)

    @property
    def is_done(self) -> bool:
        """Whether the arm ran to its end and reported what it measured; all other arms have no metrics."""
        return self.result is not None and self.result.outcome == DONE and bool(self.result.ranks)

    @property
    def run(self) -> Result:
        """The result of an arm that is known to have one."""
        assert self.result is not None
        return self.result

    @property
    def ranks(self) -> tuple[Rank, ...]:
        """What each process of an arm that is done measured."""
        return self.run.ranks


def is_training(arms: Iterable[ArmView]) -> bool:
    """Whether the arms train; else they generate."""
    return all(arm.result.arm.workload == TRAINING for arm in arms if arm.result)


def table(caption: str, heads: Sequence[str], rows: Sequence[Markup], class_: str | None = None) -> Markup:
    """A table that scrolls inside its place; ``heads`` name the columns."""
    whole = element(
        "table",
        element("caption", caption),
        element(
            "thead", element("tr", *(element("th", head, scope="col") if head else element("td") for head in heads))
        ),
        element("tbody", *rows),
        class_=class_,
    )
    # Focusable, so that the keyboard can scroll it too.
    return element("div", whole, class_="scroll", role="region", tabindex=0, aria_label=caption)


def items(texts: Iterable[str], class_: str) -> Markup:
    """A list; nothing where there are no texts."""
    lines = [element("li", text) for text in texts]
    return element("ul", *lines, class_=class_) if lines else Markup("")


def facts(pairs: Mapping[str, str]) -> Markup:
    """Names and values in a line that wraps; nothing where there are none."""
    entries = (element("div", element("dt", name), element("dd", value)) for name, value in pairs.items())
    return element("dl", *entries, class_="facts") if pairs else Markup("")


def badge(letter: str) -> Markup:
    """A letter that equal values share; the first six have a colour too."""
    return element("span", letter, class_=f"badge badge-{letter}" if letter in "ABCDEF" else "badge")


def swatch(role: str) -> Markup:
    """A small square of the arm's colour."""
    return element("span", class_=f"swatch role-{role}", aria_hidden="true")


def written(value: Any) -> str:
    """A setting's value as people write it: ``attn,mlp``."""
    return ",".join(map(str, value)) or "[]" if isinstance(value, (list, tuple)) else str(value)


def setting(name: str, value: Any) -> Markup:
    """A setting as code; a narrow column breaks it at the equals sign."""
    return element("code", f"{name}=", element("wbr"), written(value))


def listed(arms: Sequence[ArmView]) -> str:
    """The arms' names in a sentence."""
    names = [arm.name for arm in arms]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def alike(arms: Iterable[ArmView], value: Callable[[ArmView], Hashable]) -> dict[Hashable, list[ArmView]]:
    """The arms by their value, in order of appearance; without the arms whose value is None."""
    groups: dict[Hashable, list[ArmView]] = {}
    for arm in arms:
        if (key := value(arm)) is not None:
            groups.setdefault(key, []).append(arm)
    return groups


def by_process(arm: ArmView, content: Callable[[Rank], Markup]) -> Markup:
    """The content of each process; processes with equal content share it."""
    said: dict[Markup, list[int]] = {}
    for rank in arm.ranks:
        said.setdefault(content(rank), []).append(rank.rank)
    if len(said) == 1:
        return next(iter(said))
    return together(*(element("div", element("small", _processes(ranks)), text) for text, ranks in said.items()))


def _processes(ranks: Sequence[int]) -> str:
    return f"{'process' if len(ranks) == 1 else 'processes'} {metrics.spans(ranks)}"
