"""Judges of shell scripts: the words that a real bash passes on, and the real argument parsers of megatron-core."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

_PROGRAMS = ("torchrun", "python", "srun", "sbatch")
_FLAG = re.compile(r"--(?:inference-)?(?:cuda-graph-(?:scope|impl|modules)|(?:enable|external)-cuda-graph)(?:=.*)?")
_PARSER = """
import argparse, json, sys
out = sys.stdout
sys.stdout = sys.stderr
import megatron.training.arguments as arguments

class Refused(Exception):
    pass

class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise Refused(message)

parser = arguments.add_megatron_arguments(Parser(allow_abbrev=False))
def plain(value):
    if isinstance(value, list):
        return [plain(item) for item in value]
    return getattr(value, "name", value) if not isinstance(value, (int, float, str, type(None))) else value
print("ready", file=out, flush=True)
for line in sys.stdin:
    try:
        answer = {name: repr(value) if callable(value) else plain(value) for name, value in
                  vars(parser.parse_args(json.loads(line))).items()}
    except (Refused, KeyError) as error:
        answer = {"refused": str(error)}
    print(json.dumps(answer, default=repr), file=out, flush=True)
"""


class RealParser:
    """Megatron-LM's parser of one release of megatron-core, in a process of its own."""

    def __init__(self, folder: Path | None = None) -> None:
        first = [f"import sys; sys.path.insert(0, {str(folder)!r})\n"] if folder else []
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", "".join([*first, _PARSER])],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout
        self.works = self._process.stdout.readline() == "ready\n"

    def parse(self, words: Sequence[str]) -> dict[str, Any]:
        """Return all arguments; ``refused`` is the message if the parser does not accept them."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(list(words)) + "\n")
        self._process.stdin.flush()
        result: dict[str, Any] = json.loads(self._process.stdout.readline())
        return result

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait(timeout=60)


def recorded(script: str) -> list[list[str]]:
    """Return the words of each command of a script that starts a program, as a real bash expands them."""
    bash = shutil.which("bash")
    assert bash
    report = 'for word in "$@"; do printf "%s\\0" "$word"; done >&3; printf "\\n\\0" >&3'
    shims = "".join(f'{name}() {{ set -- {name} "$@"; {report}; }}; export -f {name}; ' for name in _PROGRAMS)
    code = f"exec 3>&1 1>/dev/null; {shims}\n{script}"
    done = subprocess.run([bash], input=code.encode(), capture_output=True, check=False, timeout=60)
    commands: list[list[str]] = [[]]
    for word in done.stdout.decode().split("\0")[:-1]:
        if word == "\n":
            commands.append([])
        else:
            commands[-1].append(word)
    return commands[:-1]


def without_settings(words: Sequence[str]) -> list[str]:
    """Return words without the flags of settings and their values."""
    kept, inside = [], False
    for word in words:
        inside = bool(_FLAG.fullmatch(word)) or (inside and not word.startswith("-"))
        if not inside:
            kept.append(word)
    return kept


def is_valid(script: str) -> bool:
    """Return whether bash parses a script."""
    return subprocess.run(["bash", "-n"], input=script.encode(), capture_output=True, check=False).returncode == 0
