"""Run what recipes of Megatron-Bridge and NeMo-RL capture on a GPU, before and after `cgmigrate fix`.

    python bench/recipes_on_gpu.py pairs FOLDER --bridge BEFORE AFTER [--nemo-rl BEFORE AFTER LEAF...]...
    python bench/recipes_on_gpu.py run FOLDER --mcore 0.17.1=DIR --mcore 0.19.2=DIR

BEFORE and AFTER are a checkout and a copy of it on which `cgmigrate fix` ran. `pairs` needs no GPU: it executes the
recipes of both (bridge_recipes.py), composes the leaves with the loader of their own tree, and writes for each a small
configuration with the settings that it has in effect: `before.yaml` and `after.yaml`. Of the rest only what decides how
graphs are captured is kept, in the size of the proxy of `cgmigrate verify`; parallel sizes are 1.

`run` calls `cgmigrate verify --level capture --after after.yaml before.yaml` for each pair and prints a table. Pairs
of equal files run once. The exit status is 1 if a verdict is `different`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import json
import logging
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml
from bridge_recipes import execute

from cgmigrate import Capture, Rejected, capture_of
from cgmigrate.megatron.releases import LAST_OLD, NEWEST, Release
from cgmigrate.megatron.settings import FIELDS
from cgmigrate.megatron.types import Reader
from cgmigrate.verify.proxy import proxy_of
from cgmigrate.verify.session import gpu_count

CAPTURING, OTHERS = 19, 3
"""How many recipes are taken that capture graphs, and that do not: one of each form, the most frequent forms first."""
NEW_NAMES = ("cuda_graph_modules", "inference_cuda_graph_scope")
PARALLEL = ("tensor", "pipeline", "context", "expert")
INDEX = "pairs.json"
BLACKWELL = ("_fp8mx", "_nvfp4")
"""Precisions in the names of recipes that need a newer GPU than Hopper: their pairs compute in bf16."""


@dataclass(frozen=True)
class Pair:
    """One configuration before and after, and how many recipes have its settings."""

    name: str
    source: str
    """The release that reads the settings before: 0.17, or the newest."""
    before: dict[str, Any]
    after: dict[str, Any]
    alike: int = 1
    tracker: bool = False
    shape: dict[str, Any] = field(default_factory=dict)

    @property
    def release(self) -> Release:
        """The release that reads the settings before, as a value."""
        return LAST_OLD if self.source == str(LAST_OLD) else NEWEST

    @property
    def reader(self) -> Reader:
        """Who reads the settings: a leaf of NeMo-RL is a file, a recipe of Megatron-Bridge a function."""
        return Reader.NEMO_RL if self.name.endswith(".yaml") else Reader.BRIDGE

    def form(self) -> str:
        """How pairs differ: settings, and the tracker, experts and precision beside them."""
        beside = [self.tracker, "num_moe_experts" in self.shape, "fp8" in self.shape]
        return json.dumps([_sorted(self.before), _sorted(self.after), *beside])

    def captures(self) -> bool:
        """Whether the settings before capture graphs, as the reader of recipes reads them."""
        captured = capture_of(self.before, self.release, self.reader)
        return not isinstance(captured, Rejected) and captured != Capture()

    def texts(self) -> tuple[str, str]:
        """The two files, the same but for the settings."""
        return self._text(self.before), self._text(self.after)

    def _text(self, settings: dict[str, Any]) -> str:
        model = {**self.shape, "use_te_rng_tracker": self.tracker, **settings}
        if self.reader is Reader.NEMO_RL:
            return yaml.safe_dump({"policy": {"megatron_cfg": {"enabled": True, **model}}}, sort_keys=False)
        whole = {"model": model, "train": {"train_iters": 8}, "rng": {"te_rng_tracker": self.tracker}}
        return yaml.safe_dump({**whole, "mixed_precision": "bf16_mixed"}, sort_keys=False)


# --- what recipes and leaves have in effect -------------------------------------------------------------


def bridge_pairs(before: Path, after: Path) -> list[Pair]:
    """A pair for each of the most frequent forms of settings that `fix` changes."""
    executed = (execute(before, _written), execute(after, _written))
    forms: dict[str, list[Pair]] = {}
    for name, both in executed[0].items():
        was, now = both[0], (executed[1].get(name) or [""])[0]
        if isinstance(both, list) and isinstance(was, dict) and isinstance(now, dict):
            pair = pair_of(name.rpartition(".")[2], was, now)
            if pair.before != pair.after:
                forms.setdefault(pair.form(), []).append(pair)
    ordered = [replace(pairs[0], alike=len(pairs)) for pairs in sorted(forms.values(), key=len, reverse=True)]
    capturing = [pair for pair in ordered if pair.captures()]
    return capturing[:CAPTURING] + [pair for pair in ordered if pair not in capturing][:OTHERS]


def _written(model: Any, rng: Any) -> dict[str, Any]:
    """All plain values of a recipe's model as it leaves them, before anything validates them."""
    values = {name: plain for name, value in vars(model).items() if (plain := _plain(value)) is not ...}
    return {**values, "use_te_rng_tracker": bool(model.use_te_rng_tracker is True or rng.te_rng_tracker is True)}


