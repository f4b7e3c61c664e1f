"""Dockerfiles and scripts that install: images, clones of Megatron-LM and installed requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.lines import logical_lines
from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import NAME, Requirement, exact

_VARIABLE = re.compile(r"\$(?:\{(?P<name>\w+)(?::?-(?P<default>[^}]*))?\}|(?P<plain>\w+))")
_ASSIGNS = re.compile(r"(?:ARG|ENV)[ \t]+(?P<rest>.*)", re.IGNORECASE)
_ASSIGNS_IN_SHELL = re.compile(r"[ \t]*(?:(?:export|readonly|local)[ \t]+)?(?P<rest>\w+=.*)")
_CHECKS_OUT = re.compile(r"\bgit\b.*\b(?:checkout|switch)\b.*\bcore_[rv][0-9]+\.[0-9]+", re.IGNORECASE)
"""A line that chooses a release of Megatron-LM: its branches and tags have names that no other project has."""
_INSTALLS = re.compile(
    r"\bpip[0-9.]*\b[^;&|]{0,200}?(?<!-)\binstall\b"
    r"|\b(?:uv|poetry|pdm)\b[\"',\s]+add\b|\buvx?\b.{0,200}--with\b"
)
_SPECIFIED = re.compile(rf"(?<![\w.-]){NAME}(?:\[[\w,-]*\])?(?: *(?:={{2,3}}|[~!]=|[<>]=?) *[\w.*]+,?)+", re.IGNORECASE)
"""megatron-core with its releases, wherever that is on a line."""
_FROM_TAG = re.compile(r"/megatron-lm(?:\.git)?@core_[rv][0-9]+\.[0-9]+", re.IGNORECASE)
_COMMENT = re.compile(r"(?:^|[\s\"'])#.*")
_CONTINUED_IN_JSON = re.compile(r"\\\\\\n(?:\",(?P<between>\s*)\")?")
"""A continued line inside a string of JSON, in a list of lines or in one string of them all."""
_MAY_INSTALL = re.compile(rf"\b{NAME}(?:\[[\w,-]*\])? *[=~!<>]|core_[rv][0-9]", re.IGNORECASE)


def read_dockerfile(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core, and the images and clones that contain it."""
    yield from _read(text, _ASSIGNS)


def read_install_script(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core that a shell script installs, and the clones that contain it."""
    yield from _read(text, _ASSIGNS_IN_SHELL)


def read_commands(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core that commands in a text install, in whatever syntax they are written."""
    # A search for a word is fast, a pattern not.
    if "core" not in text.lower() or not _MAY_INSTALL.search(text):
        return
    variables: dict[str, str] = {}
    for number, written in _command_lines(text):
        line = _expanded(written, variables)
        if assigned := _ASSIGNS_IN_SHELL.match(line):
            variables |= dict(_assignments(assigned["rest"]))
        installs = _INSTALLS.search(line)
        if _clones_megatron(line) or _CHECKS_OUT.search(line) or (installs and _FROM_TAG.search(line)):
            yield _read_clone(number, line)
        elif installs:
            for match in _SPECIFIED.finditer(line):
                yield from read_requirement(number, match.group().rstrip(" ,"))


def _command_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of a text without comments, and those inside a string, each with its number."""
    for number, line in logical_lines(_CONTINUED_IN_JSON.sub(_continued, text)):
        for part in line.split("\\n"):
            yield number, _COMMENT.sub("", part)


def _continued(match: re.Match[str]) -> str:
    """Return a continued line of JSON as one of a shell, on as many lines."""
    between = match["between"] or ""
    return f"\\{between}" if "\n" in between else " "


def _read(text: str, assigns: re.Pattern[str]) -> Iterator[Requirement]:
    variables: dict[str, str] = {}
    for number, written in logical_lines(text):
        line = _expanded(written, variables)
        if assigned := assigns.match(line):
            variables |= dict(_assignments(assigned["rest"]))
        words = [a or b or c for a, b, c in re.findall(r"\"([^\"]*)\"|'([^']*)'|(\S+)", line)]
        if not words or words[0].startswith("#"):
            continue
        if words[0].upper() == "FROM":
            if any(map(_is_image_with_megatron, words[1:])):
                yield Requirement(number, line, None, origin="a container image")
        elif _clones_megatron(line) or _CHECKS_OUT.search(line):
            yield _read_clone(number, line)
        elif re.search(r"\bpip3?\s+install\b|\buv\s+add\b", line):
            for word in words:
                yield from read_requirement(number, word)


def _expanded(line: str, variables: Mapping[str, str]) -> str:
    """Return a line with the values of the variables that are set above it."""

    def value(match: re.Match[str]) -> str:
        name, default = match["name"] or match["plain"], match["default"]
        return variables.get(name, "") or default or match.group()

    return _VARIABLE.sub(value, line) if "$" in line else line


def _assignments(text: str) -> Iterator[tuple[str, str]]:
    """Yield the variables that `ARG` or `ENV` sets, each with its value."""
    if match := re.fullmatch(r"(\w+)[ \t]+([^=]+)", text.strip()):
        yield match[1], match[2].strip().strip("\"'")
    for name, value in re.findall(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S*)", text):
        yield name, value.strip("\"'")


def _is_image_with_megatron(word: str) -> bool:
    return bool(re.search(r"nemo|megatron", word, re.IGNORECASE) and re.search("[/:]", word))


def _clones_megatron(line: str) -> bool:
    command = re.search(r"\bgit\s+clone\b", line, re.IGNORECASE)
    return bool(command and re.compile(r"[/:]megatron-lm(?![\w-])", re.IGNORECASE).search(line, command.end()))


def _read_clone(number: int, line: str) -> Requirement:
    """Return the requirement of a line that clones Megatron-LM: the release of its branch or tag."""
    tag = re.search(r"\bcore_[rv]([0-9]+)\.([0-9]+)[0-9.]*", line)
    if tag is None:
        return Requirement(number, line, None, origin="a git clone")
    return exact(number, f"git clone {tag[0]}", Release(int(tag[1]), int(tag[2])))
