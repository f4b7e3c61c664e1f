"""Files that tests write."""

from __future__ import annotations

from pathlib import Path


def write(path: Path | str, content: str | bytes) -> Path:
    """Write a file byte for byte, with the folders above it, and return its path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path
