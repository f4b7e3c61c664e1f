"""Programs that run under a release of megatron-core, which is imported once for all of them.

A server for each folder of a release imports it and forks for each program: an import takes four seconds, a fork none.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cgmigrate.verify import config_level

_SERVER = """
import json, os, sys, traceback, warnings
warnings.simplefilter("ignore")
import megatron.core.transformer.transformer_config
try:
    import megatron.training.arguments
except ImportError:
    pass
warnings.resetwarnings()
for line in sys.stdin:
    program, arguments, files = json.loads(line)
    child = os.fork()
    if not child:
        status = 1
        try:
            for target, name in enumerate(files):
                os.dup2(os.open(name, os.O_RDWR), target)
            sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")
            sys.argv = ["-c", *arguments]
            exec(compile(program, "<program>", "exec"), {"__name__": "__main__"})
            status = 0
        except SystemExit as end:
            status = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def printed(program: str, rows: Iterable[Any], package: str, arguments: Sequence[str] = ()) -> list[str]:
    """Return the lines that a program prints, which gets rows as JSON, one a line.

    ``package`` is the folder of a release, empty for the installed one, without which the test is skipped.
    """
    if find_spec("torch") is None or (not package and find_spec("megatron") is None):
        pytest.skip("the judge is the installed megatron-core")
    server = _started(package)
    assert server.stdin is not None and server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("rows", "output", "errors")]
        for file, text in zip(files, ("\n".join(map(json.dumps, rows)), "", ""), strict=True):
            file.write_text(text)
        print(json.dumps([program, list(arguments), list(map(str, files))]), file=server.stdin, flush=True)
        status = server.stdout.readline().strip()
        assert status == "0", f"the program ended with {status or 'its server'}: {files[2].read_text()}"
        return files[1].read_text().splitlines()


def read_in_forks(patch: pytest.MonkeyPatch) -> None:
    """Have `verify` read configurations by forks of the servers instead of a process for each release and run."""

    def run(command: Sequence[str], *, input: str, env: dict[str, str], **_: Any) -> Any:
        program = f"import os, runpy\nos.environ.update({env!r})\nrunpy.run_path({command[1]!r}, run_name='__main__')"
        package = env["PYTHONPATH"].split(os.pathsep)[0]
        lines = printed(program, [json.loads(input)], package if Path(package, "megatron").is_dir() else "")
        return SimpleNamespace(stdout="\n".join(lines), stderr="", returncode=0)

    patch.setattr(config_level, "subprocess", SimpleNamespace(run=run, TimeoutExpired=subprocess.TimeoutExpired))


@functools.cache
def _started(package: str) -> subprocess.Popen[str]:
    path = os.pathsep.join(filter(None, [package, os.environ.get("PYTHONPATH")]))
    # Transformer Engine is not there; where a test acts as if it were, megatron-core asks for the second variable.
    environment = {**os.environ, "PYTHONPATH": path, "NVTE_CPU_OFFLOAD_V1": "1", "CUDA_VISIBLE_DEVICES": ""}
    command, pipe = [sys.executable, "-c", _SERVER], subprocess.PIPE
    server = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, env=environment)
    atexit.register(lambda: (server.kill(), server.wait()))
    return server
