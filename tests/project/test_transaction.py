"""Sets of files that are written together: all or none, also if the process is killed."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgmigrate.project.cache_folder import records
from cgmigrate.project.recovery import recover
from cgmigrate.project.undo import undo
from tests.support.killed_processes import Processes, as_job

NIGHTLY = bool(os.environ.get("CGMIGRATE_NIGHTLY"))
KILLS = 200 if NIGHTLY else 10

Change = tuple[str, bytes, bytes]


@pytest.fixture(autouse=True)
def no_waiting_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def processes(project: Path) -> Iterator[Processes]:
    processes = Processes(project)
    yield processes
    processes.close()


def tree(project: Path, files: int = 50) -> list[Change]:
    """Create files of several kinds, and return the change of each."""
    changes = []
    for number in range(files):
        path = project / f"conf{number % 4}/{number}.yaml"
        path.parent.mkdir(exist_ok=True)
        before = (b"# \xe9 \xff\r\nexternal_cuda_graph: true\n" + b"x: 1\n" * number) * (1 + number % 3)
        after = before.replace(b"external_cuda_graph: true", b"cuda_graph_impl: transformer_engine"[: 20 + number])
        path.write_bytes(before)
        path.chmod((0o644, 0o600, 0o755, 0o664)[number % 4])
        changes.append((str(path.relative_to(project)), before, after))
    # Two names of one file are written in place, and a link keeps pointing to its target.
    (project / "other name.yaml").hardlink_to(project / "conf3/7.yaml")
    (project / "link.yaml").symlink_to("conf0/8.yaml")
    changes[8] = ("link.yaml", *changes[8][1:])
    return changes


def modes(project: Path) -> dict[str, int]:
    return {str(path.relative_to(project)): path.lstat().st_mode for path in sorted(project.rglob("*.yaml"))}


def contents(changes: list[Change]) -> list[bytes]:
    return [Path(path).read_bytes() for path, _, _ in changes]


def left_behind(project: Path) -> list[str]:
    return [path.name for path in project.rglob(".cgmigrate*")] + records()


class Expected:
    """A set whose files are all old or all new."""

    def __init__(self, project: Path, changes: list[Change]) -> None:
        self.project, self.changes = project, changes
        self.modes = modes(project)
        self.old = [before for _, before, _ in changes]
        self.new = [after for _, _, after in changes]

    def check_whole(self) -> str:
        """Check that the files are all old or all new, without leftovers; return which."""
        now = contents(self.changes)
        which = "old" if now == self.old else "new" if now == self.new else "mixed"
        assert which != "mixed", [(a == b, a == c) for a, b, c in zip(now, self.old, self.new, strict=True)]
        assert modes(self.project) == self.modes and Path("link.yaml").is_symlink()
        assert Path("other name.yaml").samefile("conf3/7.yaml")
        assert left_behind(self.project) == []
        return which

    def check_undo(self) -> None:
        """Check that undo gives the former content."""
        undone = undo()
        assert undone.problems == () and contents(self.changes) == self.old
        assert self.check_whole() == "old"

    def is_mixed(self) -> bool:
        return contents(self.changes) not in (self.old, self.new)


def numbers(count: int, total: int, seed: int) -> list[int]:
    """Return so many numbers of calls or lines, the first and the last ones among them."""
    chosen = random.Random(seed).sample(range(1, total + 1), min(count, total))
    return sorted({*chosen, *range(max(1, total - 5), total + 1)})


@pytest.mark.parametrize("where", ["call", "after_call", "rename", "line"])
def test_a_set_of_50_files_is_whole_after_a_kill_anywhere(project: Path, processes: Processes, where: str) -> None:
    expected = Expected(project, tree(project))
    job = as_job([expected.changes])
    # The first run creates the folders of the cache, and later ones make fewer calls.
    for _ in range(2):
        total = processes.run("write", job, **{where: 0})["count"]
        assert expected.check_whole() == "new"
        expected.check_undo()
    ends, mixed = [], 0
    for number in numbers(KILLS, total, seed=1):
        assert processes.run("write", job, **{where: number})["killed"]
        mixed += expected.is_mixed()
        ended = list(recover([str(project)]))
        ends.append(expected.check_whole())
        assert all(not one.reverted.problems for one in ended) and len(ended) <= 1
        expected.check_undo()
    print(f"{where}: {len(ends)} kills of {total}; {mixed} left old and new files; now {ends.count('new')} are new")
    assert mixed or where != "rename"
