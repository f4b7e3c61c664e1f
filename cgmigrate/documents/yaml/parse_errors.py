"""Problems of files that are not valid YAML."""

from __future__ import annotations

import re

from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.documents.yaml.tree import MAX_DEPTH, DepthError, bom_length
from cgmigrate.text.spans import Span

_TOO_DEEP = f"the nesting depth of this YAML is more than {MAX_DEPTH} levels, so it is not examined"
_LIBYAML_LIMIT = "exceeded maximum nesting depth"
"""What libyaml says since 0.2.6; it may say so before the tree has reached its own limit, since it reads ahead."""
_TEMPLATE = re.compile(r"\{\{|\{%|<%|\{#")


def parse_error(text: str, error: Exception) -> Problem:
    """Return the problem of a file that is not valid YAML: where the parser stopped, and why."""
    template = _TEMPLATE.search(text)
    at = _position_of(text, error)
    reason = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    context = getattr(error, "context", None)
    if context:
        reason = f"{reason} ({context})"
    if template:
        sign = template.group()
        return Problem(
            ProblemKind.TEMPLATE,
            Span(template.start(), template.start() + len(sign)),
            f"the file holds template markup (`{sign}`) and is not YAML until it is rendered: {reason}",
        )
    end = text.find("\n", at)
    span = Span(at, max(at + 1, len(text) if end < 0 else end))
    if isinstance(error, DepthError) or _LIBYAML_LIMIT in reason:
        return Problem(ProblemKind.TOO_COMPLEX, span, _TOO_DEEP)
    return Problem(ProblemKind.INVALID_YAML, span, f"this is not valid YAML: {reason}")


def _position_of(text: str, error: Exception) -> int:
    """Return where in the text a parser's error is; libyaml counts bytes where it refuses a character."""
    character, mark = getattr(error, "character", None), getattr(error, "problem_mark", None)
    if isinstance(character, int):
        return max(0, text.find(chr(character)))
    if isinstance(error, UnicodeEncodeError):
        return error.start
    return min(mark.index + bom_length(text), len(text)) if mark else 0
