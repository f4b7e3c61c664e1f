"""A setting that a visible command line overrides is not renamed unless every run captures the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cgmigrate.lint.file_result import FileResult
from cgmigrate.lint.run import Run
from cgmigrate.project.options import RunOptions
from tests.support.files import write
from tests.support.tables import from_table

RECIPE = "policy:\n  megatron_cfg:\n    cuda_graph_impl: transformer_engine\n    cuda_graph_scope: [attn]\n"


def checkout(top: Path) -> None:
    (top / ".git/HEAD").unlink(missing_ok=True)
    for words in (["init", "-q", "."], ["add", "."]):
        subprocess.run(["git", "-C", str(top), *words], check=True)


def fixed(folder: Path, unsafe: bool = False) -> FileResult:
    (checked,) = [
        item for item in Run([str(folder / "a.yaml")], RunOptions(unsafe=unsafe)) if isinstance(item, FileResult)
    ]
    return checked


@from_table
@pytest.mark.parametrize("unsafe", [False, True])
def test_an_override_of_an_old_name_withholds_the_fix(project: Path, name: str, text: str, unsafe: bool) -> None:
    write(project / "a.yaml", RECIPE)
    write(project / name, text)
    checkout(project)
    checked = fixed(project, unsafe=unsafe)
    assert checked.after is None
    reasons = " ".join(one.blocked_by for one in checked.diagnostics)
    overridden = f"{name}:" in reasons and "a command line overrides" in reasons
    assert overridden or f"{name}, which has to change with this file" in reasons


@from_table
def test_other_overrides_keep_the_fix(project: Path, name: str, text: str) -> None:
    write(project / "a.yaml", RECIPE)
    write(project / name, text)
    checkout(project)
    reasons = " ".join(one.blocked_by for one in fixed(project).diagnostics)
    assert "a command line overrides" not in reasons


IGNORED = "model:\n  cuda_graph_impl: none\n  cuda_graph_scope: full_iteration\n"


@from_table
def test_a_page_that_turns_graphs_on_keeps_the_scope(project: Path, page: str, stays: bool) -> None:
    write(project / "a.yaml", IGNORED)
    write(project / "use.md", f"# Use\n\n```bash\n{page}\n```\n")
    checkout(project)
    reasons = " ".join(one.blocked_by for one in fixed(project, unsafe=True).diagnostics)
    assert ("a command line overrides `model.cuda_graph_impl` (use.md:4)" in reasons) == stays
