"""NeMo-RL's own source as a judge of configurations, by release; see ``nemo_rl_program.py``.

It needs ``NEMO_RL_SOURCE``, a git repository of NeMo-RL (a bare mirror will do), and ``NEMO_RL_PYTHON``, a Python with
torch and megatron-core. Megatron-Bridge 0.6.2 is among the released packages.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

COMMITS = {"0.6": "v0.6.0", "0.7": "v0.7.0", "main": "7ea279abf"}
"""Release of NeMo-RL → its commit; main is that of 22 August 2026."""
SOURCE, _PYTHON = (os.environ.get(name, "") for name in ("NEMO_RL_SOURCE", "NEMO_RL_PYTHON"))
_BRIDGE = ROOT / ".corpus" / "megatron-bridge-0.6.2"
_PROGRAM = Path(__file__).with_name("nemo_rl_program.py")


def missing() -> str:
    """Return what the judge lacks, empty if it can run."""
    if not SOURCE or not _PYTHON:
        return "NEMO_RL_SOURCE and NEMO_RL_PYTHON are not set"
    return "" if _BRIDGE.is_dir() else f"{_BRIDGE.name} is not there"


def judge_nemo_rl(
    config: Mapping[str, Any], model: Mapping[str, Any] | None = None, release: str = "main"
) -> str | None:
    """Return the error with which NeMo-RL refuses a configuration at its start or in its first step, None for none.

    The configuration (with ``policy`` at its top) overrides ``examples/configs/grpo_math_1B.yaml`` with Megatron on;
    ``model`` are fields of the model that its checkpoint has (a dense model without dropout by default).
    """
    return next(iter(answers([{"policy": config["policy"], "model": dict(model or {})}], release)))["refused"]


def answers(requests: Iterable[Mapping[str, Any]], release: str = "main") -> Sequence[Mapping[str, Any]]:
    """Return what a release answers to requests; their form is in ``nemo_rl_program.py``."""
    process = _started(release)
    assert process.stdin is not None and process.stdout is not None
    verdicts = []
    for request in requests:
        process.stdin.write(json.dumps(request) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"the judge of NeMo-RL {release} ended")
        verdicts.append(json.loads(line))
    return verdicts


def source_of(release: str, folder: str) -> None:
    """Write the source of a release to a folder."""
    command = ["git", "-C", SOURCE, "archive", COMMITS[release], "nemo_rl", "examples/configs"]
    archive = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def text_of(commit: str, path: str) -> str:
    """Return a file of NeMo-RL's source."""
    command = ["git", "-C", SOURCE, "show", f"{commit}:{path}"]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


@functools.cache
def _started(release: str) -> subprocess.Popen[str]:
    folder = tempfile.TemporaryDirectory()
    source_of(release, folder.name)
    command = [_PYTHON, str(_PROGRAM), str(_BRIDGE), folder.name]
    pipe, environment = subprocess.PIPE, os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment)
    atexit.register(lambda: (process.kill(), process.wait(), folder.cleanup()))
    return process
