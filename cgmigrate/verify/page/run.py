"""How the arms were run: environment, proxy model, remarks, and the commands that repeat them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from cgmigrate.text.plurals import counted
from cgmigrate.verify.arms import Packing, Proxy
from cgmigrate.verify.page.arm_views import ArmView, alike, names_of, written

_NAMES = {
    # Name in a result's environment → name on the page, in the page's order; others follow as they are.
    "GPU": "GPU",
    "GPUs": "GPUs",
    "driver": "driver",
    "CUDA": "CUDA",
    "torch": "torch",
    "transformer-engine": "Transformer Engine",
    "megatron-core": "megatron-core",
    "python": "Python",
}


@dataclass(frozen=True, slots=True)
class Environment:
    """What the arms ran on and with, remarks of the runs, and the command of each arm (empty: it was not run)."""

    facts: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    commands: tuple[tuple[str, str], ...]


def environment(arms: Sequence[ArmView]) -> Environment:
    """The environment of all arms; where arms differ, each value names its arms."""
    known = [arm for arm in arms if arm.result]
    names = dict.fromkeys([*_NAMES, *(name for arm in known for name in arm.run.environment)])
    pairs = {_NAMES.get(name, name): _by_arms(_of_environment(known, name)) for name in names}
    pairs["proxy model"] = _by_arms(alike(known, lambda arm: _model(arm.run.arm.proxy)))
    return Environment(
        facts=tuple((name, value) for name, value in pairs.items() if value),
        remarks=tuple(_remarks(known)),
        commands=tuple((arm.name, arm.result.command if arm.result else "") for arm in arms),
    )


def _remarks(arms: Sequence[ArmView]) -> list[str]:
    notes = dict.fromkeys(note for arm in arms for note in arm.run.arm.proxy.notes)
    remarks: dict[str, list[ArmView]] = {}
    for arm in arms:
        for remark in dict.fromkeys(arm.run.remarks):
            remarks.setdefault(remark, []).append(arm)
    return [*notes, *(f"{names_of(group)}: {remark}" for remark, group in remarks.items())]


def _of_environment(arms: Sequence[ArmView], name: str) -> dict[Hashable, list[ArmView]]:
    return alike(arms, lambda arm: arm.run.environment.get(name))


def _by_arms(groups: Mapping[Hashable, Sequence[ArmView]]) -> str:
    if len(groups) < 2:
        return str(next(iter(groups), ""))
    return "; ".join(f"{value} ({names_of(group)})" for value, group in groups.items())


def _model(proxy: Proxy) -> str:
    parallel = {"tensor": proxy.tensor, "pipeline": proxy.pipeline, "expert": proxy.expert, "context": proxy.context}
    parts = [
        counted(proxy.layers, f"{'Transformer Engine' if proxy.spec == 'te' else proxy.spec} layer"),
        f"hidden size {proxy.hidden}",
        counted(proxy.heads, "head"),
        f"vocabulary {proxy.vocabulary}",
        f"{proxy.sequence} tokens a sequence",
        f"{proxy.microbatches} × {proxy.micro_batch} sequences a step",
        proxy.precision,
        *(f"{name} parallel {size}" for name, size in parallel.items() if size > 1),
        *(f"{name}={written(value)}" for name, value in proxy.fields.items()),
        *([_packing(proxy.packing)] if proxy.packing else []),
    ]
    return ", ".join(parts)


def _packing(packing: Packing) -> str:
    cap = "" if packing.cap is None else f", cu_seqlens padded for {packing.cap}"
    return f"packed sequences of {written(packing.documents)} documents{cap}"
