from __future__ import annotations

import inspect
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from cgmigrate.documents.syntax import Syntax, syntax_of
from cgmigrate.megatron.catalogue import load
from cgmigrate.project import discovery
from cgmigrate.project.buffer import Buffer
from cgmigrate.project.discovery import Discovery
from cgmigrate.project.inputs import MAX_BYTES, InputError, InputFile, TooLarge
from cgmigrate.project.seeds import seeds_of
from tests.support.tables import from_table

HIT = b"model:\n  enable_cuda_graph: true\n"
MISS = b"model:\n  hidden_size: 4096\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder; what git reads from the machine's own settings must not matter."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return tmp_path


def put(path: str, data: bytes = HIT) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    return file


def git(*arguments: str, folder: str = ".") -> None:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", *arguments]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)


def inputs(*paths: str, exclude: tuple[str, ...] = ()) -> list[InputFile | InputError | TooLarge]:
    return list(Discovery(paths or (".",), exclude=exclude))


def names(*paths: str, exclude: tuple[str, ...] = ()) -> list[str]:
    items = inputs(*paths, exclude=exclude)
    assert all(isinstance(item, InputFile) for item in items), items
    return [item.path for item in items]


def the_input_error(*paths: str) -> InputError:
    [input_error] = [item for item in inputs(*paths) if isinstance(item, InputError)]
    return input_error


SEEDS = seeds_of()


class TestTriggers:
    def test_the_words_are_the_names_and_flags_of_the_subjects(self) -> None:
        catalogue = load()
        names = [name for name, setting in catalogue.settings.items() if setting.subject]
        for name in names:
            assert SEEDS.in_file(name.encode()) and SEEDS.in_file(catalogue[name].flag.encode())
        assert {word.replace("-", "_") for word in SEEDS.words if "{" not in word and "}" not in word} - {
            "CudaGraphScope"
        } <= set(names)
        assert all(any(core in word for core in SEEDS.cores) for word in SEEDS.words)
        assert not SEEDS.in_file(b"check_for_nan_in_loss: true")

    def test_a_setting_of_a_team_is_a_word_for_the_files_of_its_configuration(self, tmp_path: Path) -> None:
        folder = tmp_path / "rules/settings"
        (folder / "surroundings").mkdir(parents=True)
        (folder / "shuffle_kernels.yaml").touch()
        (folder / "surroundings/beside_it.yaml").touch()
        seeds = seeds_of((str(tmp_path / "rules"),))
        assert seeds.in_file(b"shuffle_kernels: fast") and seeds.in_file(b"--shuffle-kernels fast")
        assert seeds.in_file(b"cuda_graph_scope: attn")
        assert not seeds.in_file(b"beside_it: 1")
        assert not SEEDS.in_file(b"shuffle_kernels: fast")

    @pytest.mark.parametrize("word", SEEDS.words)
    @pytest.mark.parametrize(
        "encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"]
    )
    def test_a_word_is_found_in_every_encoding_that_says_what_it_is(self, word: str, encoding: str) -> None:
        mark = "\ufeff" if encoding[-2:] in ("le", "be") else ""
        assert SEEDS.in_file(f"{mark}é: {word}\n".encode(encoding))
        assert not SEEDS.in_file(f"{mark}é: cuda Graph {word[:-1]}\n".encode(encoding))

    @from_table
    def test_names_that_hold_a_word_pass(self, text: str) -> None:
        assert SEEDS.in_file(text.encode())

    @pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"cuda", b"torch.cuda.CUDAGraph()", b"CudaGraphManager"])
    def test_other_talk_of_cuda_does_not(self, data: bytes) -> None:
        assert not SEEDS.in_file(data)


