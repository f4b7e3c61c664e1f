"""What graphs train while the number of microbatches changes, on one GPU or two: pretrain_gpt.py of three releases.

    python bench/microbatches/run.py run FOLDER --release 0.17.1=TREE --release 0.18.2=TREE --release 0.19.2=TREE
    python bench/microbatches/run.py record FOLDER RECORDING
    python bench/microbatches/run.py page           writes docs/verification/changing-microbatches.md from the recording

TREE has pretrain_gpt.py and the rest of a release of Megatron-LM, with the packages megatron.core and
megatron.training of the wheel, and a Makefile in megatron/core/datasets that does nothing, since the wheel has the
compiled helper. `run` needs Transformer Engine, and two GPUs for the runs with stages (`--gpus 1` skips them).
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
PAGE = ROOT / "docs/verification/changing-microbatches.md"
RECORDING = ROOT / "tests/fixtures/verify/microbatches.json.gz"
RELEASES = ("0.17.1", "0.18.2", "0.19.2")
OLD = RELEASES[0]
BASE = (
    "--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --max-position-embeddings 128 "
    "--micro-batch-size 1 --lr 1e-3 --bf16 --mock-data --tokenizer-type NullTokenizer --vocab-size 1024 "
    "--log-interval 1 --transformer-impl transformer_engine --te-rng-tracker --split 90,10,0 --attention-dropout 0 "
    "--hidden-dropout 0 --no-gradient-accumulation-fusion --untie-embeddings-and-output-weights --num-workers 0 "
    "--dataloader-type single --position-embedding-type rope --no-bias-swiglu-fusion --eval-interval 4"
)
FIXED = "--global-batch-size 2 --train-iters 8"
RAMP = "--rampup-batch-size 2 2 24 --global-batch-size 8 --train-samples 60"
STEPS = ("--step-batch-size-schedule", "0:2 1024:4 2048:6 3584:8", "--train-samples", "60")
"""The same batches as those of RAMP, by numbers of tokens; a sample has 128."""
SCALE = {"PROBE_SCALE": "1"}
EAGER = {**SCALE, "PROBE_EAGER": "1"}
STAGES = "--pipeline-model-parallel-size 2 --eval-iters 0"
GROWTH = {"1to2": (1, 2), "2to4": (2, 4), "3to5": (3, 5)}
"""Microbatches in the first four steps, with the capture before the fourth, and in five more."""


@dataclass(frozen=True)
class Arm:
    """One run: its name without the release, the arguments, and the variables of the probe."""

    name: str
    release: str
    options: Sequence[str]
    variables: Mapping[str, str] = field(default_factory=dict)
    gpus: int = 1
    checks_nan: bool = False

    @property
    def id(self) -> str:
        """The name of its files."""
        return f"{self.name}-{self.release}"


def full(release: str) -> list[str]:
    """Flags of full-iteration graphs."""
    flags = "local --cuda-graph-scope full_iteration" if release == OLD else "full_iteration"
    return f"--cuda-graph-impl {flags}".split()


def layers(release: str) -> list[str]:
    """Flags of Transformer Engine's graphs of attention."""
    return f"--cuda-graph-impl transformer_engine --cuda-graph-{'scope' if release == OLD else 'modules'} attn".split()


def one_gpu(release: str) -> Iterator[Arm]:
    """The runs of a release that need one GPU."""
    batch = {"PROBE_BATCH": "1"} if release == OLD else {}
    ramp, fixed = RAMP.split() if release == OLD else list(STEPS), FIXED.split()
    yield Arm("ramp-eager", release, ramp, batch)
    yield Arm("ramp-full", release, [*ramp, *full(release)], batch)
    yield Arm("ramp-keep2", release, ramp, {**batch, "PROBE_KEEP": "2"})
    yield Arm("ramp-te", release, [*ramp, *layers(release)])
    yield Arm("ramp-local", release, [*ramp, "--cuda-graph-impl", "local"])
    if release != OLD:
        yield Arm("oldramp-eager", release, RAMP.split())
        yield Arm("oldramp-full", release, [*RAMP.split(), *full(release)])
    else:
        yield Arm("ramp-full-unpatched", release, [*ramp, *full(release)])
    yield Arm("token-eager", release, [*fixed, "--calculate-per-token-loss"], batch)
    yield Arm("token-full", release, [*fixed, "--calculate-per-token-loss", *full(release)], batch)
    yield from _optimizer(release, [*fixed, "--optimizer-cuda-graph"])


