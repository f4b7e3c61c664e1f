from __future__ import annotations

import difflib
import errno
import os
import stat
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from cgmigrate.project.write import ChangedError, ReadOnlyError, WriteError, write
from cgmigrate.text.diff import unified_diff
from cgmigrate.text.edits import Edit, OverlapError, apply, moved
from cgmigrate.text.encoding import decode, encode
from tests.support.nightly import examples

BEFORE = b"enable_cuda_graph: true\r\n"
AFTER = b"cuda_graph_impl: local\r\n"


class TestApply:
    def test_no_edits(self) -> None:
        assert apply("a: 1\n", []) == "a: 1\n"

    def test_replace_remove_insert_in_any_order(self) -> None:
        edits = [Edit(9, 9, "!"), Edit(0, 1, "x"), Edit(3, 6, "")]
        assert apply("abcdefghi", edits) == "xbcghi!"

    def test_spans_count_code_points(self) -> None:
        assert apply("é😀\u0085a: 1", [Edit(3, 4, "b")]) == "é😀\u0085b: 1"

    def test_insertions_at_one_point_keep_the_given_order(self) -> None:
        assert apply("ab", [Edit(1, 1, "z"), Edit(1, 1, "a"), Edit(1, 1, "m")]) == "azamb"

    def test_edits_that_touch(self) -> None:
        assert apply("abcd", [Edit(2, 4, "Y"), Edit(2, 2, "-"), Edit(0, 2, "X")]) == "X-Y"

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (Edit(0, 2, "x"), Edit(1, 3, "y")),
            (Edit(0, 4, "x"), Edit(1, 2, "")),
            (Edit(0, 2, "x"), Edit(1, 1, "inserted inside")),
            (Edit(1, 2, "same"), Edit(1, 2, "same")),
        ],
    )
    def test_edits_that_overlap_are_refused_and_both_named(self, one: Edit, other: Edit) -> None:
        for edits in ([one, other], [other, one]):
            with pytest.raises(OverlapError) as caught:
                apply("abcd", edits)
            assert repr(one) in str(caught.value)
            assert repr(other) in str(caught.value)

    @pytest.mark.parametrize("edit", [Edit(-1, 0, ""), Edit(2, 1, ""), Edit(0, 5, ""), Edit(5, 5, "")])
    def test_spans_outside_the_text_are_refused(self, edit: Edit) -> None:
        with pytest.raises(ValueError, match="a text of 4 characters"):
            apply("abcd", [edit])

    @given(st.lists(st.tuples(st.text(max_size=4), st.text(max_size=4), st.text(max_size=4))), st.randoms())
    def test_what_lies_between_edits_survives(self, parts: list[tuple[str, str, str]], random: object) -> None:
        text = expected = ""
        edits = []
        for kept, old, new in parts:
            start = len(text) + len(kept)
            edits.append(Edit(start, start + len(old), new))
            text += kept + old + "|"
            expected += kept + new + "|"
        random.shuffle(edits)  # type: ignore[attr-defined]
        assert apply(text, edits) == expected


class TestDecode:
    def test_the_mark_is_kept_apart(self) -> None:
        assert decode(b"\xef\xbb\xbfa: 1\r\n") == ("a: 1\r\n", True)
        assert decode(b"a: 1\r\n") == ("a: 1\r\n", False)
        assert decode(b"") == ("", False)

    def test_a_second_mark_is_text(self) -> None:
        assert decode(b"\xef\xbb\xbf\xef\xbb\xbf") == ("\ufeff", True)

    @pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
    def test_other_bytes_are_refused_with_their_place_in_the_file(self, mark: bytes) -> None:
        data = mark + "é: ".encode() + b"\xe9\n"
        with pytest.raises(UnicodeDecodeError) as caught:
            decode(data)
        assert data[caught.value.start : caught.value.end] == b"\xe9"

    def test_a_lone_surrogate_is_not_written(self) -> None:
        with pytest.raises(UnicodeEncodeError):
            encode("\ud800", False)

    @given(st.text(), st.booleans())
    @example("a\r\nb\rc\u0085d\u2028e\x0cf", False)
    @example("\ufeff\ufeff", True)
    def test_the_round_trip_gives_the_same_bytes(self, text: str, bom: bool) -> None:
        data = (b"\xef\xbb\xbf" if bom else b"") + text.encode()
        assert encode(*decode(data)) == data


