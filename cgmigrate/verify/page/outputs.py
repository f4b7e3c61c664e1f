"""What the arms put out, side by side: losses or tokens, step times, and who equals whom to the last bit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from cgmigrate.text.plurals import counted
from cgmigrate.verify import metrics
from cgmigrate.verify.page.charts import Bar, Curve, bar_chart, loss_chart, sample
from cgmigrate.verify.page.components import NOTHING, ArmView, alike, badge, is_training, items, listed, table
from cgmigrate.verify.page.markup import Markup, element, together


def outputs(arms: Sequence[ArmView], ident: str) -> Markup:
    """Charts and words; ``arms`` are those that are done, ``ident`` begins the ids of the elements."""
    training = is_training(arms)
    left = _losses(arms, ident) if training else _tokens(arms)
    return together(element("div", left, _times(arms, ident, training), class_="pair"), _sameness(arms))


# --- losses --------------------------------------------------------------------------------------------------


def _losses(arms: Sequence[ArmView], ident: str) -> Markup:
    measured = [arm for arm in arms if metrics.losses(arm.run)]
    heading = element("h3", "Losses")
    if not measured:
        return element("div", heading, element("p", "No arm measured a loss."))
    curves = [Curve(arm.role, arm.name, metrics.losses(arm.run)) for arm in measured]
    words = _losses_in_words(measured)
    legend = [together(sample(curve.role), curve.name) for curve in curves]
    chart = loss_chart(curves, f"{ident}-losses", " ".join(words))
    return element("div", heading, chart, items(legend, "legend"), items(words, "findings"))


def _losses_in_words(arms: Sequence[ArmView]) -> list[str]:
    """What of the losses is equal to the last bit, and where the rest departs; the first arm is the measure."""
    groups = list(alike(arms, lambda arm: metrics.compared(arm.run)["losses"]).values())
    measure = groups[0][0]
    words = [_alone_or_equal(group, len(groups) == 1) for group in groups]
    words += [_departure(group, measure) for group in groups[1:]]
    endless = [arm for arm in arms if not all(map(math.isfinite, metrics.losses(arm.run)))]
    if endless:
        words.append(f"{listed(endless)}: losses that are not finite leave a gap in the curve.")
    return [word for word in words if word]


def _alone_or_equal(group: Sequence[ArmView], only: bool) -> str:
    steps = counted(len(metrics.losses(group[0].run)), "step")
    if len(group) > 1:
        return f"{listed(group)}: equal to the last bit in all {steps}."
    return f"{group[0].name}: {steps}, nothing to compare with." if only else ""


def _departure(group: Sequence[ArmView], measure: ArmView) -> str:
    departure = metrics.departure(metrics.losses(group[0].run), metrics.losses(measure.run))
    verb = "departs" if len(group) == 1 else "depart"
    if departure is None:
        return f"{listed(group)}: equal to {measure.name} on the process shown, different on another."
    most = "by no finite number" if math.isnan(departure.most) else f"by {departure.most:.2g} nats at most"
    return f"{listed(group)} {verb} from {measure.name} at step {departure.first}; {most} (step {departure.at})."


# --- tokens --------------------------------------------------------------------------------------------------


def _tokens(arms: Sequence[ArmView]) -> Markup:
    generated = [arm for arm in arms if metrics.tokens(arm.run)]
    heading = element("h3", "Tokens")
    if not generated:
        return element("div", heading, element("p", "No arm generated tokens."))
    groups = list(alike(generated, lambda arm: metrics.tokens(arm.run)).values())
    words = [_tokens_in_words(group, groups[0]) for group in groups]
    listings = [part for group in groups for part in (element("dt", listed(group)), element("dd", _listing(group[0])))]
    return element(
        "div",
        heading,
        items(words, "findings"),
        element("details", element("summary", "All tokens"), element("dl", *listings)),
    )


def _tokens_in_words(group: Sequence[ArmView], measures: Sequence[ArmView]) -> str:
    ours, measure = metrics.tokens(group[0].run), measures[0]
    if group is measures:
        total = f"{counted(sum(map(len, ours)), 'token')} of {counted(len(ours), 'request')}"
        return f"{listed(group)}: {total}" + (", all equal." if len(group) > 1 else ".")
    difference = metrics.first_difference(ours, metrics.tokens(measure.run))
    if difference is None:
        return f"{listed(group)}: another number of requests than {measure.name}."
    request, place, one, other = difference
    mine, theirs = ("its end" if token is None else str(token) for token in (one, other))
    verb = "differs" if len(group) == 1 else "differ"
    return (
        f"{listed(group)} {verb} from {measure.name} in request {request} from token {place} on: {mine}, not {theirs}."
    )


def _listing(arm: ArmView) -> Markup:
    requests = enumerate(metrics.tokens(arm.run), 1)
    lines = "\n".join(f"request {number}: {' '.join(map(str, ids))}" for number, ids in requests)
    return element("pre", element("code", lines), class_="wrapped")


# --- times ---------------------------------------------------------------------------------------------------


def _times(arms: Sequence[ArmView], ident: str, training: bool) -> Markup:
    timed = [(arm, seconds) for arm in arms if (seconds := metrics.step_seconds(arm.run)) is not None]
    unit = "step" if training else "round"
    heading = element("h3", f"Time of a {unit}")
    if not timed:
        return element("div", heading, element("p", f"No arm ran a {unit} after its last capture."))
    # An arm's gain is against eager on its own release; the first eager arm of a release speaks for it.
    eager: dict[str, float] = {}
    for arm, seconds in timed:
        if arm.is_eager:
            eager.setdefault(arm.release, seconds)
    bars = [Bar(arm.role, arm.name, seconds, _time(arm, seconds, eager)) for arm, seconds in timed]
    several = ", of the slowest process" if any(len(arm.ranks) > 1 for arm in arms) else ""
    note = f"Median of the {unit}s after the last capture, without the first half of all{several}."
    chart = bar_chart(bars, f"{ident}-times", f"Time of a {unit}, all arms")
    return element("div", heading, chart, element("p", element("small", note)))


def _time(arm: ArmView, seconds: float, eager: Mapping[str, float]) -> str:
    text = metrics.milliseconds(seconds)
    if arm.is_eager or not seconds or arm.release not in eager:
        return text
    return f"{text}, {eager[arm.release] / seconds:.1f} × eager’s speed"


# --- to the last bit -----------------------------------------------------------------------------------------


def _sameness(arms: Sequence[ArmView]) -> Markup:
    """A letter a value, so that equal ones are seen at once."""
    values = [metrics.compared(arm.run) for arm in arms]
    names = list(dict.fromkeys(name for quantities in values for name in quantities))
    if len(arms) < 2 or not names:
        return Markup("")
    rows = []
    for name in names:
        letters = metrics.letters([quantities.get(name) for quantities in values])
        cells = (element("td", badge(letter) if letter else NOTHING) for letter in letters)
        rows.append(element("tr", element("th", name, scope="row"), *cells))
    note = "The same letter in a row: equal to the last bit, at every step and on every process."
    whole = table("Equal to the last bit", ("", *(arm.name for arm in arms)), rows, "letters")
    return together(element("h3", "Equal to the last bit"), whole, element("p", element("small", note)))
