"""Which terminals show hyperlinks (OSC 8)."""

from __future__ import annotations

import os
from typing import TextIO

_PROGRAMS = frozenset(("ghostty", "Hyper", "iTerm.app", "rio", "Tabby", "vscode", "WarpTerminal", "WezTerm", "zed"))
"""Values of TERM_PROGRAM whose terminals show them."""
_KINDS = frozenset(("alacritty", "foot", "xterm-ghostty", "xterm-kitty"))
"""Values of TERM whose terminals do."""
_VTE = 5000
"""First version of VTE (GNOME Terminal, Terminator, Tilix, XFCE) that does."""


def shows_links(stream: TextIO) -> bool:
    """Return whether a stream is a terminal that shows hyperlinks."""
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    if os.environ.get("TERM_PROGRAM") in _PROGRAMS or os.environ.get("TERM") in _KINDS:
        return True
    version = os.environ.get("VTE_VERSION", "")
    if version.isdecimal():
        return int(version) >= _VTE
    return any(os.environ.get(name) for name in ("WT_SESSION", "KONSOLE_VERSION", "DOMTERM"))
