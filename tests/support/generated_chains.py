"""Hypothesis strategies for projects of YAML files that build on others."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from hypothesis import strategies as st

from tests.support.capture_judges import READERS, Entries, Place
from tests.support.loaders import load_extending, load_hydra, load_nemo_rl

Data = dict[str, Any]

SCOPES = ["full", "attn", "full_iteration", "full_iteration_inference", ["attn", "mlp"], "attn,mlp", [], None]
PLAUSIBLE: list[Data] = [
    {},
    {"enable_cuda_graph": True},
    {"enable_cuda_graph": False},
    {"external_cuda_graph": True},
    {"external_cuda_graph": False},
    {"external_cuda_graph": True, "cuda_graph_scope": "attn"},
    {"enable_cuda_graph": True, "cuda_graph_scope": "full_iteration"},
    {"cuda_graph_impl": "local"},
    {"cuda_graph_impl": "none"},
    {"cuda_graph_impl": "local", "cuda_graph_scope": "full_iteration"},
    {"cuda_graph_impl": "local", "cuda_graph_scope": ["full_iteration_inference"]},
    {"cuda_graph_impl": "transformer_engine", "cuda_graph_scope": ["attn", "mlp"]},
    {"cuda_graph_impl": "transformer_engine"},
    {"cuda_graph_impl": "transformer_engine", "cuda_graph_modules": ["attn"]},
    {"cuda_graph_impl": "full_iteration"},
    {"cuda_graph_modules": ["attn"]},
]
"""Settings that people write into one file."""

own_settings = st.one_of(
    st.sampled_from(PLAUSIBLE),
    st.sampled_from(SCOPES).map(lambda scope: {"cuda_graph_scope": scope}),
    st.fixed_dictionaries(
        {},
        optional={
            "enable_cuda_graph": st.booleans(),
            "external_cuda_graph": st.booleans(),
            "cuda_graph_impl": st.sampled_from(["none", "local", "transformer_engine"]),
            "cuda_graph_scope": st.sampled_from(SCOPES),
        },
    ),
)


@dataclass(frozen=True)
class Tree:
    """A project: the text of each file, and how each entry point is loaded from its path."""

    files: Mapping[str, str]
    leaves: Mapping[str, Callable[[Path], Data]]
    """By the path of the file that is loaded, and what distinguishes entry points of the same file."""
    places: Mapping[Place, Any] = field(default_factory=lambda: dict(READERS))

    def write(self, folder: Path) -> Entries:
        """Write the files, and return the loaders of the entry points."""
        for name, text in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return {name: partial(load, folder / name.partition(" ")[0]) for name, load in self.leaves.items()}

    @property
    def files_with_settings(self) -> int:
        return sum("cuda_graph" in text for text in self.files.values())

    def __repr__(self) -> str:
        return (
            "\n" + "\n".join(f"--- {name}\n{text}" for name, text in self.files.items()) + f"entries: {[*self.leaves]}"
        )


def nested(place: Place, own: Data) -> Data:
    data: Data = own
    for name in reversed(place):
        data = {name: data}
    return data


def text_of(*parts: Data) -> str:
    merged: Data = {}
    for part in parts:
        merged |= part
    return yaml.safe_dump(merged, sort_keys=False) if merged else "x: 1\n"


@dataclass(frozen=True)
class Node:
    """One generated file before it is written: its name, the numbers of the files below it, its settings."""

    name: str
    below: tuple[int, ...]
    own: Data


FOLDERS = ("", "base", "runs/a")
FEW: Data = {"num_layers": 2, "num_attention_heads": 4}


@st.composite
def nodes(draw: st.DrawFn, most_below: int = 2) -> list[Node]:
    """Files, each of which builds on some of those before; at least one chain, up to five deep."""
    count = draw(st.integers(2, 6))
    result: list[Node] = []
    single = draw(st.integers(0, 3)) == 0
    place_of_single = draw(st.integers(0, count - 1))
    for number in range(count):
        folder = draw(st.sampled_from(FOLDERS))
        below: tuple[int, ...] = ()
        if number:
            candidates = st.integers(max(0, number - 3), number - 1)
            below = tuple(draw(st.lists(candidates, unique=True, max_size=most_below, min_size=int(number == 1))))
        own = {} if single and number != place_of_single else draw(own_settings)
        result.append(Node(os.path.join(folder, f"{'abcdefg'[number]}.yaml"), below, own))
    return result


def leaves_of(chain: list[Node]) -> list[Node]:
    used = {number for node in chain for number in node.below}
    return [node for number, node in enumerate(chain) if number not in used]


def relative(chain: list[Node], node: Node, suffix: bool = True) -> list[str]:
    start = os.path.dirname(node.name) or "."
    names = [os.path.relpath(chain[number].name, start) for number in node.below]
    return names if suffix else [name.removesuffix(".yaml") for name in names]


places = st.sampled_from([*READERS])


@st.composite
def nemo_rl_trees(draw: st.DrawFn) -> Tree:
    """Files with ``defaults:``, loaded as NeMo-RL does; some replace a section, some take a value from elsewhere."""
    chain, place = draw(nodes()), draw(places)
    files = {}
    for node in chain:
        named: Data = {}
        if node.below:
            names = relative(chain, node)
            dotted = ["./" + name if draw(st.booleans()) and not name.startswith(".") else name for name in names]
            named = {"defaults": dotted[0] if len(dotted) == 1 and draw(st.booleans()) else dotted}
        own = dict(FEW if not node.below else {}) | node.own
        own, others = draw(with_interpolation(own))
        data = nested(place, own) if own else {"other": {"x": 1}}
        if node.below and own and draw(st.integers(0, 9)) == 0:
            data[place[0]] = {"_override_": True, **data[place[0]]}
        files[node.name] = text_of(named, others, data)
    return Tree(files, {leaf.name: load_nemo_rl for leaf in leaves_of(chain)}, {place: READERS[place]})


@st.composite
def with_interpolation(draw: st.DrawFn, own: Data) -> tuple[Data, Data]:
    """Settings of which one may be an interpolation, and the mapping that has its value."""
    names = [name for name, value in own.items() if "cuda_graph" in name and value is not None]
    if not names or draw(st.integers(0, 5)):
        return own, {}
    name = draw(st.sampled_from(names))
    return {**own, name: f"${{graphs.{name}}}"}, {"graphs": {name: own[name]}}


EXTENDING = ("extends", "_base_", "inherits", "base_config", "inherit_from", "include")


@st.composite
def extending_trees(draw: st.DrawFn) -> Tree:
    """Files with a key such as ``extends:``, loaded by a program that merges mappings or replaces them."""
    chain, place = draw(nodes(most_below=draw(st.integers(1, 2)))), draw(places)
    key, replaces = draw(st.sampled_from(EXTENDING)), draw(st.booleans())
    suffix = draw(st.integers(0, 3)) > 0
    files = {}
    for node in chain:
        named: Data = {}
        if node.below:
            names = relative(chain, node, suffix)
            named = {key: names[0] if len(names) == 1 and draw(st.booleans()) else names}
        own = dict(FEW if not node.below else {}) | node.own
        files[node.name] = text_of(named, nested(place, own) if own else {"other": 1})
    load = partial(load_extending, key=key, replaces=replaces)
    return Tree(files, {leaf.name: load for leaf in leaves_of(chain)}, {place: READERS[place]})


@st.composite
def hydra_trees(draw: st.DrawFn, packages: bool = False) -> Tree:
    """A folder of Hydra with groups, composed from each of its main files and with each experiment.

    ``packages`` says whether a group may be merged at another place than its name says.
    """
    place: Place = ("policy", "megatron_cfg")
    files: dict[str, str] = {}
    for name in ("base", "large"):
        head: Data = {"defaults": draw(st.sampled_from([["base"], ["base", "_self_"], ["_self_", "base"]]))}
        head = head if name == "large" and draw(st.booleans()) else {}
        own = dict(FEW if not head else {}) | draw(own_settings)
        files[f"policy/{name}.yaml"] = text_of(head, {"megatron_cfg": own} if own else {"x": 1})
    entries: list[Any] = [draw(st.sampled_from([{"policy": "base"}, {"policy": "large"}]))]
    if packages and draw(st.booleans()):
        files["graphs/on.yaml"] = text_of(draw(own_settings))
        entries.append({"graphs@policy.megatron_cfg": "on"})
    if draw(st.integers(0, 2)) == 0:
        entries.append({"optional local": draw(st.sampled_from(["missing", "site"]))})
        files["local/site.yaml"] = "# @package _global_\n" + text_of(nested(place, draw(own_settings)))
    if draw(st.booleans()):
        entries.insert(draw(st.integers(0, len(entries))), "_self_")
    main_own = draw(own_settings)
    files["config.yaml"] = text_of({"defaults": entries}, nested(place, main_own) if main_own else {"y": 1})
    leaves: dict[str, Callable[[Path], Data]] = {"config.yaml": load_hydra}
    if draw(st.booleans()):
        own = draw(own_settings)
        files["child.yaml"] = text_of({"defaults": ["config", "_self_"]}, nested(place, own) if own else {"z": 1})
        leaves["child.yaml"] = load_hydra
    if draw(st.booleans()):
        own = draw(own_settings)
        other = draw(st.sampled_from([["_self_"], [{"override /policy": "large"}, "_self_"]]))
        text = text_of({"defaults": other}, nested(place, own) if own else {"z": 1})
        files["experiment/fast.yaml"] = "# @package _global_\n" + text
        leaves["config.yaml +experiment=fast"] = partial(load_hydra, overrides=["+experiment=fast"])
    return Tree(
        {f"conf/{name}": text for name, text in files.items()},
        {f"conf/{name}": load for name, load in leaves.items()},
        {place: READERS[place]},
    )
