"""``.gitmodules``: submodules of a package's repository, and of repositories that contain it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import lines_at
from cgmigrate.project.pins.requirement import Requirement, exact, version_of


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
