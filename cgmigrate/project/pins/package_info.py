"""``package_info.py`` of a source tree of megatron-core: its version number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import line_at, lines_at
from cgmigrate.project.pins.requirement import Requirement, exact, version_of

FILE_NAME = "package_info.py"


def read_package_info(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the version of a source tree. Raises ValueError."""
    number = r"^(MAJOR|MINOR|PATCH)[ \t]*(?::[ \t]*int[ \t]*)?=[ \t]*([0-9]+)\b"
    parts = {match[1]: match for match in re.finditer(number, text, re.MULTILINE)}
    if not {"MAJOR", "MINOR"} <= parts.keys():
        raise ValueError("it assigns no number to MAJOR and MINOR")
    version = ".".join(str(int(parts[name][2])) for name in ("MAJOR", "MINOR", "PATCH") if name in parts)
    line = line_at(text, parts["MINOR"].start())
    yield exact(line, f"{package.name}=={version}", version)


# --- metadata of a built tree ---------------------------------------------------------------------

FILE_NAMES = ("PKG-INFO", "METADATA")


def metadata_folder(package: Package) -> re.Pattern[str]:
    """Return a pattern for the name of a folder with metadata of a package."""
    return re.compile(rf"{package.pattern}(-[\w.+!]+)?\.(egg|dist)-info", re.IGNORECASE)


def read_metadata(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the version of the package that metadata describe. Raises ValueError."""
    head = re.split(r"\r?\n\r?\n", text, maxsplit=1)[0]
    version = re.search(r"^Version:[ \t]*([0-9]+)\.([0-9]+)([\w.+!-]*)", head, re.MULTILINE)
    if version is None or not re.search(
        rf"^Name:[ \t]*{package.pattern}[ \t]*\r?$", head, re.MULTILINE | re.IGNORECASE
    ):
        raise ValueError(f"it has no version of {package.name}")
    number = f"{version[1]}.{version[2]}{version[3]}"
    yield exact(line_at(text, version.start()), f"{package.name}=={number}", number)


# --- submodules -----------------------------------------------------------------------------------


def read_gitmodules(text: str, package: Package) -> Iterator[Requirement]:
    """Yield a requirement for each submodule that contains a package: the release of its branch."""
    repositories = "|".join(map(re.escape, (package.repository, *package.inside)))
    url = re.compile(rf"^[ \t]*url[ \t]*=.*[/:](?:{repositories})(?:\.git)?/?[ \t\r]*$", re.MULTILINE | re.IGNORECASE)
    sections = list(re.finditer(r"^\[submodule\b.*?(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL))
    for section, line in zip(sections, lines_at(text, (each.start() for each in sections)), strict=True):
        path = re.search(r"^[ \t]*path[ \t]*=[ \t]*(\S+)[ \t\r]*$", section[0], re.MULTILINE)
        if path and url.search(section[0]):
            branch = re.search(r"^[ \t]*branch[ \t]*=[ \t]*(\S+)[ \t\r]*$", section[0], re.MULTILINE)
            yield _submodule(line, path[1], branch, package)


def _submodule(line: int, path: str, branch: re.Match[str] | None, package: Package) -> Requirement:
    release = re.search(package.references, f"@{branch[1]}") if branch else None
    if branch is None or release is None:
        return Requirement(line, path, origin="a git submodule that is not checked out", folder=path)
    return exact(line, f"{path} ({branch[0].strip()})", version_of(release))._replace(folder=path)
