"""Names of Megatron's code in YAML that a release no longer has, such as the class of a ``_target_``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from cgmigrate.documents.dotted_names import PATH, is_of_megatron
from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.megatron.code import CallShape, load
from cgmigrate.megatron.hybrid_models import about_class
from cgmigrate.megatron.rule_data import rules_folder
from cgmigrate.text.spans import Span

_OF_HYDRA = frozenset(("_target_", "_partial_", "_recursive_", "_convert_", "_call_", "_mode_"))


def code_names(collections: Sequence[Node], path: str) -> Iterator[Problem]:
    """Yield a problem for each scalar in collections that is the path of a module or name which is gone.

    One with a `_target_` calls that with its other keys.
    """
    for node in (item for one in collections for item in one.items):
        text = node.value if node.kind == "scalar" else ""
        if PATH.match(text) and is_of_megatron(text, path):
            yield from _of_path(node, text)
    for one in collections:
        values = {key.value: value for key, value in one.pairs()} if one.kind == "map" else {}
        target = values.get("_target_")
        if target is not None and "_args_" not in values and is_of_megatron(target.value, path):
            names = frozenset(name for name in values if name.isidentifier()) - _OF_HYDRA
            yield from _of_call(target, names)


def _of_path(node: Node, text: str) -> Iterator[Problem]:
    table, span = load(), Span(node.start, node.end)
    if message := about_class(text):
        yield Problem(ProblemKind.GPT_CLASS, span, message)
    module, _, name = text.rpartition(".")
    if (gone := table.gone_name(module, name)) is not None:
        message = table.gone_names(module, {name: gone}, gone.since)
    elif (gone := table.gone_name(text, "")) is not None:
        message = table.gone_module(text, gone.since)
    else:
        return
    yield Problem(ProblemKind.GONE_NAME, span, message, since=gone.since)


def _of_call(target: Node, names: frozenset[str]) -> Iterator[Problem]:
    table, function = load(), target.value
    # Other files may have the arguments that are required.
    shape = CallShape(0, names, is_open=True)
    for one in (*table.mismatches(function, shape), *table.refused_fields(function, names)):
        message = f"`{function.rpartition('.')[2]}` of {table.release_words(function, one.since)} {one.why}"
        span = Span(target.start, target.end)
        yield Problem(ProblemKind.CHANGED_CALL, span, message, since=one.since, until=one.until)


# --- keys of packages -----------------------------------------------------------------------------

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
