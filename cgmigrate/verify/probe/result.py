"""What each process of an arm writes: its result, why it failed, and what it ran on."""

from __future__ import annotations

import json
import os
import traceback
from collections.abc import Mapping
from pathlib import Path


def write(result: Mapping[str, object], folder: Path, rank: int) -> None:
    """Write the result of a rank, at once: nobody reads a part of it."""
    file = folder / f"rank-{rank}.json"
    partial = file.with_suffix(".part")
    partial.write_text(json.dumps(result), encoding="utf-8")
    partial.rename(file)


def failure_of(error: BaseException) -> str:
    """One line that says what stopped the arm and where: the first error of a chain, not what it led to."""
    root = error
    while root.__context__ is not None and not root.__suppress_context__:
        root = root.__context__
    first = str(root).strip().partition("\n")[0]
    line = f"{type(root).__name__}: {first}" if first else type(root).__name__
    frames = traceback.extract_tb(root.__traceback__)
    # megatron-core's own last line says more than torch's below it.
    frame = next((frame for frame in reversed(frames) if f"{os.sep}megatron{os.sep}" in frame.filename), None)
    if frame is None:
        return line
    place = frame.filename.rpartition(f"{os.sep}megatron{os.sep}")[2]
    return f"{line} (megatron/{place}:{frame.lineno}: {frame.line})"


def environment() -> dict[str, str]:
    """Return the versions and the GPU of this process."""
    import platform

    import megatron.core
    import torch

    result = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "megatron-core": megatron.core.__version__,
    }
    if torch.cuda.is_available():
        result["GPU"] = torch.cuda.get_device_name()
        result["GPUs"] = str(torch.cuda.device_count())
        result["CUDA"] = str(torch.version.cuda)
    try:
        import transformer_engine

        result["transformer-engine"] = getattr(transformer_engine, "__version__", "unknown")
    except ImportError:
        pass
    driver = Path("/proc/driver/nvidia/version")
    if driver.exists():
        words = driver.read_text(encoding="utf-8").split()
        result["driver"] = next((word for word in words if word[:1].isdigit() and word.count(".") >= 1), "unknown")
    return result
