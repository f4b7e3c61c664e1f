"""Sets of files that are written together: all or none, also if the process is killed."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cgmigrate.project import recovery, set_record
from cgmigrate.project.cache_folder import records, records_folder
from cgmigrate.project.recovery import recover
from cgmigrate.project.undo import undo
from tests.support.killed_processes import Processes, as_job, wait_for
from tests.support.nightly import NIGHTLY

KILLS = 200 if NIGHTLY else 6
TURNS = 200 if NIGHTLY else 60

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
    return sorted({*chosen, *range(max(1, total - 2), total + 1)})


def kill_and_recover(expected: Expected, processes: Processes, where: str, number: int) -> tuple[bool, str]:
    """Kill a writer and recover its set; return whether old and new files were mixed, and what they are now."""
    assert processes.run("write", as_job([expected.changes]), **{where: number})["killed"]
    mixed = expected.is_mixed()
    ended = list(recover([str(expected.project)]))
    assert all(not one.reverted.problems for one in ended) and len(ended) <= 1
    return mixed, expected.check_whole()


def count(expected: Expected, processes: Processes, where: str, action: str = "write") -> int:
    """Return how many calls or lines there are."""
    job = as_job([expected.changes])
    # The first run creates the folders of the cache, and later ones make fewer calls.
    for _ in range(2):
        total = processes.run("write", job, **{where: 0})["count"]
        assert expected.check_whole() == "new"
        if action == "undo":
            total = processes.run("undo", **{where: 0})["count"]
            assert expected.check_whole() == "old"
        else:
            expected.check_undo()
    return total


@pytest.mark.parametrize("where", ["call", "after_call", "rename", "line", "half_write"])
def test_a_set_of_50_files_is_whole_after_a_kill_anywhere(project: Path, processes: Processes, where: str) -> None:
    expected = Expected(project, tree(project))
    total = count(expected, processes, where)
    ends = []
    for number in numbers(KILLS, total, seed=1):
        ends.append(kill_and_recover(expected, processes, where, number))
        expected.check_undo()
    mixed, new = sum(mixed for mixed, _ in ends), sum(now == "new" for _, now in ends)
    print(f"{where}: {len(ends)} kills of {total}: {mixed} left old and new files; after recovery {new} are all new")
    assert mixed or where != "rename"


def test_a_set_is_whole_after_a_kill_at_any_time(project: Path, processes: Processes) -> None:
    expected = Expected(project, tree(project))
    start = time.monotonic()
    processes.run("write", as_job([expected.changes]))
    longest = time.monotonic() - start
    expected.check_undo()
    chosen, killed = random.Random(2), 0
    for _ in range(KILLS):
        delay = chosen.uniform(0, longest)
        killed += processes.run("write", as_job([expected.changes]), delay=delay)["killed"]
        list(recover([str(project)]))
        expected.check_whole()
        expected.check_undo()
    print(f"{killed} kills in {KILLS} runs of {longest:.3f} s")


@pytest.mark.parametrize("where", ["call", "after_call", "rename", "line", "half_write"])
def test_a_set_is_whole_after_a_kill_while_it_is_recovered(project: Path, processes: Processes, where: str) -> None:
    expected = Expected(project, tree(project))
    job = as_job([expected.changes])
    count(expected, processes, where)

    def interrupted() -> None:
        assert processes.run("write", job, rename=30)["killed"] and expected.is_mixed()

    interrupted()
    total = processes.run("recover", **{where: 0})["count"]
    assert expected.check_whole() == "old"
    for number in numbers(KILLS, total, seed=3):
        interrupted()
        assert processes.run("recover", **{where: number})["killed"]
        # And once more.
        processes.run("recover", **{where: number // 2 + 1})
        list(recover([str(project)]))
        assert expected.check_whole() == "old"
    print(f"{where}: kills at {len(numbers(KILLS, total, seed=3))} of {total} while a set was recovered")


@pytest.mark.parametrize("where", ["call", "rename", "line"])
def test_an_undo_that_is_killed_is_finished_by_the_next(project: Path, processes: Processes, where: str) -> None:
    expected = Expected(project, tree(project))
    job = as_job([expected.changes])
    total = count(expected, processes, where, "undo")
    print(f"{where}: kills at {len(numbers(KILLS, total, seed=4))} of {total} of an undo")
    for number in numbers(KILLS, total, seed=4):
        processes.run("write", job)
        assert processes.run("undo", **{where: number})["killed"]
        list(recover([str(project)]))
        expected.check_whole()
        expected.check_undo()


@pytest.mark.parametrize("where", ["call", "after_call", "half_write"])
def test_one_file_that_is_written_in_place_is_whole_after_a_kill(
    project: Path, processes: Processes, where: str
) -> None:
    before, after = b"external_cuda_graph: true\n" * 50, b"cuda_graph_impl: transformer_engine\n" * 30
    path, other = project / "a.yaml", project / "b.yaml"
    path.write_bytes(before)
    other.hardlink_to(path)
    job = as_job([[("a.yaml", before, after)]])
    total = processes.run("write", job, **{where: 0})["count"]
    undo()
    torn = 0
    for number in range(1, total + 1):
        processes.run("write", job, **{where: number})
        torn += path.read_bytes() not in (before, after)
        list(recover([str(project)]))
        assert path.read_bytes() in (before, after) and left_behind(project) == []
        undo()
        assert path.read_bytes() == before and path.samefile(other)
    print(f"{where}: {total} kills: {torn} left a torn file")
    assert torn


def test_any_files_of_a_set_may_have_reached_the_disk(project: Path, processes: Processes) -> None:
    """After a power failure: renames in different folders are in any order."""
    expected = Expected(project, tree(project))
    chosen = random.Random(5)
    for _ in range(KILLS):
        processes.run("write", as_job([expected.changes]), rename=1)
        for path, _, after in chosen.sample(expected.changes, chosen.randrange(1, 50)):
            Path(path).write_bytes(after)
        assert expected.is_mixed()
        (ended,) = recover([str(project)])
        assert not ended.finished and expected.check_whole() == "old"
        undo()


def test_nothing_is_reverted_that_was_not_written(project: Path, processes: Processes) -> None:
    """Somebody else may write the same while no file of the set was written."""
    expected = Expected(project, tree(project))
    half = count(expected, processes, "line") // 2
    assert processes.run("write", as_job([expected.changes]), line=half)["killed"]
    assert len(records()) == 1 and contents(expected.changes) == expected.old
    path, _, after = expected.changes[3]
    Path(path).write_bytes(after)
    (ended,) = recover([str(project)])
    assert (ended.files, ended.finished, ended.reverted.files) == (50, False, ())
    assert Path(path).read_bytes() == after and left_behind(project) == []
    assert undo().when == "", "the run wrote nothing"


# --- files that changed since -------------------------------------------------------------------------


def test_files_that_changed_since_the_kill_are_kept_and_named(project: Path, processes: Processes) -> None:
    changes = tree(project)
    processes.run("write", as_job([changes]), rename=30)
    new = [number for number, (path, _, after) in enumerate(changes) if Path(path).read_bytes() == after]
    edited, gone = changes[new[5]], changes[new[9]]
    Path(edited[0]).write_bytes(b"mine\n")
    Path(gone[0]).unlink()
    (ended,) = recover([str(project)])
    assert (ended.finished, len(ended.reverted.files), ended.reverted.failed) == (False, len(new) - 2, ())
    of_gone, of_edited = sorted(ended.reverted.changed, key=lambda said: edited[0] in said)
    assert of_edited.startswith(f"{project / edited[0]} has changed since") and "was left alone" in of_edited
    assert of_gone.startswith(f"{project / gone[0]} has changed since")
    former = of_edited.split("(its former content: ")[1].rstrip(")")
    assert Path(former).read_bytes() == edited[1]
    assert Path(edited[0]).read_bytes() == b"mine\n" and not Path(gone[0]).exists()
    others = [change for change in changes if change not in (edited, gone)]
    assert contents(others) == [before for _, before, _ in others]
    assert left_behind(project) == [] and list(recover([str(project)])) == []


def test_a_set_that_was_written_is_not_reverted_because_a_file_changed(project: Path, processes: Processes) -> None:
    changes = tree(project)
    # Everything is written, and the record is not removed yet.
    assert processes.run("write", as_job([changes]), rename=49)["killed"]
    Path(changes[4][0]).write_bytes(b"mine\n")
    (ended,) = recover([str(project)])
    assert ended.finished and len(ended.reverted.changed) == 1 and ended.reverted.files == ()
    assert contents(changes) == [b"mine\n" if n == 4 else after for n, (_, _, after) in enumerate(changes)]
    assert left_behind(project) == []


def test_a_file_that_cannot_be_reverted_is_tried_again(project: Path, processes: Processes) -> None:
    expected = Expected(project, tree(project))
    processes.run("write", as_job([expected.changes]), rename=30)
    locked = next(path for path, _, after in expected.changes if Path(path).read_bytes() == after)
    mode = Path(locked).stat().st_mode
    Path(locked).chmod(0o444)
    for _ in range(2):
        (ended,) = recover([str(project)])
        (failed,) = ended.reverted.failed
        assert f"{locked} is read-only" in failed and len(records()) == 1
    Path(locked).chmod(mode)
    (ended,) = recover([str(project)])
    assert ended.reverted.problems == () and expected.check_whole() == "old"


# --- other processes ----------------------------------------------------------------------------------


def test_a_set_that_another_process_is_writing_is_left_alone(
    project: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Expected(project, tree(project))
    monkeypatch.setattr(recovery, "PATIENCE", 0.1)
    processes.start("write", as_job([expected.changes]), stop_after_rename=20)
    wait_for("stopped")
    before = contents(expected.changes)
    (ended,) = recover([str(project)])
    assert (ended.is_live, ended.files, ended.reverted.files) == (True, 50, ())
    assert contents(expected.changes) == before and expected.is_mixed()
    assert list(recover([str(project / "nowhere/else"), "/"])) == [ended]
    Path("go").touch()
    assert not processes.end()["killed"]
    assert expected.check_whole() == "new"
    expected.check_undo()


def test_recovery_waits_for_a_process_that_is_about_to_end(project: Path, processes: Processes) -> None:
    expected = Expected(project, tree(project))
    processes.start("write", as_job([expected.changes]), stop_after_rename=20)
    wait_for("stopped")
    threading.Timer(0.2, Path("go").touch).start()
    assert list(recover([str(project)])) == []
    assert contents(expected.changes) == expected.new
    processes.end()


def test_another_checkout_is_left_to_its_own_commands(project: Path, processes: Processes) -> None:
    expected = Expected(project, tree(project))
    processes.run("write", as_job([expected.changes]), rename=20)
    other = project.parent / f"{project.name}-other"
    (other / ".git").mkdir(parents=True)
    assert list(recover([str(other)])) == [] and expected.is_mixed()
    (other / "link").symlink_to(project / "conf1")
    (ended,) = recover([str(other / "link/1.yaml:7")])
    assert ended.files == 50 and expected.check_whole() == "old"


def test_many_processes_write_and_recover_the_same_files(project: Path) -> None:
    """Each set of each process is whole at the end, and no process reverts what another one writes."""
    code = """
