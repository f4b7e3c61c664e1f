"""How the arms were run: environment, proxy model, remarks, and the commands that repeat them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

from cgmigrate.text.plurals import counted
from cgmigrate.verify.arms import Packing, Proxy
from cgmigrate.verify.page.components import ArmView, alike, facts, items, listed, written
from cgmigrate.verify.page.markup import Markup, element, together

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


def environment(arms: Sequence[ArmView]) -> Markup:
    """What the arms ran on and with; where arms differ, each value names its arms."""
    known = [arm for arm in arms if arm.result]
    names = dict.fromkeys([*_NAMES, *(name for arm in known for name in arm.run.environment)])
    pairs = {_NAMES.get(name, name): _by_arms(_of_environment(known, name)) for name in names}
    pairs["proxy model"] = _by_arms(alike(known, lambda arm: _model(arm.run.arm.proxy)))
    notes = dict.fromkeys(note for arm in known for note in arm.run.arm.proxy.notes)
    remarks: dict[str, list[ArmView]] = {}
    for arm in known:
        for remark in dict.fromkeys(arm.run.remarks):
            remarks.setdefault(remark, []).append(arm)
    lines = [*notes, *(f"{listed(group)}: {remark}" for remark, group in remarks.items())]
    return together(facts({name: value for name, value in pairs.items() if value}), items(lines, "notes"))


def _of_environment(arms: Sequence[ArmView], name: str) -> dict[Hashable, list[ArmView]]:
    return alike(arms, lambda arm: arm.run.environment.get(name))


def _by_arms(groups: Mapping[Hashable, Sequence[ArmView]]) -> str:
    if len(groups) < 2:
        return str(next(iter(groups), ""))
    return "; ".join(f"{value} ({listed(group)})" for value, group in groups.items())


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


def commands(arms: Sequence[ArmView]) -> Markup:
    """The command of each arm, folded away; one click selects one."""
    pairs: list[Markup] = []
    for arm in arms:
        command = arm.result.command if arm.result else ""
        known = element("pre", element("code", command), class_="command wrapped") if command else "was not run"
        pairs += [element("dt", arm.name), element("dd", known)]
    note = element("p", element("small", "A click selects a whole command."))
    summary = element("summary", "Commands that repeat each arm")
    return element("details", summary, note, element("dl", *pairs))
