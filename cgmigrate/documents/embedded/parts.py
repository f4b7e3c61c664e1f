"""Parts of a script that a file with instructions amounts to."""

from __future__ import annotations

import re
from functools import lru_cache

from cgmigrate.documents.code import Code
from cgmigrate.documents.shell.tree import parse

_COMMENTS = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*[ \t]*(?:#[^\n]*)?")
_SHELLS = ("sh", "bash", "dash", "ash", "ksh")


def is_shell(program: str) -> bool:
    """Return whether a program is a shell whose code is read."""
    return program.strip().rpartition("/")[2] in _SHELLS


@lru_cache(maxsize=4096)
def is_broken(code: str) -> bool:
    """Return whether the grammar of the shell does not cover a part; an edited file has most parts of the original."""
    return bool(parse(code).errors)


def in_shell(code: Code) -> Code:
    """Return code that has a shell of its own."""
    if not code:
        return code
    # A shell with nothing but comments would be no valid code.
    return Code.added("(\n:\n" if _COMMENTS.fullmatch(code.text) else "(\n") + code + Code.added("\n)\n")


def possibly(code: Code) -> Code:
    """Return code that may run or not."""
    return Code.added("if :; then\n") + code + Code.added("\nfi\n") if code else code
