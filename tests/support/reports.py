"""What the formats for people say, as tests read it."""

import re

from cgmigrate.megatron.releases import NEWEST

_DIAGNOSTIC = re.compile(r"(?:error|warning)\[([A-Z\d, ]+)\].*\n +--> (.+:\d+:\d+)$", re.MULTILINE)

RELEASES = f"Releases: from 0.17 (the default) to {NEWEST} (the default)\n"
"""The line about the releases in a project that pins none."""


def places_in(full: str) -> list[str]:
    """Return ``path:line:column: CODE`` for each diagnostic of a report in the format ``full``, in its order."""
    return [f"{place}: {codes}" for codes, place in _DIAGNOSTIC.findall(full)]
