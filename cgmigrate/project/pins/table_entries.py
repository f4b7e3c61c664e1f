"""Tables of TOML that map packages to what is required of them, as Poetry and uv have them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cgmigrate.megatron.packages import Package
from cgmigrate.project.pins.lines import line_at, line_containing
from cgmigrate.project.pins.pep508 import read_url
from cgmigrate.project.pins.requirement import LOCAL_PATH, Requirement

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet


def specifiers(constraint: str) -> list[SpecifierSet]:
    """Return the alternatives of a Poetry constraint, none for ``*``. Raises ValueError if it is not a constraint."""
    from packaging.specifiers import SpecifierSet

    alternatives: list[SpecifierSet] = []
    for alternative in re.split(r"\|\|?", constraint):
        if alternative.strip() == "*":
            return []
        clause = r"(\^|~=|~|===?|!=|>=|<=|>|<|=|)\s*(v?[0-9][\w.*+!]*)"
        if not re.fullmatch(rf"\s*{clause}(?:[\s,]+{clause})*\s*", alternative):
            raise ValueError(f"{constraint!r} is not a version constraint")
        clauses = (_pep440_clause(operator, version) for operator, version in re.findall(clause, alternative))
        alternatives.append(SpecifierSet(",".join(clauses)))
    return alternatives


def _pep440_clause(operator: str, version: str) -> str:
    """Return a clause of a Poetry constraint in the syntax of PEP 440."""
    from packaging.version import Version

    if operator in ("", "="):
        return f"=={version}"
    if operator not in ("^", "~"):
        return operator + version
    parts = Version(version).release
    if operator == "^":
        fixed = next((i for i, part in enumerate(parts) if part), len(parts) - 1)
    else:
        fixed = min(1, len(parts) - 1)
    limit = ".".join(map(str, (*parts[:fixed], parts[fixed] + 1)))
    return f">={version},<{limit}"


_GIT_ORIGINS = {"tag": "a git tag", "ref": "a git reference", "rev": "a git revision", "branch": "a git branch"}


def read_tables(text: str, tables: Iterable[Mapping[str, Any]], package: Package) -> Iterator[Requirement]:
    """Yield the requirements on a package in some tables of a text."""
    for dependencies in tables:
        for name, value in dependencies.items():
            if re.fullmatch(package.pattern, name, re.IGNORECASE):
                for entry in value if isinstance(value, list) else [value]:
                    yield from _read_entry(text, name, entry, package)


def _read_entry(text: str, name: str, entry: object, package: Package) -> Iterator[Requirement]:
    """Yield the requirement in one value of a table: a string, or a table of its own."""
    if isinstance(entry, str):
        entry = {"version": entry}
    if not isinstance(entry, dict):
        return
    version, url = entry.get("version"), entry.get("url")
    if isinstance(version, str):
        line, written = _line_of_value(text, name, version), f'{name} = "{version}"'
        try:
            if ranges := tuple(specifiers(version)):
                yield Requirement(line, written, ranges)
        except ValueError:
            yield Requirement(line, written)
    elif isinstance(url, str):
        line, written = _line_of_value(text, name, url), f'{name} = {{url = "{url}"}}'
        yield from read_url(line, written, url, package, is_named=True)
    else:
        yield from _read_source(text, name, entry, package)


def _read_source(text: str, name: str, entry: dict[str, Any], package: Package) -> Iterator[Requirement]:
    """Yield the requirement in a table that names a git repository, a folder or a member of the workspace."""
    for key, git_origin in _GIT_ORIGINS.items():
        if isinstance(reference := entry.get(key), str):
            written = f'{name} = {{{key} = "{reference}"}}'
            line = _line_of_value(text, name, reference)
            for requirement in read_url(line, written, f"@{reference}", package, is_named=True):
                yield requirement._replace(origin=git_origin if requirement.origin else "")
            return
    for key, origin in (("git", "a git repository"), ("path", LOCAL_PATH)):
        if isinstance(value := entry.get(key), str):
            line, folder = _line_of_value(text, name, value), value if key == "path" else ""
            yield Requirement(line, f"{name} = {value}", origin=origin, folder=folder)
            return
    if entry.get("workspace") is True:
        yield Requirement(line_containing(text, name), name, origin="a member of the workspace")


def _line_of_value(text: str, name: str, value: str) -> int:
    """Return the line where the key ``name`` has ``value``: the line of the key, or one below it."""
    quoted = re.compile(rf"[\"']{re.escape(value)}[\"']")
    key = rf"^[ \t]*(?:\[[^\]\n]*\.)?[\"']?{re.escape(name)}[\"']?[ \t]*[\]=.].*$"
    keys = list(re.finditer(key, text, re.MULTILINE))
    for match in keys:
        if quoted.search(match[0]):
            return line_at(text, match.start())
    for match in keys:
        section_end = re.compile(r"^\[", re.MULTILINE).search(text, match.end())
        end = section_end.start() if section_end else len(text)
        if below := quoted.search(text, match.end(), end):
            return line_at(text, below.start())
    return line_at(text, keys[0].start()) if keys else line_containing(text, name)
