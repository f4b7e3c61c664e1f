"""Pins that name no release, source trees of megatron-core, and what surrounds a project: conda, container, venv."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from cgmigrate.megatron.releases import NEWEST, Release
from cgmigrate.project.pins.folders import read_folder
from cgmigrate.project.pins.resolution import resolve
from tests.support.files import write
from tests.support.pins import find_pin, summary
from tests.support.tables import from_table

ALPHA = "85bced0ae6ab46f61a0fd774074a3273daf6ae02"
SHA = "0171aa4e50b1b8bd22a5b9b1ad0e3a11d1ebcf0f"
LM = "https://github.com/NVIDIA/Megatron-LM.git"
UV = "[tool.uv.sources]\nmegatron-core = "
LOCKED = '[[package]]\nname = "megatron-core"\n'


@from_table
def test_a_pin_that_names_no_release_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, how: str
) -> None:
    monkeypatch.chdir(project)
    write(project / name, text)
    assert find_pin(project)[0] is None
    named = f"megatron-core is pinned by {how}, not by a release: assuming "
    assert resolve(project, None, None).notes == (f"{named}0.17 to {NEWEST}; set --from/--to",)
    assert resolve(project, Release(0, 16), None).notes == (f"{named}{NEWEST}; set --to",)
    assert resolve(project, None, Release(0, 18)).notes == (f"{named}0.17; set --from",)
    assert resolve(project, Release(0, 16), Release(0, 18)).notes == ()


def test_a_range_beside_a_git_revision_names_the_revision(project: Path) -> None:
    write(project / "pyproject.toml", f'[project]\ndependencies = ["megatron-core>=0.16"]\n{UV}{{rev = "{SHA}"}}\n')
    notes = resolve(project, None, None).notes
    named = f"pinned by a git revision (pyproject.toml:4), not by a release: assuming 0.17 to {NEWEST}"
    assert any(named in note for note in notes)


def test_an_exact_pin_needs_no_other(project: Path) -> None:
    write(project / "requirements.txt", "megatron-core==0.19.2\n")
    write(project / "Dockerfile", "FROM nvcr.io/nvidia/nemo:25.09\n")
    assert resolve(project, None, None).notes == ()


@from_table
def test_environments_pin(project: Path, name: str, text: str, expected: str) -> None:
    write(project / name, text)
    pin, notes = find_pin(project)
    assert (summary(pin), notes) == (expected, ())


def test_of_several_scripts_that_install_the_oldest_release_counts(project: Path) -> None:
    write(project / "scripts/install_a.sh", "pip install megatron-core==0.19.0\n")
    write(project / "scripts/install_b.sh", "pip install megatron-core==0.16.0\n")
    assert summary(find_pin(project)[0]) == "install_b.sh:1 megatron-core==0.16.0 [0.16, 0.16]"


def test_scripts_that_install_count_where_nothing_else_pins(project: Path) -> None:
    write(project / "install.sh", "pip install megatron-core==0.16.0\n")
    write(project / "requirements.txt", "megatron-core==0.18.0\n")
    assert summary(find_pin(project)[0]) == "requirements.txt:1 megatron-core==0.18.0 [0.18, 0.18]"


@pytest.mark.parametrize("dependency", ["megatron-core>=0.15", "megatron-core"])
def test_an_optional_extra_never_takes_precedence_over_dependencies(project: Path, dependency: str) -> None:
    extra = 'mcore = ["megatron-core==0.16.1"]\n'
    groups = f"[project.optional-dependencies]\n{extra}[dependency-groups]\n{extra}"
    write(project / "pyproject.toml", f'[project]\ndependencies = ["{dependency}"]\n{groups}')
    expected = f"pyproject.toml:2 {dependency} [0.15, {NEWEST}]" if "=" in dependency else "no pin"
    assert summary(find_pin(project)[0]) == expected


@pytest.mark.parametrize(
    "path", ["./megatron-lm/" + "megatron-lm/" * 50_000, "../" * 50 + "megatron-lm", "/megatron-lm"]
)
def test_a_path_that_cannot_be_one_is_a_pin_that_names_no_release(project: Path, path: str) -> None:
    write(project / "requirements.txt", path)
    (note,) = resolve(project, None, None).notes
    assert "pinned by a local path" in note


# ---- source trees ----

OLD = '    enable_cuda_graph: bool = False\n    cuda_graph_scope: str = "full"\n'
IMPL = OLD + '    cuda_graph_impl: str = "none"\n'
SCOPES = "class CudaGraphScope(enum.Enum):\n    attn = 2\n"
INFERENCE = SCOPES + "    full_iteration_inference = 8\n"


def tree(folder: Path, number: str, config: str, enums: str = "") -> None:
    major, minor = number.split(".")
    core = folder / "megatron/core"
    write(core / "package_info.py", f"MAJOR = {major}\nMINOR = {minor}\nPATCH = 0\n")
    write(core / "transformer/transformer_config.py", config)
    other = "class Other(enum.Enum):\n    full_iteration_inference = 1\n"
    write(core / "transformer/enums.py", f"import enum\n\n{enums}\n\n{other}")


@from_table
def test_the_settings_of_a_source_tree_decide(
    project: Path, number: str, config: str, enums: str, release: str
) -> None:
    tree(project / "3rdparty/Megatron-LM", number, config, enums)
    pin, notes = find_pin(project)
    text = f"megatron-core=={number}.0" + (f", which has the settings of {release}" if release != number else "")
    assert pin is not None
    assert (pin.text, str(pin.oldest), str(pin.newest), notes) == (text, release, release, ())


@from_table
def test_a_source_tree_that_is_there_decides(project: Path, name: str, text: str, folder: str) -> None:
    write(project / name, text)
    tree(project / folder, "0.16", IMPL, INFERENCE)
    resolution = resolve(project, None, None)
    assert (resolution.source, resolution.target) == (Release(0, 17), Release(0, 17))
    assert "package_info.py:2 (megatron-core==0.16.0, which has the settings of 0.17)" in resolution.source_from
    assert not any("pinned by" in note for note in resolution.notes)


def test_what_is_installed_decides_only_where_nothing_else_does(project: Path) -> None:
    tree(project / ".venv/lib/python3.12/site-packages", "0.17", IMPL, INFERENCE)
    assert summary(find_pin(project)[0]) == "package_info.py:2 megatron-core==0.17.0 [0.17, 0.17]"
    read_folder.cache_clear()
    write(project / "requirements.txt", "megatron-core>=0.18\n")
    assert summary(find_pin(project)[0]) == f"requirements.txt:1 megatron-core>=0.18 [0.18, {NEWEST}]"


def test_the_number_of_a_git_revision_is_used_with_a_note(project: Path) -> None:
    source = f'source = {{ git = "{LM}?rev={SHA}#{SHA}" }}\n'
    write(project / "uv.lock", f'{LOCKED}version = "0.16.0rc0"\n{source}')
    pin, notes = find_pin(project)
    assert summary(pin) == "uv.lock:3 megatron-core==0.16.0rc0, which has the settings of 0.15 [0.15, 0.15]"
    number = "megatron-core==0.16.0rc0 is the number of a git revision"
    assert notes == (f"uv.lock:3: {number}, which can have the settings of another release",)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.mark.parametrize("folder", ["aiak_megatron", "third_party/Megatron-LM", "libs/foo"])
def test_the_only_tree_of_a_checkout_pins_the_project(tmp_path: Path, folder: str) -> None:
    _git(tmp_path, "init", "-q")
    tree(tmp_path / folder, "0.15", IMPL, "")
    tree(tmp_path / "tests/data/old", "0.12", OLD, "")
    _git(tmp_path, "add", "-A")
    assert summary(find_pin(tmp_path)[0]) == "package_info.py:2 megatron-core==0.15.0 [0.15, 0.15]"
    # It decides what a range leaves open, and nothing that is written.
    for text, pinned in (
        (">=0.14", "package_info.py:2 megatron-core==0.15.0 [0.15, 0.15]"),
        ("==0.17", "requirements.txt:1 megatron-core==0.17 [0.17, 0.17]"),
        (">=0.18", f"requirements.txt:1 megatron-core>=0.18 [0.18, {NEWEST}]"),
    ):
        write(tmp_path / "requirements.txt", f"megatron-core{text}\n")
        read_folder.cache_clear()
        assert summary(find_pin(tmp_path)[0]) == pinned
    (tmp_path / "requirements.txt").unlink()
    tree(tmp_path / "another", "0.17", IMPL, INFERENCE)
    _git(tmp_path, "add", "-A")
    read_folder.cache_clear()
    assert summary(find_pin(tmp_path)[0]) == "no pin"


@from_table
def test_the_commit_of_a_submodule_that_is_not_checked_out(tmp_path: Path, name: str, text: str, folder: str) -> None:
    """85bced0ae6ab is Megatron-LM's tag 26.04-alpha.rc1: it has the number 0.18.0 and the settings of 0.17."""
    _git(tmp_path, "init", "-q")
    write(tmp_path / name, text)
    _git(tmp_path, "add", "-A")
    _git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{ALPHA},{folder}")
    pin, notes = find_pin(tmp_path)
    assert pin is not None
    assert (pin.text.split(" at ")[1], str(pin.newest), notes) == (ALPHA[:12], "0.17", ())
    _git(tmp_path, "update-index", "--add", "--cacheinfo", f"160000,{SHA},{folder}")
    read_folder.cache_clear()
    resolution = resolve(tmp_path, None, None)
    assert resolution.source == Release(0, 15) if "branch" in text else "not by a release: " in resolution.notes[0]


@from_table
def test_a_known_commit_has_the_settings_of_its_tree(project: Path, name: str, text: str) -> None:
    write(project / name, text.format(lm=LM, sha=ALPHA, short=ALPHA[:9]).replace("{{", "{").replace("}}", "}"))
    pin, notes = find_pin(project)
    assert pin is not None
    assert (str(pin.oldest), str(pin.newest), notes) == ("0.17", "0.17", ())
