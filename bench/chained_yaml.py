"""How time grows with a tree of YAML files that build on each other: `python3 bench/chained_yaml.py [files...]`.

A third of the files have old settings. Each command runs on the first number of files and on twice as many, as a
process of its own of which the processor time in user mode counts. Exit status 1 where twice the files take more than
2.2 times as long.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 2.2
"""The ratio that is still near-linear."""
COMMANDS = (("check", "."), ("fix", "--diff", "."), ("fix", "--diff", "--unsafe-fixes", "."))
FAMILY = 10
"""Files of one chain: a base, three files that build on it, two leaves for each."""
NEIGHBOURS = "    num_layers: 2\n    tensor_model_parallel_size: 4\n"


def write_tree(folder: Path, files: int) -> None:
    """Write chains of ten files each, three folders deep, until there are as many files."""
    for family in range(files // FAMILY):
        below = folder / f"team{family % 50}" / f"model{family}"
        (below / "recipes/runs").mkdir(parents=True)
        _write(below / "base.yaml", "", "    cuda_graph_impl: local\n    cuda_graph_scope: full_iteration\n")
        for size in range(3):
            own = "    external_cuda_graph: false\n" if size == 0 else ""
            _write(below / f"recipes/size{size}.yaml", "../base.yaml", own)
            for run in range(2):
                own = "    cuda_graph_impl: transformer_engine\n    cuda_graph_scope: [attn]\n" if size == 1 else ""
                _write(below / f"recipes/runs/size{size}-run{run}.yaml", f"../size{size}.yaml", own)


def _write(path: Path, base: str, own: str) -> None:
    head = f"defaults: {base}\n" if base else ""
    text = f"{head}policy:\n  model_name: {path.stem}\n  megatron_cfg:\n{NEIGHBOURS}{own}"
    path.write_text(text, encoding="utf-8")


def seconds(folder: Path, words: tuple[str, ...]) -> float:
    """Return the user time of one run."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CGMIGRATE_CACHE_DIR": str(folder / ".cache")}
    command = [sys.executable, "-c", "from cgmigrate.cli.commands import main; main()", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{words}: ended with {done.returncode}\n{done.stderr.decode()}")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main() -> int:
    """Print a row for each command."""
    first = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    print(f"{'command':32}{'files':>8}{'t(n)':>9}{'t(2n)':>9}{'ratio':>7}")
    failed = False
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name) / str(files) for files in (first, 2 * first)]
        for folder, files in zip(folders, (first, 2 * first), strict=True):
            folder.mkdir()
            write_tree(folder, files)
            subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
            subprocess.run(["git", "add", "."], cwd=folder, check=True)
        for words in COMMANDS:
            one, two = (seconds(folder, words) for folder in folders)
            failed |= two / one > MOST
            row = f"{' '.join(words):32}{first:8}{one:8.2f}s{two:8.2f}s{two / one:7.2f}"
            print(row + ("  NOT LINEAR" if two / one > MOST else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
