"""Messages for failures of the program itself: one line, no traceback.

A file that is too deep to be examined is a diagnostic. Any other failure is one of a single file if possible,
so that the others are still examined and reported.
"""

from __future__ import annotations

import os

TOO_DEEP = (RecursionError, MemoryError)
"""What parsers raise for text that is nested too deeply."""


def too_deep(error: BaseException) -> str:
    """Return the message about such a file."""
    reason = "memory" if isinstance(error, MemoryError) else "nesting"
    return f"the file needs more {reason} to be examined than Python gives, so it is not examined"


def internal_error(error: BaseException) -> str:
    """Return one line about an error: its class, its text, and the line of cgmigrate that raised it."""
    text = " ".join(str(error).split())[:200]
    named = type(error).__name__ + (f": {text}" if text else "")
    return f"internal error ({named}, at {_raised_at(error)}); please report this"


def _raised_at(error: BaseException) -> str:
    at, step = "an unknown place", error.__traceback__
    root = os.path.dirname(os.path.dirname(__file__)) + os.sep
    while step is not None:
        file = step.tb_frame.f_code.co_filename
        if file.startswith(root):
            at = f"{file.removeprefix(root).replace(os.sep, '/')}:{step.tb_lineno}"
        step = step.tb_next
    return at