def _optimizer(release: str, options: list[str]) -> Iterator[Arm]:
    distributed = [*options, "--use-distributed-optimizer"]
    yield Arm("opt-none", release, options, SCALE)
    yield Arm("opt-ref", release, options, EAGER)
    yield Arm("opt-te-dist", release, [*distributed, *layers(release)], SCALE)
    yield Arm("opt-te-dist-ref", release, [*distributed, *layers(release)], EAGER)
    if release != OLD:
        yield Arm("opt-full", release, [*options, *full(release)], SCALE)
    yield Arm("opt-raw", release, options)


def two_gpus(release: str) -> Iterator[Arm]:
    """The runs of a release with two pipeline stages."""
    for name, (start, end) in GROWTH.items():
        if release == OLD:
            size = f"--rampup-batch-size {start} {end - start} {4 * start} --global-batch-size {end}".split()
        else:
            size = ["--step-batch-size-schedule", f"0:{start} {4 * start * 128}:{end}"]
        size += [*f"--train-samples {4 * start + 5 * end}".split(), *STAGES.split()]
        yield Arm(f"pp2-{name}-eager", release, size, gpus=2)
        yield Arm(f"pp2-{name}-te", release, [*size, *layers(release)], gpus=2)
        if name == "2to4":
            yield Arm(f"pp2-{name}-nan-te", release, [*size, *layers(release)], gpus=2, checks_nan=True)
    fixed = f"--global-batch-size 4 --train-iters 9 {STAGES}".split()
    yield Arm("pp2-fixed4-eager", release, fixed, gpus=2)
    yield Arm("pp2-fixed4-te", release, [*fixed, *layers(release)], gpus=2)


# --- runs ---------------------------------------------------------------------------------------------


def run(folder: Path, trees: Mapping[str, Path], gpus: int, at_once: int) -> None:
    """Run all arms, those of two GPUs first, some side by side."""
    arms = [arm for release in trees for arm in (*two_gpus(release), *one_gpu(release)) if arm.gpus <= gpus]
    waiting = sorted(arms, key=lambda arm: -arm.gpus)
    running: list[list[subprocess.Popen[bytes]]] = []
    for number, arm in enumerate(waiting):
        while sum(map(len, running)) >= at_once:
            time.sleep(0.3)
            running = [one for one in running if any(process.poll() is None for process in one)]
        on = list(range(arm.gpus)) if arm.gpus > 1 else [number % gpus]
        running.append(_started(arm, trees[arm.release], folder, on, 29600 + number))
    for process in (process for one in running for process in one):
        process.wait()


def _started(arm: Arm, tree: Path, folder: Path, gpus: list[int], port: int) -> list[subprocess.Popen[bytes]]:
    options = [*BASE.split(), "--eval-iters", "2", *([] if arm.checks_nan else ["--no-check-for-nan-in-loss-and-grad"])]
    command = ["timeout", "150", sys.executable, str(FOLDER.resolve() / "probe.py"), *options, *arm.options]
    world = {"WORLD_SIZE": str(len(gpus)), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    world |= {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus)), "CUDA_DEVICE_MAX_CONNECTIONS": "1"}
    world |= {"PYTHONPATH": f"{tree}:{os.environ.get('PYTHONPATH', '')}", "PROBE_OUT": str(folder.resolve() / arm.id)}
    processes = []
    for rank in map(str, range(len(gpus))):
        environment = {**os.environ, **world, **arm.variables, "RANK": rank, "LOCAL_RANK": rank}
        with (folder / f"{arm.id}.{rank}.log").open("w") as log:
            processes.append(subprocess.Popen(command, cwd=tree, env=environment, stdout=log, stderr=subprocess.STDOUT))
    return processes


# --- the page -----------------------------------------------------------------------------------------

Records = Mapping[str, list[dict[str, Any]]]
"""The lines of each process, by the name of its run and its rank, as in `ramp-full-0.19.2.0`."""


def read(folder: Path) -> Records:
    """Return what `run` wrote."""
    paths = sorted(folder.glob("*.jsonl"))
    return {path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] for path in paths}


def recorded() -> Records:
    """Return the recording of the project."""
    records: Records = json.loads(gzip.decompress(RECORDING.read_bytes()))
    return records


def steps_of(records: Records, run: str, rank: int = 0) -> list[dict[str, Any]]:
    """Return the steps of a run."""
    return [line for line in records[f"{run}.{rank}"] if "step" in line]


def table(records: Records) -> str:
    """Return the tables of the page."""
    return "\n\n".join(["\n".join(rows) for rows in (_ramps(records), _stages(records), _others(records))])


