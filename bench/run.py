"""How long cgmigrate takes, as whole processes, next to tools that read the same files.

Every figure is of a process as a user starts it: elapsed time from start to end, and its processor time and the peak
of its resident memory as ``os.wait4`` reports them. The commands of a table take turns, round after round, so that
what else the machine does falls on all of them alike; a table shows medians. How to run it: bench/README.md.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import re
import resource
import shutil
import stat
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT.parent / "shared" / "corpus" / "yaml"
BRIDGE = ROOT / ".corpus" / "megatron-bridge-0.4.2"
MIB = 1024 * 1024
MAXRSS = 1 if sys.platform == "darwin" else 1024
"""What ``ru_maxrss`` counts in, in bytes."""
NAMES = "enable_cuda_graph|external_cuda_graph|cuda_graph_scope|enable-cuda-graph|external-cuda-graph|cuda-graph-scope"


@dataclass
class Command:
    """One command to be timed; ``prepare`` runs before each start and is not timed."""

    name: str
    arguments: Sequence[str]
    folder: Path
    exits: tuple[int, ...] = (0,)
    prepare: Callable[[], None] | None = None
    seconds: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    peaks: list[int] = field(default_factory=list)

    def run(self) -> None:
        """Start the process once, and keep its elapsed time, processor time and peak memory."""
        if self.prepare:
            self.prepare()
        start = time.perf_counter()
        process = subprocess.Popen(
            self.arguments,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        self.seconds.append(time.perf_counter() - start)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in self.exits:
            raise SystemExit(f"{self.name}: ended with {process.returncode}: {' '.join(self.arguments)}")
        self.processor.append(usage.ru_utime + usage.ru_stime)
        self.peaks.append(usage.ru_maxrss * MAXRSS)


def show(title: str, commands: Sequence[Command], rounds: int, size: int = 0) -> None:
    """Time the commands in turns and print a row for each; with ``size``, also the processor time per MB of it."""
    for command in commands:
        command.run()
        command.seconds.clear()
        command.processor.clear()
    for _ in range(rounds):
        for command in commands:
            command.run()
    per_mb = f"{'CPU per MB':>12}" if size else ""
    print(f"\n{title}\n{'':44}{'median':>10}{'fastest':>10}{'slowest':>10}{'peak':>12}{'CPU':>10}{per_mb}")
    for command in commands:
        times = "".join(f"{t:9.3f}s" for t in (statistics.median(command.seconds), *_ends(command.seconds)))
        processor = statistics.median(command.processor)
        per_mb = f"{processor / (size / 1e6) * 1000:9.1f} ms" if size else ""
        print(f"{command.name:44}{times}{max(command.peaks) / MIB:8.1f} MiB{processor:9.3f}s{per_mb}", flush=True)


def _ends(seconds: Sequence[float]) -> tuple[float, float]:
    return min(seconds), max(seconds)


def install(folder: Path) -> Path:
    """Return the folder of programs of a fresh environment that holds cgmigrate, compiled, as pip leaves it."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    subprocess.run([programs / "python", "-m", "pip", "install", "-q", "--compile", ROOT], check=True)
    return programs


def copy(source: Path, target: Path) -> Path:
    """Copy a tree and make its files writable."""
    shutil.copytree(source, target)
    for path in (target, *target.rglob("*")):
        path.chmod(path.stat().st_mode | stat.S_IWUSR)
    return target


def by_names(folder: Path) -> tuple[list[str], list[str]]:
    """The files of a tree that hold none of the settings' names, old or new, and those that hold some."""
    without: list[str] = []
    holding: list[str] = []
    for path in sorted(folder.rglob("*.yaml")):
        (holding if b"cuda_graph" in path.read_bytes() else without).append(str(path))
    return without, holding


def clean_tree(folder: Path) -> Path:
    """A tree of 295 recipes in which nothing is reported: a real one where it is available, else a generated one."""
    real = CORPUS / "nemo-rl"
    if real.is_dir():
        return copy(real, folder)
    recipe = (ROOT / "examples" / "configs" / "nemo-rl" / "grpo-math-8b.yaml").read_text(encoding="utf-8")
    recipe = "".join(line for line in recipe.splitlines(keepends=True) if "cuda_graph" not in line)
    for number in range(295):
        path = folder / f"group-{number % 12}" / f"recipe-{number}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(recipe * (1 + number % 5), encoding="utf-8")
    return folder


def corpus(folder: Path) -> Path:
    """A tree with old names to fix: a real one where it is available, else the examples sixteen times."""
    if CORPUS.is_dir():
        return copy(CORPUS, folder)
    for number in range(16):
        shutil.copytree(ROOT / "examples" / "configs", folder / f"copy-{number}")
    return folder


def count(folder: Path) -> str:
    """How many YAML files a tree holds, and their size."""
    files = [*folder.rglob("*.yaml"), *folder.rglob("*.yml")]
    return f"{len(files)} files, {sum(file.stat().st_size for file in files) / MIB:.1f} MiB"


