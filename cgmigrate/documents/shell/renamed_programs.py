"""The program of a command line whose GPT model becomes a hybrid model, with the pattern of layers behind it.

The pattern is written behind the program, in quotes: in an array or a string that a command expands without quotes, a
shell would replace it by the names of files, since ``*`` is a part of it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from cgmigrate.documents.shell.fragments import Fragment, FragmentForm
from cgmigrate.documents.shell.objects import CommandLine
from cgmigrate.documents.sites import CannotEditError
from cgmigrate.megatron.hybrid_models import PATTERN, PROGRAMS, SPEC_FLAG
from cgmigrate.megatron.settings import Settings
from cgmigrate.text.edits import Edit
from cgmigrate.text.spans import Span

_PROGRAM = re.compile(rf"(?:{'|'.join(map(re.escape, (*PROGRAMS, *PROGRAMS.values())))})(?![\w.])")
_OTHER = "the command line starts `{}` in a string, a variable or another command: write the hybrid form by hand"


def without_hybrid(own: Settings, after: Settings) -> Settings:
    """Return settings without those that are written behind the program."""
    is_new = SPEC_FLAG in after and SPEC_FLAG not in own
    return {name: value for name, value in after.items() if not is_new or name not in (PATTERN, SPEC_FLAG)}


def program_edits(text: str, index: int, line: CommandLine, after: Settings) -> Iterator[Edit]:
    """Yield the edits that start the program of a hybrid model. Raises CannotEditError."""
    spec = after[SPEC_FLAG]
    assert isinstance(spec, list)
    words = " ".join(["--hybrid-layer-pattern", shlex.quote(str(after[PATTERN])), "--spec", *map(str, spec)])
    for command in dict.fromkeys(line.commands):
        span = _program_of(text, command) if command.form is FragmentForm.COMMAND else None
        if span is None:
            raise CannotEditError(index, _OTHER.format(next(iter(PROGRAMS))))
        old = next(name for name in PROGRAMS if text.startswith(name, span.start))
        yield Edit(span.start, span.start + len(old), PROGRAMS[old])
        yield Edit(span.end, span.end, f" {words}")
    if not line.commands:
        raise CannotEditError(index, _OTHER.format(next(iter(PROGRAMS))))


def programs_in(text: str) -> list[Span]:
    """Return where the programs of both kinds of models are named."""
    return [Span(*match.span()) for match in _PROGRAM.finditer(text)]


def _program_of(text: str, command: Fragment) -> Span | None:
    """Return the program that a command starts, up to the end of its word; None if it is none with a hybrid form."""
    for word in command.words:
        written = text[word.start : word.end].rstrip("\"'")
        name = next((one for one in PROGRAMS if re.search(rf"(?:^|[/\"']){re.escape(one)}$", written)), "")
        if name:
            return Span(word.start + len(written) - len(name), word.end)
    return None
