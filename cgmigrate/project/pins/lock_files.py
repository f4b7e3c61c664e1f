"""Lock files of uv and Poetry."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import lines_at
from cgmigrate.project.pins.pep508 import names_release
from cgmigrate.project.pins.pyproject import load_toml, table
from cgmigrate.project.pins.requirement import LOCAL_PATH, Requirement, exact


def read_lock_file(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the locked versions of a package. Raises ValueError."""
    for line, locked in _locked_packages(text, package.pattern):
        yield from _read_package(locked, line, package)


def _locked_packages(text: str, name: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the packages with a name, a regular expression, each with the line of its version. Raises ValueError."""
    # Lock files have megabytes, and tomllib parses about one of them a second: only the needed blocks are parsed.
    starts = [match.start() for match in re.finditer(r"^\[\[package\]\]", text, re.MULTILINE)]
    if not starts:
        load_toml(text)
    named = re.compile(rf"^name\s*=\s*[\"']{name}[\"']", re.MULTILINE | re.IGNORECASE)
    for (start, end), line in zip(pairwise([*starts, len(text)]), lines_at(text, starts), strict=True):
        block = text[start:end]
        if (match := named.search(block)) is not None:
            version = re.search(r"^version\s*=", block, re.MULTILINE) or match
            yield line + block.count("\n", 0, version.start()), _load_block(block, line)


def _load_block(block: str, line: int) -> dict[str, Any]:
    """Return one package of a lock file; ``line`` is the first line of its block."""
    try:
        package = load_toml(block)["package"][0]
    except ValueError:
        # With the empty lines, the line in the parser's message is that of the file.
        package = load_toml("\n" * (line - 1) + block)["package"][0]
    return package if isinstance(package, dict) else {}


def _read_package(locked: dict[str, Any], line: int, package: Package) -> Iterator[Requirement]:
    from packaging.specifiers import SpecifierSet
    from packaging.utils import canonicalize_name

    name, version = canonicalize_name(str(locked.get("name"))), locked.get("version")
    source = table(locked, "source")
    origin, folder = _origin_of(source, package)
    commit = re.search(r"[0-9a-f]{40}$", str(source.get("resolved_reference") or source.get("git")))
    if commit is not None and (release := package.release_of(commit[0])):
        yield exact(line, f"{name} at {commit[0][:12]}", release)
    elif isinstance(version, str):
        yield Requirement(line, f"{name}=={version}", (SpecifierSet(f"=={version}"),), origin, folder)
    elif origin:
        yield Requirement(line, name, None, origin, folder)


def _origin_of(source: dict[str, Any], package: Package) -> tuple[str, str]:
    """Return the origin of a package and the folder of its source tree; both empty for a published release."""
    for kind in ("editable", "directory", "virtual"):
        if isinstance(folder := source.get(kind), str):
            return LOCAL_PATH, folder
    url = source.get("url") if source.get("type") in ("git", "directory") else source.get("git")
    if not isinstance(url, str):
        return "", ""
    if source.get("type") == "directory":
        return LOCAL_PATH, url
    return ("", "") if names_release(url.replace("tag=", "@"), package) else ("a git revision", "")
