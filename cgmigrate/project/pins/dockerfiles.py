"""Dockerfiles: images, clones of Megatron-LM and installed requirements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.megatron.releases import Release
from cgmigrate.project.pins.lines import logical_lines
from cgmigrate.project.pins.pep508 import read_requirement
from cgmigrate.project.pins.requirement import Requirement, exact


def read_dockerfile(text: str) -> Iterator[Requirement]:
    """Yield the requirements on megatron-core, and the images and clones that contain it."""
    for number, line in logical_lines(text):
        words = [a or b or c for a, b, c in re.findall(r"\"([^\"]*)\"|'([^']*)'|(\S+)", line)]
        if not words or words[0].startswith("#"):
            continue
        if words[0].upper() == "FROM":
            if any(map(_is_image_with_megatron, words[1:])):
                yield Requirement(number, line, None, origin="a container image")
        elif _clones_megatron(line):
            yield _read_clone(number, line)
        elif re.search(r"\bpip3?\s+install\b|\buv\s+add\b", line):
            for word in words:
                yield from read_requirement(number, word)


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
