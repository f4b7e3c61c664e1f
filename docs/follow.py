"""Follow a page to the letter: write the files that it shows, run its commands, put in what they print."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from cgmigrate.cli.commands import main

_STEP = re.compile(
    r"Write `(?P<path>[^`]+)`:\n\n```\w+\n(?P<file>.*?)```|"
    r"```console\n\$ cgmigrate (?P<words>(?!verify )[^\n]*)\n.*?```",
    re.DOTALL,
)
"""A file or a command. `verify` needs megatron-core, so a test of it runs what pages show of it."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The page with what its commands printed, and the status with which each of them ended."""

    text: str
    statuses: tuple[int, ...]


def follow(page: str) -> Followed:
    """Do in an empty project what a page says, step by step."""
    statuses: list[int] = []

    def step(match: re.Match[str]) -> str:
        if match["path"]:
            path = Path(match["path"])
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(match["file"], encoding="utf-8")
            subprocess.run(["git", "add", str(path)], check=True)
            return match[0]
        result = CliRunner().invoke(main, shlex.split(match["words"]))
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        statuses.append(result.exit_code)
        return f"```console\n$ cgmigrate {match['words']}\n{result.output.rstrip()}\n```"

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        # A checkout of its own: no pins above it count, and its files are known.
        subprocess.run(["git", "init", "-q"], check=True)
        return Followed(_STEP.sub(step, page), tuple(statuses))
