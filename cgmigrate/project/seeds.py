"""Seed words: a file that contains none of them has no diagnostics and is not parsed."""

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


SEED_WORDS: tuple[bytes, ...] = tuple(word.encode() for word in _WORDS)


SUPPRESSION_MARK = b"cgmigrate:"
"""The start of a suppression comment. A file with one is examined, since an unused suppression is reported."""


# UTF-32-LE starts with UTF-16-LE's byte order mark, so it must come first.
_SEED_WORDS_BY_MARK = tuple(
    (mark, tuple(word.encode(encoding) for word in _WORDS))
    for mark, encoding in (
        (b"\xff\xfe\x00\x00", "utf-32-le"),
        (b"\x00\x00\xfe\xff", "utf-32-be"),
        (b"\xff\xfe", "utf-16-le"),
        (b"\xfe\xff", "utf-16-be"),
    )
)


OVERLAP = max(len(word) for _, words in _SEED_WORDS_BY_MARK for word in words) - 1
"""Bytes that two consecutive pieces of a file must share, so that no seed word is cut."""


def has_seed_word(data: bytes) -> bool:
    """Return whether the bytes of a whole file contain a seed word, in UTF-8 or in the encoding of its mark."""
    return contains_any(data, seed_words_for(data))


def seed_words_for(start: bytes) -> tuple[bytes, ...]:
    """Return the seed words in the encoding that the first bytes of a file announce."""
    if start[:2] in (b"\xff\xfe", b"\xfe\xff", b"\x00\x00"):
        for mark, words in _SEED_WORDS_BY_MARK:
            if start.startswith(mark):
                return words
    return SEED_WORDS


def contains_any(data: bytes, words: tuple[bytes, ...]) -> bool:
    """Return whether the bytes contain one of the words of `seed_words_for`."""
    # Nearly all files contain neither of these two, which saves the search for the eleven words.
    if words is SEED_WORDS and b"cuda" not in data and b"CudaGraph" not in data:
        return False
    return any(word in data for word in words)
