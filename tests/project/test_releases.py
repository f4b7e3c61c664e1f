from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.specifiers import SpecifierSet

from cgmigrate.cli.commands import main
from cgmigrate.megatron.releases import ACCEPTED, KNOWN, NEWEST, OLDEST, UPSTREAM, Release
from cgmigrate.megatron.versions import KNOWN_RANGE, ReleaseError, parse_release
from cgmigrate.project.pins.files import Pin
from cgmigrate.project.pins.folders import read_folder
from cgmigrate.project.pins.resolution import Resolution, resolve
from tests.support.files import write
from tests.support.pins import find_pin, summary
from tests.support.tables import from_table

LATER = Release(UPSTREAM.major, UPSTREAM.minor + 1)
"""A release that is not known yet."""
MINORS = {str(release): release for release in KNOWN}


# ---- parse_release ----


@from_table
def test_versions_and_tags_name_a_minor_release(text: str, minor: int) -> None:
    assert parse_release(text) == Release(0, minor)


@pytest.mark.parametrize(
    "text", ["", "0", "17", "abc", "0.x", "0.17.", "0.17,0.18", ">=0.17", "٠.١٧", "0." + "1" * 5000]
)
def test_what_is_no_version_is_refused_with_what_is_known(text: str) -> None:
    with pytest.raises(ReleaseError, match=f"is not a megatron-core release.*{re.escape(KNOWN_RANGE)}"):
        parse_release(text)


def test_releases_outside_the_known_range_are_refused() -> None:
    with pytest.raises(ReleaseError, match=re.escape(f"0.11 is older than what is known ({KNOWN_RANGE})")):
        parse_release("0.11.0")
    read_like = f"{LATER} is not known yet; give {UPSTREAM}, which is read like {NEWEST}, if {LATER} "
    with pytest.raises(ReleaseError, match=re.escape(read_like)):
        parse_release(f"{LATER}.0rc0")
    with pytest.raises(ReleaseError, match="not known yet"):
        parse_release("1.0")


def test_the_release_of_the_main_branch_is_accepted() -> None:
    assert parse_release(f"{UPSTREAM}") == parse_release(f"{UPSTREAM}.0rc0") == UPSTREAM


# ---- requirements ----


@from_table
def test_requirements_pin(project: Path, text: str, expected: str) -> None:
    write(project / "requirements.txt", text)
    pin, notes = find_pin(project)
    assert summary(pin) == f"requirements.txt:{expected}"
    assert notes == ()


@from_table
def test_requirements_that_say_nothing_are_passed_over(project: Path, text: str) -> None:
    write(project / "requirements.txt", text)
    assert find_pin(project) == (None, ())


@from_table
def test_the_main_branch_counts_where_nothing_published_is_admitted(project: Path, text: str, expected: str) -> None:
    text, expected = (part.format(newest=NEWEST, main=UPSTREAM, later=LATER) for part in (text, expected))
    write(project / "requirements.txt", text)
    pin, notes = find_pin(project)
    assert (summary(pin), notes) == (f"requirements.txt:{expected}", ())


@from_table
def test_a_pin_outside_of_what_is_known_says_what_is_assumed(project: Path, text: str, how: str) -> None:
    counted, like = (UPSTREAM, NEWEST) if how == "newer" else (OLDEST, OLDEST)
    write(project / "requirements.txt", text)
    pin, notes = find_pin(project)
    assert summary(pin) == f"requirements.txt:1 {text} [{counted}, {counted}]"
    note = f"requirements.txt:1: {text} is {how} than the known releases ({KNOWN_RANGE}): "
    assert notes == (f"{note}assuming that it reads these settings like {like}",)


def test_nothing_is_migrated_where_the_pin_is_older_than_what_is_known(project: Path) -> None:
    write(project / "requirements.txt", "megatron-core==0.11.0\n")
    recipe = write(project / "recipe.yaml", "model:\n  enable_cuda_graph: true\n")
    assert resolve(project, None, None).target == OLDEST
    result = CliRunner().invoke(main, ["fix", "--unsafe-fixes", str(recipe)])
    assert recipe.read_text() == "model:\n  enable_cuda_graph: true\n", result.output


@pytest.mark.parametrize("text", ["megatron-core>0.90,<0.90", "megatron-core<0.10,>0.18"])
def test_a_pin_that_admits_no_release_is_a_note(project: Path, text: str) -> None:
    write(project / "requirements.txt", f"torch\n{text}\n")
    note = f"requirements.txt:2: {text} admits no known release ({KNOWN_RANGE}); it is ignored"
    assert find_pin(project) == (None, (note,))


