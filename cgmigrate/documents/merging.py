"""What several mappings have together if it is not known which of them takes precedence.

That is so for what YAML's ``<<`` merges. By the specification the first of a list counts, and so it does in PyYAML up
to 6.0.3, where of several ``<<`` the last counts. In PyYAML 6.0.4 the last of a list counts, and of keys of one
character the first. A file may be loaded by either, so a value is known only if all mappings that have it agree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from cgmigrate.documents.changes import same
from cgmigrate.megatron.settings import MergedValue, Undecided

_REASON = "different values in the mappings that `<<` merges, and the version of PyYAML decides which one takes effect"


def together(sources: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the values of mappings without an order; one that differs among them is a ``MergedValue``."""
    result: dict[str, object] = {}
    for source in reversed(sources):
        for name, value in source.items():
            is_alike = name not in result or same(result[name], value)
            result[name] = value if is_alike else _either(name, sources)
    return result


def _either(name: str, sources: Sequence[Mapping[str, object]]) -> MergedValue:
    """Return the value that is one of several; the text says of which, so that other values make it another one."""
    values = [source[name] for source in sources if name in source]
    texts = (value.text if isinstance(value, Undecided) else str(value) for value in values)
    return MergedValue(" or ".join(dict.fromkeys(texts)), _REASON)
