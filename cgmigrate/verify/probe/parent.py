"""``python -m cgmigrate.verify.probe.parent WORKLOAD``: imports once what arms import, and forks each arm.

Most of an arm's time is imports. The standard input is a socket, whose messages have the words of an arm's program,
its folder, and a socket that gets the process of the arm and how it ended. A process that has touched CUDA cannot be
forked: then, and where an import fails, the answer is the reason, and the arm needs a process of its own.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import signal
import socket
import sys
import threading
import traceback
from typing import Any

from cgmigrate.verify.arms import TRAINING

_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"
"""Makes torch ask NVML whether there is a GPU: the CUDA runtime would initialise itself for the answer."""
_MODULES = (
    "torch",
    "transformer_engine.pytorch",
    "megatron.core.models.gpt.gpt_layer_specs",
    "megatron.core.models.gpt.gpt_model",
    "megatron.core.distributed",
    "megatron.core.optimizer",
    "megatron.core.pipeline_parallel",
    "megatron.core.full_cuda_graph",
    "megatron.core.transformer.cuda_graphs",
)
_OF_ENGINES = ("megatron.core.inference.contexts", "megatron.core.inference.engines")
_NOT_INITIALIZED = 3
"""``CUDA_ERROR_NOT_INITIALIZED``: what the driver answers in a process that has not touched it."""


def main(workload: str) -> int:
    """Fork an arm for each message, until the standard input ends."""
    control = socket.socket(fileno=os.dup(0))
    _point(os.devnull, 0)
    os.environ.setdefault(_NVML, "1")
    failure = _imports(workload)
    # Nothing waits for those that wait for arms.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        message, sockets, *_ = socket.recv_fds(control, 1 << 16, 1)
        if not message:
            return 0
        with socket.socket(fileno=sockets[0]) as reply:
            if reason := failure or why_not_fork():
                reply.send(json.dumps({"refused": reason}).encode())
            elif os.fork() == 0:
                control.close()
                _wait_for_arm(json.loads(message), reply)


def _imports(workload: str) -> str:
    """Import what the arms of a workload import; return why that failed, empty if it did not."""
    if workload != TRAINING:
        from cgmigrate.verify.probe import flash_attention

        # Before megatron-core, as in an arm.
        flash_attention.install()
    for name in (*_MODULES, *(_OF_ENGINES if workload != TRAINING else ())):
        try:
            importlib.import_module(name)
        except Exception as error:
            absent = isinstance(error, ModuleNotFoundError) and f"{name}.".startswith(f"{error.name}.")
            if not absent or name == "torch":
                traceback.print_exc()
                return f"{name} cannot be imported ({type(error).__name__}: {error})"
    return ""


def why_not_fork() -> str:
    """Return why this process cannot be forked, empty if it can."""
    torch: Any = sys.modules["torch"]
    if torch.cuda.is_initialized():
        return "an import initialises CUDA"
    if threading.active_count() > 1:
        return "an import starts a thread"
    with contextlib.suppress(OSError):
        driver, count = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
        if driver.cuDeviceGetCount(ctypes.byref(count)) != _NOT_INITIALIZED:
            return "an import initialises the driver of the GPU"
    return ""


def _wait_for_arm(request: Any, reply: socket.socket) -> None:
    """Fork the arm, and say how it ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    child = os.fork()
    if child == 0:
        _become_arm(request, reply)
    _, status = os.waitpid(child, 0)
    with contextlib.suppress(OSError):
        reply.send(json.dumps({"status": os.waitstatus_to_exitcode(status)}).encode())
    os._exit(0)


def _become_arm(request: Any, reply: socket.socket) -> None:
    """Run the arm, as its own program would."""
    status = 1
    try:
        # What it starts is ended with it.
        os.setsid()
        os.chdir(request["place"])
        _point("log", 1)
        os.dup2(1, 2)
        reply.send(json.dumps({"pid": os.getpid()}).encode())
        reply.close()
        from cgmigrate.verify.probe.__main__ import main as run

        status = run(*request["words"])
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(status)


def _point(path: str, descriptor: int) -> None:
    file = os.open(path, os.O_RDONLY if descriptor == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    os.dup2(file, descriptor)
    os.close(file)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
