"""Words of a page that say that a name is a former one."""

from __future__ import annotations

import re

_FORMER = re.compile(
    r"\b(?:deprecat\w*|legacy|older|formerly|renam\w*|migrat\w*|no longer|replac\w*|obsolete|superseded|removed|"
    r"backwards?[- ]compat\w*|(?:before|old) and (?:after|new))\b|(?:(?<!-)->|=>|→|⇒)|\b0\.1[0-7]\b",
    re.IGNORECASE,
)
"""Words of a text that documents what was renamed or removed."""
_CONTRAST = re.compile(
    r"\b(?:old|before|former|previous(?:ly)?|up to|prior|until|instead|wrong|don'?t|do not|never|avoid|invalid|"
    r"error|fails?|bad|incorrect|(?:is|are) now|after|new)\b",
    re.IGNORECASE,
)
"""Words above a block of code that shows what not to write."""
_RESULT = re.compile(r"[ \t>*_]*(?:becomes|is now|now|instead|after|new|use|turns into|is rewritten)\b", re.IGNORECASE)
"""Words below a block of code that begin the text about what to write today."""


def is_former(text: str) -> bool:
    """Return whether a text documents what was renamed or removed."""
    return _FORMER.search(text) is not None


def is_contrast(text: str) -> bool:
    """Return whether a text compares former code with other code, or says what not to write."""
    return is_former(text) or _CONTRAST.search(text) is not None


def begins_result(line: str) -> bool:
    """Return whether a line begins the text about what to write today."""
    return _RESULT.match(line) is not None
