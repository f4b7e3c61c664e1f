"""Compares the arms of one configuration and gives a verdict, with its reason in a sentence.

The rule: on one release, the legacy and the migrated configuration must be equal in what is captured and to the last
bit in what is computed. Between releases, and against eager, a difference is reported with its place: what is captured
differs, or the numbers do (since which step, by how much, which arm departs from eager). Numbers may differ on one
release only by as much as two eager runs do.

======================  =====================  ==========================================================
legacy on its release   legacy on the target   verdict on the migrated configuration, which ran
======================  =====================  ==========================================================
same graphs             same graphs and bits   equivalent, whatever numbers the release itself changed
same graphs             same graphs, other     different, unless two eager runs differ as much
                        numbers
same graphs             other graphs           equivalent, but the target reads the old text differently
same graphs             failed                 equivalent, but the target cannot run the old text
other graphs            any                    different
did not run             same graphs and bits   equivalent, but seen on the target only
did not run             differs                different
did not run             did not run            inconclusive
======================  =====================  ==========================================================

Where the migrated configuration itself fails: different, when a legacy arm ran; inconclusive, when none did, or when
the target runs neither the old text nor the model without graphs.

Where the proxy lacks what the settings capture (Mamba layers), an equivalence holds for the settings only.

Arms that agree prove nothing where there was nothing to see: inconclusive, when the settings ask for graphs in this
workload and none was replayed, and when the last loss is no number. So is a difference of tokens where two eager runs
generate other tokens.

A GPT model and its hybrid form have other layers, so that only their numbers are compared, from the same weights.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cgmigrate.megatron.capture import capture_of_resolved
from cgmigrate.megatron.releases import SCOPE_LIST_SINCE, SPLIT_IN, Release
from cgmigrate.megatron.settings import ENABLE, EXTERNAL, IMPL, INFERENCE, MODULES, SCOPE
from cgmigrate.megatron.types import WHOLE, Blocks, Capture, Iteration, Layers, ResolvedConfiguration, describe_both
from cgmigrate.megatron.versions import parse_release
from cgmigrate.verify.arms import (
    DONE,
    EAGER,
    EAGER_AGAIN,
    EAGER_SOURCE,
    LEGACY_SOURCE,
    LEGACY_TARGET,
    MIGRATED,
    MISSING,
    REFUSED,
    TIMED_OUT,
    TRAINING,
    ArmResult,
    Graph,
    Rank,
)
from cgmigrate.verify.metrics import all_graphs, census_lines, eager_calls, first_difference, label
from cgmigrate.verify.proxy import NO_MAMBA, NO_MLA

EQUIVALENT, EQUIVALENT_BUT = "equivalent", "equivalent, but"
DIFFERENT, INCONCLUSIVE = "different", "inconclusive"
EXIT_STATUS = {EQUIVALENT: 0, EQUIVALENT_BUT: 0, DIFFERENT: 1, INCONCLUSIVE: 2}

PARAMETERS, RNG = "parameters differ", "random number states differ"
TOKENS, LOGITS = "tokens differ", "log-probabilities differ"
SETTINGS_ONLY = "for the settings only"
"""How the reason begins where the proxy lacks what the configuration captures, so that no run shows it."""
_BOTH = "the GPT model and its hybrid form"
_OTHER_WEIGHTS = (
    "both forms start from other weights, so nothing else is compared: let both load a checkpoint of the GPT model "
    "(`--load DIR --finetune --no-load-optim --no-load-rng`), which the release translates for one kind of layers"
)
SLACK = 4.0
"""How many times further apart than two eager runs two arms may be where runs do not repeat to the bit."""


@dataclass(frozen=True, slots=True)
class ArmComparison:
    """The verdict on one configuration under one workload.

    ``roles`` maps each role (``arms.ROLES``) that was run to the key of its arm; ``diff`` is what the migration changes
    in the file; ``source`` and ``target`` are versions of megatron-core.
    """

    name: str
    workload: str
    verdict: str
    reason: str
    notes: tuple[str, ...]
    roles: Mapping[str, str]
    diff: str
    source: str
    target: str


def exit_status(verdicts: Sequence[str]) -> int:
    """0 where all are equivalent, 1 where one is different, else 2."""
    statuses = {EXIT_STATUS[verdict] for verdict in verdicts}
    return 1 if 1 in statuses else 2 if 2 in statuses else 0


def judge(roles: Mapping[str, ArmResult], *, hybrid: bool = False) -> tuple[str, str, tuple[str, ...]]:
    """The verdict on the migrated arm, its reason, and what else a reader should know. ``roles`` maps role → result.

    ``hybrid`` says that it is the hybrid form of a GPT model.
    """
    migrated = roles[MIGRATED]
    verdict_of = _verdict_of_failure if migrated.outcome != DONE else _verdict_of_hybrid if hybrid else _verdict
    verdict, reason = verdict_of(roles)
    if verdict in (EQUIVALENT, EQUIVALENT_BUT) and (why := _shows_nothing(migrated)):
        verdict, reason = INCONCLUSIVE, why
    elif verdict in (EQUIVALENT, EQUIVALENT_BUT) and (absent := _absent_from_proxy(migrated)):
        rest = f"what it has: {reason}" if all_graphs(migrated) else "no graph was captured"
        reason = f"{SETTINGS_ONLY}: the proxy has no {absent}, which they capture; {rest}"
        verdict = EQUIVALENT_BUT
    return verdict, reason, tuple(_notes(roles))


def with_changes(verdict: str, reason: str, changes: Sequence[str]) -> tuple[str, str]:
    """The verdict and its reason where the migrated file also changes what is no CUDA-graph setting."""
    if not changes:
        return verdict, reason
    also = f"the migrated file also changes {', '.join(changes)}"
    same = verdict in (EQUIVALENT, EQUIVALENT_BUT)
    return (DIFFERENT, f"{also}; the settings alone: {verdict}, {reason}") if same else (verdict, f"{reason}; {also}")


def _verdict(roles: Mapping[str, ArmResult]) -> tuple[str, str]:
    """The verdict where the migrated arm ran."""
    ran = ran_to_end(roles)
    migrated, source, target = roles[MIGRATED], ran.get(LEGACY_SOURCE), ran.get(LEGACY_TARGET)
    if source is not None and (apart := graphs_apart(source, migrated)):
        texts = f"the old text on {source.arm.release} and the migrated text on {migrated.arm.release}"
        return DIFFERENT, f"{texts}: {apart}"
    if target is None:
        return _verdict_without_target(roles, source is not None)
    if apart := graphs_apart(target, migrated):
        return _verdict_on_other_graphs(roles, source, target, apart)
    if apart := numbers_apart(target, migrated):
        return _verdict_on_other_numbers(roles, target, apart)
    return _verdict_on_equal_arms(roles, source)


def _verdict_of_hybrid(roles: Mapping[str, ArmResult]) -> tuple[str, str]:
    """The verdict where the hybrid form ran, on numbers only: graphs of its layers are no graphs of GPT layers."""
    gpt, hybrid = roles[LEGACY_TARGET], roles[MIGRATED]
    if gpt.outcome != DONE:
        return INCONCLUSIVE, f"the GPT model {_happened(gpt)} on {gpt.arm.release}: {gpt.failure}"
    if gpt.remarks == hybrid.remarks:
        return INCONCLUSIVE, f"both forms {', '.join(gpt.remarks)}"
    if [rank.initial for rank in gpt.ranks] != [rank.initial for rank in hybrid.ranks]:
        return INCONCLUSIVE, _OTHER_WEIGHTS
    if apart := numbers_apart(gpt, hybrid):
        return _verdict_on_other_numbers(roles, gpt, apart, _BOTH)
    same = f"{_BOTH} compute the same numbers on {gpt.arm.release} to the last bit, from the same weights"
    if [_in_words(rank) for rank in gpt.ranks] == [_in_words(rank) for rank in hybrid.ranks]:
        return EQUIVALENT, f"{same}, with like graphs" if all_graphs(gpt) else same
    return EQUIVALENT_BUT, f"{same}; their graphs are of other layers, and are not compared"


def ran_to_end(roles: Mapping[str, ArmResult]) -> dict[str, ArmResult]:
    """The arms that ran to their end, by role."""
    return {role: result for role, result in roles.items() if result.outcome == DONE}


def _verdict_on_other_graphs(
    roles: Mapping[str, ArmResult], source: ArmResult | None, target: ArmResult, apart: str
) -> tuple[str, str]:
    """The verdict where the target captures other graphs for the old text than for the migrated one."""
    migrated = roles[MIGRATED]
    texts = f"the old and the migrated text on {migrated.arm.release}"
    if source is None:
        return DIFFERENT, f"{texts}: {apart}{_why_no_source(roles.get(LEGACY_SOURCE))}"
    if not graphs_apart(target, migrated, sizes=False):
        # Nothing shows that the migrated text, not the old one, is what the source release did.
        return DIFFERENT, f"{texts}: {apart}"
    eager = ran_to_end(roles).get(EAGER)
    if eager is not None and not all_graphs(migrated) and (odd := numbers_apart(eager, migrated)):
        departs = f"it departs from eager on {eager.arm.release}: {odd}"
        return DIFFERENT, f"the migrated text captures nothing, yet {departs}"
    return EQUIVALENT_BUT, _own_migration(target, migrated, source)


def _verdict_on_other_numbers(
    roles: Mapping[str, ArmResult], target: ArmResult, apart: str, both: str = "the same graphs"
) -> tuple[str, str]:
    """The verdict where both texts capture the same graphs on the target and compute other numbers."""
    migrated = roles[MIGRATED]
    release, noise, repeats = migrated.arm.release, _noise(roles), _repeats(roles, target, migrated)
    if noise == math.inf and not repeats:
        return INCONCLUSIVE, f"{apart}; but two eager runs on {release} are as far apart: {_eager_apart(roles)}"
    apart_by = distance(target, migrated)
    if noise is None or noise in (0.0, math.inf) or apart_by > SLACK * noise or repeats:
        return DIFFERENT, f"{both} on {release}, other numbers: {apart}"
    return EQUIVALENT_BUT, (
        f"runs do not repeat to the bit on this machine: two eager runs differ by {noise:.1e}, "
        f"the old and the migrated text by {apart_by:.1e}"
    )


def _verdict_on_equal_arms(roles: Mapping[str, ArmResult], source: ArmResult | None) -> tuple[str, str]:
    """The verdict where both texts capture and compute the same on the target."""
    release = roles[MIGRATED].arm.release
    if source is None:
        return EQUIVALENT_BUT, f"seen on {release} only{_why_no_source(roles.get(LEGACY_SOURCE))}"
    same = f"the same graphs, and on {release} the same numbers to the last bit"
    # What the release does to the old text, too, is no reservation about the migration.
    departure = _releases_apart(roles)
    return EQUIVALENT, f"{same}; {departure}" if departure else same


def _shows_nothing(migrated: ArmResult) -> str:
    """Why an arm that agrees with the others proves nothing; empty when it does."""
    last = [float.fromhex(rank.losses[-1]) for rank in migrated.ranks if rank.losses]
    if not all(map(math.isfinite, last)):
        return "the last loss is no finite number, which hides any difference"
    requested, part = capture_in(migrated), _requested(migrated)
    # A proxy without Mamba layers captures nothing where they alone are captured.
    is_absent = NO_MAMBA in migrated.arm.proxy.notes and isinstance(part, Layers) and part.modules == {"mamba"}
    if part is None or is_absent:
        return ""
    if any(any(graph.replays) for rank in migrated.ranks for graph in rank.graphs):
        return ""
    happened = "replayed" if all_graphs(migrated) else "captured"
    return f"the settings request {requested}, but no graph was {happened} in {migrated.arm.steps} steps"


def _requested(result: ArmResult) -> Layers | Iteration | Blocks | None:
    """What the settings of an arm ask to capture in its workload; None if nothing, or if that is not known."""
    requested = capture_in(result) or Capture()
    return requested.training if result.arm.workload == TRAINING else requested.inference


def _absent_from_proxy(migrated: ArmResult) -> str:
    """What the settings ask to capture and the proxy does not have; empty if it has all of it."""
    part, notes = _requested(migrated), migrated.arm.proxy.notes
    if part is None:
        return ""
    modules = part.modules if isinstance(part, Layers) else WHOLE
    absent = {NO_MAMBA: ("mamba", "Mamba layers"), NO_MLA: ("attn", "multi-latent attention")}
    return " and no ".join(
        name for note, (one, name) in absent.items() if note in notes and (not modules or one in modules)
    )


def _own_migration(target: ArmResult, migrated: ArmResult, source: ArmResult) -> str:
    """Where the target reads the old text otherwise than its own release did, which the migrated text repeats."""
    own, release = f"megatron-core {target.arm.release}'s own migration of the old text", source.arm.release
    if all_graphs(target) and not all_graphs(migrated):
        shown = "; ".join(census_lines(target.ranks[0]))
        return f"{own} turns graphs on ({shown}); the migrated text does not, as {release} did not"
    return f"{own} differs ({graphs_apart(target, migrated)}); the migrated text captures what {release} did"


def _verdict_without_target(roles: Mapping[str, ArmResult], ran_source: bool) -> tuple[str, str]:
    target, migrated = roles.get(LEGACY_TARGET), roles[MIGRATED]
    failure = f"{target.outcome}: {target.failure}" if target is not None else "not run"
    if not ran_source:
        return INCONCLUSIVE, f"the old text ran on no release ({failure}){_why_no_source(roles.get(LEGACY_SOURCE))}"
    if target is None or target.outcome in (MISSING, TIMED_OUT):
        return EQUIVALENT_BUT, f"nothing shows what the old text does on {migrated.arm.release} ({failure})"
    return EQUIVALENT_BUT, f"megatron-core {migrated.arm.release} cannot run the old text ({failure})"


def _verdict_of_failure(roles: Mapping[str, ArmResult]) -> tuple[str, str]:
    """The verdict where the migrated arm failed, and whether the old text and eager fail in the same way."""
    migrated, target, eager = roles[MIGRATED], roles.get(LEGACY_TARGET), roles.get(EAGER)
    failure = f"the migrated text {_happened(migrated)} on {migrated.arm.release}: {migrated.failure}"
    old = [roles[role] for role in (LEGACY_SOURCE, LEGACY_TARGET) if role in roles]
    ran = [result for result in old if result.outcome == DONE]
    if migrated.outcome in (MISSING, TIMED_OUT):
        return INCONCLUSIVE, failure
    if not (target is not None and target.outcome == DONE) and _fails_alike(eager, migrated):
        return INCONCLUSIVE, f"{failure}; so does the same model without graphs, so the settings are not the cause"
    if not ran:
        outcomes = sorted({result.outcome for result in old}) or ["not run"]
        also = "so did the old text" if outcomes == [migrated.outcome] else "nor did the old text run to its end"
        return INCONCLUSIVE, f"{failure}; {also} ({', '.join(outcomes)})"
    failure += f"; the old text ran on {' and '.join(result.arm.release for result in ran)}"
    if target is None or target.outcome == DONE:
        return DIFFERENT, failure
    if _fails_alike(target, migrated):
        return DIFFERENT, f"{failure} and fails on {target.arm.release}, too: the release changed, not the migration"
    return DIFFERENT, f"{failure}, and on {target.arm.release} it {_happened(target)}: {target.failure}"


def _fails_alike(other: ArmResult | None, migrated: ArmResult) -> bool:
    """Whether an arm fails as the migrated one does: the same outcome and message, but for numbers such as sizes."""
    if other is None or other.outcome != migrated.outcome:
        return False
    messages = (re.sub(r"0x[0-9a-f]+|[0-9.]+", "0", result.failure) for result in (other, migrated))
    return len(set(messages)) == 1


def _happened(result: ArmResult) -> str:
    """What happened to an arm that did not end well, behind its subject."""
    return {REFUSED: "was refused", MISSING: "did not run"}.get(result.outcome, result.outcome)


def _why_no_source(source: ArmResult | None) -> str:
    if source is None:
        return "; the old text's own release is not available (`--mcore VERSION` fetches it)"
    return f"; on {source.arm.release} the old text {_happened(source)}: {source.failure}"


# --- what is captured ------------------------------------------------------------------------------------


def capture_in(result: ArmResult) -> Capture | None:
    """What the validated configuration of an arm asks to capture, by the rules of its release; None when unknown."""
    if not result.effective:
        return None
    release = parse_release(result.arm.release)
    capture = capture_of_resolved(validated(result.effective, release), release)
    return capture if isinstance(capture, Capture) else None


def validated(fields: Mapping[str, Any], release: Release) -> ResolvedConfiguration:
    """The CUDA-graph fields of a validated TransformerConfig, in the terms of ``cgmigrate.capture``."""
    state = ResolvedConfiguration(
        impl=str(fields.get(IMPL) or "none"), enable=bool(fields.get(ENABLE)), external=bool(fields.get(EXTERNAL))
    )
    if release < SCOPE_LIST_SINCE:
        return replace(state, scope=fields.get(SCOPE))
    if release < SPLIT_IN:
        return replace(state, modules=tuple(fields.get(SCOPE) or ()))
    return replace(state, modules=tuple(fields.get(MODULES) or ()), inference=fields.get(INFERENCE))


def graphs_apart(left: ArmResult, right: ArmResult, sizes: bool = True) -> str:
    """What differs in what two arms capture, in words; empty when nothing does.

    Kernel nodes are compared on one release only, and with ``sizes``: another release runs other kernels for the same
    module.
    """
    same_release = sizes and left.arm.release == right.arm.release
    for ours, theirs in zip(left.ranks, right.ranks, strict=False):
        where = f" on rank {ours.rank}" if len(left.ranks) > 1 else ""
        if apart := _census_apart(ours, theirs, same_release):
            return apart + where
    if len(left.ranks) != len(right.ranks):
        return f"{len(left.ranks)} processes against {len(right.ranks)}"
    first, second = capture_in(left), capture_in(right)
    if first is not None and second is not None and first != second:
        requested, other = describe_both(first, second)
        return f"the settings request {requested} against {other} (both arms captured the same graphs)"
    return ""


def _census_apart(left: Rank, right: Rank, same_release: bool) -> str:
    def kinds(rank: Rank, key: Callable[[Graph], object]) -> Counter[object]:
        return Counter(key(graph) for graph in rank.graphs)

    if kinds(left, _kind) != kinds(right, _kind):
        return f"{_in_words(left)} against {_in_words(right)}"
    if same_release and kinds(left, _nodes) != kinds(right, _nodes):
        return f"graphs of {_sizes(left)} kernels against {_sizes(right)}"
    if left.eager and right.eager and eager_calls(left) != eager_calls(right):
        return f"outside graphs run {_calls(left)} against {_calls(right)} a step"
    return ""


def _kind(graph: Graph) -> object:
    return graph.what, graph.layer, graph.direction, frozenset(graph.modules), graph.captured_at, graph.replays


def _nodes(graph: Graph) -> object:
    return graph.what, graph.layer, graph.direction, graph.kernels, graph.nodes


def _sizes(rank: Rank) -> str:
    return "+".join(str(size) for size in sorted({graph.kernels for graph in rank.graphs}))


def _in_words(rank: Rank) -> str:
    return "; ".join(census_lines(rank)) or "no graphs"


def _calls(rank: Rank) -> str:
    counts = eager_calls(rank)
    return ", ".join(f"{count} {name}" for name, count in counts.items()) or "none"


# --- what is computed -------------------------------------------------------------------------------------


def numbers_apart(left: ArmResult, right: ArmResult) -> str:
    """The first thing that two arms computed differently, in words; empty when all is equal to the last bit."""
    for ours, theirs in zip(left.ranks, right.ranks, strict=False):
        where = f" (rank {ours.rank})" if len(left.ranks) > 1 else ""
        for what, mine, other in _measured(ours, theirs):
            if mine == other:
                continue
            if what == TOKENS:
                return f"{what} {_first_token(ours, theirs)}{where}"
            if what == LOGITS:
                return f"{what}, not the tokens{where}"
            step = next((i for i, pair in enumerate(zip(mine, other, strict=False)) if pair[0] != pair[1]), None)
            if step is None:
                return f"{what}: {len(mine)} against {len(other)}{where}"
            return f"{what} from step {step + 1} on, {_value(mine[step])} against {_value(other[step])}{where}"
    return ""


def _measured(left: Rank, right: Rank) -> list[tuple[str, Sequence[object], Sequence[object]]]:
    return [
        ("losses differ", left.losses, right.losses),
        ("gradient norms differ", left.gradient_norms, right.gradient_norms),
        (PARAMETERS, left.parameters, right.parameters),
        (RNG, (left.rng,), (right.rng,)),
        (TOKENS, left.tokens, right.tokens),
        (LOGITS, (left.logits,), (right.logits,)),
    ]


def _first_token(left: Rank, right: Rank) -> str:
    difference = first_difference(left.tokens, right.tokens)
    assert difference is not None
    request, place, ours, theirs = difference
    return f"from request {request}, token {place} on: {ours} against {theirs}"


def _value(item: object) -> str:
    text = str(item)
    return f"{float.fromhex(text):.7g}" if "0x" in text else text[:12]


def distance(left: ArmResult, right: ArmResult) -> float:
    """The largest relative difference of a loss or gradient norm of two arms.

    Infinite where tokens differ, and where one of two values that differ is no finite number.
    """
    worst = 0.0
    for ours, theirs in zip(left.ranks, right.ranks, strict=False):
        if ours.tokens != theirs.tokens:
            return math.inf
        for mine, other in ((ours.losses, theirs.losses), (ours.gradient_norms, theirs.gradient_norms)):
            if len(mine) != len(other):
                return math.inf
            for first, second in zip(map(float.fromhex, mine), map(float.fromhex, other), strict=True):
                if not (math.isfinite(first) and math.isfinite(second)):
                    if str(first) != str(second):
                        return math.inf
                elif first != second:
                    worst = max(worst, abs(first - second) / max(abs(first), abs(second), 1e-30))
    return worst


def _noise(roles: Mapping[str, ArmResult]) -> float | None:
    """How far two eager runs of one release are apart; None when that was not measured."""
    ran = ran_to_end(roles)
    return distance(ran[EAGER], ran[EAGER_AGAIN]) if {EAGER, EAGER_AGAIN} <= ran.keys() else None


def _eager_apart(roles: Mapping[str, ArmResult]) -> str:
    """What two eager runs of one release compute differently, in words; empty when nothing."""
    return numbers_apart(roles[EAGER], roles[EAGER_AGAIN])


def _repeats(roles: Mapping[str, ArmResult], target: ArmResult, migrated: ArmResult) -> bool:
    """Whether two arms differ in something that carries no rounding of its own and that eager runs repeat."""
    noisy = _quantities_apart(roles[EAGER], roles[EAGER_AGAIN]) if _noise(roles) is not None else frozenset()
    return bool((_quantities_apart(target, migrated) - noisy) & {PARAMETERS, RNG, TOKENS})


def _quantities_apart(left: ArmResult, right: ArmResult) -> frozenset[str]:
    pairs = zip(left.ranks, right.ranks, strict=False)
    return frozenset(what for pair in pairs for what, mine, other in _measured(*pair) if mine != other)


def _releases_apart(roles: Mapping[str, ArmResult]) -> str:
    """A difference of numbers between the releases that the migration makes visible, with its side; empty when none."""
    ran, migrated = ran_to_end(roles), roles[MIGRATED]
    source = ran.get(LEGACY_SOURCE)
    if source is None or source.arm.release == migrated.arm.release:
        return ""
    # Generators are seeded alike, but releases draw from them in their own ways before training starts.
    apart = numbers_apart(without_rng(source), without_rng(migrated))
    if not apart:
        return ""
    names = []
    for result, eager in ((source, ran.get(EAGER_SOURCE)), (migrated, ran.get(EAGER))):
        if eager is not None:
            same = not numbers_apart(without_rng(eager), without_rng(result))
            names.append(f"graphs of {result.arm.release} {'equal' if same else 'depart from'} eager")
    placed = f" ({'; '.join(names)})" if names else ""
    return f"numbers change with the release, not with the migration: {apart}{_by(source, migrated)}{placed}"


def _by(left: ArmResult, right: ArmResult) -> str:
    most = distance(left, right)
    return f", losses and gradient norms by at most {most:.1e}" if 0 < most < math.inf else ""


def without_rng(result: ArmResult) -> ArmResult:
    """The result without the states of the random number generators, which each release draws from in its own way."""
    return replace(result, ranks=tuple(replace(rank, rng="") for rank in result.ranks))


# --- what else to know ----------------------------------------------------------------------------------------


def _notes(roles: Mapping[str, ArmResult]) -> list[str]:
    notes: list[str] = []
    noise, migrated = _noise(roles), roles[MIGRATED]
    if noise is not None and not (eager_apart := _eager_apart(roles)):
        notes.append(f"two eager runs on {migrated.arm.release} are equal to the last bit")
    elif noise is not None:
        by = f"by {noise:.1e}" if 0.0 < noise < math.inf else f"({eager_apart})"
        notes.append(f"two eager runs on {migrated.arm.release} differ {by}")
    notes += _against_eager(roles)
    for result in roles.values():
        notes += [remark for remark in (*result.remarks, *result.arm.proxy.notes) if remark not in notes]
    failures = {result.failure for role, result in roles.items() if result.outcome != DONE and role.startswith("eager")}
    notes += [f"an eager arm did not run: {failure}" for failure in sorted(failures)]
    return list(dict.fromkeys(notes))


def _against_eager(roles: Mapping[str, ArmResult]) -> list[str]:
    """What each arm computes other than eager on its own release, which arms nothing, and what is not compared."""
    notes: list[str] = []
    equal: dict[str, list[str]] = {}
    seeded: dict[str, list[str]] = {}
    ran = ran_to_end(roles)
    for role, eager_role in ((LEGACY_SOURCE, EAGER_SOURCE), (LEGACY_TARGET, EAGER), (MIGRATED, EAGER)):
        result, eager = ran.get(role), ran.get(eager_role)
        if result is None or eager is None:
            continue
        name, measure = label(role, result.arm.release), label(eager_role, eager.arm.release)
        if apart := numbers_apart(without_rng(eager), without_rng(result)):
            notes.append(f"{name} departs from {measure}: {apart}{_by(eager, result)}")
            continue
        equal.setdefault(measure, []).append(name)
        if generators := _generators_apart(eager, result):
            seeded.setdefault(f"than under {measure} ({generators})", []).append(name)
    notes += [f"equal to {measure} to the last bit: {', '.join(names)}" for measure, names in equal.items()]
    for apart, names in seeded.items():
        notes.append(f"random-number states end elsewhere {apart}, although all else is equal: {', '.join(names)}")
    return notes


def _generators_apart(left: ArmResult, right: ArmResult) -> str:
    """The random number generators that end in other states, by name; empty where none does."""
    pairs = zip(left.ranks, right.ranks, strict=False)
    apart = (state for ours, theirs in pairs for state in ours.rng.split() if state not in theirs.rng.split())
    return ", ".join(dict.fromkeys(state.rpartition(":")[0] for state in apart))
