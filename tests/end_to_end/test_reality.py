"""What `bench/reality.py` makes of patches, notes, committed lines and judgements, and one run of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.paths import ROOT

sys.path.insert(0, str(ROOT / "bench"))

import reality
from reality import Line, Outcome, Tool, Tree

PATCH = """\
--- a/one.yaml
+++ b/one.yaml
@@ -3,4 +3,3 @@
 model:
-  enable_cuda_graph: false
-  cuda_graph_scope: [attn]
+  cuda_graph_modules: [attn]
   bf16: true
@@ -20,2 +19,2 @@
-a: 1
-enable_cuda_graph: true
+a: 2
+cuda_graph_impl: local
--- a/two.py
+++ b/two.py
@@ -9,0 +10 @@
+impl = cfg.cuda_graph_impl
@@ -30 +30,0 @@
-cfg.enable_cuda_graph = False
"""
REMARKS = """\
note: left unchanged, since the name belongs to another system:
  a/b.py:12: `enable_cuda_graph`
  c.md:3: `--enable-cuda-graph`
Found 2 diagnostics.
  d.py:1: not in a note
"""


def test_changes_of_a_patch_are_by_the_lines_before() -> None:
    changed = reality.changes(PATCH)
    assert list(changed) == [
        ("one.yaml", 4),
        ("one.yaml", 5),
        ("one.yaml", 20),
        ("one.yaml", 21),
        ("two.py", 9),
        ("two.py", 30),
    ]
    assert changed["one.yaml", 4] == changed["one.yaml", 5]
    assert changed["one.yaml", 5].startswith("cuda_graph_modules: [attn] #")
    assert changed["one.yaml", 21].startswith("cuda_graph_impl: local #")
    assert changed["one.yaml", 20].startswith("#")
    assert changed["two.py", 9].startswith("#")
    assert changed["two.py", 30] == "deleted"


def test_kept_lines_are_those_below_notes() -> None:
    note = "left unchanged, since the name belongs to another system"
    assert list(reality.kept(REMARKS)) == [(("a/b.py", 12), note), (("c.md", 3), note)]


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty folder of committed lines."""
    folder = tmp_path / "data"
    (folder / "lines").mkdir(parents=True)
    (folder / "judgements.tsv").write_text(
        "tree\tpath\tline\tjudgement\treason\nt\ta.yaml\t1\trewrite\tkey\nt\ta.yaml\t2\tstay\tcomment\nt\tb.py\t7\treport\treader\n"
    )
    monkeypatch.setattr(reality, "DATA", folder)
    monkeypatch.setattr(reality, "COSTS", folder / "costs.tsv")
    return folder


LINES = {
    ("a.yaml", 1): Line("safe", "CG101w+", "cuda_graph_impl: local #123456"),
    ("a.yaml", 3): Line("reported", "CG603w"),
    ("b.py", 7): Line("kept", "", "another system"),
    ("b.py", 10): Line("unsafe", "", "deleted"),
}


@pytest.mark.usefixtures("data")
def test_saved_lines_are_read_again() -> None:
    tree, outcome = Tree("t"), Outcome(LINES, {"check": "nothing"})
    assert reality.load(tree) is None
    reality.save(tree, outcome)
    committed = reality.load(tree)
    assert committed == outcome
    assert not list(reality.differences(outcome, outcome))


def test_differences_have_both_outcomes_and_new_words_of_a_note_once() -> None:
    now = {key: line for key, line in LINES.items() if key != ("a.yaml", 3)}
    now |= {("b.py", 7): Line("kept", "", "others"), ("a.yaml", 1): Line("unsafe", "CG101w~", "deleted")}
    assert list(reality.differences(Outcome(LINES), Outcome(now, {"check": "1 safe"}))) == [
        "a.yaml:1: safe CG101w+ cuda_graph_impl: local #123456 -> unsafe CG101w~ deleted",
        "a.yaml:3: reported CG603w -> silent",
        "1 lines kept with another note: 'another system' -> 'others'",
        "check: None -> 1 safe",
    ]


@pytest.mark.usefixtures("data")
def test_a_line_that_must_stay_may_not_be_rewritten() -> None:
    counts, wrong = reality.judged(Tree("t"), Outcome(LINES))
    assert counts == Counter({("rewrite", "changed"): 1, ("stay", "silent"): 1, ("report", "silent"): 1})
    assert wrong == []
    _, wrong = reality.judged(Tree("t"), Outcome({**LINES, ("a.yaml", 2): Line("safe", "", "deleted")}))
    assert wrong == ["must stay (comment), but is rewritten: a.yaml:2"]


def test_every_judged_tree_and_committed_file_is_in_the_table() -> None:
    names = {tree.name for tree in reality.all_trees()}
    assert {row["tree"] for row in reality.rows_of(ROOT / "bench/reality/judgements.tsv")} <= names
    assert {path.stem for path in (ROOT / "bench/reality/lines").iterdir()} <= names
    assert sum(bool(tree.short) for tree in reality.all_trees() if tree.commit) == 10


@pytest.fixture
def mirror(tmp_path: Path) -> Tree:
    """Return a tree in a mirror, the path of which is `tmp_path`."""
    work, target = tmp_path / "work", tmp_path / "owner+name" / "repo"
    git = ["git", "-C", str(work), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / "train.sh").write_text(
        "torchrun pretrain_gpt.py \\\n  --enable-cuda-graph\n# cuda_graph_scope\n", encoding="utf-8"
    )
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "a"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    target.parent.mkdir()
    shutil.move(work / ".git", target)
    return Tree("t", "owner/name", commit)


def test_a_tree_is_laid_out_checked_and_fixed(tmp_path: Path, mirror: Tree) -> None:
    assert mirror.missing(tmp_path) == ""
    assert "lacks" in Tree("t", "owner/name", "0" * 40).missing(tmp_path)
    assert Tree("t", "owner/other", "0" * 40).missing(tmp_path) == "no mirror of owner/other"
    outcome = reality.examine(mirror, tmp_path, [sys.executable, "-P", "-m", "cgmigrate"])
    assert outcome.facts["lines with a name"] == "2"
    line = outcome.lines["train.sh", 2]
    assert (line.outcome, line.rules) == ("safe", "CG101w+")
    assert line.text.startswith("--cuda-graph-impl local #")
    assert outcome.costs["fix"].cpu > 0
    assert outcome.costs["fix"].memory > 10


def test_a_command_that_fails_is_no_outcome(tmp_path: Path) -> None:
    tool = Tool([sys.executable, "-c", "raise SystemExit(2)"], tmp_path)
    with pytest.raises(RuntimeError, match="ended with 2"):
        tool.run(Tree("t"), tmp_path, "check")