def test_requirements_that_disagree_leave_the_first_and_a_note(project: Path) -> None:
    write(project / "requirements.txt", "megatron-core==0.15.0\nmegatron-core==0.17.1\n")
    pin, notes = find_pin(project)
    assert summary(pin) == "requirements.txt:1 megatron-core==0.15.0 [0.15, 0.15]"
    assert notes == (
        "requirements.txt:1: megatron-core==0.15.0 and megatron-core==0.17.1 (line 2) disagree; the first is used",
    )


@pytest.mark.parametrize(
    "name", ["requirements.txt", "requirements-dev.txt", "requirements/gpu.txt", "constraints-ci.txt"]
)
def test_every_requirements_file_counts(project: Path, name: str) -> None:
    path = write(project / name, "megatron-core==0.17.1\n")
    assert find_pin(project) == (
        Pin(path.resolve(), 1, "megatron-core==0.17.1", Release(0, 17), Release(0, 17), frozenset({Release(0, 17)})),
        (),
    )


# ---- pyproject.toml ----


@from_table
def test_pyproject_pins(project: Path, text: str, expected: str) -> None:
    write(project / "pyproject.toml", text)
    pin, notes = find_pin(project)
    assert summary(pin) == f"pyproject.toml:{expected}"
    assert notes == ()


@from_table
def test_poetry_constraints(project: Path, constraint: str, oldest: str, newest: str) -> None:
    write(project / "pyproject.toml", f'[tool.poetry.dependencies]\nmegatron-core = "{constraint}"\n')
    pin, _ = find_pin(project)
    assert pin is not None
    assert (pin.oldest, pin.newest) == (MINORS[oldest], MINORS[newest])


@pytest.mark.parametrize("value", ['"*"', '{path = "3rdparty/Megatron-LM"}', "{workspace = true}", "3", "[]"])
def test_poetry_dependencies_that_say_nothing(project: Path, value: str) -> None:
    write(project / "pyproject.toml", f"[tool.poetry.dependencies]\nmegatron-core = {value}\n")
    assert find_pin(project) == (None, ())


def test_an_override_wins_over_the_dependency_that_it_contradicts(project: Path) -> None:
    write(
        project / "pyproject.toml",
        '[project]\ndependencies = ["megatron-core==0.15.0"]\n'
        '[tool.uv]\noverride-dependencies = ["megatron-core==0.17.1"]\n',
    )
    pin, notes = find_pin(project)
    assert summary(pin) == "pyproject.toml:4 megatron-core==0.17.1 [0.17, 0.17]"
    assert len(notes) == 1


# ---- lock files, vendored copies, setup.cfg ----