@pytest.mark.parametrize(
    ("name", "syntax"),
    [
        ("a.yaml", Syntax.YAML),
        ("deep/a.b.YML", Syntax.YAML),
        ("a.py", Syntax.PYTHON),
        ("a.pyi", Syntax.PYTHON),
        ("run.sh", Syntax.SHELL),
        ("run.bash", Syntax.SHELL),
        ("gpt.args", Syntax.SHELL),
        ("job.slurm", Syntax.SHELL),
        ("job.sbatch", Syntax.SHELL),
        ("job.sub", Syntax.SHELL),
        ("job.pbs", Syntax.SHELL),
        ("README.MD", Syntax.MARKDOWN),
        ("Dockerfile.md", Syntax.MARKDOWN),
        ("a.markdown", Syntax.MARKDOWN),
        ("a.mdx", Syntax.MARKDOWN),
        ("docs/a.rst", Syntax.RESTRUCTUREDTEXT),
        ("a.toml", None),
        ("a.json", None),
        ("Dockerfile", None),
        ("Makefile", None),
        ("run.zsh", None),
        ("yaml", None),
        (".yaml", None),
        ("conf.yaml/notes", None),
    ],
)
def test_syntax_of(name: str, syntax: Syntax | None) -> None:
    assert syntax_of(name) is syntax


SCRIPTS = {
    "sh": b"#!/bin/sh\n",
    "bash": b"#!/usr/bin/bash -e\n",
    "env": b"#!/usr/bin/env bash\n",
    "env with arguments": b"#! /usr/bin/env -S bash -eu\r\n",
    "dash": b"#!/bin/dash",
}
OTHERS = {
    "a program that begins like Python": b"#!/usr/bin/env pythonista\n",
    "make": b"#!/usr/bin/make -f\n",
    "ksh": b"#!/usr/local/bin/ksh93 -x\n",
    "zsh": b"#!/bin/zsh\n",
    "a program that ends like a shell": b"#!/usr/bin/fish\n",
    "no first line": b"\n#!/bin/sh\n",
    "text": b"cuda_graph_scope\n",
    "nothing": b"",
}


