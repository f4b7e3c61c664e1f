"""Keys of NeMo-RL's configurations that one of its releases no longer reads: they are accepted, and do nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.text.spans import Span

_PACKAGE = "nemo-rl"
_BACKENDS = frozenset(("megatron_cfg", "dtensor_cfg", "generation"))
"""What `policy` has in a configuration of NeMo-RL, and nowhere else."""


@cache
def _rows() -> Mapping[str, Mapping[str, Any]]:
    rows: Mapping[str, Mapping[str, Any]] = json.loads((rules_folder() / "nemo-rl-keys.json").read_text("utf-8"))
    return rows


def gone_keys(roots: Sequence[Node]) -> Iterator[Problem]:
    """Yield a problem for each key that a release of NeMo-RL no longer reads, in the configurations of a training."""
    for root in roots:
        sections = {key.value: value for key, value in root.pairs()} if root.kind == "map" else {}
        policy = sections.get("policy")
        is_policy = policy is not None and policy.kind == "map" and _BACKENDS & {key.value for key, _ in policy.pairs()}
        if is_policy and "eval" not in sections:
            yield from _below(root, "")


def _below(mapping: Node, prefix: str) -> Iterator[Problem]:
    for key, value in mapping.pairs():
        path = f"{prefix}{key.value}"
        if (row := _rows().get(path)) is not None:
            instead = " or ".join(f"`{one}`" for one in row.get("now", ()))
            instead = f"; it reads {instead}" if instead else ""
            message = f"NeMo-RL {row['gone']} does not read `{path}`{instead}"
            span, since = Span(key.start, key.end), (_PACKAGE, row["gone"])
            yield Problem(ProblemKind.GONE_KEY, span, message, package_since=since)
        elif value.kind == "map" and any(one.startswith(f"{path}.") for one in _rows()):
            yield from _below(value, f"{path}.")