def _plain(value: Any) -> Any:
    """The value as YAML has it; `...` for what is none of its types."""
    if isinstance(value, (list, tuple)):
        items = [_plain(item) for item in value]
        return ... if ... in items else items
    if value is None or type(value) in (str, int, float, bool):
        return value
    return value.name if hasattr(type(value), "__members__") else ...


def _sorted(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings in one order, so that forms differ only by their values."""
    return {name: sorted(v) if isinstance(v, list) else v for name, v in sorted(settings.items())}


def nemo_rl_pairs(before: Path, after: Path, leaves: Sequence[str]) -> Iterator[Pair]:
    """A pair for each leaf of a tree, composed by the tree's own loader."""
    for leaf in leaves:
        was, now = (_composed(tree, leaf) for tree in (before, after))
        yield pair_of(leaf.removeprefix("examples/configs/"), was, now)


def _composed(tree: Path, leaf: str) -> dict[str, Any]:
    """`policy.megatron_cfg` of a leaf, in the names of TransformerConfig."""
    from omegaconf import OmegaConf

    spec = importlib.util.spec_from_file_location("loader_of_nemo_rl", tree / "nemo_rl/utils/config.py")
    assert spec is not None and spec.loader is not None
    loader = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loader)
    config = loader.load_config_with_inheritance(tree / leaf).policy.megatron_cfg
    values: dict[str, Any] = OmegaConf.to_container(config, resolve=False)  # type: ignore[assignment]
    if values.get("activation_checkpointing") and not values.get("recompute_granularity"):
        # What its setup code does with the key.
        values |= {"recompute_granularity": "full", "recompute_method": "uniform"}
    return values


def pair_of(name: str, was: dict[str, Any], now: dict[str, Any]) -> Pair:
    before, after = ({n: values[n] for n in FIELDS if n in values} for values in (was, now))
    known = {n: v for n, v in was.items() if isinstance(v, (str, int, float, bool, list))}
    if "_fp8cs" in name:
        known |= {"fp8": "hybrid", "fp8_recipe": "tensorwise"}
    modules = [str(module) for key in ("cuda_graph_scope", "cuda_graph_modules") for module in was.get(key) or ()]
    if known.get("expert_model_parallel_size", 1) > 1 or any(module.startswith("moe") for module in modules):
        known.setdefault("num_moe_experts", 8)
    if was.get("moe_token_dispatcher_type") == "flex":
        # The proxy dispatches with alltoall, which no graph can hold unless experts drop and pad.
        known |= {"moe_expert_capacity_factor": 1.0, "moe_pad_expert_input_to_capacity": True}
    proxy = proxy_of({n: v for n, v in known.items() if not n.startswith(PARALLEL)})
    shape = {"num_layers": proxy.layers, "hidden_size": proxy.hidden, "num_attention_heads": proxy.heads}
    shape |= {"bf16": True, **proxy.fields}
    tracker = was.get("use_te_rng_tracker") is True or was.get("te_rng_tracker") is True
    return Pair(name, _source(before), before, after, tracker=tracker, shape=shape)


def _source(settings: dict[str, Any]) -> str:
    """The newest release that the settings may be written for: one with new names or values knows nothing older."""
    new = any(settings.get(name) for name in NEW_NAMES) or settings.get("cuda_graph_impl") == "full_iteration"
    return str(NEWEST if new else LAST_OLD)


def write(folder: Path, pairs: Sequence[Pair]) -> None:
    """Write two files a pair, and the index that `run` reads."""
    for number, pair in enumerate(pairs):
        place = folder / str(number)
        place.mkdir(parents=True, exist_ok=True)
        for name, text in zip(("before", "after"), pair.texts(), strict=True):
            (place / f"{name}.yaml").write_text(text, encoding="utf-8")
    (folder / INDEX).write_text(json.dumps([asdict(pair) for pair in pairs], indent=1) + "\n", encoding="utf-8")


# --- runs -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Verdict:
    """What `verify` said of a pair: a verdict and a reason for each workload."""

    workloads: tuple[tuple[str, str, str], ...]
    text: str = ""


def run(folder: Path, options: argparse.Namespace) -> int:
    """Verify each distinct pair, print a row as each ends, then how many verdicts there are."""
    pairs = [Pair(**item) for item in json.loads((folder / INDEX).read_text(encoding="utf-8"))]
    alike = [pair.texts() for pair in pairs]
    ends = time.monotonic() + options.seconds
    verdicts: dict[int, Verdict] = {}
    with ThreadPoolExecutor(options.pairs) as pool:
        futures = {n: pool.submit(_verified, folder, n, pairs[n], options, ends) for n in set(map(alike.index, alike))}
        for number, pair in enumerate(pairs):
            verdicts[number] = futures[alike.index(alike[number])].result()
            print("\n".join(_rows(number, pair, verdicts[number])), flush=True)
    _save(options.save or folder / "reports", pairs, verdicts)
    counts = Counter(word for verdict in verdicts.values() for _, word, _ in verdict.workloads[:1])
    shown = ", ".join(f"{n} {word}" for word, n in counts.most_common())
    print(f"{len(pairs)} pairs, {len(futures)} distinct: {shown}")
    return int("different" in {word for verdict in verdicts.values() for _, word, _ in verdict.workloads})


