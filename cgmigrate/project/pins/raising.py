"""Requirements that admit releases before the split of the settings, raised to it."""

from __future__ import annotations

import re

from cgmigrate.megatron.releases import SPLIT_IN
from cgmigrate.project.pins.files import Pin

_LOWEST = re.compile(r"(?:>=|>)\s*[\d.]+\w*")


def raised(pin: Pin, text: str) -> str | None:
    """Return the text of a file with its requirement raised; None where how to write that is not certain."""
    lines = text.splitlines(keepends=True)
    line = lines[pin.line - 1] if pin.line <= len(lines) else ""
    new, count = _LOWEST.subn(f">={SPLIT_IN}", pin.text)
    if count != 1 or line.count(pin.text) != 1:
        return None
    lines[pin.line - 1] = line.replace(pin.text, new)
    return "".join(lines)