import os, sys
from cgmigrate.project.edit_sets import ChangeSet, FileChange
from cgmigrate.project.recovery import recover
from cgmigrate.project.transaction import write_set
from cgmigrate.project.write import WriteError
number, written = int(sys.argv[1]), 0
paths = [f"{name}.yaml" for name in "abcdefgh"]
for turn in range(int(sys.argv[2])):
    for ended in recover(["."]):
        assert ended.is_live or not ended.reverted.files, ended
    now = [open(path, "rb").read() for path in paths]
    if len(set(now)) > 1:
        continue  # another process is writing
    new = b"%d of %d" % (turn, number)
    try:
        write_set(ChangeSet("", tuple(FileChange(p, b, new) for p, b in zip(paths, now))))
        written += 1
    except WriteError:
        pass
print(written)
"""
    for name in "abcdefgh":
        (project / f"{name}.yaml").write_bytes(b"0")
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(n), str(TURNS)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for n in range(4)
    ]
    written = []
    for process in started:
        out, errors = process.communicate(timeout=300)
        assert (process.returncode, errors) == (0, b"")
        written.append(int(out))
    print(f"sets written by each process: {written}")
    assert len({(project / f"{name}.yaml").read_bytes() for name in "abcdefgh"}) == 1
    assert min(written) > 0 and left_behind(project) == []


@pytest.mark.parametrize("same_host", [True, False])
def test_without_locks_a_dead_or_old_writer_is_recognised(
    project: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch, same_host: bool
) -> None:
    expected = Expected(project, tree(project))
    processes.run("write", as_job([expected.changes]), rename=20)
    monkeypatch.setattr(recovery, "PATIENCE", 0)
    monkeypatch.setattr(set_record, "lock", lambda descriptor, wait: None)
    if not same_host:
        monkeypatch.setattr(set_record, "_host", lambda: "another machine")
        (ended,) = recover([str(project)])
        assert ended.is_live and expected.is_mixed()
        old = time.time() - set_record.WITHOUT_LOCKS - 1
        os.utime(records()[0], (old, old))
    (ended,) = recover([str(project)])
    assert not ended.is_live
    monkeypatch.undo()
    monkeypatch.chdir(project)
    for path in project.rglob(".cgmigrate*"):
        path.unlink()
    assert contents(expected.changes) == expected.old


def test_without_locks_a_running_writer_is_left_alone(
    project: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = Expected(project, tree(project))
    processes.start("write", as_job([expected.changes]), stop_after_rename=20)
    wait_for("stopped")
    monkeypatch.setattr(recovery, "PATIENCE", 0)
    monkeypatch.setattr(set_record, "lock", lambda descriptor, wait: None)
    (ended,) = recover([str(project)])
    assert ended.is_live and expected.is_mixed()
    Path("go").touch()
    processes.end()


@pytest.mark.parametrize("how", ["readable", "owner"])
def test_a_record_that_somebody_else_may_have_written_is_not_used(
    project: Path, processes: Processes, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Such as one that is committed: git gives every file to all to read."""
    expected = Expected(project, tree(project))
    processes.run("write", as_job([expected.changes]), rename=20)
    now = contents(expected.changes)
    if how == "readable":
        os.chmod(records()[0], 0o644)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert list(recover([str(project)])) == []
    assert contents(expected.changes) == now and len(records()) == 1


