"""The lines of a file that require a package other than megatron-core, whatever the format of the file.

A name of a package with versions behind it looks the same in requirement files, lists of pyproject.toml, setup.py and
commands of containers; tables of uv and Poetry have it as a key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from cgmigrate.project.pins.poetry import specifiers

if TYPE_CHECKING:
    from packaging.specifiers import SpecifierSet

    from cgmigrate.megatron.packages import Package

_CLAUSE = r"(?:[<>=!~]=|===|[<>])\s*[\w.*+!-]+"
_MARKER = re.compile(r"\s*;\s*(?=[(]?\s*(?:sys_|os_|platform_|python_|implementation_|extra\b))([^\"#]*)")
_FOR_LINUX = re.compile(
    r"\s*(?:sys_platform\s*==\s*'linux'|platform_system\s*==\s*'Linux'"
    r"|sys_platform\s*!=\s*'(?:darwin|win32)'|platform_system\s*!=\s*'(?:Darwin|Windows)')[\s',]*"
)
_RELEASE = re.compile(r"[@=\"'^~](?:release_v|v|r)?([0-9]+)\.([0-9]+)(?:\.[0-9]+)*(?:rc[0-9]+)?(?=[\"'#&\s;,\]]|$)")
_SOURCE = re.compile(r"\b(?:git|rev|branch|tag|path|url|workspace)\s*=")
_VERSION = re.compile(r"\bversion\s*=\s*[\"']([^\"']*)[\"']")


class Required(NamedTuple):
    """What a line requires: ranges of versions, of which one counts; none if it names no version.

    ``elsewhere`` says that the project does not install the package itself, whatever a lock file has.
    """

    line: int
    text: str
    ranges: tuple[SpecifierSet, ...] = ()
    elsewhere: bool = False


def required_in(text: str, package: Package) -> Iterator[Required]:
    """Yield what the lines of a text require of a package."""
    forms = _forms(package)
    lower = text.lower()
    if not any(word in lower for word in forms.words) and not (forms.image and forms.image.search(text)):
        return
    for number, line in enumerate(text.split("\n"), 1):
        written = re.sub(r"(^|\s)#.*", "", line).strip()
        yield from (Required(number, *one) for one in forms.read(written))


def named_release(reference: str) -> SpecifierSet | None:
    """Return the release that a git reference names (``@v0.6.0``, ``tag=v0.6.0``), None for a branch or a revision."""
    from packaging.specifiers import SpecifierSet

    match = _RELEASE.search(reference)
    return SpecifierSet(f"=={match[1]}.{match[2]}.*") if match else None


_Read = Iterator["tuple[str, tuple[SpecifierSet, ...], bool]"]


class _Forms(NamedTuple):
    """The forms in which lines name a package."""

    words: tuple[str, ...]
    required: re.Pattern[str]
    key: re.Pattern[str]
    conda: re.Pattern[str]
    repository: re.Pattern[str] | None
    image: re.Pattern[str] | None

    def read(self, line: str) -> _Read:
        """Yield what a line without its comment requires."""
        if match := self.key.match(line):
            yield from _of_entry(match)
            return
        if match := self.conda.match(line):
            yield match[0], _of_conda(match[1]), False
            return
        has_requirement = False
        for match in self.required.finditer(line):
            has_requirement = True
            yield from _of_requirement(match, line)
        if not has_requirement and self.repository and (match := self.repository.search(line)):
            release = named_release(f"@{match[1]}" if match[1] else "")
            yield match[0].strip(), (release,) if release else (), False
        if self.image and line.upper().startswith(("FROM ", "ARG ")) and self.image.search(line):
            yield line, (), False


@cache
def _forms(package: Package) -> _Forms:
    names = "|".join(r"[-_.]+".join(map(re.escape, name.split("-"))) for name in package.names)
    name = rf"(?<![\w./-])(?:{names})(?:\[[^\]\n]*\])?"
    versions = rf"{_CLAUSE}(?:\s*,\s*{_CLAUSE})*(?![\w$])"
    required = rf"{name}\s*(?:[(]?({versions})|@\s*([^\s\"';]+)|((?:[<>=!~]=|===)\s*[\"']?\$)|(?={_MARKER.pattern}))"
    repository = re.escape(package.repository)
    git = rf"git.*/{repository}(?:\.git)?(?:@([^\s\"'#]+)|(?![\w.-]))"
    words = {*(part for one in package.names for part in one.split("-")[:1]), package.repository.lower()}
    return _Forms(
        tuple(words - {""}),
        re.compile(required, re.IGNORECASE),
        re.compile(rf"[\"']?(?:{names})[\"']?\s*=\s*([\"'{{].*)", re.IGNORECASE),
        re.compile(rf"-\s+(?:[\w./-]+::)?(?:{names})\s*=\s*([0-9][\w.]*)(?:\.?\*)?(?:=\S*)?$", re.IGNORECASE),
        re.compile(git, re.IGNORECASE) if repository and package.repository != package.name else None,
        re.compile(package.images, re.IGNORECASE) if package.images else None,
    )


def _of_requirement(match: re.Match[str], line: str) -> _Read:
    """Yield what a requirement of PEP 508 asks for."""
    versions, url = match[1], match[2]
    text = match[0].strip()
    if marker := _MARKER.match(line, match.end()):
        never = re.search(r"'never'", marker[1]) is not None
        if never or not _FOR_LINUX.fullmatch(marker[1]):
            yield text or line, (), never
            return
    if url:
        release = named_release(f"@{url}")
        yield text, (release,) if release else (), False
    else:
        yield text, _ranges(versions) if versions else (), False


def _of_entry(match: re.Match[str]) -> _Read:
    """Yield what the value of a key asks for: a constraint of Poetry, or a table."""
    value = match[1]
    if value.startswith("{"):
        version = _VERSION.search(value)
        if version is None:
            if _SOURCE.search(value):
                release = None if re.search(r"[<>*|]", value) else named_release(value)
                yield match[0].strip(), (release,) if release else (), False
            return
        constraint = version[1]
    else:
        constraint = value[1:].partition(value[0])[0]
    if constraint.strip() != "*":
        yield match[0].strip(), _constraint(constraint), False


def _of_conda(version: str) -> tuple[SpecifierSet, ...]:
    # conda's = admits every version with this prefix.
    return _ranges(f"=={version.rstrip('.')}.*")


def _ranges(versions: str) -> tuple[SpecifierSet, ...]:
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return (SpecifierSet(versions),)
    except InvalidSpecifier:
        return ()


def _constraint(constraint: str) -> tuple[SpecifierSet, ...]:
    try:
        return tuple(specifiers(constraint))
    except ValueError:
        return ()
