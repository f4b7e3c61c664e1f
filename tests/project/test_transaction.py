"""What prevents a set of files from being written: then none of them is."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import platformdirs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cgmigrate.project import cache_folder, write_lock
from cgmigrate.project.cache_folder import records
from cgmigrate.project.edit_sets import ChangeSet, FileChange
from cgmigrate.project.journal import Journal, journals_folder, lines_of, runs_in
from cgmigrate.project.recovery import recover
from cgmigrate.project.revert import FileState, state_of
from cgmigrate.project.set_record import RecordedFile
from cgmigrate.project.temporary_files import write_all
from cgmigrate.project.transaction import SetError, write_set
from cgmigrate.project.undo import undo
from cgmigrate.project.write import ChangedError, FileReplacement, ReadOnlyError, WriteError
from tests.support.written_sets import write_sets

OLD, NEW = b"external_cuda_graph: true\n", b"cuda_graph_impl: transformer_engine\n"
NAMES = ("a.yaml", "b.yaml", "c.yaml")


@pytest.fixture
def files(project: Path) -> list[Path]:
    files = [project / name for name in NAMES]
    for file in files:
        file.write_bytes(OLD)
    return files


def set_of(*names: str, name: str = "set", after: bytes = NEW) -> ChangeSet:
    return ChangeSet(name, tuple(FileChange(path, OLD, after) for path in names or NAMES))


def contents() -> list[bytes]:
    return [Path(name).read_bytes() for name in NAMES]


def check_nothing_written(error: BaseException, project: Path) -> None:
    assert contents() == [OLD] * 3
    check_no_leftovers(project)
    if isinstance(error, SetError):
        assert str(error).endswith("; these files are written together: a.yaml, b.yaml, c.yaml, and none was written")


def check_no_leftovers(project: Path) -> None:
    assert [path for path in project.rglob("*") if path.name.startswith(".cgmigrate")] == [] == records()
    assert all(lines_of(run) for run in runs_in(journals_folder())), "the entries are withdrawn"


def test_a_set_that_is_written(files: list[Path]) -> None:
    journal = Journal()
    assert write_sets([set_of()], journal) == [None]
    assert contents() == [NEW] * 3 and (journal.recorded, journal.failure) == (3, "")
    assert undo().restored == tuple(map(str, files)) and contents() == [OLD] * 3


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("reason", ["read-only", "changed", "deleted", "directory", "pipe"])
def test_one_file_prevents_the_set_and_not_the_others(project: Path, files: list[Path], name: str, reason: str) -> None:
    path, others = project / name, [project / f"other{number}.yaml" for number in range(2)]
    for other in others:
        other.write_bytes(OLD)
    said = {"read-only": "is read-only", "changed": "has changed", "deleted": "is gone"}.get(reason, "not a regular")
    if reason == "read-only":
        path.chmod(0o444)
    elif reason == "changed":
        path.write_bytes(OLD + b"# mine\n")
    else:
        path.unlink()
    if reason == "directory":
        path.mkdir()
    elif reason == "pipe":
        os.mkfifo(path)
    sets = [set_of("other0.yaml", name="one"), set_of(name="two"), set_of("other1.yaml", name="three")]
    errors = write_sets(sets, Journal())
    assert [error is None for error in errors] == [True, False, True]
    message = str(errors[1])
    assert message.startswith((f"{name} {said}", f"{name} is {said}"))
    assert "; these files are written together: a.yaml, b.yaml, c.yaml, and none was written" in message
    assert [other.read_bytes() for other in others] == [NEW, NEW]
    assert [(project / other).read_bytes() for other in NAMES if other != name] == [OLD, OLD]
    check_no_leftovers(project)
    assert undo().restored == tuple(map(str, others))


def test_a_set_of_one_file_has_the_error_of_the_file(files: list[Path]) -> None:
    files[0].chmod(0o444)
    with pytest.raises(ReadOnlyError, match=r"^a\.yaml is read-only; give it write permission \(chmod u\+w\) to have"):
        write_set(set_of("a.yaml"))
    files[1].write_bytes(b"mine")
    with pytest.raises(ChangedError, match=r"^b\.yaml has changed since it was read and was left alone; run"):
        write_set(set_of("b.yaml"))


@pytest.mark.parametrize("name", ["replace", "fsync", "fchmod", "write"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_at_any_call_reverts_the_set(
    project: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch, name: str, error: BaseException
) -> None:
    files[1].chmod(0o600)
    (project / "other.yaml").hardlink_to(files[2])
    real: Callable[..., object] = getattr(os, name)
    for number in range(1, 100):
        calls = 0

        def failing(*arguments: object) -> object:
            nonlocal calls
            calls += 1
            if calls == number:  # noqa: B023
                raise error
            return real(*arguments)

        monkeypatch.setattr(os, name, failing)
        try:
            write_set(set_of(), Journal())
        except SetError as failure:
            check_nothing_written(failure, project)
        except KeyboardInterrupt:
            # Once all files are written, it prevents only that the record is removed.
            assert contents() in ([NEW] * 3, [OLD] * 3)
            assert all(ended.finished and contents() == [NEW] * 3 for ended in recover(["."]))
            check_no_leftovers(project)
        else:
            # A record that cannot be written prevents nothing.
            assert contents() == [NEW] * 3
        monkeypatch.setattr(os, name, real)
        undo()
        assert contents() == [OLD] * 3
        if calls < number:
            break
    assert number > 2 and calls < number


def test_a_file_that_is_saved_while_the_set_is_written_reverts_the_others(
    project: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def late(new: str, old: str) -> None:
        if str(old).endswith("a.yaml"):
            files[2].write_bytes(b"mine\n")
        real(new, old)

    monkeypatch.setattr(os, "replace", late)
    with pytest.raises(SetError, match=r"^c\.yaml has changed since it was read"):
        write_set(set_of(), Journal())
    assert contents() == [OLD, OLD, b"mine\n"]
    check_no_leftovers(project)


def test_a_file_that_cannot_be_reverted_is_named_and_tried_again(
    project: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def full(new: str, old: str) -> None:
        if str(old).endswith("b.yaml"):
            files[0].chmod(0o444)
            raise OSError(errno.EIO, "Input/output error")
        real(new, old)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(SetError, match=r"b\.yaml could not be written .*a\.yaml is read-only.* not restored yet"):
        write_set(set_of(), Journal())
    assert contents() == [NEW, OLD, OLD] and len(records()) == 1
    monkeypatch.setattr(os, "replace", real)
    files[0].chmod(0o644)
    (ended,) = recover(["."])
    assert ended.reverted.files == (str(files[0]),) and contents() == [OLD] * 3
    check_no_leftovers(project)


def test_what_another_process_writes_is_not_reverted(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Two runs write the same: the second fails, and must not revert the first."""
    real = FileReplacement.prepare

    def late(new: FileReplacement) -> None:
        real(new)
        if new.path == "c.yaml":
            for file in files:
                file.unlink()
                file.write_bytes(NEW)

    monkeypatch.setattr(FileReplacement, "prepare", late)
    with pytest.raises(SetError, match="has changed since it was read"):
        write_set(set_of(), Journal())
    assert contents() == [NEW] * 3


