"""Golden outputs: what `check` and `fix --diff` say of the examples, the corpus and released packages.

``python tests/golden.py`` compares the outputs with those in ``tests/golden/`` and prints the differences, grouped by
file and rule; with ``--update`` it writes them anew. Small trees are kept as whole outputs. For each file of a
large package there is a hash of its diagnostics' places and one of its rewritten text; the counts are by rule.
A change of an output is not an error in itself: the commit that makes it says why.
"""

from __future__ import annotations

import argparse
import atexit
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import unified_diff
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from cgmigrate import __version__
from cgmigrate.cli.commands import main
from cgmigrate.megatron.releases import LAST_OLD, NEWEST

# As a script, the tests are not on the path.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.support.checkouts import staged
from tests.support.paths import CORPUS, FETCHED, ROOT

GOLDEN = ROOT / "tests/golden"


def _copied_examples() -> Path:
    """Copy the examples out of the checkout: fixes in it are judged by all that the checkout has, which takes long."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    shutil.copytree(ROOT / "examples", folder / "examples")
    staged(folder)  # ids of fixes have paths from the root of a checkout
    return folder


PACKAGES = ("megatron-bridge-0.4.2", "megatron-bridge-0.6.2", "megatron-core-0.17.1", "nemo-toolkit-2.4.0")
WHOLE = {
    "examples": (_copied_examples(), "examples"),
    "corpus-yaml": (CORPUS, "yaml"),
    "corpus-pairs": (CORPUS, "pairs"),
}
OUTPUTS = {
    "check.txt": ("check",),
    "check.json": ("check", "--format", "json"),
    "check.sarif": ("check", "--format", "sarif"),
    "fix.diff": ("fix", "--diff"),
}


@contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def output_of(folder: Path, *words: str) -> str:
    """What the command writes to stdout, run in a folder, followed by its exit status."""
    with _inside(folder):
        result = CliRunner().invoke(main, list(words))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    # Each commit has a version of its own, which is a semantic one only at a release.
    text = re.sub(r'\n *"semanticVersion": .*', "", result.stdout.replace(f'"{__version__}"', '"VERSION"'))
    return f"{text}{'' if text.endswith(chr(10)) else chr(10)}exit status {result.exit_code}\n"


def whole_outputs() -> dict[str, str]:
    """The outputs of the small trees that are present, by the name of the golden file."""
    return {
        f"{name}.{suffix}": output_of(folder, *words, tree)
        for name, (folder, tree) in WHOLE.items()
        if (folder / tree).is_dir()
        for suffix, words in OUTPUTS.items()
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def package_summary(folder: Path) -> dict[str, Any]:
    """The counts by rule of a package, and the two hashes of each file that has diagnostics or is rewritten."""
    # Their own pins are not in the package, and those of the folder around it are another project's.
    releases = ("--from", str(LAST_OLD), "--to", str(NEWEST))
    report = json.loads(output_of(folder, "check", *releases, "--format", "json", ".").rpartition("exit status")[0])
    diff = output_of(folder, "fix", *releases, "--diff", ".")
    diagnostics = report["findings"]
    places: dict[str, list[str]] = {}
    for one in diagnostics:
        at = f"{one['line']}:{one['column']} {one['rule']} {one['severity']} {(one['fix'] or {}).get('safety', '-')}"
        places.setdefault(one["path"], []).append(at)
    files = {path: {"diagnostics": _hash("\n".join(sorted(lines)))} for path, lines in sorted(places.items())}
    for part in ("\n" + diff).split("\n--- ")[1:]:
        path = part.partition("\n")[0].partition("\t")[0].removeprefix("a/")
        files.setdefault(path, {})["diff"] = _hash(part.partition("\nexit status")[0])
    return {"rules": dict(sorted(Counter(one["rule"] for one in diagnostics).items())), "files": files}


def golden_outputs() -> dict[str, str]:
    """Return all outputs that this machine can produce, by the name of the golden file."""
    outputs = whole_outputs()
    for name in PACKAGES:
        folder = FETCHED / name
        if (folder / ".done").exists():
            outputs[f"{name}.json"] = json.dumps(package_summary(folder), indent=1) + "\n"
    return outputs


def differences(name: str, actual: str) -> str:
    """The difference of one output to its golden file, as a unified diff; empty if there is none."""
    path = GOLDEN / name
    # Bytes, since text mode would turn the line ends that the outputs quote into its own.
    expected = path.read_bytes().decode() if path.exists() else ""
    lines = [text.splitlines(keepends=True) for text in (expected, actual)]
    return "".join(unified_diff(*lines, f"golden/{name}", f"now/{name}"))


def run(update: bool) -> int:
    """Compare or write all outputs; return the exit status."""
    outputs, differing = golden_outputs(), 0
    GOLDEN.mkdir(exist_ok=True)
    for name, actual in outputs.items():
        if update:
            (GOLDEN / name).write_bytes(actual.encode())
        elif difference := differences(name, actual):
            differing += 1
            print(difference)
    print(f"{len(outputs)} outputs, {'written' if update else f'{differing} differ'}")
    return 1 if differing else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="write the golden files anew")
    sys.exit(run(parser.parse_args().update))
