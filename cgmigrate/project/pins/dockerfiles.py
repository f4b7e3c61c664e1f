"""Dockerfiles and scripts that install: images, clones and installed requirements."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from cgmigrate.megatron.packages import Package, core
from cgmigrate.project.pins.lines import logical_lines
from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import IMAGE, Requirement, exact, version_of

_VARIABLE = re.compile(r"\$(?:\{(?P<name>\w+)(?::?-(?P<default>[^}]*))?\}|(?P<plain>\w+))")
_ASSIGNS = re.compile(r"(?:ARG|ENV)[ \t]+(?P<rest>.*)", re.IGNORECASE)
_ASSIGNS_IN_SHELL = re.compile(r"[ \t]*(?:(?:export|readonly|local)[ \t]+)?(?P<rest>\w+=.*)")
_INSTALLS = re.compile(
    r"\bpip[0-9.]*\b[^;&|]{0,200}?(?<!-)\binstall\b"
    r"|\b(?:uv|poetry|pdm)\b[\"',\s]+add\b|\buvx?\b.{0,200}--with\b"
)
_SPECIFIED = r"(?<![\w.-])megatron[-_.]+core(?:\[[\w,-]*\])?(?: *(?:={2,3}|[~!]=|[<>]=?) *[\w.*]+,?)+"
"""megatron-core with its releases, wherever that is on a line."""
_FROM_TAG = re.compile(r"/megatron-lm(?:\.git)?@core_[rv][0-9]+\.[0-9]+", re.IGNORECASE)
_COMMENT = re.compile(r"(?:^|[\s\"'])#.*")
_CONTINUED_IN_JSON = re.compile(r"\\\\\\n(?:\",(?P<between>\s*)\")?")
"""A continued line inside a string of JSON, in a list of lines or in one string of them all."""
_MAY_INSTALL = re.compile(r"\bmegatron[-_.]+core(?:\[[\w,-]*\])? *[=~!<>]|core_[rv][0-9]", re.IGNORECASE)


def read_dockerfile(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirements on a package, and the images and clones that contain it."""
    yield from _read(text, package, _ASSIGNS)


def read_install_script(text: str, package: Package) -> Iterator[Requirement]:
    """Yield the requirements on a package that a shell script installs, and the clones that contain it."""
    yield from _read(text, package, _ASSIGNS_IN_SHELL)


def read_commands(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core that commands in a text install, in whatever syntax they are written."""
    # A search for a word is fast, a pattern not.
    if "core" not in text.lower() or not _MAY_INSTALL.search(text):
        return
    for number, line in _with_values(_command_lines(text), _ASSIGNS_IN_SHELL):
        installs = _INSTALLS.search(line)
        if _clones(line, core()) or (installs and _FROM_TAG.search(line)):
            yield _read_clone(number, line, core())
        elif installs:
            for match in re.finditer(_SPECIFIED, line, re.IGNORECASE):
                yield from read_requirement(number, match.group().rstrip(" ,"), core())


def _command_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text without comments, and those inside a string, each with its number."""
    for number, line in logical_lines(_CONTINUED_IN_JSON.sub(_continued, text)):
        for part in line.split("\\n"):
            yield number, _COMMENT.sub("", part)


def _continued(match: re.Match[str]) -> str:
    """Return a continued line of JSON as one of a shell, on as many lines."""
    between = match["between"] or ""
    return f"\\{between}" if "\n" in between else " "


def _read(text: str, package: Package, assigns: re.Pattern[str]) -> Iterator[Requirement]:
    for number, line in _with_values(logical_lines(text), assigns):
        words = [a or b or c for a, b, c in re.findall(r"\"([^\"]*)\"|'([^']*)'|(\S+)", line)]
        if not words or words[0].startswith("#"):
            continue
        if words[0].upper() == "FROM":
            if any(map(package.is_in_image, words[1:])):
                yield Requirement(number, line, origin=IMAGE)
        elif _clones(line, package):
            yield _read_clone(number, line, package)
        elif re.search(r"\bpip3?\s+install\b|\buv\s+add\b", line):
            for word in words:
                yield from read_requirement(number, word, package)


def _with_values(lines: Iterable[tuple[int, str]], assigns: re.Pattern[str]) -> Iterator[tuple[int, str]]:
    """Yield lines with the values of the variables that are set above them.

    One with two values, as branches of a script give it, is not known.
    """
    variables: dict[str, str] = {}

    def value(match: re.Match[str]) -> str:
        return variables.get(match["name"] or match["plain"], "") or match["default"] or match.group()

    for number, written in lines:
        line = _VARIABLE.sub(value, written) if "$" in written else written
        for name, text in _assignments(assigned["rest"]) if (assigned := assigns.match(line)) else ():
            variables[name] = text if variables.get(name, text) == text else ""
        yield number, line


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that `ARG` or `ENV` sets, each with its value."""
    if match := re.fullmatch(r"(\w+)[ \t]+([^=]+)", text.strip()):
        yield match[1], match[2].strip().strip("\"'")
    for name, value in re.findall(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)", text):
        yield name, value.strip("\"'")


def _clones(line: str, package: Package) -> bool:
    """Return whether a line clones the repository of a package, or chooses a branch or tag that only it has."""
    if package.tags and re.search(rf"\bgit\b.*\b(?:checkout|switch)\b.*\b{package.tags}[0-9]+\.[0-9]+", line, re.I):
        return True
    command = re.search(r"\bgit\s+clone\b", line, re.IGNORECASE)
    repository = re.compile(rf"[/:]{re.escape(package.repository or package.name)}(?![\w-])", re.IGNORECASE)
    return bool(command and repository.search(line, command.end()))


def _read_clone(number: int, line: str, package: Package) -> Requirement:
    """Return the requirement of a line that clones a repository: the release of its branch or tag."""
    tag = re.search(rf"\b{package.tags}([0-9]+)\.([0-9]+)[\w.]*", line) if package.tags else None
    if tag is None:
        return Requirement(number, line, origin="a git clone")
    return exact(number, f"git clone {tag[0]}", version_of(tag))
