"""A judge of Dockerfiles: BuildKit's own parser reads them, and a real bash runs what they run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import dockerfile

from tests.support.shell_judges import recorded, without_settings


def instructions(text: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return the instructions as Docker reads them."""
    return [(one.cmd.upper(), one.value) for one in dockerfile.parse_string(text)]


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each command that a Dockerfile of one stage runs, as a real bash expands them."""
    variables = ""
    for one in dockerfile.parse_string(text):
        name = one.cmd.upper()
        if name in ("ENV", "ARG"):
            values = one.value if name == "ENV" else one.value[0].split("=", 1)
            pairs = zip(values[::2], values[1::2], strict=True)
            variables += "".join(f"export {name}={_quoted(value)}\n" for name, value in pairs)
        elif name in ("RUN", "CMD", "ENTRYPOINT", "HEALTHCHECK", "ONBUILD"):
            value = one.value[1:] if name == "HEALTHCHECK" else one.value
            if one.json and value[0].startswith("-"):
                yield list(value)
            elif one.json:
                yield from recorded(variables + shlex.join(value))
            elif one.heredocs and (value[0].startswith("<<") or " bash" in value[0]):
                yield from recorded(variables + one.heredocs[0].content)
            else:
                yield from recorded(variables + value[0])


def _quoted(value: str) -> str:
    """Return a value as bash reads it; `ENV NAME a b` has no quotes."""
    return value if value[:1] in ('"', "'") or " " not in value else f'"{value}"'


def other_words(text: str) -> list[list[str]]:
    """Return the words of all commands without the flags of settings."""
    return [without_settings(words) for words in commands(text)]
