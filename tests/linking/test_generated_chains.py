"""Generated projects of merged YAML files: every entry point captures after ``fix`` what it captured before.

The files are loaded by OmegaConf, by Hydra and by loaders of a few lines; megatron-core's own class reads the result.
A chain that is not rewritten must have a diagnostic. Few examples run with every test run, many with
CGMIGRATE_NIGHTLY=large.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings

from tests.support.capture_judges import Judgement, judge_fix, load_all
from tests.support.generated_chains import Tree, extending_trees, hydra_trees, nemo_rl_trees
from tests.support.nightly import NIGHTLY, generated, nightly_only

many = settings(
    max_examples=generated(20, 200),
    derandomize=not NIGHTLY,
    deadline=None,
    phases=list(Phase) if NIGHTLY else [Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture],
)


@dataclass
class Figures:
    """What became of the generated projects of one kind."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, tree: Tree, judgement: Judgement, prefix: str = "") -> None:
        outcome = "withheld" if judgement.old else "rewritten" if judgement.changed else "nothing to rewrite"
        self.counts[f"{prefix}{outcome}"] += 1
        if tree.files_with_settings == 1:
            self.counts[f"{prefix}{outcome}, settings in a single file"] += 1
            if judgement.old and not prefix:
                self.reasons |= Counter({f"SINGLE {reason}": 1 for reason in judgement.reasons})
        if not prefix:
            self.reasons += judgement.reasons


@pytest.fixture
def figures(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Iterator[Figures]:
    """Counts over all examples of a test, printed at its end."""
    result = Figures()
    yield result
    with capsys.disabled():
        print(f"\n{request.node.name}:", dict(sorted(result.counts.items())))
        for reason, count in result.reasons.most_common(40 if NIGHTLY else 5):
            print(f"  {count:5} {reason}")


def assert_entry_points_agree(tree: Tree, figures: Figures) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve() / "project"
        entries = tree.write(folder)
        (folder / ".git").mkdir()
        (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
        try:
            load_all(entries)
        except Exception:
            assume(False)  # a configuration that its own loader refuses
        copy = Path(shutil.copytree(folder, folder.parent / "unsafe"))
        judgement = judge_fix(folder, entries, tree.places)
        figures.add(tree, judgement)
        assert not judgement.wrong, judgement.wrong
        assert not judgement.silent, judgement.silent
        if not NIGHTLY:
            return
        unsafe = judge_fix(copy, tree.write(copy), tree.places, unsafe=True)
        figures.counts["unsafe: " + ("other captures" if unsafe.wrong else "equal")] += 1
        figures.add(tree, unsafe, "unsafe: ")


@many
@given(nemo_rl_trees())
def test_chains_that_nemo_rl_loads(figures: Figures, tree: Tree) -> None:
    assert_entry_points_agree(tree, figures)


@many
@given(extending_trees())
def test_chains_that_name_a_base(figures: Figures, tree: Tree) -> None:
    assert_entry_points_agree(tree, figures)


few = settings(parent=many, max_examples=generated(6, 50))


@few
@given(hydra_trees())
def test_chains_that_hydra_composes(figures: Figures, tree: Tree) -> None:
    assert_entry_points_agree(tree, figures)


@nightly_only
@few
@given(hydra_trees(packages=True))
def test_chains_with_packages_that_hydra_composes(figures: Figures, tree: Tree) -> None:
    assert_entry_points_agree(tree, figures)