class TestScriptsWithoutSuffix:
    @pytest.mark.parametrize("first", SCRIPTS.values(), ids=SCRIPTS)
    def test_the_first_line_shows_a_script(self, first: bytes) -> None:
        data = first + b"\ntorchrun pretrain_gpt.py --enable-cuda-graph\n"
        put("bin/launch", data)
        assert inputs(".") == [InputFile("bin/launch", Syntax.SHELL, data)]
        assert inputs("bin/launch") == [InputFile("bin/launch", Syntax.SHELL, data)]
        buffer = Buffer("launch", data)
        assert list(buffer) == [InputFile("launch", Syntax.SHELL, data)]

    @pytest.mark.parametrize("first", [b"#!/usr/bin/env python3\n", b"#! /usr/bin/python3.12 -u\r\n"])
    def test_the_first_line_shows_python(self, first: bytes) -> None:
        data = first + b"import os\nos.environ['enable_cuda_graph']\n"
        put("bin/launch", data)
        assert inputs(".") == [InputFile("bin/launch", Syntax.PYTHON, data)]

    @pytest.mark.parametrize("first", OTHERS.values(), ids=OTHERS)
    def test_others_are_searched(self, first: bytes) -> None:
        data = first + HIT
        put("bin/launch", data)
        expected = [InputFile("bin/launch", Syntax.TEXT, data)]
        assert inputs(".") == inputs("bin/launch") == expected
        assert list(Buffer("bin/launch", data)) == expected

    def test_a_script_without_a_setting_is_listed_and_dropped(self) -> None:
        put("launch", b"#!/bin/sh\ntrue\n")
        discovered = Discovery(["."])
        assert list(discovered) == [] and discovered.files_seen == 1

    def test_a_name_with_a_dot_is_not_opened(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opened = []
        real = os.open
        put("a.txt", b"#!/bin/sh\n" + HIT)
        put(".profile", b"#!/bin/sh\n" + HIT)
        monkeypatch.setattr(os, "open", lambda path, *rest, **more: (opened.append(path), real(path, *rest, **more))[1])
        assert [item.syntax for item in inputs(".")] == [Syntax.TEXT, Syntax.TEXT]
        assert sorted(opened) == [".profile", ".profile", "a.txt", "a.txt"], "only the search opens them"

    def test_links_to_folders_and_to_nothing_are_passed_over(self) -> None:
        put("bin/launch", b"#!/bin/sh\n" + HIT)
        Path("here").symlink_to("bin")
        Path("latest").symlink_to("gone")
        Path("run").symlink_to("bin/launch")
        assert [item.path for item in inputs(".")] == ["bin/launch"]


class TestFiles:
    def test_a_file_with_a_word_comes_whole_and_one_without_does_not(self) -> None:
        put("b.yaml")
        put("a.py", b"x = 1\n")
        put("sub/c.md", b"`--cuda-graph-scope`\r\n")
        put("notes.txt")
        discovered = Discovery(["."])
        assert list(discovered) == [
            InputFile("b.yaml", Syntax.YAML, HIT),
            InputFile("notes.txt", Syntax.TEXT, HIT),
            InputFile("sub/c.md", Syntax.MARKDOWN, b"`--cuda-graph-scope`\r\n"),
        ]
        assert (discovered.files_listed, discovered.files_seen) == (4, 4)
        assert discovered.seed_counts == {
            Syntax.YAML: 1,
            Syntax.PYTHON: 0,
            Syntax.SHELL: 0,
            Syntax.MARKDOWN: 1,
            Syntax.RESTRUCTUREDTEXT: 0,
        }

    def test_counters_start_again_with_each_iteration(self) -> None:
        put("a.yaml")
        discovered = Discovery(["."])
        assert list(discovered) == list(discovered)
        assert (discovered.files_seen, discovered.seed_counts[Syntax.YAML]) == (1, 1)

    def test_an_empty_directory_holds_nothing(self) -> None:
        discovered = Discovery(["."])
        assert list(discovered) == []
        assert (discovered.files_listed, discovered.files_seen) == (0, 0)
        assert set(discovered.seed_counts.values()) == {0}

    def test_no_paths_at_all(self) -> None:
        assert list(Discovery([])) == []

    def test_order_is_by_path_whatever_the_order_given(self) -> None:
        for name in ("b/z.yaml", "b.yaml", "a.yaml", "b/a.yaml"):
            put(name)
        assert names("b", "b.yaml", "a.yaml") == ["a.yaml", "b.yaml", "b/a.yaml", "b/z.yaml"]

    def test_files_are_read_one_at_a_time(self) -> None:
        put("a.yaml")
        put("b.yaml")
        files = iter(Discovery(["."]))
        assert next(files).path == "a.yaml"
        put("b.yaml", HIT + b"# later\n")
        last = next(files)
        assert isinstance(last, InputFile)
        assert last.data == HIT + b"# later\n"

    def test_a_file_that_vanishes_before_it_is_read(self) -> None:
        put("a.yaml")
        put("b.yaml")
        files = iter(Discovery(["."]))
        next(files)
        Path("b.yaml").unlink()
        assert list(files) == [InputError("b.yaml", "disappeared while cgmigrate was running", missing=False)]

    def test_a_file_that_becomes_a_fifo_does_not_hang_the_run(self) -> None:
        put("a.yaml")
        put("b.yaml")
        files = iter(Discovery(["."]))
        next(files)
        Path("b.yaml").unlink()
        os.mkfifo("b.yaml")
        [input_error] = files
        assert isinstance(input_error, InputError)
        assert "stopped being a regular file" in input_error.reason

    def test_three_hundred_files_without_a_word_open_no_other_module(self) -> None:
        for number in range(300):
            put(f"d{number % 7}/{number}.yaml", MISS)
        code = (
            "import sys; from cgmigrate.project.discovery import Discovery; d = Discovery(['.']); assert not list(d);"
            "late = {'subprocess', 'cgmigrate.project.patterns', 'tempfile', 'difflib', 'yaml'};"
            "print(d.files_seen, late & {*sys.modules})"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONPATH": str(Path(discovery.__file__).parents[2])},
            capture_output=True,
            text=True,
        )
        assert (done.stdout, done.stderr) == ("300 set()\n", "")


class TestNamedPaths:
    def test_a_path_below_the_working_directory_is_shown_relative_to_it(self, folder: Path) -> None:
        put("sub/a.yaml")
        for spelling in (
            "sub/a.yaml",
            "./sub/a.yaml",
            "sub/../sub/a.yaml",
            str(folder / "sub/a.yaml"),
            "sub/",
            "sub",
        ):
            assert names(spelling) == ["sub/a.yaml"]
        assert names(str(folder)) == ["sub/a.yaml"]

    def test_a_path_elsewhere_is_shown_as_written(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        put("sub/a.yaml")
        put("inner/b.yaml")
        monkeypatch.chdir("inner")
        assert names("../sub") == ["../sub/a.yaml"]
        assert names(str(folder / "sub/a.yaml")) == [str(folder / "sub/a.yaml")]
        assert names("..") == ["../inner/b.yaml", "../sub/a.yaml"]

    def test_dots_behind_a_link_are_followed_as_the_system_does(self) -> None:
        put("far/away/inner/x.yaml", MISS)
        put("far/away/a.yaml")
        put("near/x.yaml", MISS)
        Path("near/link").symlink_to("../far/away/inner")
        [source] = inputs("near/link/../a.yaml")
        assert source.path == "far/away/a.yaml"

    def test_a_missing_path(self) -> None:
        assert inputs("nope.yaml") == [InputError("nope.yaml", "no such file or directory", missing=True)]

    def test_a_path_through_a_file(self) -> None:
        put("a.yaml")
        assert the_input_error("a.yaml/b.yaml") == InputError(
            "a.yaml/b.yaml", "no such file or directory", missing=True
        )

    def test_an_empty_path_is_not_the_working_directory(self) -> None:
        put("a.yaml")
        assert inputs("") == [InputError("", "no such file or directory", missing=True)]

    def test_a_kind_of_file_that_is_not_read(self) -> None:
        put("a.log")
        kinds = "YAML, Python, shell, Markdown, reStructuredText"
        reason = f"not a kind of file that cgmigrate reads ({kinds}) or searches"
        assert inputs("a.log") == [InputError("a.log", reason, missing=False)]

    def test_a_missing_path_does_not_stop_the_others(self) -> None:
        put("a.yaml")
        assert [item.path for item in inputs("z.yaml", "a.yaml")] == ["a.yaml", "z.yaml"]

    def test_the_same_file_named_twice_comes_once(self, folder: Path) -> None:
        put("a.yaml")
        assert names("a.yaml", ".", "./a.yaml", str(folder / "a.yaml")) == ["a.yaml"]

    def test_a_fifo_is_never_opened(self) -> None:
        os.mkfifo("pipe.yaml")
        assert inputs(".") == []
        assert the_input_error("pipe.yaml") == InputError(
            "pipe.yaml", "not a regular file, so cgmigrate does not open it", missing=True
        )

    def test_a_device_is_never_opened(self) -> None:
        assert the_input_error("/dev/zero").reason == "not a regular file, so cgmigrate does not open it"

    def test_a_file_name_that_is_not_utf8(self) -> None:
        name = os.fsdecode(b"\xff.yaml")
        put(name)
        assert names(".") == [name]
        git("init")
        assert names(".") == [name]


class TestSymbolicLinks:
    def test_a_link_to_a_file_outside_is_followed(self) -> None:
        put("outside/real.yaml")
        Path("in").mkdir()
        Path("in/link.yaml").symlink_to("../outside/real.yaml")
        assert inputs("in") == [InputFile("in/link.yaml", Syntax.YAML, HIT)]

    def test_a_real_name_comes_before_a_link_to_it(self) -> None:
        put("z.yaml")
        Path("a.yaml").symlink_to("z.yaml")
        assert names(".") == ["z.yaml"]
        assert names("a.yaml", "z.yaml") == ["z.yaml"]
        assert names("a.yaml") == ["a.yaml"]

    def test_hard_links_are_one_file_under_the_first_name(self) -> None:
        put("b.yaml")
        os.link("b.yaml", "a.yaml")
        assert names(".") == ["a.yaml"]

    def test_a_link_to_a_directory_is_followed_only_when_named(self) -> None:
        put("real/a.yaml")
        Path("tree").mkdir()
        Path("tree/link").symlink_to("../real")
        assert names("tree") == []
        assert names("tree/link") == ["tree/link/a.yaml"]

    def test_a_directory_that_links_to_itself_ends(self) -> None:
        put("tree/a.yaml")
        Path("tree/again").symlink_to(".")
        assert names("tree") == ["tree/a.yaml"]

    def test_a_broken_link_that_would_be_read(self) -> None:
        Path("a.yaml").symlink_to("gone.yaml")
        Path("b.txt").symlink_to("gone.txt")
        reason = "a symbolic link whose target does not exist"
        assert inputs(".") == [InputError("a.yaml", reason, missing=False)]
        assert inputs("a.yaml") == [InputError("a.yaml", reason, missing=True)]
        assert inputs("b.txt") == [InputError("b.txt", reason, missing=True)]

    def test_a_looping_link(self) -> None:
        Path("a.yaml").symlink_to("b.yaml")
        Path("b.yaml").symlink_to("a.yaml")
        reason = "a symbolic link that leads back to itself"
        assert inputs(".") == [InputError("a.yaml", reason, False), InputError("b.yaml", reason, False)]
        assert inputs("a.yaml") == [InputError("a.yaml", reason, missing=True)]


class TestExclusion:
    @pytest.mark.parametrize(
        "pattern", ["vendor/", "vendor", "/vendor/", "*.yaml", "vendor/**/a.yaml", "a.yaml", "vendor/x/a.yaml"]
    )
    def test_a_pattern_holds_for_directories_and_for_named_files(self, pattern: str) -> None:
        put("vendor/x/a.yaml")
        put("kept.py", b"enable_cuda_graph = True\n")
        assert names(".", "vendor/x/a.yaml", "vendor", exclude=(pattern,)) == ["kept.py"]

    def test_in_a_git_checkout_too(self) -> None:
        git("init")
        put("vendor/a.yaml")
        put("kept.yaml")
        assert names(".", exclude=("vendor/",)) == ["kept.yaml"]
        assert names(".", exclude=("/kept.yaml",)) == ["vendor/a.yaml"]

    def test_a_pattern_can_take_back_a_file_but_not_out_of_an_excluded_folder(self) -> None:
        put("a.yaml")
        put("keep.yaml")
        put("out/keep.yaml")
        assert names(".", "out/keep.yaml", exclude=("*.yaml", "out/", "!keep.yaml")) == ["keep.yaml"]

    def test_outside_the_working_directory_the_given_name_is_matched(self, monkeypatch: pytest.MonkeyPatch) -> None:
        put("other/vendor/a.yaml")
        put("other/b.yaml")
        Path("work").mkdir()
        monkeypatch.chdir("work")
        assert names("../other", exclude=("vendor/",)) == ["../other/b.yaml"]
        assert names("../other", exclude=(".*",)) == ["../other/b.yaml", "../other/vendor/a.yaml"]

    def test_a_pattern_that_is_not_valid(self) -> None:
        with pytest.raises(ValueError, match="!"):
            inputs(".", exclude=("!",))


class TestWalk:
    def test_other_peoples_code_is_not_entered(self) -> None:
        put("a.yaml")
        for folder in ("node_modules", ".venv", "lib/site-packages", "__pycache__", ".git-not", ".hg"):
            put(f"{folder}/b.yaml")
        assert names(".") == [".git-not/b.yaml", "a.yaml"]
        assert names(".venv") == [".venv/b.yaml"]

    def test_ignore_files_are_honoured_each_from_its_own_folder(self) -> None:
        put(".gitignore", b"*.gen.yaml\r\n/only-here.yaml\nout/\n")
        put("sub/.gitignore", b"!back.gen.yaml\n")
        put("sub/.ignore", b"big.yaml\n")
        for name in ("a.gen.yaml", "only-here.yaml", "out/a.yaml", "big.yaml"):
            put(name)
            put("sub/" + name)
        put("sub/back.gen.yaml")
        assert names(".") == ["big.yaml", "sub/back.gen.yaml", "sub/only-here.yaml"]

    def test_an_ignore_file_with_meaningless_lines_still_counts(self) -> None:
        put(".gitignore", "\ufeff!\n\\\n# a comment\n\nb.yaml\n".encode() + b"\xff.yaml\n")
        put("a.yaml")
        put("b.yaml")
        put(os.fsdecode(b"\xff.yaml"))
        assert names(".") == ["a.yaml"]

    def test_an_ignore_file_that_cannot_be_read_is_passed_over(self) -> None:
        Path(".gitignore").symlink_to("gone")
        put("a.yaml")
        assert names(".") == ["a.yaml"]

    def test_the_walk_agrees_with_git(self) -> None:
        put(".gitignore", b"*\n!*/\n!*.yaml\n/top/*\n!/top/keep\nlog[0-9].yaml\n**/deep/x.yaml\nsp\\ ace.yaml\n")
        put("sub/.gitignore", b"/a.yaml\n!log1.yaml\nfoo/*\n!foo/in/\n")
        for folder in ("", "top/", "top/keep/", "sub/", "sub/foo/", "sub/foo/in/", "sub/deep/", "deep/y/"):
            for name in ("a.yaml", "log1.yaml", "x.yaml", "sp ace.yaml", "no.py"):
                put(folder + name)
        walked = names(".")
        git("init")
        assert names(".") == walked
        assert "top/keep/a.yaml" in walked
        assert "top/a.yaml" not in walked

    def test_a_tree_deeper_than_python_recurses(self) -> None:
        # A tree of a thousand levels would do too, but pytest could not remove it.
        folder = "/".join(["d"] * 300)
        put(f"{folder}/a.yaml")
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(len(inspect.stack()) + 100)
        try:
            assert names() == [f"{folder}/a.yaml"]
        finally:
            sys.setrecursionlimit(limit)

    def test_an_unreadable_directory_is_an_input_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        put("a.yaml")
        put("locked/b.yaml")
        put("open/c.yaml")
        scandir = os.scandir

        def refuse(path: str) -> object:
            if path == "locked":
                raise PermissionError(13, "Permission denied", path)
            return scandir(path)

        monkeypatch.setattr(os, "scandir", refuse)
        assert inputs(".") == [
            InputFile("a.yaml", Syntax.YAML, HIT),
            InputError("locked", "cannot be read: Permission denied", missing=True),
            InputFile("open/c.yaml", Syntax.YAML, HIT),
        ]

    def test_an_unreadable_file_is_an_input_error(self, monkeypatch: pytest.MonkeyPatch) -> None:
        put("a.yaml")
        put("b.yaml")
        real_open = os.open

        def refuse(path: str, *rest: int, **named: int) -> int:
            if path == "a.yaml":
                raise PermissionError(13, "Permission denied", path)
            return real_open(path, *rest, **named)

        monkeypatch.setattr(os, "open", refuse)
        assert inputs(".") == [
            InputError("a.yaml", "cannot be read: Permission denied", missing=True),
            InputFile("b.yaml", Syntax.YAML, HIT),
        ]


@pytest.mark.skipif(not hasattr(os, "fork") or os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("in_git", [False, True])
def test_real_permissions_as_another_user(folder: Path, in_git: bool) -> None:
    if in_git:
        git("init")
    put("a.yaml")
    put("secret.yaml").chmod(0)
    put("locked/b.yaml")
    put("tracked/c.yaml")
    if in_git:
        git("add", "tracked")
    Path("locked").chmod(0)
    Path("tracked").chmod(0)
    for parent in (folder, *folder.parents[:-2]):
        parent.chmod(parent.stat().st_mode | 0o055)
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            # git does not read another user's checkout unless its configuration allows that.
            os.environ |= {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
            }
            os.setgid(65534)
            os.setuid(65534)
            lines = "\n".join(f"{type(item).__name__} {item.path} {getattr(item, 'missing', '')}" for item in inputs())
            os.write(write_end, lines.encode())
        finally:
            os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        lines = pipe.read().splitlines()
    os.waitpid(child, 0)
    # git names no folder of its own accord, only the checkout around what it could not read.
    unread = (
        ["InputError . True", "InputError tracked/c.yaml True"]
        if in_git
        else ["InputError locked True", "InputError tracked True"]
    )
    assert sorted(lines) == sorted(["InputFile a.yaml ", "InputError secret.yaml True", *unread])


class TestGit:
    def test_what_git_tracks_or_would_track(self) -> None:
        git("init")
        put(".gitignore", b"ignored*\n")
        for name in ("tracked.yaml", "new.yaml", "ignored.yaml", "ignored-but-tracked.yaml", "gone.yaml"):
            put(name)
        git("add", "tracked.yaml", "gone.yaml")
        git("add", "--force", "ignored-but-tracked.yaml")
        Path("gone.yaml").unlink()
        assert names(".") == ["ignored-but-tracked.yaml", "new.yaml", "tracked.yaml"]

    def test_below_the_top_of_the_checkout(self, monkeypatch: pytest.MonkeyPatch) -> None:
        git("init")
        put(".gitignore", b"/sub/no.yaml\n")
        put("a.yaml")
        put("sub/b.yaml")
        put("sub/no.yaml")
        assert names("sub") == ["sub/b.yaml"]
        monkeypatch.chdir("sub")
        assert names() == ["b.yaml"]

    def test_a_directory_or_file_that_git_ignores_is_looked_at_when_named(self) -> None:
        git("init")
        put(".gitignore", b"/out/\n")
        put("out/a.yaml")
        assert names() == []
        assert names("out") == ["out/a.yaml"]
        assert names("out/a.yaml") == ["out/a.yaml"]

    def test_other_peoples_code_is_not_entered_unless_tracked_or_named(self) -> None:
        git("init")
        put(".venv/lib/site-packages/megatron/a.yaml")
        put("node_modules/ours/b.yaml")
        git("add", "node_modules")
        assert names() == ["node_modules/ours/b.yaml"]
        assert names(".venv/lib") == []
        assert names(".venv/lib/site-packages/megatron") == [".venv/lib/site-packages/megatron/a.yaml"]

    def test_during_a_merge_conflict_a_file_comes_once(self) -> None:
        git("init", "--initial-branch=main")
        put("a.yaml", HIT)
        git("add", ".")
        git("commit", "--message=a")
        git("checkout", "-b", "other")
        put("a.yaml", HIT + b"b: 1\n")
        git("commit", "--all", "--message=b")
        git("checkout", "main")
        put("a.yaml", HIT + b"c: 1\n")
        git("commit", "--all", "--message=c")
        with pytest.raises(subprocess.CalledProcessError):
            git("merge", "other")
        assert names() == ["a.yaml"]

    def test_a_submodule_is_another_project(self, monkeypatch: pytest.MonkeyPatch) -> None:
        put("library/.gitignore", b"scratch.yaml\n")
        put("library/a.yaml")
        git("init", folder="library")
        git("add", ".", folder="library")
        git("commit", "--message=a", folder="library")
        Path("project").mkdir()
        git("init", folder="project")
        git("submodule", "add", "../library", "third/library.yaml", folder="project")
        put("project/third/library.yaml/scratch.yaml")
        put("project/b.yaml")
        assert names("project") == ["project/b.yaml"]
        discovery = Discovery(["project"])
        discovery.names()
        assert discovery.submodules == ["project/third/library.yaml"]
        assert names("project/third/library.yaml") == ["project/third/library.yaml/a.yaml"]
        assert names("project/third/library.yaml/a.yaml") == ["project/third/library.yaml/a.yaml"]
        with monkeypatch.context() as without_git:
            without_git.setenv("PATH", "")
            assert names("project") == ["project/b.yaml"]
            assert names("project/third/library.yaml") == [
                "project/third/library.yaml/a.yaml",
            ]
        git("commit", "--all", "--message=b", folder="project")
        git("clone", "project", "fresh")
        assert Path("fresh/third/library.yaml").is_dir()
        assert names("fresh") == []

    def test_an_untracked_clone_inside_a_checkout(self) -> None:
        git("init")
        put("clone/.gitignore", b"no.yaml\n")
        put("clone/a.yaml")
        put("clone/no.yaml")
        git("init", folder="clone")
        assert names() == ["clone/a.yaml"]
        assert names(exclude=("clone/",)) == []

    def test_links_and_fifos_in_a_checkout(self) -> None:
        git("init")
        put("real/a.yaml")
        Path("again").symlink_to("real")
        Path("link.yaml").symlink_to("real/a.yaml")
        Path("broken.yaml").symlink_to("gone")
        git("add", ".")
        os.mkfifo("pipe.yaml")
        assert [(type(item), item.path) for item in inputs()] == [
            (InputError, "broken.yaml"),
            (InputFile, "real/a.yaml"),
        ]

    def test_names_that_git_would_quote(self) -> None:
        git("init")
        for name in ('qu"ote.yaml', "tab\there.yaml", "new\nline.yaml", "ünï.yaml", "- dash.yaml"):
            put(name)
        assert names() == sorted(['qu"ote.yaml', "tab\there.yaml", "new\nline.yaml", "ünï.yaml", "- dash.yaml"])

    def test_in_a_hook_of_another_repository(self, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
        put("hooked/other.yaml")
        git("init", folder="hooked")
        put("mine/.gitignore", b"no.yaml\n")
        put("mine/a.yaml")
        put("mine/no.yaml")
        git("init", folder="mine")
        monkeypatch.setenv("GIT_DIR", str(folder / "hooked/.git"))
        monkeypatch.setenv("GIT_WORK_TREE", str(folder / "hooked"))
        monkeypatch.setenv("GIT_INDEX_FILE", str(folder / "hooked/.git/index"))
        assert names("mine") == ["mine/a.yaml"]

    @pytest.mark.parametrize("why", ["missing", "failing"])
    def test_without_a_git_that_answers_the_walk_takes_over(
        self, why: str, monkeypatch: pytest.MonkeyPatch, folder: Path
    ) -> None:
        git("init")
        put(".gitignore", b"no.yaml\n")
        put("a.yaml")
        put("no.yaml")
        put("bin/nothing", b"")
        if why == "failing":
            put("bin/git", b"#!/bin/sh\necho 'fatal: detected dubious ownership' >&2\nexit 128\n").chmod(0o755)
        monkeypatch.setenv("PATH", str(folder / "bin"))
        assert names() == ["a.yaml"]

    def test_a_git_folder_that_is_not_one(self) -> None:
        Path(".git").mkdir()
        put(".git/config.yaml")
        put("a.yaml")
        assert names() == ["a.yaml"]


class TestLargeFiles:
    def test_up_to_the_limit_a_file_is_a_source(self) -> None:
        put("a.yaml", HIT.ljust(MAX_BYTES, b"#"))
        [source] = inputs()
        assert isinstance(source, InputFile)
        assert len(source.data) == MAX_BYTES

    def test_over_it_only_its_size_is_returned(self) -> None:
        put("a.yaml", HIT.ljust(MAX_BYTES + 1, b"#"))
        put("b.yaml", MISS.ljust(MAX_BYTES + 1, b"#"))
        discovered = Discovery(["."])
        assert list(discovered) == [TooLarge("a.yaml", MAX_BYTES + 1)]
        assert (discovered.files_seen, discovered.seed_counts[Syntax.YAML]) == (2, 1)

    @pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-32-be"])
    @pytest.mark.parametrize("piece", [0, 1])
    def test_a_word_across_the_border_of_two_pieces_is_found(self, encoding: str, piece: int) -> None:
        mark = "\ufeff".encode(encoding) if encoding != "utf-8" else b""
        word = "enable_cuda_graph".encode(encoding)
        blank = "#".encode(encoding)
        border = MAX_BYTES + 1 + piece * discovery._PIECE
        for part in (0, 1, len("enable"), len("enable_cuda_graph") - 1, len("enable_cuda_graph")):
            filling = (border - len(mark)) // len(blank) - part
            put("a.yaml", mark + blank * filling + word + blank)
            assert [type(item) for item in inputs()] == [TooLarge], part
            put("a.yaml", mark + blank * filling + word[: -len(blank)] + blank)
            assert inputs() == [], part

    def test_fifty_megabytes_are_not_kept_in_memory(self) -> None:
        with put("a.yaml", b"").open("wb") as file:
            file.truncate(50_000_000)
            file.seek(0, os.SEEK_END)
            file.write(HIT)
        tracemalloc.start()
        try:
            assert inputs() == [TooLarge("a.yaml", 50_000_000 + len(HIT))]
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 3 * MAX_BYTES


def test_the_settings_of_a_team_are_not_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cgmigrate) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.cgmigrate]\nextend-rules = ["rules"]\n')
    (tmp_path / "rules/settings/surroundings").mkdir(parents=True)
    entry = "summary: A setting of ours\nkind: text\nowner: a.B\nsources: [enable_cuda_graph]\n"
    (tmp_path / "rules/settings/ours.yaml").write_text(entry)
    (tmp_path / "rules/settings/surroundings/others.yaml").write_text(entry)
    assert cgmigrate("check", "--show-files", ".").stdout == ""