def _verified(folder: Path, number: int, pair: Pair, options: argparse.Namespace, ends: float) -> Verdict:
    """Call `cgmigrate verify` for one pair."""
    if verdict := settled(pair):
        return verdict
    if time.monotonic() > ends:
        return Verdict((("training", "not run", "no time was left"),))
    # Each pair has a GPU, in turn.
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": str(number % max(gpu_count(), 1))}
    command = [sys.executable, "-m", "cgmigrate", *_words(folder / str(number), pair, options)]
    process = subprocess.run(command, capture_output=True, text=True, env=environment)
    try:
        report = json.loads(process.stdout)
    except ValueError:
        return Verdict((("training", "failed", (process.stderr or process.stdout).strip()[-300:]),))
    items = report["comparisons"] or [{"workload": "config", **item} for item in report["config"]]
    rows = tuple((item["workload"], item["verdict"], item["reason"]) for item in items)
    if not rows and process.returncode:
        # It could not read the pair.
        return Verdict((("training", "failed", process.stderr.strip()[-300:]),))
    return Verdict(rows or (("training", "unchanged", "there is nothing to compare"),), process.stdout)


def _words(place: Path, pair: Pair, options: argparse.Namespace) -> list[str]:
    """The words of the command line for one pair."""
    words = ["verify", "--level", options.level, "--from", pair.source, "--to", str(NEWEST), "--output-format", "json"]
    words += [word for release in options.mcore for word in ("--mcore", release)]
    if options.level == "capture":
        words += ["--jobs", str(options.jobs), "--timeout", "120"]
    return [*words, "--after", str(place / "after.yaml"), str(place / "before.yaml")]


def settled(pair: Pair) -> Verdict | None:
    """The verdict on settings that `fix` did not change: nothing has to run to compare them."""
    if pair.before != pair.after:
        return None
    captured = capture_of(pair.after, NEWEST, pair.reader)
    if isinstance(captured, Rejected):
        return Verdict((("training", "not migrated", f"{NEWEST} refuses it: {captured.reason}"),))
    return Verdict((("training", "unchanged", f"the same settings, which capture {captured}"),))


def _rows(number: int, pair: Pair, verdict: Verdict) -> Iterator[str]:
    settings = [", ".join(f"{n}={_shown(v)}" for n, v in s.items() if v is not None) for s in (pair.before, pair.after)]
    tracker = "" if pair.tracker else ", no RNG tracker"
    bf16 = ", in bf16" if any(word in pair.name for word in BLACKWELL) else ""
    for workload, word, reason in verdict.workloads:
        name = f"{number} {pair.name} ({pair.alike} alike{tracker}{bf16})"
        yield f"| {name} | {settings[0]} | {settings[1]} | {pair.source} | {workload} | {word} | {reason} |"


def _shown(value: Any) -> str:
    return "[" + ",".join(map(str, value)) + "]" if isinstance(value, list) else str(value).lower()


def _save(into: Path, pairs: Sequence[Pair], verdicts: dict[int, Verdict]) -> None:
    """Keep the table as JSON, and the whole report of each pair beside it."""
    into.mkdir(parents=True, exist_ok=True)
    table = [{**asdict(pair), "verdict": verdicts[number].workloads} for number, pair in enumerate(pairs)]
    (into / "table.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    reports = {number: json.loads(verdict.text) for number, verdict in verdicts.items() if verdict.text}
    (into / "reports.json").write_text(json.dumps(reports) + "\n", encoding="utf-8")


def main() -> int:
    """Write pairs, or run them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    pairs = commands.add_parser("pairs")
    pairs.add_argument("folder", type=Path)
    pairs.add_argument("--bridge", type=Path, nargs=2, metavar=("BEFORE", "AFTER"))
    pairs.add_argument("--nemo-rl", nargs="+", action="append", default=[], metavar="BEFORE AFTER LEAF")
    runs = commands.add_parser("run")
    runs.add_argument("folder", type=Path)
    runs.add_argument("--mcore", action="append", default=[])
    runs.add_argument("--level", choices=("config", "capture"), default="capture")
    runs.add_argument("--pairs", type=int, default=2, help="verify as many pairs at a time")
    runs.add_argument("--jobs", type=int, default=6, help="train as many arms of a pair at a time")
    runs.add_argument("--seconds", type=float, default=3600.0, help="start no pair after this time")
    runs.add_argument("--save", type=Path, help="the folder for table.json and the reports (FOLDER/reports)")
    options = parser.parse_args()
    if options.command == "run":
        return run(options.folder, options)
    logging.disable()
    made: list[Pair] = []
    with contextlib.redirect_stdout(io.StringIO()):
        if options.bridge:
            made += bridge_pairs(*options.bridge)
        for before, after, *leaves in options.nemo_rl:
            made += nemo_rl_pairs(Path(before), Path(after), leaves)
    write(options.folder, made)
    print(f"{len(made)} pairs in {options.folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
