"""The table of a comparison's arms: a row an arm, and below it the line that says why it did not end well."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from cgmigrate.text.plurals import counted
from cgmigrate.verify import metrics
from cgmigrate.verify.arms import DONE, Rank
from cgmigrate.verify.page.components import NOTHING, ArmView, badge, is_training, setting, swatch, table
from cgmigrate.verify.page.markup import Markup, element, together


def arms_table(arms: Sequence[ArmView], name: str) -> Markup:
    """All arms of the comparison ``name``: outcome, outputs in short, captures, step time (ms), memory."""
    if is_training(arms):
        outputs = {"loss, last step (nats)": _last_losses(arms), "parameters, digest": _parameters(arms)}
        unit, time = "step", "step time after capture"
    else:
        outputs = {"tokens": _tokens(arms), "logits, digest": _logits(arms)}
        unit, time = "round", "time of a round after capture"
    heads = ("arm", "megatron-core", "outcome", *outputs, "graphs", f"replays a {unit}", time, "peak memory")
    rows = []
    for arm, *cells in zip(arms, *outputs.values(), strict=True):
        rows += _rows(arm, (*cells, *_measures(arm)), len(heads))
    return table(f"Arms of {name}", heads, rows, "arms")


def _rows(arm: ArmView, cells: Iterable[str], width: int) -> list[Markup]:
    failure = arm.result.failure if arm.result else ""
    outcome = arm.result.outcome if arm.result else "not run"
    row = element(
        "tr",
        element("th", *_head(arm), scope="row", rowspan=2 if failure else None),
        element("td", arm.release),
        element("td", outcome, class_=None if outcome == DONE else "failed"),
        *(element("td", cell, class_="number") for cell in cells),
    )
    if not failure:
        return [row]
    return [row, element("tr", element("td", element("code", failure), colspan=width - 1, class_="failure"))]


def _head(arm: ArmView) -> list[str]:
    settings = arm.result.arm.settings if arm.result else {}
    about: list[str] = [setting(name, value) for name, value in settings.items()]
    if arm.result and arm.result.arm.processes > 1:
        about.append(f"{arm.result.arm.processes} processes")
    if arm.same_as:
        about.append(f"the same run as {arm.same_as}")
    return [swatch(arm.role), metrics.role_name(arm.role), *(element("small", text) for text in about)]


def _measures(arm: ArmView) -> tuple[str, str, str, str]:
    """Graphs, replays, time and memory of an arm, in words."""
    if not arm.is_done:
        return NOTHING, NOTHING, NOTHING, NOTHING
    seconds, reserved = metrics.step_seconds(arm.run), metrics.reserved_bytes(arm.run)
    reserved_note = element("small", f"{metrics.memory(reserved)} reserved") if reserved else ""
    return (
        _each(arm, metrics.graphs_captured),
        _each(arm, metrics.replays_per_step),
        NOTHING if seconds is None else metrics.milliseconds(seconds),
        together(metrics.memory(metrics.peak_bytes(arm.run)), reserved_note),
    )


def _each(arm: ArmView, count: Callable[[Rank], int]) -> str:
    counts = [count(rank) for rank in arm.ranks]
    if len(set(counts)) > 1:
        return ", ".join(map(str, counts))
    return str(counts[0]) if len(counts) == 1 else f"{counts[0]} a process"


# --- outputs in short ----------------------------------------------------------------------------------------


def _last_losses(arms: Sequence[ArmView]) -> list[str]:
    ends = [metrics.losses(arm.run)[-1:] if arm.is_done else () for arm in arms]
    return [element("span", _loss(end[0]), title=end[0].hex()) if end else NOTHING for end in ends]


def _loss(value: float) -> str:
    return f"{value:.6f}" if abs(value) < 1e6 else f"{value:.6g}"


def _parameters(arms: Sequence[ArmView]) -> list[str]:
    return _digests(metrics.parameters_digest(arm.run) if arm.is_done else "" for arm in arms)


def _logits(arms: Sequence[ArmView]) -> list[str]:
    return _digests(metrics.logits_digest(arm.run) if arm.is_done else "" for arm in arms)


def _tokens(arms: Sequence[ArmView]) -> list[str]:
    generated = [metrics.tokens(arm.run) if arm.is_done else () for arm in arms]
    return [
        together(badge(letter), counted(sum(map(len, tokens)), "token")) if letter else NOTHING
        for tokens, letter in zip(generated, metrics.letters(generated), strict=True)
    ]


def _digests(digests: Iterable[str]) -> list[str]:
    """The digests in short, equal ones under the same letter."""
    known = list(digests)
    return [
        together(badge(letter), element("code", metrics.short(digest), title=digest)) if letter else NOTHING
        for digest, letter in zip(known, metrics.letters(known), strict=True)
    ]