def _ramps(records: Records) -> Iterator[str]:
    yield "| release | run | microbatches of each step | consumed | reached the gradient | last loss | parameters |"
    yield "|---|---|---|---:|---:|---:|---|"
    words = {
        "ramp-eager": "ramp, eager",
        "ramp-full": "ramp, full iteration",
        "ramp-keep2": "ramp, eager, the first two microbatches of each step only",
        "ramp-te": "ramp, `transformer_engine`, `attn`",
        "ramp-local": "ramp, `local`",
        "oldramp-eager": "`--rampup-batch-size`, eager",
        "oldramp-full": "`--rampup-batch-size`, full iteration",
    }
    for release in RELEASES:
        for run, text in words.items():
            if f"{run}-{release}.0" in records:
                yield f"| {release} | {text} | {_sizes(steps_of(records, f'{run}-{release}'))}"


def _sizes(steps: Sequence[Mapping[str, Any]]) -> str:
    sizes, reached = [step["microbatches"] for step in steps], [len(step["reached"]) for step in steps]
    last = steps[-1]
    shown = ", ".join(map(str, sizes))
    return f"{shown} | {sum(sizes)} | {sum(reached)} | {last['loss']['lm loss']:.6f} | `{last['digest']}` |"


def _stages(records: Records) -> Iterator[str]:
    yield "| release | microbatches | graphs | reached the gradient in each step | gradient norm of each step |"
    yield "|---|---|---|---|---|"
    for release in RELEASES:
        for name in ("1to2", "2to4", "3to5", "fixed4"):
            for graphs, text in (("eager", "none"), ("te", "`attn`")):
                run = f"pp2-{name}-{graphs}-{release}"
                if f"{run}.0" in records:
                    steps = steps_of(records, run)
                    sizes = " to ".join(dict.fromkeys(str(step["microbatches"]) for step in steps))
                    reached = ", ".join(str(len(step["reached"])) for step in steps)
                    norms = ", ".join("NaN" if math.isnan(step["norm"]) else f"{step['norm']:.2f}" for step in steps)
                    yield f"| {release} | {sizes} | {text} | {reached} | {norms} |"


def _others(records: Records) -> Iterator[str]:
    yield "| release | run | result | parameters |"
    yield "|---|---|---|---|"
    words = {
        "token-eager": "`--calculate-per-token-loss`, eager",
        "token-full": "`--calculate-per-token-loss`, full iteration",
        "opt-ref": "`--optimizer-cuda-graph`, without its graph",
        "opt-none": "`--optimizer-cuda-graph`",
        "opt-full": "`--optimizer-cuda-graph`, full iteration",
        "opt-te-dist-ref": "`--optimizer-cuda-graph` and distributed optimizer, without its graph, `attn`",
        "opt-te-dist": "`--optimizer-cuda-graph` and distributed optimizer, `attn`",
        "opt-raw": "`--optimizer-cuda-graph`, with the functions of Transformer Engine 2.12 only",
        "ramp-full-unpatched": "full iteration of `pretrain_gpt.py` as it is",
    }
    for release in RELEASES:
        for run, text in words.items():
            lines = records.get(f"{run}-{release}.0")
            if lines:
                steps, end = steps_of(records, f"{run}-{release}"), lines[-1]
                cause = end.get("at", "").rpartition(": ")[2]
                result = (
                    f"stops at the capture: `{cause}` | " if cause else f"{len(steps)} steps | `{steps[-1]['digest']}`"
                )
                yield f"| {release} | {text} | {result} |"


def with_tables(page: str, records: Records) -> str:
    """Return the page with the tables of a recording."""
    tables = table(records)
    return re.sub(r"(<!-- tables -->\n).*?(<!-- end -->)", lambda m: f"{m[1]}\n{tables}\n\n{m[2]}", page, flags=re.S)


def main() -> None:
    """Run, record, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run")
    running.add_argument("folder", type=Path)
    running.add_argument("--release", action="append", required=True, metavar="VERSION=TREE")
    running.add_argument("--gpus", type=int, default=2)
    running.add_argument("--at-once", type=int, default=14)
    recording = commands.add_parser("record")
    recording.add_argument("folder", type=Path)
    recording.add_argument("recording", type=Path)
    commands.add_parser("page")
    options = parser.parse_args()
    if options.command == "run":
        options.folder.mkdir(parents=True, exist_ok=True)
        trees = {name: Path(tree) for name, _, tree in (one.partition("=") for one in options.release)}
        run(options.folder, trees, options.gpus, options.at_once)
    elif options.command == "record":
        text = json.dumps(read(options.folder), indent=0).encode()
        options.recording.write_bytes(gzip.compress(text, mtime=0))
    else:
        PAGE.write_text(with_tables(PAGE.read_text(encoding="utf-8"), recorded()), encoding="utf-8")


if __name__ == "__main__":
    main()
