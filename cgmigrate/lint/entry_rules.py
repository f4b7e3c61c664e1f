"""Rules that an entry of the catalogue brings along: ``rule: TEAM001`` in the file of a setting with a new name.

Everything else follows from the entry: what the rule reports, its fix, and an example for each value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cgmigrate.lint.fixes import shown
from cgmigrate.megatron.catalogue import ABSENT, Catalogue
from cgmigrate.megatron.gone import ARGUMENTS
from cgmigrate.megatron.releases import Release
from cgmigrate.megatron.rule_data import RuleError
from cgmigrate.megatron.setting import Setting, SettingKind

_ARGUMENTS = "num_layers: 4\ntensor_model_parallel_size: 2\n"
_SECTIONS = {
    ARGUMENTS: _ARGUMENTS,
    "OptimizerConfig": "optimizer:\n  lr: 0.001\n  weight_decay: 0.1\n  ",
    "DistributedDataParallelConfig": "ddp:\n  overlap_grad_reduce: true\n  ",
}
"""Owner → what an example has before the setting; for others it is the section of the model."""
_MODEL = "model:\n  num_layers: 4\n  tensor_model_parallel_size: 2\n  "
_SAMPLES: Mapping[SettingKind, tuple[object, ...]] = {
    SettingKind.FLAG: (True, False),
    SettingKind.NUMBER: (8,),
    SettingKind.TEXT: ("a",),
}
"""Values of examples, where every value stays as it is."""
_FLAG_STAYS = "the flag keeps its name, and what reads the keys may pass them on as flags"


def entry_rules(folder: Path, catalogue: Catalogue) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    """Yield the content of each rule that the entries of a folder bring along, with the file of the entry.

    Raises RuleError for an entry without the one name that replaces it, or without the release.
    """
    for setting in catalogue.settings.values():
        path = Path(setting.path)
        if setting.rule and path.parent.parent == folder and path.stem == setting.name:
            yield path, _rule(setting, path)


def _rule(setting: Setting, path: Path) -> Mapping[str, Any]:
    if len(setting.replaced_by) != 1 or setting.deprecated_in is None:
        raise RuleError(
            f"{path}: `rule` needs `deprecated-in` and one name in `replaced-by`; write a rule file instead"
        )
    release = setting.deprecated_in
    is_gone = setting.until is not None
    of_arguments = setting.owner == ARGUMENTS
    readers = {"reader": ["config", "command-line", *([] if of_arguments else ["bridge"])]}
    proof = {"proved-by": setting.proved_by} if setting.proved_by else {}
    risk = {"unsafe": why} if (why := setting.unsafe or (_FLAG_STAYS if _keeps_flag(setting) else "")) else {}
    return {
        "id": setting.rule,
        "name": setting.name.replace("_", "-").replace(".", "-"),
        "kind": "rejected" if is_gone else "deprecated",
        "severity": "error" if is_gone else "warning",
        "summary": f"`{setting.name}` is `{setting.replaced_by[0]}` since {release}",
        "when": {**readers, **({"source-before": str(release)} if is_gone else {})},
        "fix": {"migrate": setting.name, **proof, **risk},
        "explanation": setting.explanation or f"{setting.summary}.",
        "sources": setting.sources,
        "examples": list(_examples(setting, release)),
    }


def _keeps_flag(setting: Setting) -> bool:
    """Return whether only an attribute of the arguments has another name, and its flag stays as it is."""
    return setting.owner == ARGUMENTS and not setting.flag


def sample_values(setting: Setting) -> tuple[object, ...]:
    """Return values that stand for all that a setting may have."""
    return setting.choices or _SAMPLES.get(setting.kind, ("a",))


def _examples(setting: Setting, release: Release) -> Iterator[Mapping[str, Any]]:
    """Yield an example for each value, and one for the release before, which has the old name."""
    before = str(Release(release.major, release.minor - 1))
    base = f"{_MODEL.rstrip(' ')}{setting.section}:\n  train_iters: 8\n" if setting.section else ""
    base = base or _SECTIONS.get(setting.owner, _MODEL)
    values = setting.values or tuple((one, one) for one in sample_values(setting))
    for old, new in values:
        written = _written(setting.replaced_by[0], shown(new), base) if new != ABSENT else ""
        text = base + _written(setting.name, shown(old), base)
        is_unsafe = not setting.proved_by or setting.unsafe or _keeps_flag(setting)
        after = "unsafe-after" if is_unsafe else "after"
        yield {"syntax": "yaml", "from": before, "before": text, after: (base + written).rstrip(" ")}
    yield {
        "syntax": "yaml",
        "why": f"{before} has the old name",
        "from": before,
        "to": before,
        "reported": False,
        "before": base + _written(setting.name, shown(values[0][0]), base),
    }


def _written(name: str, value: str, base: str) -> str:
    """Return the line of a setting behind the lines of an example, with that of its section if that is not there."""
    section, _, key = name.rpartition(".")
    line = f"  {key}: {value}\n" if section else f"{key}: {value}\n"
    return line if not section or f"\n{section}:\n" in base else f"{section}:\n{line}"
