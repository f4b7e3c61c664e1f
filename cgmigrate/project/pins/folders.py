"""The pin of megatron-core of one folder, and the files that can pin a package."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from cgmigrate.megatron.packages import core
from cgmigrate.megatron.source_trees import core_in, environments_in, is_core
from cgmigrate.project.checkout import index_of
from cgmigrate.project.pins.dockerfiles import read_dockerfile, read_install_script
from cgmigrate.project.pins.files import PACKAGE_INFO, OpaquePin, Pin, PinFormat, PinProblem, PinReport, read_pin_file
from cgmigrate.project.pins.lock_files import read_lock_file
from cgmigrate.project.pins.package_info import FILE_NAME, FILE_NAMES, metadata_folder, read_gitmodules, read_metadata
from cgmigrate.project.pins.pyproject import read_pyproject
from cgmigrate.project.pins.requirement_files import (
    read_conda_environment,
    read_requirement_file,
    read_setup_cfg,
    read_setup_py,
)

_LOCK_FILES = ("uv.lock", "poetry.lock")
_LOCK = PinFormat(read_lock_file, is_lock=True)
_VENDORED = ("", "3rdparty/Megatron-LM/", "Megatron-LM/", "src/")
"""Where a project keeps a copy of ``megatron/core``."""
_PROJECT_FILES = {
    ".gitmodules": PinFormat(read_gitmodules),
    "pyproject.toml": PinFormat(read_pyproject),
    "setup.cfg": PinFormat(read_setup_cfg),
    "setup.py": PinFormat(read_setup_py),
}
_METADATA = PinFormat(read_metadata)
_REQUIREMENTS = PinFormat(read_requirement_file)
_CONDA = PinFormat(read_conda_environment)
_DOCKERFILE = PinFormat(read_dockerfile)
_INSTALLS = PinFormat(read_install_script)
_SCRIPT = re.compile(r"(?:install|setup|bootstrap|build)[\w.-]*\.(?:sh|bash)", re.IGNORECASE)
_TESTS = frozenset(("test", "tests", "testdata", "fixtures"))
_FOLDERS_OF_SCRIPTS = ("docker", "script", "scripts")


class FolderPins(NamedTuple):
    """The pin of a folder, if any, and what its files report; ``is_root`` says that a checkout begins there."""

    pin: Pin | None
    problems: tuple[PinProblem, ...]
    is_root: bool
    opaque: OpaquePin | None = None


@cache
def read_folder(folder: Path) -> FolderPins:
    """Return the pin of a folder. Each folder is read once in a run."""
    try:
        with os.scandir(folder) as entries:
            names = {entry.name for entry in entries}
    except OSError:
        return FolderPins(None, (), False)
    report = PinReport()
    pins = (read_pin_file(path, kind, report) for path, kind in pin_files(folder, names))
    pin = next((pin for pin in pins if pin is not None), None) or _installed(folder, names, report)
    if ".git" in names and (pin is None or pin.oldest < pin.newest):
        # A range is what a project accepts; the tree that it brings is what it runs.
        tree = _only_tree(folder, report)
        pin = tree if tree and (pin is None or tree.newest in pin.admitted) else pin
    return FolderPins(pin, tuple(report.problems), ".git" in names, next(iter(report.opaque), None))


def _only_tree(folder: Path, report: PinReport) -> Pin | None:
    """Return the pin of the only source tree of megatron-core, or submodule with one, in a checkout."""
    trees: set[str] = set()
    for path, commit in index_of(str(folder)):
        if commit:
            trees.update(map(str, filter(None, [core_in(Path(path))])))
        elif path.endswith(f"{os.sep}{FILE_NAME}") and is_core(os.path.dirname(path)):
            trees.add(os.path.dirname(path))
    # A tree below tests is data of a test.
    trees = {tree for tree in trees if _TESTS.isdisjoint(os.path.relpath(tree, folder).split(os.sep))}
    return read_pin_file(Path(*trees, FILE_NAME), PACKAGE_INFO, report) if len(trees) == 1 else None


def pin_files(folder: Path, names: set[str]) -> Iterator[tuple[Path, PinFormat]]:
    """Yield the files that can pin a package, those that say most exactly what is installed first."""
    for name in _LOCK_FILES:
        if name in names:
            yield folder / name, _LOCK
    for prefix in _VENDORED:
        path = f"{prefix}megatron/core/{FILE_NAME}"
        if path.split("/", 1)[0] in names:
            yield folder / path, PACKAGE_INFO
    for name, kind in _PROJECT_FILES.items():
        if name in names:
            yield folder / name, kind
    for path_of_list in _requirement_files(folder, names):
        yield path_of_list, _REQUIREMENTS
    yield from _environment_files(folder, names)


def _installed(folder: Path, names: set[str], report: PinReport) -> Pin | None:
    """Return the pin in the scripts that install a project; of several, the oldest, which lacks the most settings."""
    pins = [read_pin_file(path, kind, report) for path, kind in scripts_that_install(folder, names)]
    return min((pin for pin in pins if pin is not None), key=lambda pin: pin.newest, default=None)


def scripts_that_install(folder: Path, names: set[str]) -> Iterator[tuple[Path, PinFormat]]:
    """Yield the scripts that install a project."""
    scripts = [folder / name for name in names if _SCRIPT.fullmatch(name)]
    for inner in names.intersection(_FOLDERS_OF_SCRIPTS):
        scripts += (path for path in (folder / inner).glob("*sh") if _SCRIPT.fullmatch(path.name))
    yield from ((path, _INSTALLS) for path in sorted(scripts))


def _requirement_files(folder: Path, names: set[str]) -> Iterator[Path]:
    """Yield the requirement files of pip, ``requirements.txt`` first and the constraints last."""
    texts = sorted(name for name in names if name.endswith(".txt"))
    for name in sorted(texts, key=lambda name: name != "requirements.txt"):
        if name.startswith("requirements"):
            yield folder / name
    if "requirements" in names:
        yield from sorted((folder / "requirements").glob("*.txt"))
    for name in texts:
        if name.startswith("constraints"):
            yield folder / name


def _environment_files(folder: Path, names: set[str]) -> Iterator[tuple[Path, PinFormat]]:
    """Yield the files of the environment of a project: conda, container, virtual environment."""
    for name in sorted(names):
        if re.fullmatch(r"(?:conda|environment)[\w.-]*\.ya?ml", name):
            yield folder / name, _CONDA
    containers = [folder / name for name in names]
    if "docker" in names:
        containers += (folder / "docker").glob("*ockerfile*")
    for path in sorted(containers):
        if re.fullmatch(r"Dockerfile.*|.*\.[Dd]ockerfile", path.name):
            yield path, _DOCKERFILE
    # What is written counts before the metadata of an old build; of several, the newest.
    for name in filter(metadata_folder(core()).fullmatch, sorted(names, reverse=True)):
        yield from ((folder / name / file, _METADATA) for file in FILE_NAMES)
    if not {".venv", "venv"}.isdisjoint(names):
        for tree in environments_in(folder):
            yield tree / FILE_NAME, PACKAGE_INFO