def python_size(folder: Path) -> tuple[str, int]:
    """How many Python files a tree holds, how many of them old names, and their size; and the size alone."""
    read = [file.read_bytes() for file in folder.rglob("*.py")]
    named = [data for data in read if re.search(NAMES.encode(), data)]
    size, of_named = sum(map(len, read)), sum(map(len, named))
    words = f"{len(read)} Python files, {size / 1e6:.1f} MB"
    return f"{words}; {len(named)} with old names, {of_named / 1e6:.2f} MB", size


def python_without_names(work: Path, programs: Path) -> Path:
    """A copy of Python files that no rule concerns: torch's compiler where torch is installed, else pip itself."""
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin and (real := Path(torch.origin).parent / "_inductor").is_dir():
        return copy(real, work / "inductor")
    return copy(next(programs.parent.rglob("site-packages/pip")), work / "pip")


def on_python(work: Path, programs: Path, rounds: int) -> None:
    """The tables of Python files: a real package with old names, where it is available, and a tree without any."""
    tool = str(programs / "cgmigrate")
    scratch = work / "bridge-scratch"
    if BRIDGE.is_dir():
        bridge = copy(BRIDGE, work / "bridge")

        def fresh_copy() -> None:
            shutil.rmtree(scratch, ignore_errors=True)
            copy(bridge, scratch)

        words, size = python_size(bridge)
        commands = [
            Command("cgmigrate check --to 0.19", [tool, "check", "--to", "0.19", "."], bridge, (0, 1)),
            Command(
                "cgmigrate fix --to 0.19, on a fresh copy",
                [tool, "fix", "--to", "0.19", str(scratch)],
                work,
                (0, 1),
                fresh_copy,
            ),
            *others(bridge, matches=True),
        ]
        show(f"{BRIDGE.name} ({words})", commands, rounds, size)
    else:
        print(f"\nmegatron-bridge 0.4.2: skipped, since {BRIDGE} is not there (shared/corpus/fetch.sh)")
    clean = python_without_names(work, programs)
    words, size = python_size(clean)
    commands = [
        Command("cgmigrate check --to 0.19", [tool, "check", "--to", "0.19", "."], clean),
        *others(clean, matches=False),
    ]
    show(f"Python without old names: {clean.name} ({words})", commands, rounds, size)


def main() -> None:
    """Make the environment and the trees, then print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=15, help="runs of each command (default: 15)")
    parser.add_argument("--python", action="store_true", help="the tables of Python files only")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    with tempfile.TemporaryDirectory(prefix="cgmigrate-bench-") as name:
        work = Path(name)
        programs = install(work / "venv")
        tool, python = str(programs / "cgmigrate"), str(programs / "python")
        print(f"Python {platform.python_version()}, {platform.machine()}, {os.cpu_count()} CPUs, {rounds} rounds")
        if arguments.python:
            on_python(work, programs, rounds)
            return
        clean, dirty, scratch = clean_tree(work / "clean"), corpus(work / "corpus"), work / "scratch"
        without, holding = by_names(clean)

        def fresh_copy() -> None:
            shutil.rmtree(scratch, ignore_errors=True)
            copy(dirty, scratch)

        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS / MIB
        print(f"A peak of {own:.1f} MiB is that of this program: a process starts as a copy of the one that starts it.")
        start = [
            Command("python -c pass", [python, "-c", "pass"], work),
            Command("cgmigrate --version", [tool, "--version"], work),
            Command("cgmigrate check, five clean files", [tool, "check", *without[:5]], work),
        ]
        if holding:
            name = f"cgmigrate check, {len(holding[:5])} files with new names"
            start.append(Command(name, [tool, "check", *holding[:5]], work))
        show("start", start, rounds)
        on_clean = [Command("cgmigrate check", [tool, "check", "."], clean)]
        on_clean += others(clean, matches=False)
        show(f"clean tree ({count(clean)})", on_clean, rounds)
        on_dirty = [
            Command("cgmigrate check", [tool, "check", "."], dirty, (0, 1)),
            Command("cgmigrate fix --diff", [tool, "fix", "--diff", "."], dirty, (0, 1)),
            Command("cgmigrate fix, on a fresh copy", [tool, "fix", "."], work, (0, 1), fresh_copy),
        ]
        on_dirty[-1].arguments = [tool, "fix", str(scratch)]
        on_dirty += others(dirty, matches=True)
        show(f"tree with old names ({count(dirty)})", on_dirty, rounds)
        on_python(work, programs, rounds)


def others(folder: Path, matches: bool) -> list[Command]:
    """Other tools on the same tree, as far as they are installed."""
    commands = []
    if rg := shutil.which("rg"):
        commands.append(Command("rg -l", [rg, "-l", NAMES, "."], folder, (0,) if matches else (0, 1)))
    if grep := shutil.which("grep"):
        commands.append(Command("grep -rlE", [grep, "-rlE", NAMES, "."], folder, (0, 1)))
    if ruff := shutil.which("ruff"):
        commands.append(Command("ruff check --no-cache", [ruff, "check", "--no-cache", "."], folder, (0, 1)))
    return commands


if __name__ == "__main__":
    main()
