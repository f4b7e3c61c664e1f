"""Run git in a checkout that may be hostile: its configuration must not start a program."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

_HOOK_VARIABLES = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY")
"""Variables that name the repository of a git hook, whatever folder git runs in."""

_VARIABLES = {
    "LC_ALL": "C",
    # A promisor remote of the checkout may be a command (ext::). Older versions of git know only the second variable.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_CONFIG_NOSYSTEM": "1",
}

_SETTINGS = {
    # Each of these may name a program, or folders of programs.
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    # A folder with the files of a bare repository has a configuration, too.
    "safe.bareRepository": "explicit",
    # These change which names git prints, and how.
    "submodule.recurse": "false",
    "color.ui": "false",
    "color.grep": "false",
}

PATIENCE = 30
"""Seconds after which git counts as not available: a FIFO named ``.gitignore`` makes it wait for ever."""


def run_git(folder: str, *arguments: str) -> tuple[bytes, str] | None:
    """Run git in a folder; return its output and error messages, or None if it is not available or fails."""
    environment = {name: value for name, value in os.environ.items() if name not in _HOOK_VARIABLES} | _VARIABLES
    status, output, complaints = _run(folder, arguments, environment)
    if status and "dubious ownership" in complaints and (folders := _safe_directories()):
        # The system's configuration is not read, except for the folders that it declares safe.
        environment |= _as_variables([("safe.directory", name) for name in folders], environment)
        status, output, complaints = _run(folder, arguments, environment)
    return None if status else (output, complaints)


def _run(folder: str, arguments: Sequence[str], environment: Mapping[str, str]) -> tuple[int, bytes, str]:
    import subprocess

    settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
    command = ["git", "--no-pager", *settings, *arguments]
    try:
        process = subprocess.run(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=PATIENCE,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, b"", str(error)
    return process.returncode, process.stdout, os.fsdecode(process.stderr)


def _safe_directories() -> list[str]:
    """Return the folders that the system's configuration declares safe."""
    # Run outside the checkout, so that only the system's file is read.
    status, output, _ = _run(os.sep, ["config", "--system", "--get-all", "-z", "safe.directory"], os.environ)
    return [] if status else os.fsdecode(output).split("\0")[:-1]


def _as_variables(settings: Sequence[tuple[str, str]], environment: Mapping[str, str]) -> dict[str, str]:
    """Return variables that give git these settings, after those in the environment."""
    count = environment.get("GIT_CONFIG_COUNT", "")
    first = int(count) if count.isdecimal() else 0
    result = {"GIT_CONFIG_COUNT": str(first + len(settings))}
    for number, (name, value) in enumerate(settings, first):
        result |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return result
