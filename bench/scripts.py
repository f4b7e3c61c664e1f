"""How long a tree of launch scripts takes: `python bench/scripts.py`, 1,000 scripts of 100 lines with old flags.

Each script has old flags in one of the forms that projects have: on a line of their own, in an array, in a string, in
a branch, or on one line. Values differ, and so does what is around them. A time is that of a whole process.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LINES = 100
"""Lines of a script."""
BUDGET = 3.0
"""Seconds for `check`."""
SETTINGS = (
    "--cuda-graph-impl transformer_engine|--cuda-graph-scope attn mlp",
    "--external-cuda-graph|--cuda-graph-scope attn",
    "--enable-cuda-graph|--cuda-graph-scope full_iteration|--no-check-for-nan-in-loss-and-grad",
    "--cuda-graph-impl local|--cuda-graph-scope full",
    "--cuda-graph-impl none|--cuda-graph-scope full_iteration",
    "--enable-cuda-graph",
    "--cuda-graph-impl=transformer_engine|--cuda-graph-scope moe_router moe_preprocess",
)
OTHERS = (
    "--num-layers {number}",
    "--hidden-size 4096",
    "--tensor-model-parallel-size ${{TP:-4}}",
    '--data-path "$DATA_PATH/{number}"',
    "--lr 1.0e-{number}",
    "--tokenizer-type GPT2BPETokenizer",
    "--bf16",
)


def script(number: int) -> str:
    """Return a script of ``LINES`` lines."""
    flags = SETTINGS[number % len(SETTINGS)].split("|")
    head = ["#!/bin/bash", f"# Experiment {number}", "set -euo pipefail", "export CUDA_DEVICE_MAX_CONNECTIONS=1"]
    head += [f'DATA_PATH="/data/{number}"', f"NNODES=${{NNODES:-{number % 9}}}", "NAME=$(hostname)"]
    body = FORMS[number % len(FORMS)](flags, number)
    tail = ['if [ -n "${WANDB:-}" ]; then', '    echo "logging to $WANDB"', "fi"]
    rest = LINES - len(head) - len(body) - len(tail)
    filler = [f'export SETTING_{at}="$HOME/{number}/{at}"' if at % 3 else f"# Step {at}" for at in range(rest)]
    return "\n".join([*head, *filler, *body, *tail]) + "\n"


def others(number: int) -> list[str]:
    """Return 35 other flags."""
    return [OTHERS[(number + at) % len(OTHERS)].format(number=at) for at in range(35)]


def continued(flags: list[str], number: int) -> list[str]:
    words = [*others(number)[:20], *flags, *others(number)[20:]]
    lines = ["torchrun --nproc-per-node 8 pretrain_gpt.py", *(f"    {word}" for word in words)]
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def array(flags: list[str], number: int) -> list[str]:
    words = [*others(number), *flags]
    return ["ARGS=(", *(f"    {word}" for word in words), ")", 'torchrun pretrain_gpt.py "${ARGS[@]}"']


def string(flags: list[str], number: int) -> list[str]:
    lines = [*(word for word in others(number) if '"' not in word), " ".join(flags)]
    return ['OPTIONS=" \\', *(f"    {line} \\" for line in lines), '"', "python pretrain_gpt.py $OPTIONS"]


def branch(flags: list[str], number: int) -> list[str]:
    inner = [f'    ARGS="$ARGS {word}"' for word in flags]
    start = [f'ARGS="{" ".join(others(number)[:5])}"']
    start += [f'ARGS="$ARGS {word}"' for word in others(number)[5:] if '"' not in word]
    return [*start, 'if [ "$GRAPHS" = 1 ]; then', *inner, "fi", "python pretrain_gpt.py $ARGS"]


def one_line(flags: list[str], number: int) -> list[str]:
    return [f"python pretrain_gpt.py {' '.join([*others(number)[:12], *flags])}"]


FORMS = (continued, array, string, branch, one_line)


def make(folder: Path, count: int) -> None:
    """Write scripts into folders of fifty."""
    for number in range(count):
        path = folder / f"group-{number // 50}" / f"run-{number}.sh"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(script(number), encoding="utf-8")
    (folder / "requirements.txt").write_text("megatron-core>=0.17,<0.20\n", encoding="utf-8")


def timed(words: list[str], folder: Path) -> tuple[float, float]:
    """Return the elapsed time and the processor time of one process."""
    # Images of Python often set this; each process would compile all that it imports.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment |= {"PYTHONPATH": str(ROOT), "CGMIGRATE_CACHE_DIR": str(folder / ".cache")}
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "cgmigrate", *words, "."],
        cwd=folder,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    elapsed, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 1:
        raise SystemExit(f"{words}: ended with {done.returncode}")
    return elapsed, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print a row for each command; 1 if `check` takes longer than its budget."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("count", nargs="?", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--make", metavar="FOLDER", type=Path, help="only write the scripts")
    chosen = parser.parse_args()
    if chosen.make:
        make(chosen.make, chosen.count)
        return 0
    medians = {}
    print(f"{chosen.count} scripts{'elapsed':>20}{'fastest':>10}{'CPU':>10}")
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch, "tree")
        make(tree, chosen.count)
        for words in (["check"], ["fix", "--diff"]):
            timed(words, tree)
            runs = [timed(words, tree) for _ in range(chosen.rounds)]
            shutil.rmtree(tree / ".cache", ignore_errors=True)
            elapsed, processor = (statistics.median(times) for times in zip(*runs, strict=True))
            medians[words[0]] = elapsed
            print(
                f"{' '.join(words):12}{elapsed:19.2f}s{min(one for one, _ in runs):9.2f}s{processor:9.2f}s", flush=True
            )
    return 1 if medians["check"] > BUDGET * chosen.count / 1000 else 0


if __name__ == "__main__":
    sys.exit(main())
