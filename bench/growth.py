"""How time grows with the size of one input: `python3 bench/growth.py`, exit status 1 where it is not near-linear.

Each input is made in two sizes, n and 2n. A run is a process of its own, of which the processor time counts; that of a
run over an empty file is taken off. The ratio may be at most 2.3, on inputs that are large enough to be timed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MOST = 2.3
"""The ratio that is still near-linear."""
LEAST = 0.3
"""Seconds below which a time says nothing; such an input passes."""
LIMIT = 120
"""Seconds after which a run counts as endless."""

PYTHON = (
    "from megatron.core.transformer import TransformerConfig\n"
    "from megatron.core.transformer.enums import CudaGraphScope\n"
)


@dataclass(frozen=True)
class Input:
    """One kind of input: the file, what it holds at a size, the words of the command, and the smaller size."""

    name: str
    file: str
    make: Callable[[int], str]
    size: int
    words: Sequence[str] = ("check", ".")
    beside: str = ""
    """A YAML file with a diagnostic, where the input itself is no file that is checked."""


def calls(count: int) -> str:
    return PYTHON + "TransformerConfig(enable_cuda_graph=True)\n" * count


def enums(count: int) -> str:
    line = "TransformerConfig(cuda_graph_impl='local', cuda_graph_scope=[CudaGraphScope.attn])\n"
    return PYTHON + line * count


def functions(count: int) -> str:
    body = (
        "def f{}():\n    cfg = TransformerConfig()\n    cfg.cuda_graph_scope = [CudaGraphScope.attn]\n    return cfg\n"
    )
    return PYTHON + "".join(body.format(number) for number in range(count))


def branches(count: int) -> str:
    return PYTHON + "def f(cfg):\n" + "    if cfg.x:\n        cfg.enable_cuda_graph = True\n" * count


def dicts(count: int) -> str:
    text = "d{0} = {{'cuda_graph_scope': ['attn']}}\nTransformerConfig(**d{0})\n"
    return PYTHON + "".join(text.format(number) for number in range(count))


def mappings(count: int) -> str:
    return "".join(f"s{number}:\n  megatron_cfg:\n    external_cuda_graph: true\n" for number in range(count))


def ignored(count: int) -> str:
    line = "    external_cuda_graph: true  # cgmigrate: ignore[CG1]\n"
    return "".join(f"s{number}:\n  megatron_cfg:\n{line}" for number in range(count))


def ignored_above(count: int) -> str:
    return "# cgmigrate: ignore[CG1]\n" * count + "megatron_cfg:\n  external_cuda_graph: true\n"


def merge_chain(count: int) -> str:
    links = "".join(f"m{number}: &m{number}\n  <<: *m{number - 1}\n  x: 1\n" for number in range(1, count))
    return "m0: &m0\n  external_cuda_graph: true\n" + links + f"megatron_cfg:\n  <<: *m{count - 1}\n"


def merge_chain_of_settings(count: int) -> str:
    links = "".join(f"m{number}: &m{number} {{<<: *m{number - 1}, x{number}: 1}}\n" for number in range(1, count))
    return "m0: &m0 {enable_cuda_graph: true}\n" + links


def merge_chain_of_names(count: int) -> str:
    line = "s{0}: {{megatron_cfg: &m{0} {{<<: *m{1}, external_cuda_graph: true}}}}\n"
    links = "".join(line.format(number, number - 1) for number in range(1, count))
    return "megatron_cfg: &m0 {external_cuda_graph: true}\n" + links


def merged_prefixes(count: int) -> str:
    line = "m{0}: &m{0} {{<<: *m{1}, x{0}.enable_cuda_graph: true}}\n"
    return "m0: &m0 {x: 1}\n" + "".join(line.format(number, number - 1) for number in range(1, count))


def aliases_of_many(count: int) -> str:
    inner = ", ".join(f"k{number}: {{external_cuda_graph: true}}" for number in range(count))
    return f"m: &m {{{inner}}}\n" + "".join(f"a{number}: *m\n" for number in range(count))


def merge_lists(count: int) -> str:
    sources = "".join(f"m{number}: &m{number} {{external_cuda_graph: true}}\n" for number in range(count))
    return sources + "megatron_cfg:\n  <<: [" + ", ".join(f"*m{number}" for number in range(count)) + "]\n"


def anchors(count: int) -> str:
    links = "".join(f"a{number}: &a{number} {{b: *a{number - 1}}}\n" for number in range(1, count))
    return "a0: &a0\n  megatron_cfg: {external_cuda_graph: true}\n" + links


def sequences(count: int) -> str:
    return "external_cuda_graph: true\nx: " + "[" * count + "]" * count + "\n"


def comments(count: int) -> str:
    return "megatron_cfg:\n" + "  # cuda_graph_scope\n" * count + "  external_cuda_graph: true\n"


def blank_lines(count: int) -> str:
    return PYTHON + "\n" * count + enums(1)


def configuration(count: int) -> str:
    return "\n" * count + '"k\\u0065y" = 1\n'


def requirements(count: int) -> str:
    items = "".join(f'    "megatron-core>=0.{12 + number % 5}",\n' for number in range(count))
    return f"[project]\nname = 'x'\ndependencies = [\n{items}]\n"


def lock(count: int) -> str:
    return '[[package]]\nname = "megatron-core"\nversion = "0.17.0"\n\n' * count


def setup_cfg(count: int) -> str:
    items = "".join(f"    megatron-core>=0.{12 + number % 5}\n" for number in range(count))
    return f"[options]\ninstall_requires =\n{items}"


def constraints(count: int) -> str:
    return "megatron-core==0.17.0\n" * count


def stars(count: int) -> str:
    return "\n".join(["*a" * 20 + "b"] * count) + "\n"


JSON, ADD, FIX = (
    ("check", "--format", "json", "."),
    ("check", "--add-ignore", "."),
    ("fix", "--diff", "--unsafe-fixes", "."),
)
INPUTS = (
    Input("Python calls", "a.py", calls, 1_000),
    Input("Python calls, JSON", "a.py", calls, 800, JSON),
    Input("Python calls, fix", "a.py", calls, 800, FIX),
    Input("Python calls, --add-ignore", "a.py", calls, 800, ADD),
    Input("enum scopes, JSON", "a.py", enums, 300, JSON),
    Input("enum scopes, fix", "a.py", enums, 300, FIX),
    Input("functions, JSON", "a.py", functions, 300, JSON),
    Input("branches, JSON", "a.py", branches, 300, JSON),
    Input("dicts that are spread", "a.py", dicts, 300, JSON),
    Input("blank lines in Python", "a.py", blank_lines, 50_000, FIX),
    Input("YAML mappings, JSON", "a.yaml", mappings, 1_000, JSON),
    Input("YAML mappings, --add-ignore", "a.yaml", mappings, 1_000, ADD),
    Input("YAML mappings, fix", "a.yaml", mappings, 1_000, FIX),
    Input("ignore comments", "a.yaml", ignored, 1_000),
    Input("ignore comments above", "a.yaml", ignored_above, 2_000),
    Input("merge chain", "a.yaml", merge_chain, 1_000),
    Input("merge chain, other keys", "a.yaml", merge_chain_of_settings, 1_000),
    Input("merge chain, each with a setting", "a.yaml", merge_chain_of_names, 500),
    Input("merged prefixes", "a.yaml", merged_prefixes, 500),
    Input("aliases of many mappings", "a.yaml", aliases_of_many, 500),
    Input("merge lists", "a.yaml", merge_lists, 1_000),
    Input("chained anchors", "a.yaml", anchors, 1_000),
    Input("nested sequences", "a.yaml", sequences, 2_000),
    Input("comments", "a.yaml", comments, 20_000, JSON),
    Input("configuration", "cgmigrate.toml", configuration, 50_000, beside="ok.yaml"),
    Input("requirements of pyproject.toml", "pyproject.toml", requirements, 2_000, beside="ok.yaml"),
    Input("requirements of setup.cfg", "setup.cfg", setup_cfg, 2_000, beside="ok.yaml"),
    Input("lock file", "uv.lock", lock, 2_000, beside="ok.yaml"),
    Input("constraints", "requirements.txt", constraints, 2_000, beside="ok.yaml"),
    Input("patterns of .gitignore", ".gitignore", stars, 500, beside="a" * 200 + ".yaml"),
)


def seconds(item: Input, size: int) -> float:
    """The least time of a few runs over an input of a size."""
    with tempfile.TemporaryDirectory() as folder:
        text = item.make(size) if size else ""
        Path(folder, item.file).write_text(text, encoding="utf-8")
        if item.beside:
            Path(folder, item.beside).write_text(mappings(1), encoding="utf-8")
        best = float("inf")
        for _ in range(2):
            Path(folder, item.file).write_text(text, encoding="utf-8")
            best = min(best, _once(item.words, folder))
            if best > LIMIT / 4:
                break
        return best


def _once(words: Sequence[str], folder: str) -> float:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "CGMIGRATE_CACHE_DIR": os.path.join(folder, ".cache")}
    command = [sys.executable, "-c", "from cgmigrate.cli.commands import main; main()", *words]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=LIMIT
        )
    except subprocess.TimeoutExpired:
        return float("inf")
    if done.returncode not in (0, 1, 2):
        raise SystemExit(f"{words}: ended with {done.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Print a row for each input."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="only inputs whose name holds one of these")
    chosen = parser.parse_args().names
    failed = []
    print(f"{'input':34}{'n':>8}{'t(n)':>9}{'t(2n)':>9}{'ratio':>7}")
    for item in INPUTS:
        if chosen and not any(name in item.name for name in chosen):
            continue
        start = seconds(item, 0)
        one, two = (max(seconds(item, size) - start, 1e-3) for size in (item.size, 2 * item.size))
        ratio = two / one
        fine = two < LEAST or ratio <= MOST
        failed += [] if fine else [item.name]
        shown = f"{ratio:7.2f}" if two >= LEAST else "      -"
        print(f"{item.name:34}{item.size:8}{one:8.2f}s{two:8.2f}s{shown}{'' if fine else '  NOT LINEAR'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
