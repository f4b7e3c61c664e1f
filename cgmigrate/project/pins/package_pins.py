"""The pin of a package other than megatron-core, as far as it says that no release after a certain one is installed.

Such a package reads settings by their names: a YAML file cannot get names that the pinned release does not read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.lock_files import locked_packages
from cgmigrate.project.pins.search import place_of
from cgmigrate.text.files import MAX_GENERATED, read_bytes

_FILES = re.compile(r"pyproject\.toml|setup\.(?:cfg|py)|(?:requirements|constraints).*\.txt|.*[Dd]ockerfile.*")
_LOCKS = ("uv.lock", "poetry.lock")
_NAMED_RELEASE = re.compile(r"[@=\"'^~](?:v|r)?([0-9]+)\.([0-9]+)(?:\.[0-9]+)*(?:rc[0-9]+)?(?=[\"'#&\s;,\]]|$)")
_CLAUSE = r"(?:[<>=!~]=|===|[<>])\s*[\w.*+!-]+"


def pinned_up_to(folder: Path, package: str, newest: Release) -> str:
    """Return the pin of a package that admits no release after ``newest``, with its place; empty if there is none.

    The nearest folder with a pin decides, up to the first that contains ``.git``. A pin of a git revision, a range
    without an upper limit and a source tree say nothing.
    """
    folder = folder.resolve()
    for above in (folder, *folder.parents):
        for path, line, text, is_older in _pins_in(above, package, newest):
            return f"{place_of(path, line, folder)}: {text}" if is_older else ""
        if (above / ".git").exists():
            break
    return ""


@cache
def _pins_in(folder: Path, package: str, newest: Release) -> tuple[tuple[Path, int, str, bool], ...]:
    """Return the pins of a folder, lock files first: file, line, text, and whether nothing newer is admitted."""
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return ()
    files = [name for name in names if name in _LOCKS or _FILES.fullmatch(name) or name == ".gitmodules"]
    pins: list[tuple[Path, int, str, bool]] = []
    for name in sorted(files, key=lambda name: name not in _LOCKS):
        path = folder / name
        try:
            text = read_bytes(path, MAX_GENERATED).decode("utf-8", "replace")
        except OSError:
            continue
        read = _locked if name in _LOCKS else _submodules if name == ".gitmodules" else _required
        pins += [(path, line, written, is_older) for line, written, is_older in read(text, package, newest)]
    return tuple(pins)


Pins = Iterator[tuple[int, str, bool]]


def _locked(text: str, package: str, newest: Release) -> Pins:
    """Yield the locked release of a package; that of a source tree or a git revision is only a number."""
    for line, data in locked_packages(text, _name(package)):
        source, version = data.get("source"), str(data.get("version", ""))
        kinds = source.keys() if isinstance(source, dict) else ()
        if not {"editable", "directory", "virtual", "path"}.isdisjoint(kinds):
            continue
        if "git" in kinds or (isinstance(source, dict) and source.get("type") == "git"):
            yield line, f"{package} {version}", _names_older(str(source), newest)
        elif match := re.match(r"([0-9]+)\.([0-9]+)", version):
            yield line, f"{package} {version}", Release(int(match[1]), int(match[2])) <= newest


def _submodules(text: str, package: str, newest: Release) -> Pins:
    """Yield the release in the branch of a submodule of the package."""
    repository = package.removeprefix("nemo-")
    for section in re.finditer(r"^\[submodule\b.*?(?=^\[|\Z)", text, re.MULTILINE | re.DOTALL):
        url = re.search(r"^[ \t]*url[ \t]*=.*[/:]([\w.-]+?)(?:\.git)?/?[ \t\r]*$", section[0], re.MULTILINE)
        branch = re.search(r"^[ \t]*branch[ \t]*=[ \t]*(\S+)", section[0], re.MULTILINE)
        if url and branch and url[1].lower() in (package, repository):
            line = text.count("\n", 0, section.start()) + 1
            yield line, f"branch {branch[1]} of {url[1]}", _names_older(f"={branch[1]}", newest)


def _required(text: str, package: str, newest: Release) -> Pins:
    """Yield the requirements on a package, in any file that has them in lines or as strings."""
    name = rf"(?<![\w./-]){_name(package)}(?:\[[^\]\n]*\])?\s*"
    forms = (
        (re.compile(rf"{name}({_CLAUSE}(?:\s*,\s*{_CLAUSE})*)", re.IGNORECASE), _admits_only_older),
        (re.compile(rf"{name}@\s*([^\s\"';]+)", re.IGNORECASE), _names_older),
        # Tables of uv and Poetry.
        (re.compile(rf"^[\"']?{_name(package)}[\"']?\s*=\s*([\"'{{].*)", re.IGNORECASE), _names_older),
    )
    for number, line in enumerate(text.split("\n"), 1):
        written = re.sub(r"(^|\s)#.*", "", line).strip()
        for pattern, is_older in forms:
            if match := pattern.search(written):
                yield number, match[0].strip(), is_older(match[1], newest)
                break


def _admits_only_older(specifier: str, newest: Release) -> bool:
    """Return whether a specifier admits only releases up to one."""
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        clauses = SpecifierSet(specifier)
    except InvalidSpecifier:
        return False
    later = (f"{major}.{minor}.0" for major in range(4) for minor in range(60) if (major, minor) > newest)
    return not any(clauses.contains(version, prereleases=True) for version in later)


def _names_older(reference: str, newest: Release) -> bool:
    """Return whether a URL, or an entry of a table, names a release up to one."""
    return not re.search(r"[<>*|]", reference) and _is_older(_named(reference), newest)


def _named(text: str) -> Release | None:
    """Return the release that a reference names (``@v0.6.0``, ``tag=v0.6.0``), None for a branch or a revision."""
    match = _NAMED_RELEASE.search(text)
    return Release(int(match[1]), int(match[2])) if match else None


def _is_older(release: Release | None, newest: Release) -> bool:
    return release is not None and release <= newest


def _name(package: str) -> str:
    return r"[-_.]+".join(map(re.escape, package.split("-")))
