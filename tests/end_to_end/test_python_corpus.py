"""Real packages, as an adopter would run cgmigrate on them (``fetch.sh`` fills ``.corpus``)."""

from __future__ import annotations

import ast
import difflib
import re
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from cgmigrate.documents.python import PythonDocument
from cgmigrate.lint.run import Run
from cgmigrate.megatron.releases import Release
from cgmigrate.project.options import Options
from cgmigrate.text.edits import apply
from tests.support.paths import FETCHED
from tests.support.plans import Examined, examine
from tests.support.python_tools import rewrites

LEGACY = re.compile(
    r"(?<![\w-])(?:enable_cuda_graph|external_cuda_graph|cuda_graph_scope|CudaGraphScope|"
    r"--enable-cuda-graph|--external-cuda-graph|--cuda-graph-scope)(?![\w-])"
)
PACKAGES = ["megatron-bridge-0.4.2", "nemo-toolkit-2.4.0", "megatron-core-0.17.1", "sglang-0.5.23"]


@dataclass
class Outcome:
    path: Path
    text: str
    after: str
    examined: Examined
    rewritten: frozenset[int]


@dataclass
class Table:
    outcomes: list[Outcome] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)


@cache
def outcomes(package: str) -> Table:
    folder = FETCHED / package
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there; run shared/corpus/fetch.sh")
    run = Run([str(folder)], Options(target=Release(0, 19)))
    table = Table()
    for path in sorted(folder.rglob("*.py")):
        data = path.read_bytes()
        if not LEGACY.search(data.decode("utf-8", "replace")):
            continue
        text = data.decode()
        document = PythonDocument(text, str(path))
        examined = examine(document, run.context(str(path)))
        # No recipe is rewritten by a plain `fix`: its callers see the object. The rewrites themselves are judged.
        settings = rewrites(document, examined)
        after = apply(text, document.edits(settings)) if settings else text
        table.outcomes.append(Outcome(path, text, after, examined, frozenset(settings)))
        table.counts += count(table.outcomes[-1])
    return table


def count(outcome: Outcome) -> Counter[str]:
    """What became of each line that holds an old name; a line counts once."""
    lines: dict[int, str] = {}
    for match in LEGACY.finditer(outcome.text):
        line = outcome.text.count("\n", 0, match.start())
        kind = _fate(outcome.examined, match.start(), outcome.rewritten)
        if line not in lines or lines[line].startswith("left"):
            lines[line] = kind
    return Counter(lines.values())


def _fate(examined: Examined, at: int, rewritten: frozenset[int]) -> str:
    diagnostics = [
        diagnostic for diagnostic in examined.diagnostics if diagnostic.span.start <= at < diagnostic.span.end
    ]
    if any(diagnostic.applicability and diagnostic.site in rewritten for diagnostic in diagnostics):
        return "rewritten"
    if diagnostics:
        return f"reported {sorted(diagnostic.rule for diagnostic in diagnostics)[0]}"
    left = [owner for written, owner in examined.skipped if written.span.start <= at < written.span.end]
    return f"left: {left[0]}" if left else "UNSAID"


@pytest.mark.parametrize("package", PACKAGES)
def test_every_line_is_accounted_for(package: str) -> None:
    counts = outcomes(package).counts
    print(f"\n{package}: {sum(counts.values())} lines")
    for kind, number in counts.most_common():
        print(f"  {number:4}  {kind}")
    assert counts["UNSAID"] == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_changed_files_compile_and_stay(package: str) -> None:
    for outcome in outcomes(package).outcomes:
        if outcome.after == outcome.text:
            continue
        ast.parse(outcome.after)
        document = PythonDocument(outcome.after, str(outcome.path))
        again = examine(document, Run([], Options(target=Release(0, 19))).context(str(outcome.path)))
        assert not rewrites(document, again), f"{outcome.path}: a second run changes something"


@pytest.mark.parametrize("package", PACKAGES)
def test_only_lines_of_settings_differ(package: str) -> None:
    for outcome in outcomes(package).outcomes:
        for line in difflib.ndiff(outcome.text.splitlines(), outcome.after.splitlines()):
            if line.startswith("- "):
                assert re.search(r"cuda_graph|CudaGraph|^-\s+if \($|^-\s+\):$", line), f"{outcome.path}: {line}"


def test_bridge_recipes_stay_off() -> None:
    table = outcomes("megatron-bridge-0.4.2")
    assert table.counts["rewritten"] >= 180
    on = re.compile(r'cuda_graph_impl = "(?:local|full_iteration|transformer_engine)"')
    for outcome in table.outcomes:
        assert len(on.findall(outcome.after)) == len(on.findall(outcome.text))


def test_another_system_is_untouched() -> None:
    for outcome in outcomes("sglang-0.5.23").outcomes:
        assert not outcome.examined.diagnostics and outcome.after == outcome.text
