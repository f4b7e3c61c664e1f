"""The version that was released last."""

import re

from tests.support.paths import ROOT

_CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
RELEASED = re.findall(r"^## \[(\d.*?)\]", _CHANGELOG, re.MULTILINE)[0]
"""The newest version of the changelog; pages name it where a reader copies a command."""