@pytest.mark.parametrize("name", [b"\xff\xfe.yaml", b"a\nb.yaml", "\u202e\U0001f600.yaml".encode()])
def test_any_name_of_a_file(project: Path, processes: Processes, name: bytes) -> None:
    paths = [os.fsdecode(name), "other.yaml"]
    for path in paths:
        Path(path).write_bytes(b"old\n")
    processes.run("write", as_job([[(path, b"old\n", b"new\n") for path in paths]]), rename=1)
    assert {Path(path).read_bytes() for path in paths} == {b"old\n", b"new\n"}
    (ended,) = recover([str(project)])
    assert {Path(path).read_bytes() for path in paths} == {b"old\n"} and len(ended.reverted.files) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]\n", b"{}\n[]\n", b"\xff\n\n", b"1\n2\n3\n"])
def test_a_record_that_is_not_complete_is_removed(project: Path, content: bytes) -> None:
    folder = Path(records_folder())
    folder.mkdir(parents=True)
    (folder / ".cgmigrate-abcdefgh.tmp").write_bytes(content)
    (folder / ".cgmigrate-abcdefgh.tmp").chmod(0o600)
    (folder / ".cgmigrate-folder").mkdir()
    (folder / "notes").write_bytes(content)
    assert list(recover([str(project)])) == []
    assert sorted(path.name for path in folder.iterdir()) == [".cgmigrate-folder", "notes"]
