"""The releases of megatron-core whose settings are known."""

from __future__ import annotations

from typing import NamedTuple


class Release(NamedTuple):
    """A minor release of megatron-core: within one minor the settings never changed meaning."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


OLDEST = Release(0, 12)
"""The oldest release whose semantics are known; ``cuda_graph_scope`` appeared in it."""


IMPL_SINCE = Release(0, 15)
"""First release with ``cuda_graph_impl``; deprecates ``enable_cuda_graph`` and ``external_cuda_graph``."""


SCOPE_LIST_SINCE = Release(0, 16)
"""First release in which ``cuda_graph_scope`` is a list of modules that is validated."""


LAST_OLD = Release(0, 17)
"""The last release of the old names."""


SPLIT_IN = Release(0, 18)
"""First release with ``cuda_graph_modules`` and ``inference_cuda_graph_scope``."""


NEWEST = Release(0, 19)
"""The newest published release, and the default target. This line names it; pages and messages are made from it."""


UPSTREAM = Release(NEWEST.major, NEWEST.minor + 1)
"""The version of megatron-core's main branch, read like the newest release."""


KNOWN = tuple(Release(0, minor) for minor in range(OLDEST.minor, NEWEST.minor + 1))
"""The published releases whose semantics are known."""


ACCEPTED = (*KNOWN, UPSTREAM)
"""The releases that ``--from``, ``--to`` and pins may name."""