class TestMoved:
    def test_every_letter_outside_the_edits_is_found_again(self) -> None:
        text, edits = "abcdefghi", [Edit(9, 9, "!"), Edit(0, 1, "xyz"), Edit(3, 6, ""), Edit(7, 7, "--")]
        after = apply(text, edits)
        for offset in (1, 2, 6, 7, 8):
            assert after[moved(offset, edits)] == text[offset]

    def test_a_place_inside_a_replacement_is_where_that_begins(self) -> None:
        edits = [Edit(0, 1, "xyz"), Edit(3, 6, "-")]
        assert apply("abcdefghi", edits)[moved(4, edits)] == "-"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file to be rewritten, alone in its folder; copies are saved in another one."""
    (tmp_path / "saved").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "saved"))
    (tmp_path / "project").mkdir()
    file = tmp_path / "project" / "a.yaml"
    file.write_bytes(BEFORE)
    return file


def left_behind(file: Path) -> list[str]:
    """What lies around a file, and where copies are saved, that is not a file of the test."""
    saved = file.parent.parent / "saved"
    return sorted(path.name for folder in (file.parent, saved) for path in folder.iterdir() if path.suffix != ".yaml")


def refuse_new_files_beside(file: Path, monkeypatch: pytest.MonkeyPatch, error: int = errno.EACCES) -> None:
    real = os.open

    def refuse(path: str, flags: int, *rest: int, **named: int) -> int:
        if flags & os.O_CREAT and os.path.dirname(path) == str(file.parent):
            raise OSError(error, os.strerror(error), path)
        return real(path, flags, *rest, **named)

    monkeypatch.setattr(os, "open", refuse)


class TestWrite:
    def test_the_new_content_under_the_old_name(self, file: Path) -> None:
        inode = file.stat().st_ino
        write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == AFTER
        assert file.stat().st_ino != inode
        assert left_behind(file) == []

    def test_a_relative_path(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(file.parent)
        write("a.yaml", BEFORE, AFTER)
        assert file.read_bytes() == AFTER

    def test_to_and_from_nothing(self, file: Path) -> None:
        write(str(file), BEFORE, b"")
        assert file.read_bytes() == b""
        write(str(file), b"", AFTER)
        assert file.read_bytes() == AFTER

    def test_the_same_content_is_not_written(self, file: Path) -> None:
        status = file.stat()
        write(str(file), BEFORE, BEFORE)
        assert (file.stat().st_ino, file.stat().st_mtime_ns) == (status.st_ino, status.st_mtime_ns)

    @pytest.mark.parametrize("mode", [0o755, 0o600, 0o666, 0o640, 0o200])
    def test_the_mode_is_kept_whatever_the_umask(self, file: Path, mode: int) -> None:
        if mode == 0o200 and os.geteuid() != 0:
            pytest.skip("only root reads a file without read permission")
        file.chmod(mode)
        umask = os.umask(0o077)
        try:
            write(str(file), BEFORE, AFTER)
        finally:
            os.umask(umask)
        assert stat.S_IMODE(file.stat().st_mode) == mode

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_owner_and_group_are_kept(self, file: Path) -> None:
        os.chown(file, 12345, 54321)
        file.chmod(0o4755)
        write(str(file), BEFORE, AFTER)
        status = file.stat()
        assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 54321, 0o4755)
        assert file.read_bytes() == AFTER

    @pytest.mark.skipif(not hasattr(os, "setxattr"), reason="the system has no extended attributes")
    def test_extended_attributes_are_kept(self, file: Path) -> None:
        try:
            os.setxattr(file, "user.note", b"mine")
        except OSError:
            pytest.skip("this file system has no extended attributes")
        write(str(file), BEFORE, AFTER)
        assert os.getxattr(file, "user.note") == b"mine"

    def test_through_a_chain_of_links_the_target_is_written(self, file: Path) -> None:
        elsewhere = file.parent.parent / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "one.yaml").symlink_to(file)
        (elsewhere / "two.yaml").symlink_to("one.yaml")
        write(str(elsewhere / "two.yaml"), BEFORE, AFTER)
        assert file.read_bytes() == AFTER
        assert not file.is_symlink()
        assert (elsewhere / "two.yaml").readlink() == Path("one.yaml")
        assert (elsewhere / "one.yaml").readlink() == file
        assert {path.name for path in elsewhere.iterdir()} == {"one.yaml", "two.yaml"}

    def test_every_hard_link_sees_the_new_content(self, file: Path) -> None:
        other = file.with_name("b.yaml")
        other.hardlink_to(file)
        write(str(file), BEFORE, AFTER)
        assert (file.read_bytes(), other.read_bytes()) == (AFTER, AFTER)
        assert file.samefile(other)
        assert left_behind(file) == []

    @pytest.mark.parametrize("error", [errno.EACCES, errno.EPERM, errno.EROFS])
    def test_in_place_where_the_folder_takes_no_new_file(
        self, file: Path, error: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refuse_new_files_beside(file, monkeypatch, error)
        inode = file.stat().st_ino
        write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == AFTER
        assert file.stat().st_ino == inode
        assert left_behind(file) == []

    def test_in_place_where_the_owner_cannot_be_given_to_a_new_file(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if os.geteuid() != 0:
            pytest.skip("only root can give files away")
        os.chown(file, 12345, 54321)
        inode = file.stat().st_ino

        def refuse(*_: object) -> None:
            raise PermissionError(errno.EPERM, "Operation not permitted")

        monkeypatch.setattr(os, "fchown", refuse)
        write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == AFTER
        assert (file.stat().st_ino, file.stat().st_uid) == (inode, 12345)
        assert left_behind(file) == []

    @pytest.mark.parametrize("after", [b"", b"x", BEFORE * 3])
    def test_in_place_shorter_and_longer(self, file: Path, after: bytes) -> None:
        file.with_name("b.yaml").hardlink_to(file)
        write(str(file), BEFORE, after)
        assert file.read_bytes() == after


class TestRefusals:
    @pytest.mark.parametrize("now", [b"", BEFORE[:-1], BEFORE + b"# mine\n", b"E" + BEFORE[1:]])
    def test_a_file_that_changed(self, file: Path, now: bytes) -> None:
        file.write_bytes(now)
        with pytest.raises(ChangedError, match=r"a\.yaml has changed since it was read"):
            write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == now

    def test_a_file_that_is_gone(self, file: Path) -> None:
        file.unlink()
        with pytest.raises(ChangedError, match=r"a\.yaml is gone"):
            write(str(file), BEFORE, AFTER)
        assert not file.exists()

    @pytest.mark.parametrize("how", ["saved", "replaced", "deleted"])
    def test_a_file_that_changes_while_the_new_one_is_written(
        self, file: Path, how: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        fsync = os.fsync

        def meanwhile(descriptor: int) -> None:
            fsync(descriptor)
            if how == "saved":
                file.write_bytes(b"someone else's\n")
            else:
                file.unlink()
            if how == "replaced":
                file.write_bytes(BEFORE)

        monkeypatch.setattr(os, "fsync", meanwhile)
        with pytest.raises(ChangedError):
            write(str(file), BEFORE, AFTER)
        assert (file.read_bytes() if file.exists() else None) == {
            "saved": b"someone else's\n",
            "replaced": BEFORE,
            "deleted": None,
        }[how]
        assert left_behind(file) == []

    @pytest.mark.parametrize("how", ["saved", "same times", "linked", "replaced", "deleted"])
    def test_a_file_that_changes_while_its_copy_is_saved(
        self, file: Path, how: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """In place: another hard link keeps the file from being replaced by a new one."""
        other, victim = file.with_name("b.yaml"), file.with_name("victim.yaml")
        other.hardlink_to(file)
        victim.write_bytes(BEFORE)
        fsync = os.fsync

        def meanwhile(descriptor: int) -> None:
            monkeypatch.setattr(os, "fsync", fsync)
            fsync(descriptor)
            status = file.stat()
            if how in ("saved", "same times"):
                file.write_bytes(b"x" * len(BEFORE))
            else:
                file.unlink()
            if how == "same times":
                os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
            elif how == "linked":
                file.symlink_to(victim)
            elif how == "replaced":
                file.write_bytes(BEFORE)

        monkeypatch.setattr(os, "fsync", meanwhile)
        with pytest.raises(ChangedError):
            write(str(file), BEFORE, AFTER)
        assert victim.read_bytes() == BEFORE
        assert other.read_bytes() == (b"x" * len(BEFORE) if how in ("saved", "same times") else BEFORE)
        assert left_behind(file) == []

    @pytest.mark.parametrize("hard_links", [1, 2])
    def test_a_link_that_takes_the_name_is_not_followed(
        self, file: Path, hard_links: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        if hard_links > 1:
            file.with_name("b.yaml").hardlink_to(file)
        victim = file.with_name("victim.yaml")
        victim.write_bytes(BEFORE)
        access = os.access

        def meanwhile(path: str, mode: int) -> bool:
            file.unlink()
            file.symlink_to(victim)
            return access(path, mode)

        monkeypatch.setattr(os, "access", meanwhile)
        with pytest.raises(ChangedError, match=r"a\.yaml has changed since it was read"):
            write(str(file), BEFORE, AFTER)
        assert victim.read_bytes() == BEFORE

    def test_a_read_only_file_even_for_root(self, file: Path) -> None:
        file.chmod(0o444)
        with pytest.raises(ReadOnlyError, match=r"a\.yaml is read-only; give it write permission"):
            write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == BEFORE
        assert stat.S_IMODE(file.stat().st_mode) == 0o444

    def test_a_file_that_only_others_may_write(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, "access", lambda path, mode: False)
        with pytest.raises(ReadOnlyError):
            write(str(file), BEFORE, AFTER)

    def test_a_directory(self, file: Path) -> None:
        with pytest.raises(WriteError, match="is not a regular file"):
            write(str(file.parent), b"", AFTER)

    def test_a_looping_link(self, file: Path) -> None:
        loop = file.with_name("loop.yaml")
        loop.symlink_to("loop.yaml")
        with pytest.raises(WriteError, match=r"loop\.yaml could not be written and is as it was: Too many levels"):
            write(str(loop), BEFORE, AFTER)

    def test_all_errors_are_write_errors_and_those_are_os_errors(self) -> None:
        assert issubclass(ChangedError, WriteError)
        assert issubclass(ReadOnlyError, WriteError)
        assert issubclass(WriteError, OSError)


DISK_FULL = OSError(errno.ENOSPC, "No space left on device")


def failing(real: Callable[..., object], error: BaseException, calls: int = 0) -> Callable[..., object]:
    """A system call that works for a number of calls and then fails; a write fails half done."""
    done = 0

    def fail(*arguments: object, **_: object) -> object:
        nonlocal done
        done += 1
        if done <= calls:
            return real(*arguments)
        if real is REAL_WRITE and done == calls + 1:
            descriptor, data = arguments
            return real(descriptor, data[: len(data) // 2])  # type: ignore[index]
        raise error

    return fail


REAL_WRITE = os.write


class TestFailures:
    @pytest.mark.parametrize("call", ["write", "fsync", "fchmod", "replace"])
    def test_nothing_half_written_and_nothing_left_behind(
        self, file: Path, call: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, call, failing(getattr(os, call), DISK_FULL))
        with pytest.raises(WriteError, match=r"a\.yaml could not be written and is as it was: No space left"):
            write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == BEFORE
        assert left_behind(file) == []

    @pytest.mark.parametrize("call", ["write", "fsync", "fchmod", "replace"])
    def test_nor_when_interrupted(self, file: Path, call: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(os, call, failing(getattr(os, call), KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == BEFORE
        assert left_behind(file) == []

    def test_no_room_for_a_new_file_is_no_reason_to_risk_the_old_one(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        refuse_new_files_beside(file, monkeypatch, errno.ENOSPC)
        with pytest.raises(WriteError, match="No space left"):
            write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == BEFORE

    def test_a_folder_that_cannot_be_synced_does_not_undo_the_rename(
        self, file: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(os, "fsync", failing(os.fsync, DISK_FULL, calls=1))
        write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == AFTER

    @pytest.mark.parametrize("call", ["write", "fsync"])
    @pytest.mark.parametrize("calls", [0, 1])
    @pytest.mark.parametrize("error", [DISK_FULL, KeyboardInterrupt()])
    def test_in_place_the_old_content_is_restored(
        self, file: Path, call: str, calls: int, error: BaseException, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.with_name("b.yaml").hardlink_to(file)
        real = getattr(os, call)
        fail = failing(real, error, calls)
        failed = False

        def once(*arguments: object) -> object:
            nonlocal failed
            if failed:
                return real(*arguments)
            try:
                return fail(*arguments)
            except BaseException:
                failed = True
                raise

        monkeypatch.setattr(os, call, once)
        with pytest.raises(WriteError if error is DISK_FULL else KeyboardInterrupt):
            write(str(file), BEFORE, AFTER)
        assert failed
        assert file.read_bytes() == BEFORE
        assert left_behind(file) == []

    @pytest.mark.parametrize("error", [DISK_FULL, KeyboardInterrupt()])
    def test_where_restoring_fails_too_the_copy_stays_and_is_named(
        self, file: Path, error: BaseException, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file.with_name("b.yaml").hardlink_to(file)
        monkeypatch.setattr(os, "write", failing(os.write, error, calls=1))
        with pytest.raises(WriteError, match=r"a\.yaml is damaged") as caught:
            write(str(file), BEFORE, AFTER)
        [copy] = (file.parent.parent / "saved").iterdir()
        assert str(copy) in str(caught.value)
        assert copy.read_bytes() == BEFORE

    def test_a_copy_that_cannot_be_removed_is_no_failure(self, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file.with_name("b.yaml").hardlink_to(file)
        monkeypatch.setattr(os, "unlink", failing(os.unlink, DISK_FULL))
        write(str(file), BEFORE, AFTER)
        assert file.read_bytes() == AFTER


def git_apply(folder: Path, name: str, before: str, diff: str) -> bytes:
    """Return what `git apply` writes when it applies a diff to a file."""
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    if not (folder / ".git").exists():
        subprocess.run(["git", "init", "--quiet", str(folder)], check=True, env=environment)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(before.encode())
    done = subprocess.run(
        ["git", "apply", "-p1", "--whitespace=nowarn"],
        cwd=folder,
        env=environment,
        input=diff.encode("utf-8", "surrogateescape"),
        capture_output=True,
    )
    assert (done.returncode, done.stderr) == (0, b""), diff
    return (folder / name).read_bytes()


LINES = st.lists(
    st.tuples(
        st.sampled_from(
            [
                "",
                "a: 1",
                "b: 'é😀'",
                "-- c",
                "++ d",
                " e",
                "\\ f",
                "@@ -1 +1 @@",
                "--- a/x",
                "g\rh",
                "\u0085",
                "i\u2028j",
            ]
        ),
        st.sampled_from(["\n", "\n", "\r\n", "\r"]),
    ),
    max_size=12,
).map(lambda lines: "".join(line + end for line, end in lines))
TEXTS = st.tuples(LINES, st.sampled_from(["", "", "last", "last\r"])).map("".join)


class TestDiff:
    def test_no_change_no_diff(self) -> None:
        assert unified_diff("a.yaml", "a: 1", "a: 1") == ""

    def test_three_lines_of_context(self) -> None:
        before = "".join(f"l{number}: 0\n" for number in range(1, 10))
        assert unified_diff("conf/a.yaml", before, before.replace("l5: 0", "l5: 1")) == (
            "--- a/conf/a.yaml\n"
            "+++ b/conf/a.yaml\n"
            "@@ -2,7 +2,7 @@\n"
            " l2: 0\n l3: 0\n l4: 0\n-l5: 0\n+l5: 1\n l6: 0\n l7: 0\n l8: 0\n"
        )

    def test_only_lines_that_change_are_shown_of_functions_that_are_alike(self) -> None:
        end = "\n    overlap(cfg)\n    finish(cfg)\n    cfg.variables = {\n        1: 2,\n    }\n    return cfg\n\n\n"
        functions = [
            f"def recipe_{number}():\n    cfg.size = {number}\n    cfg.graph = {'old' if number % 2 else 'kept'}\n{end}"
            for number in range(20)
        ]
        before = "".join(functions)
        diff = unified_diff("a.py", before, before.replace("old", "new"))
        changed = [line for line in diff.splitlines()[2:] if line[0] in "+-"]
        assert changed == ["-    cfg.graph = old", "+    cfg.graph = new"] * 10

    def test_many_changes_are_not_compared_with_each_other(self, monkeypatch: pytest.MonkeyPatch) -> None:
        compared: list[int] = []
        search = difflib.SequenceMatcher.find_longest_match
        monkeypatch.setattr(
            difflib.SequenceMatcher,
            "find_longest_match",
            lambda self, *ends: compared.append(ends[1] - ends[0]) or search(self, *ends),
        )
        before = "".join(f"s{number}:\n  a:\n    b: 1\n" for number in range(60))
        assert unified_diff("a.yaml", before, before.replace("b: 1", "c: 2"))
        assert sum(compared) < 3 * len(before.splitlines())

    def test_carriage_returns_stay_in_their_lines(self) -> None:
        assert unified_diff("a", "a: 1\r\nb\rc\u0085d\u2028\n", "a: 2\r\nb\rc\u0085d\u2028\n") == (
            "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n-a: 1\r\n+a: 2\r\n b\rc\u0085d\u2028\n"
        )

    def test_no_newline_at_the_end(self) -> None:
        assert unified_diff("a", "x\ny", "x\nz") == (
            "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n x\n"
            "-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n"
        )
        assert unified_diff("a", "x", "x\n") == (
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"
        )

    @pytest.mark.parametrize(
        ("name", "header"),
        [
            ("with space.yaml", "--- a/with space.yaml\t\n"),
            ("ünï.yaml", "--- a/ünï.yaml\n"),
            ('qu"ote.yaml', '--- "a/qu\\"ote.yaml"\n'),
            ("tab\tline\n.yaml", '--- "a/tab\\tline\\n.yaml"\n'),
            ("back\\slash.yaml", '--- "a/back\\\\slash.yaml"\n'),
            ("\x1b[0m\r\u202e.yaml", '--- "a/\\033[0m\\r\\342\\200\\256.yaml"\n'),
            (os.fsdecode(b"\xff.yaml"), '--- "a/\\377.yaml"\n'),
        ],
    )
    def test_file_names_that_need_care(self, name: str, header: str, tmp_path: Path) -> None:
        diff = unified_diff(name, "a: 1\n", "a: 2\n")
        assert diff.startswith(header)
        assert git_apply(tmp_path, name, "a: 1\n", diff) == b"a: 2\n"

    def test_an_absolute_path_stays_below_the_folder(self) -> None:
        assert unified_diff("/tmp/a.yaml", "a", "b").startswith("--- a/tmp/a.yaml\n+++ b/tmp/a.yaml\n")

    @settings(max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(TEXTS, TEXTS)
    @example("", "a\n")
    @example("", "a")
    @example("a\n", "")
    @example("a", "a\n")
    @example("a\r\nb\r\n", "a\nb\n")
    @example("\n" * 20, "\n" * 19)
    def test_git_makes_the_same_bytes_of_it(self, tmp_path: Path, before: str, after: str) -> None:
        diff = unified_diff("conf/a.yaml", before, after)
        if before != after:
            assert git_apply(tmp_path, "conf/a.yaml", before, diff) == after.encode()

    @given(TEXTS, TEXTS)
    def test_it_is_empty_only_without_a_change(self, before: str, after: str) -> None:
        assert (unified_diff("a", before, after) == "") == (before == after)
