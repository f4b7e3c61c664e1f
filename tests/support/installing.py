"""Shared: this checkout as others would install it, and whether pip can."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.paths import ROOT


def copy_of_checkout(folder: Path) -> Path:
    """Copy what an installation, a hook or the action needs into a folder, and return it."""
    for name in ("pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml", "action.yml"):
        shutil.copy(ROOT / name, folder / name)
    for name in ("cgmigrate", "rules", "ci"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def skip_without_registry(folder: Path, env: Mapping[str, str]) -> None:
    """Skip a test whose installation failed if pip cannot download what building the package needs first."""
    probe = folder / "probe"
    subprocess.run([sys.executable, "-m", "virtualenv", "-q", str(probe)], check=True, env=env)
    pip = [str(probe / "bin/pip"), "download", "-q", "--no-deps", "-d", str(probe), "hatchling"]
    if subprocess.run(pip, env=env, capture_output=True, check=False).returncode != 0:
        pytest.skip("pip reaches no registry, so cgmigrate cannot be installed from this checkout")
