"""What the releases themselves do differently with the old text, whatever it is migrated to.

The old text on its own release is compared with the old text on the target. A reader who sees a difference between the
releases must not take it for one that the migration made.
"""

from __future__ import annotations

from collections.abc import Mapping

from cgmigrate.megatron.types import Capture, Rejected
from cgmigrate.verify.arms import CRASHED, DONE, EAGER, EAGER_AGAIN, LEGACY_SOURCE, LEGACY_TARGET, REFUSED, ArmResult
from cgmigrate.verify.compare import graphs_apart, numbers_apart, ran_to_end, without_rng
from cgmigrate.verify.config_level import ConfigVerdict

NUMBERS, GRAPHS, SUPPORT = "numbers", "graphs", "support"
"""The old text computes other numbers on the target, captures other graphs, or does not run there at all."""


def changes_of_runs(roles: Mapping[str, ArmResult]) -> tuple[str, ...]:
    """What changed between the releases, by the arms that ran; empty where either legacy arm shows nothing."""
    source, target = roles.get(LEGACY_SOURCE), roles.get(LEGACY_TARGET)
    if source is None or target is None or source.outcome != DONE or source.arm.release == target.arm.release:
        return ()
    if target.outcome in (REFUSED, CRASHED):
        return (SUPPORT,)
    if target.outcome != DONE:
        return ()
    changes = [GRAPHS] if graphs_apart(source, target) else []
    if _repeats(roles) and numbers_apart(without_rng(source), without_rng(target)):
        changes.append(NUMBERS)
    return tuple(changes)


def _repeats(roles: Mapping[str, ArmResult]) -> bool:
    """Whether runs repeat to the bit, as far as two eager runs show; else other numbers say nothing of the release."""
    ran = ran_to_end(roles)
    return not ({EAGER, EAGER_AGAIN} <= ran.keys() and numbers_apart(ran[EAGER], ran[EAGER_AGAIN]))


def changes_of_readings(verdict: ConfigVerdict) -> tuple[str, ...]:
    """What changed between the releases, by how each reads the old text."""
    if not verdict.readings:
        return ()
    source, target, _ = verdict.readings
    if source.version == target.version or not isinstance(source.capture, Capture):
        return ()
    match target.capture:
        case Rejected():
            return (SUPPORT,)
        case Capture() as own if own != source.capture:
            return (GRAPHS,)
    return ()
