"""Requirements as pip and pyproject.toml write them (PEP 508), URLs and local paths."""

from __future__ import annotations

import re
from collections.abc import Iterator

from cgmigrate.project.pins.references import read_url
from cgmigrate.project.pins.requirement import NAME, Requirement, is_core, specified


def read_requirement(line: int, text: str) -> Iterator[Requirement]:
    """Yield the requirement in one item of a list; nothing if it has no version or is on another package."""
    if "megatron" not in text.lower():
        return
    from packaging import requirements
    from packaging.utils import canonicalize_name

    try:
        requirement = requirements.Requirement(text)
    except requirements.InvalidRequirement:
        yield from _read_other(line, text)
        return
    core = canonicalize_name(requirement.name) == "megatron-core"
    if requirement.url:
        yield from read_url(line, text, requirement.url, is_core=core)
    elif core and requirement.specifier:
        yield specified(line, text, requirement.specifier)


def _read_other(line: int, text: str) -> Iterator[Requirement]:
    """Yield the requirement in an item that PEP 508 does not allow but pip or a build script does."""
    if "://" in text:
        yield from read_url(line, text, text, is_core=re.search(f"egg={NAME}", text, re.IGNORECASE) is not None)
    elif re.search(r"(?:^|/)megatron-(?:lm|core)/?(?:\[[^][]*\])?$", text, re.IGNORECASE):
        yield Requirement(line, text, None, origin="a local path", folder=text.split("[")[0])
    elif "$" in text:
        yield Requirement(line, text, None, origin="a variable")
    elif is_core(text):
        yield Requirement(line, text, None)
