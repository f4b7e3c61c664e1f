"""A judge of makefiles: GNU make runs their recipes, and each command records its words."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.support.shell_judges import without_settings

_RECORDER = """#!/bin/sh
for word in "$0" "$@"; do printf '%s\\0' "${word##*/}"; done >> "$RECORD"
printf '\\n\\0' >> "$RECORD"
"""
PROGRAMS = ("torchrun", "srun")


def commands(text: str, folder: Path, *targets: str) -> list[list[str]]:
    """Return the words of each command that make starts for some targets."""
    programs = folder / "programs"
    programs.mkdir(exist_ok=True)
    for name in PROGRAMS:
        (programs / name).write_text(_RECORDER)
        (programs / name).chmod(0o755)
    record = folder / "record"
    record.write_bytes(b"")
    (folder / "judged.mk").write_bytes(text.encode())
    environment = {"PATH": f"{programs}:{os.environ['PATH']}", "RECORD": str(record)}
    subprocess.run(
        ["make", "-s", "-k", "-B", "-f", "judged.mk", *targets],
        cwd=folder,
        env=environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    (folder / "judged.mk").unlink()
    result: list[list[str]] = [[]]
    for word in record.read_bytes().decode().split("\0")[:-1]:
        if word == "\n":
            result.append([])
        else:
            result[-1].append(word)
    return result[:-1]


def other_words(text: str, folder: Path, *targets: str) -> list[list[str]]:
    """Return the words of all commands without the flags of settings."""
    return [without_settings(words) for words in commands(text, folder, *targets)]
