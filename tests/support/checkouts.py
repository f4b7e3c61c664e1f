"""Checkouts: of any files, and of Megatron-Bridge with the modules of a fixture as its recipes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import FETCHED

RULES = FETCHED / "megatron-bridge-0.6.2/megatron/bridge/utils/cuda_graph.py"


def staged(folder: Path) -> None:
    """Make a folder a checkout with all its files in the index."""
    for words in ("init -q", "add ."):
        subprocess.run(["git", *words.split()], check=True, cwd=folder)


def project_of(case: Path, folder: Path) -> Path:
    """A checkout with the modules of a case as recipes of Megatron-Bridge; those in `root` are at its root."""
    if not RULES.exists():
        pytest.skip("megatron-bridge 0.6.2 is not in .corpus (.ci/run fetches it)")
    recipes = folder / "megatron/bridge/recipes"
    shutil.copytree(case, recipes, ignore=shutil.ignore_patterns("expected.txt", "root"))
    if (case / "root").exists():
        shutil.copytree(case / "root", folder, dirs_exist_ok=True)
    (recipes / "__init__.py").touch()
    (folder / "megatron/bridge/utils").mkdir()
    shutil.copy(RULES, folder / "megatron/bridge/utils/cuda_graph.py")
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    return folder
