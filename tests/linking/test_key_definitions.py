"""Lists of keys that several files use, and classes with keys as fields: a key of YAML files that they name stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.checkouts import staged
from tests.support.files import write
from tests.support.tables import table_of

RECIPE = "policy:\n  megatron_cfg:\n    num_layers: 2\n    external_cuda_graph: true\n    cuda_graph_scope: attn\n"
NOT_FOLLOWED = table_of(__name__, "NOT_FOLLOWED")


def package(project: Path, files: dict[str, str], recipe: str = RECIPE) -> Path:
    """Write a package and its recipe; return the recipe."""
    write(project / "pkg/__init__.py", "")
    for name, code in files.items():
        write(project / f"pkg/{name}.py", code)
    filled = write(project / "conf/recipe.yaml", recipe)
    staged(project)
    return filled


@pytest.mark.parametrize(("files", "reason"), NOT_FOLLOWED.values(), ids=NOT_FOLLOWED)
def test_lists_and_classes_that_are_not_followed_leave_the_files_as_they_are(
    project: Path, cgmigrate, files: dict[str, str], reason: str
) -> None:
    filled = package(project, files)
    result = cgmigrate("fix", ".")
    assert (result.exit_code, filled.read_text()) == (1, RECIPE)
    assert all((project / f"pkg/{name}.py").read_text() == code for name, code in files.items())
    assert reason in " ".join(result.stdout.split())
