"""The page that judges the lines of Megatron-Bridge's documents: each line has the outcome that the page says."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator

import pytest
from click.testing import Result

from tests.support.nightly import nightly_only
from tests.support.paths import MEGATRON_BRIDGE, ROOT

PAGE = ROOT / "docs/verification/bridge-documents.md"
COMMIT = "067f987d"
NAMES = r"(enable|external)[-_]cuda[-_]graph\b|cuda[-_]graph[-_]scope\b"
Line = tuple[str, int]


def git(*words: str) -> list[str]:
    return subprocess.run(
        ["git", *words], cwd=MEGATRON_BRIDGE, capture_output=True, text=True, check=True
    ).stdout.splitlines()


def lines_of(cell: str, matching: set[Line]) -> Iterator[Line]:
    """Yield the lines that a cell of the page names, one by one or as a number of lines in a folder."""
    for path, numbers in re.findall(r"`([^`]+)`: ([\d, ]+)", cell):
        if path.endswith("/"):
            inside = [line for line in matching if line[0].startswith(path)]
            assert len(inside) == int(numbers)
            yield from inside
        else:
            yield from ((path, int(number)) for number in numbers.split(","))


@nightly_only
def test_each_line_has_the_outcome_that_the_page_says(
    cgmigrate: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not MEGATRON_BRIDGE.is_dir() or not git("rev-parse", "HEAD")[0].startswith(COMMIT):
        pytest.skip("no clone of Megatron-Bridge at the commit of the page")
    monkeypatch.chdir(MEGATRON_BRIDGE)
    places = [line.split(":", 2)[:2] for line in git("grep", "-nIE", NAMES)]
    matching = {(path, int(number)) for path, number in places}

    result = cgmigrate("check", "-v", "--format", "concise", ".")
    reported = {
        (path, int(at)): code for path, at, code in re.findall(r"(?m)^(\S+?):(\d+):\d+: (CG\d+)", result.stdout)
    }
    noted = {(path, int(at)) for path, at in re.findall(r"([\w./-]+):(\d+)", result.stderr)}

    judged = dict[Line, str]()
    for row in PAGE.read_text(encoding="utf-8").splitlines():
        if row.startswith("| `"):
            _, cell, outcome, _, _ = map(str.strip, row.split("|"))
            judged |= dict.fromkeys(lines_of(cell, matching), outcome)
    assert judged.keys() >= {line for line in matching if not line[0].endswith(".py")}
    for line, outcome in judged.items():
        code = re.search(r"CG\d+", outcome)
        if code:
            assert reported.get(line) == code[0], line
        else:
            # What is written is reported, too, and what is left is not named.
            assert (line in reported) is (outcome == "written"), line
            assert (line in noted) is (outcome == "noted"), line
