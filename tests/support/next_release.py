"""A copy of this checkout to which the next release of megatron-core is added, as docs/new-release.md says."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from cgmigrate.megatron.releases import NEWEST, UPSTREAM
from tests.support.paths import ROOT

FOLDERS = ("cgmigrate", "rules", "scripts", "docs", "tests", "examples")
FILES = ("README.md", "CONTRIBUTING.md", "pyproject.toml", "zensical.toml", "CHANGELOG.md")


def copy_with_next_release(folder: Path) -> Path:
    """Copy the checkout, add a release of which three things differ to the tables, and change the one line."""
    leave = shutil.ignore_patterns("__pycache__", "golden", ".*")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=leave)
    for name in FILES:
        shutil.copy(ROOT / name, folder / name)
    _add_to_tables(folder / "rules/releases.json")
    releases = folder / "cgmigrate/megatron/releases.py"
    line = f"NEWEST = Release({NEWEST.major}, {NEWEST.minor})\n"
    text = releases.read_text(encoding="utf-8")
    assert text.count(line) == 1
    next_line = f"NEWEST = Release({UPSTREAM.major}, {UPSTREAM.minor})\n"
    releases.write_text(text.replace(line, next_line), encoding="utf-8")
    return folder


def _add_to_tables(path: Path) -> None:
    """Add a table with a new flag, a changed default, and without a value of ``cuda_graph_impl``."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import release_tables  # type: ignore[import-not-found]
    finally:
        sys.path.pop(0)
    document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    table = release_tables.split(document, str(NEWEST))
    fields = table["classes"]["TransformerConfig"]["fields"]
    fields["cuda_graph_warmup_steps"] = {**fields["cuda_graph_warmup_steps"], "default": 5}
    choices = [choice for choice in fields["cuda_graph_impl"]["choices"] if choice != "local"]
    fields["cuda_graph_impl"] = {**fields["cuda_graph_impl"], "choices": choices}
    table["flags"]["--cuda-graph-pool"] = {"dest": "cuda_graph_pool", "type": "str", "default": None}
    added = release_tables.with_table(document, f"{UPSTREAM}.0", table, document["bridges"][str(NEWEST)])
    path.write_text(release_tables.written(added), encoding="utf-8")