# --- full disks -----------------------------------------------------------------------------------------


def test_a_file_that_grows_too_large(project: Path, files: list[Path]) -> None:
    before, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.getsignal(signal.SIGXFSZ)
    large = b"x" * 2_000_000
    changes = [FileChange("a.yaml", OLD, NEW), FileChange("b.yaml", OLD, large), FileChange("c.yaml", OLD, NEW)]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, before[1]))
    try:
        with pytest.raises(SetError, match=r"^b\.yaml could not be written and is as it was: File too large") as caught:
            write_set(ChangeSet("", tuple(changes)), Journal())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    check_nothing_written(caught.value, project)


@pytest.fixture
def small_disk(project: Path) -> Iterator[Path]:
    """A file system of 512 KiB in the project."""
    disk = project / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "none", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("only root mounts a file system")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("hard_links", [False, True])
def test_a_full_disk(project: Path, small_disk: Path, hard_links: bool) -> None:
    old = b"external_cuda_graph: true\n" * 1000
    new = old.replace(b"true", b"not false")
    paths = [small_disk / f"{number}.yaml" for number in range(6)]
    for path in paths:
        path.write_bytes(old)
    if hard_links:
        for path in paths:
            path.with_suffix(".link").hardlink_to(path)
    room = os.statvfs(small_disk)
    (small_disk / "other").write_bytes(b"x" * (room.f_bavail * room.f_frsize - (0 if hard_links else 60_000)))
    changes = tuple(FileChange(str(path), old, new) for path in paths)
    with pytest.raises(SetError, match="No space left on device"):
        write_set(ChangeSet("", changes), Journal())
    assert {path.read_bytes() for path in paths} == {old}
    check_no_leftovers(project)
    (small_disk / "other").unlink()
    write_set(ChangeSet("", changes), Journal())
    assert {path.read_bytes() for path in paths} == {new}