UV_LOCK = """\
version = 1
requires-python = ">=3.12"

[[package]]
name = "app"
version = "0.13.0"
dependencies = [
    { name = "megatron-core" },
]

[[package]]
name = "megatron-core"
version = "0.17.1"
source = { registry = "https://pypi.org/simple" }

[[package]]
name = "torch"
version = "2.6.0"
"""
POETRY_LOCK = """\
# This file is automatically @generated by Poetry 2.1.1.

[[package]]
name = "megatron_core"
version = "0.16.0"
optional = false

[package.dependencies]
torch = "*"

[metadata]
lock-version = "2.1"
"""
PACKAGE_INFO = """\
# Copyright (c) 2025, NVIDIA CORPORATION. All rights reserved.


MAJOR = 0
MINOR = 15
PATCH = 2
PRE_RELEASE = ''

__package_name__ = 'megatron_core'
"""
SETUP_CFG = """\
[metadata]
name = app

[options]
install_requires =
    torch
    megatron-core>=0.14,<0.16

[options.extras_require]
dev =
    pytest
    # megatron-core==0.13.0
    megatron-core==0.14.1  # for now
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("uv.lock", UV_LOCK, "uv.lock:13 megatron-core==0.17.1 [0.17, 0.17]"),
        ("uv.lock", UV_LOCK.replace("\n", "\r\n"), "uv.lock:13 megatron-core==0.17.1 [0.17, 0.17]"),
        ("poetry.lock", POETRY_LOCK, "poetry.lock:5 megatron-core==0.16.0 [0.16, 0.16]"),
        (
            "megatron/core/package_info.py",
            PACKAGE_INFO,
            "package_info.py:5 megatron-core==0.15.2 [0.15, 0.15]",
        ),
        (
            "3rdparty/Megatron-LM/megatron/core/package_info.py",
            PACKAGE_INFO,
            "package_info.py:5 megatron-core==0.15.2 [0.15, 0.15]",
        ),
        (
            "Megatron-LM/megatron/core/package_info.py",
            "MAJOR: int = 0\nMINOR: int = 18\n",
            "package_info.py:2 megatron-core==0.18 [0.18, 0.18]",
        ),
        (
            "megatron_core.egg-info/PKG-INFO",
            "Metadata-Version: 2.4\nName: megatron-core\nVersion: 0.15.0rc5\n",
            "PKG-INFO:3 megatron-core==0.15.0rc5, which has the settings of 0.14 [0.14, 0.14]",
        ),
        ("setup.cfg", SETUP_CFG, "setup.cfg:7 megatron-core>=0.14,<0.16 [0.14, 0.15]"),
        (
            "setup.cfg",
            "[options]\ninstall_requires = torch; megatron-core==0.16.1\n",
            "setup.cfg:2 megatron-core==0.16.1 [0.16, 0.16]",
        ),
        ("pyproject.toml", b'\xef\xbb\xbf[project]\r\ndependencies = ["megatron-core==0.16"]\r\n', None),
        (
            "requirements.txt",
            b"# caf\xe9\nmegatron-core==0.16",
            "requirements.txt:2 megatron-core==0.16 [0.16, 0.16]",
        ),
    ],
)
def test_other_pin_files(project: Path, name: str, text: str | bytes, expected: str | None) -> None:
    write(project / name, text)
    pin, notes = find_pin(project)
    assert summary(pin) == (expected or "pyproject.toml:2 megatron-core==0.16 [0.16, 0.16]")
    assert notes == ()


def test_a_lock_file_without_a_version_leaves_it_to_the_vendored_copy(project: Path) -> None:
    write(project / "uv.lock", UV_LOCK.replace('version = "0.17.1"\n', ""))
    write(project / "megatron/core/package_info.py", PACKAGE_INFO)
    pin, notes = find_pin(project)
    assert summary(pin) == "package_info.py:5 megatron-core==0.15.2 [0.15, 0.15]"
    assert notes == ()


def test_a_vendored_copy_is_not_executed(project: Path) -> None:
    write(project / "megatron/core/package_info.py", "raise SystemExit\n" + PACKAGE_INFO)
    assert find_pin(project)[0] is not None


@from_table
def test_malformed_files_are_noted_and_the_next_one_is_used(project: Path, name: str, text: str, note: str) -> None:
    write(project / name, text)
    fallback = "constraints.txt"
    write(project / fallback, "megatron-core==0.16.1\n")
    pin, notes = find_pin(project)
    assert summary(pin) == "constraints.txt:1 megatron-core==0.16.1 [0.16, 0.16]"
    (only,) = notes
    assert re.fullmatch(note, only), only


def test_what_is_written_counts_before_the_metadata_of_an_old_build(project: Path) -> None:
    write(project / "megatron_core.egg-info/PKG-INFO", "Name: megatron-core\nVersion: 0.14.0\n")
    write(project / "requirements.txt", "megatron-core==0.19.2\n")
    pin, _ = find_pin(project)
    assert summary(pin) == "requirements.txt:1 megatron-core==0.19.2 [0.19, 0.19]"


@pytest.mark.parametrize("text", ["Name: megatron-core\n", "Name: other\nVersion: 0.14.0\n", "\n\nVersion: 0.14.0\n"])
def test_metadata_without_a_version_of_megatron_core_are_noted(project: Path, text: str) -> None:
    write(project / "megatron_core.egg-info/PKG-INFO", text + "\nmegatron text\n")
    pin, (note,) = find_pin(project)
    assert pin is None
    assert "it has no version of megatron-core" in note


def test_of_several_metadata_the_newest_count(project: Path) -> None:
    for version in ("0.19.2", "0.14.0"):
        text = f"Name: megatron_core\nVersion: {version}\n"
        write(project / f"megatron_core-{version}.dist-info/METADATA", text)
    pin, _ = find_pin(project)
    assert summary(pin) == "METADATA:2 megatron-core==0.19.2 [0.19, 0.19]"


def test_a_file_that_cannot_be_read_is_noted(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project / "requirements.txt", "megatron-core==0.17")

    def refuse(path: str | os.PathLike[str], limit: int = 0) -> bytes:
        raise PermissionError(13, "Permission denied", os.fspath(path))

    monkeypatch.setattr("cgmigrate.project.pins.files.read_bytes", refuse)
    note = "requirements.txt: cannot be read (Permission denied); its pin is not used"
    assert find_pin(project) == (None, (note,))


@from_table
def test_values_of_unexpected_types_are_passed_over(project: Path, text: str) -> None:
    write(project / "pyproject.toml", text)
    assert find_pin(project) == (None, ())


# ---- which folder, which file ----


def test_the_nearest_folder_with_a_pin_wins(project: Path) -> None:
    write(project / "uv.lock", UV_LOCK)
    write(project / "examples/moe/requirements.txt", "megatron-core==0.15.0\n")
    (project / "examples/moe/conf/deep").mkdir(parents=True)
    assert summary(find_pin(project / "examples/moe/conf/deep")[0]).startswith("requirements.txt:1 ")
    assert summary(find_pin(project / "examples")[0]).startswith("uv.lock:13 ")


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_the_search_ends_at_the_checkout(project: Path, kind: str) -> None:
    write(project / "requirements.txt", "megatron-core==0.17.1\n")
    inner = project / "vendored"
    (inner / "src").mkdir(parents=True)
    if kind == "folder":
        (inner / ".git").mkdir()
    else:
        write(inner / ".git", "gitdir: ../.git/modules/vendored\n")
    assert find_pin(inner / "src") == (None, ())


def test_the_checkout_itself_is_searched(project: Path) -> None:
    write(project / "requirements.txt", "megatron-core==0.17.1\n")
    (project / "src").mkdir()
    assert find_pin(project / "src")[0] == find_pin(project)[0] is not None


def test_files_of_one_folder_in_order_of_precedence(project: Path) -> None:
    order = {
        "uv.lock": UV_LOCK,
        "poetry.lock": POETRY_LOCK,
        "megatron/core/package_info.py": PACKAGE_INFO,
        "3rdparty/Megatron-LM/megatron/core/package_info.py": PACKAGE_INFO,
        "Megatron-LM/megatron/core/package_info.py": PACKAGE_INFO,
        "pyproject.toml": '[project]\ndependencies = ["megatron-core==0.16"]',
        "setup.cfg": SETUP_CFG,
        "requirements.txt": "megatron-core==0.17",
        "requirements-dev.txt": "megatron-core==0.17",
        "requirements/base.txt": "megatron-core==0.17",
        "constraints.txt": "megatron-core==0.17",
    }
    for name, text in order.items():
        write(project / name, text)
    for name in order:
        read_folder.cache_clear()
        pin, _ = find_pin(project)
        assert pin is not None
        assert pin.path == (project / name).resolve()
        pin.path.unlink()


def test_a_pin_that_is_ignored_does_not_end_the_search(project: Path) -> None:
    write(project / "requirements.txt", "megatron-core==0.17.1\n")
    write(project / "sub/requirements.txt", "megatron-core>0.90,<0.90\n")
    pin, notes = find_pin(project / "sub")
    assert summary(pin) == "requirements.txt:1 megatron-core==0.17.1 [0.17, 0.17]"
    assert [note.split(":")[0] for note in notes] == ["sub/requirements.txt"]


def test_each_folder_is_read_once(project: Path) -> None:
    path = write(project / "requirements.txt", "megatron-core==0.17.1\n")
    for name in "abc":
        (project / name).mkdir()
    first = find_pin(project / "a")
    path.unlink()
    assert find_pin(project / "b") == find_pin(project / "c") == first
    assert first[0] is not None


@pytest.mark.parametrize("name", ["uv.lock", "pyproject.toml", "requirements.txt", "requirements"])
def test_folders_named_like_pin_files_and_missing_folders_are_no_error(project: Path, name: str) -> None:
    (project / name).mkdir()
    assert find_pin(project) == find_pin(project / "missing") == (None, ())


def test_files_without_megatron_are_never_parsed(project: Path) -> None:
    write(project / "pyproject.toml", "not toml at all")
    write(project / "requirements.txt", "torch")
    code = (
        "import sys; from pathlib import Path; from cgmigrate.project.pins.search import find_pin;"
        "print(tuple(find_pin(Path(sys.argv[1]))), sorted({'tomllib', 'tomli', 'packaging'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(project)], capture_output=True, text=True, check=True)
    assert done.stdout == "(None, None, ()) []\n"


# ---- resolve ----


@from_table
def test_resolve(
    project: Path,
    spec: str,
    source_option: str | None,
    target_option: str | None,
    expected: str,
    note: str | None,
) -> None:
    text = f"megatron-core{spec}"
    write(project / "requirements.txt", text)
    source = parse_release(source_option) if source_option else None
    target = parse_release(target_option) if target_option else None
    resolution = resolve(project, source, target)
    pin = find_pin(project)[0]
    pinned = f"requirements.txt:1 ({text})"
    words = [
        f"{release} ({'pin' if origin == pinned else origin})"
        for release, origin in [
            (resolution.source, resolution.source_from),
            (resolution.target, resolution.target_from),
        ]
    ]
    assert " to ".join(words) == expected
    assert resolution.notes == ((note.format(text, pin.oldest),) if note and pin else ())


def test_resolve_with_nothing_to_go_by(project: Path) -> None:
    nothing = Resolution(Release(0, 17), NEWEST, "the default", "the default", (), may_run_on=(Release(0, 17),))
    assert resolve(project, None, None) == nothing


def test_resolve_refuses_a_source_newer_than_the_target(project: Path) -> None:
    with pytest.raises(ReleaseError, match=r"^--from 0\.19 is newer than --to 0\.17$"):
        resolve(project, Release(0, 19), Release(0, 17))


def test_resolve_hands_on_the_notes_of_the_search(project: Path) -> None:
    write(project / "requirements.txt", "megatron-core>0.90,<0.90")
    (note,) = resolve(project, None, None).notes
    text = "megatron-core>0.90,<0.90"
    assert note == f"requirements.txt:1: {text} admits no known release ({KNOWN_RANGE}); it is ignored"


@from_table
def test_files_are_named_from_the_working_directory_or_else_from_their_project(
    project: Path, monkeypatch: pytest.MonkeyPatch, cwd: str, shown: str
) -> None:
    write(project / "app/requirements.txt", "megatron-core==0.19.0")
    (project / "app/conf").mkdir()
    (project / "elsewhere").mkdir()
    monkeypatch.chdir(project / cwd)
    assert resolve(project / "app/conf", None, None).source_from == f"{shown} (megatron-core==0.19.0)"


# ---- properties: no deadline, since the first example to meet a pin also imports packaging ----


def pin_of(name: str, data: bytes) -> tuple[Pin | None, tuple[str, ...]]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".git").mkdir()
        write(Path(folder) / name, data)
        return find_pin(Path(folder))


CLAUSES = st.builds(
    "{}0.{}{}".format,
    st.sampled_from([">=", "<=", ">", "<", "==", "!=", "~="]),
    st.integers(10, LATER.minor),
    st.sampled_from(["", ".0", ".1", ".9"]),
)


@settings(deadline=None)
@given(st.lists(CLAUSES, min_size=1, max_size=3))
def test_any_specifier_admits_the_minors_of_its_patches(clauses: list[str]) -> None:
    spec = ",".join(clauses)
    pin, _ = pin_of("requirements.txt", f"megatron-core{spec}".encode())
    versions = {release: [f"{release}.{n}" for n in range(10)] for release in KNOWN}
    admitted = [
        release
        for release, candidates in versions.items()
        if any(SpecifierSet(spec).contains(version, prereleases=True) for version in candidates)
    ]
    if pin and (pin.newest == UPSTREAM or not admitted):
        assert not admitted
        assert pin.oldest in (OLDEST, UPSTREAM)
    else:
        assert (pin.oldest, pin.newest) == (admitted[0], admitted[-1]) if pin else not admitted


@settings(deadline=None)
@given(
    st.sampled_from(
        [
            "uv.lock",
            "poetry.lock",
            "megatron/core/package_info.py",
            "pyproject.toml",
            "setup.cfg",
            "requirements.txt",
        ]
    ),
    st.lists(
        st.one_of(
            st.binary(max_size=20),
            st.sampled_from(
                [
                    b"megatron-core",
                    b"==0.17",
                    b"@core_v0.16",
                    b"\n",
                    b"[[package]]\n",
                    b'name = "megatron-core"\n',
                    b'version = "',
                    b"[project]\n",
                    b'dependencies = ["',
                    b'"]\n',
                    b"[options]\n",
                    b"\\\n",
                    b"MAJOR = 0\n",
                ]
            ),
        ),
        max_size=12,
    ),
)
def test_no_content_of_a_pin_file_raises(name: str, parts: list[bytes]) -> None:
    pin, notes = pin_of(name, b"".join([b"megatron", *parts]))
    assert pin is None or pin.oldest in ACCEPTED
    assert all(name in note for note in notes)


# ---- tables of Poetry and uv ----

WHEEL = "https://example.com/wheels/megatron_core-{}-py3-none-any.whl"


@from_table
@pytest.mark.parametrize("version", ["0.15.0", "0.17.1"])
def test_the_url_of_a_wheel_names_its_release(tmp_path: Path, table: str, line: int, version: str) -> None:
    write(tmp_path / "pyproject.toml", table.format(WHEEL.format(version)))
    pin, _ = find_pin(tmp_path)
    written = f'megatron-core = {{url = "{WHEEL.format(version)}"}}'
    release = parse_release(version)
    assert summary(pin) == f"pyproject.toml:{line} {written} [{release}, {release}]"
