"""The words that select a file: one that holds none cannot hold a diagnostic."""

from __future__ import annotations

_WORDS = (
    "enable_cuda_graph",
    "external_cuda_graph",
    "cuda_graph_scope",
    "cuda_graph_impl",
    "cuda_graph_modules",
    "enable-cuda-graph",
    "external-cuda-graph",
    "cuda-graph-scope",
    "cuda-graph-impl",
    "cuda-graph-modules",
    "CudaGraphScope",
)


TRIGGERS: tuple[bytes, ...] = tuple(word.encode() for word in _WORDS)
"""A file that holds none of these cannot hold a diagnostic, unless it asks for some to be left out."""


REQUEST = b"cgmigrate:"
"""In a comment, the beginning of a request to leave diagnostics out, which is told where there are none."""


# UTF-32-LE starts with UTF-16-LE's mark, so it must come first.
_TRIGGERS_BY_MARK = tuple(
    (mark, tuple(word.encode(encoding) for word in _WORDS))
    for mark, encoding in (
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    )
)


_OVERLAP = max(len(word) for _, words in _TRIGGERS_BY_MARK for word in words) - 1


def has_trigger(data: bytes) -> bool:
    """Whether a whole file's bytes hold a trigger word, in UTF-8 or as a UTF-16 or UTF-32 mark announces."""
    return _holds(data, _triggers_for(data))


def _triggers_for(start: bytes) -> tuple[bytes, ...]:
    if start[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x00\x00"):
        for mark, words in _TRIGGERS_BY_MARK:
            if start.startswith(mark):
                return words
    return TRIGGERS


def _holds(data: bytes, words: tuple[bytes, ...]) -> bool:
    # Two searches turn away nearly every file; eleven are for the few that speak of CUDA.
    if words is TRIGGERS and b"cuda" not in data and b"CudaGraph" not in data:
        return False
    return any(word in data for word in words)