def test_more_files_than_a_process_may_open(project: Path) -> None:
    changes = []
    for number in range(300):
        (project / f"{number}.yaml").write_bytes(OLD)
        changes.append(FileChange(f"{number}.yaml", OLD, NEW))
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
    try:
        write_set(ChangeSet("", tuple(changes)), Journal())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert {path.read_bytes() for path in project.glob("*.yaml")} == {NEW}


# --- several names of one file --------------------------------------------------------------------------


def test_a_link_stays_one_and_its_target_is_written(project: Path, files: list[Path]) -> None:
    (project / "link.yaml").symlink_to("a.yaml")
    write_set(set_of("link.yaml", "b.yaml", "c.yaml"), Journal())
    assert (project / "link.yaml").is_symlink() and contents() == [NEW] * 3
    assert undo().problems == () and contents() == [OLD] * 3


@pytest.mark.parametrize("kind", ["same path", "link", "hard link"])
def test_a_file_with_two_names_in_a_set_is_written_once(project: Path, files: list[Path], kind: str) -> None:
    other = "./a.yaml" if kind == "same path" else "other.yaml"
    if kind == "link":
        (project / other).symlink_to("a.yaml")
    elif kind == "hard link":
        (project / other).hardlink_to(files[0])
    write_set(ChangeSet("", (*set_of().changes, FileChange(other, OLD, NEW))), Journal())
    assert contents() == [NEW] * 3 and Path(other).read_bytes() == NEW and Path(other).samefile(files[0])
    assert undo().problems == () and contents() == [OLD] * 3
    with pytest.raises(SetError, match=r"a\.yaml and .*are the same file and would get different contents"):
        write_set(ChangeSet("", (*set_of().changes, FileChange(other, OLD, NEW + b"\n"))), Journal())
    assert contents() == [OLD] * 3


def test_a_hard_link_outside_the_set_sees_the_new_content(project: Path, files: list[Path]) -> None:
    (project / "other.yaml").hardlink_to(files[1])
    write_set(set_of(), Journal())
    assert (project / "other.yaml").samefile(files[1]) and contents() == [NEW] * 3
    undo()
    assert (project / "other.yaml").read_bytes() == OLD
    check_no_leftovers(project)


# --- the record and the journal -------------------------------------------------------------------------


def test_a_set_that_cannot_be_recorded_is_written_and_reverted(
    project: Path, files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "file").write_bytes(b"")
    monkeypatch.setenv("CGMIGRATE_CACHE_DIR", str(project / "file"))
    journal = Journal()
    write_set(set_of(), journal)
    assert contents() == [NEW] * 3 and "Not a directory" in journal.failure
    for file in files:
        file.write_bytes(OLD)
    real = os.replace

    def full(new: str, old: str) -> None:
        if str(old).endswith("b.yaml"):
            raise OSError(errno.EIO, "Input/output error")
        real(new, old)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(SetError):
        write_set(set_of(), Journal())
    assert contents() == [OLD] * 3


def test_one_file_needs_no_record(files: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor) or real(descriptor))
    write_set(set_of("a.yaml"), Journal())
    assert len(synced) == 2, "the new file and its folder"
    assert os.listdir(cache_folder.records_folder()) == ["lock"]


@given(st.binary(max_size=30), st.binary(max_size=30), st.data())
def test_a_file_that_was_written_in_place_in_part_is_recognised(before: bytes, after: bytes, data) -> None:
    """Whatever part was written: the new bytes over the old ones, then the old length or the new one."""
    written = data.draw(st.integers(0, len(after)))
    now = after[:written] + before[written:]
    path = Path(os.environ["CGMIGRATE_CACHE_DIR"])
    path.write_bytes(now)
    file = RecordedFile(str(path), str(path), before, after, in_place=True)
    assert state_of(file)[0] is not FileState.CHANGED
    path.write_bytes(now + b"#" * (1 + max(len(before), len(after)) - len(now)))
    assert state_of(file)[0] is FileState.CHANGED


@pytest.mark.skipif(os.name != "posix" or os.uname().sysname != "Linux", reason="platformdirs is used elsewhere")
@pytest.mark.parametrize("value", [None, "", "/elsewhere", "/with space/"])
def test_the_cache_folder_is_that_of_platformdirs(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("CGMIGRATE_CACHE_DIR")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    if value is not None:
        monkeypatch.setenv("XDG_CACHE_HOME", value)
    expected = platformdirs.user_cache_dir("cgmigrate", appauthor=False)
    assert cache_folder.cache_folder() == expected


def test_all_errors_are_write_errors() -> None:
    assert issubclass(SetError, WriteError)


def test_a_lock_that_is_never_released_delays_a_write_and_no_more(
    files: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(write_lock, "PATIENCE", 0.2)
    with write_lock.write_lock():
        start = time.monotonic()
        write_set(set_of())
        assert time.monotonic() - start >= 0.2
    assert contents() == [NEW] * 3
    start = time.monotonic()
    write_set(ChangeSet("", (FileChange("a.yaml", NEW, OLD),)))
    assert time.monotonic() - start < 0.2


# --- undo -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["changed", "deleted", "read-only", "copy"])
def test_undo_names_a_set_with_a_changed_file_and_restores_the_others(
    project: Path, files: list[Path], how: str
) -> None:
    (project / "d.yaml").write_bytes(OLD)
    write_sets([set_of("a.yaml", "b.yaml", name="one"), set_of("c.yaml", "d.yaml", name="two")], Journal())
    if how == "changed":
        files[1].write_bytes(NEW + b"# mine\n")
    elif how == "deleted":
        files[1].unlink()
    elif how == "read-only":
        files[1].chmod(0o444)
    else:
        (run,) = runs_in(journals_folder())
        (run / "1.before").unlink()
    undone = undo()
    assert undone.restored == (str(files[2]), str(project / "d.yaml"))
    assert files[0].read_bytes() == NEW and files[2].read_bytes() == OLD
    (problem,) = undone.problems
    assert str(files[1]) in problem.split(";")[0]
    assert f"; these files are written together: {files[0]}, {files[1]}, and none was " in problem
    # Put back, the set can be undone, unless a copy is gone.
    files[1].unlink(missing_ok=True)
    files[1].write_bytes(NEW)
    again = undo()
    if how == "copy":
        assert again.when == "" and files[0].read_bytes() == NEW
    else:
        assert again.restored == (str(files[0]), str(files[1])) and again.problems == ()


def test_undo_completes_a_set_of_which_a_file_is_restored_already(files: list[Path]) -> None:
    write_set(set_of(), Journal())
    files[1].write_bytes(OLD)
    undone = undo()
    assert undone.restored == (str(files[0]), str(files[2])) and contents() == [OLD] * 3


def test_a_file_of_two_sets_is_undone_step_by_step(files: list[Path]) -> None:
    newer = b"cuda_graph_impl: local\n"
    journal = Journal()
    write_set(set_of("a.yaml", "b.yaml"), journal)
    write_set(ChangeSet("", (FileChange("b.yaml", NEW, newer), FileChange("c.yaml", OLD, newer))), journal)
    assert contents() == [NEW, newer, newer]
    undone = undo()
    assert (undone.restored, undone.problems) == (tuple(map(str, files)), ()) and contents() == [OLD] * 3


def test_a_set_with_a_damaged_entry_is_not_restored_in_part(files: list[Path]) -> None:
    write_set(set_of(), Journal())
    (run,) = runs_in(journals_folder())
    lines = lines_of(run)
    descriptor = os.open(run / "entries.jsonl", os.O_WRONLY | os.O_TRUNC)
    write_all(descriptor, b"".join([lines[0], b"{\n", lines[2]]))
    os.close(descriptor)
    undone = undo()
    assert undone.restored == () and contents() == [NEW] * 3
    assert any("its entries in the journal are damaged" in problem for problem in undone.problems)


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o777])
def test_a_journal_that_others_may_have_written_is_not_restored(files: list[Path], mode: int) -> None:
    write_sets([set_of("a.yaml")], Journal())
    (run,) = runs_in(journals_folder())
    run.chmod(mode)
    assert undo().restored == () and files[0].read_bytes() == NEW
    run.chmod(0o700)
    assert undo().restored == (str(files[0]),) and files[0].read_bytes() == OLD


def test_a_set_whose_entries_were_cut_off_was_not_written(files: list[Path]) -> None:
    """The process was killed while it recorded the last set."""
    write_sets([set_of("a.yaml"), set_of("b.yaml", "c.yaml")], Journal())
    (run,) = runs_in(journals_folder())
    entries = (run / "entries.jsonl").read_bytes()
    first, second = entries.index(b"\n") + 1, entries.rindex(b"\n", 0, -1) + 1
    for file in files[1:]:
        file.write_bytes(OLD)
    for length in (first, first + 10, second, second + 10, len(entries) - 1):
        files[0].write_bytes(NEW)
        run.mkdir(mode=0o700, exist_ok=True)
        (run / "complete").touch()
        (run / "0.before").write_bytes(OLD)
        (run / "entries.jsonl").write_bytes(entries[:length])
        undone = undo()
        assert (undone.restored, undone.problems) == ((str(files[0]),), ())
