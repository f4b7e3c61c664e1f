"""The CUDA-graph settings: their names, values and spellings.

Sources: ``megatron/core/transformer/transformer_config.py``, ``.../enums.py`` and ``megatron/training/arguments.py`` of
megatron-core 0.12 to 0.19.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

ENABLE = "enable_cuda_graph"


EXTERNAL = "external_cuda_graph"


IMPL = "cuda_graph_impl"


SCOPE = "cuda_graph_scope"


MODULES = "cuda_graph_modules"


INFERENCE = "inference_cuda_graph_scope"


FIELDS = (ENABLE, EXTERNAL, IMPL, SCOPE, MODULES, INFERENCE)
"""The settings that decide what is captured, in the order in which messages name them."""


DEPRECATED = frozenset((ENABLE, EXTERNAL, SCOPE))
"""The old names."""


FLAGS = {field: "--" + field.replace("_", "-") for field in FIELDS}
"""Their spelling on Megatron-LM's command line."""


IMPLEMENTATIONS = ("none", "local", "transformer_engine", "full_iteration")
"""The values of the implementation; the last one is new since the split."""

LAYER_MODULES = ("attn", "mlp", "moe", "moe_router", "moe_preprocess", "mamba")
"""Parts of a layer that can be captured on their own (``CudaGraphModule``; ``mamba`` since 0.16)."""


INFERENCE_SCOPES = ("none", "layer", "block")
"""Values of ``inference_cuda_graph_scope`` (``InferenceCudaGraphScope``, since 0.18)."""


@dataclass(frozen=True, slots=True)
class Undecided:
    """A value that is not known from the file, such as ``${oc.env:GRAPHS}``."""

    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class MergedValue(Undecided):
    """A value that several merged mappings have differently, where it is not known which of them counts."""


class Missing(Enum):
    """Why a setting has no value."""

    ABSENT = "absent"
    """It is not written."""
    UNKNOWN = "unknown"
    """Whether it is written, and with which value, is not known."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A conditional value: ``["attn"] if moe else []``, nested ones flattened.

    ``texts`` are the texts before, between and after the ``branches``: the conditions.
    """

    texts: tuple[str, ...]
    branches: tuple[object, ...]

    def __str__(self) -> str:
        shown = (f"[{', '.join(map(str, item))}]" if isinstance(item, list) else str(item) for item in self.branches)
        pieces = (text + branch for text, branch in zip(self.texts, shown, strict=False))
        return "".join(pieces) + self.texts[-1]


Settings = Mapping[str, object]
"""Field name → value, as the reader receives it, without fields that are not written."""


def names_in(value: object) -> list[str]:
    """Return the names in a scope or modules value: a list, or text with commas, spaces or brackets."""
    if isinstance(value, (list, tuple)):
        return [str(item) for item in value]
    if not isinstance(value, str):
        return []
    return value.replace(",", " ").replace("[", " ").replace("]", " ").split()


def split_names(value: object) -> list[str] | None:
    """Return the names in a scope or modules value as TransformerConfig splits it; None if it rejects the type."""
    if value is None:
        return []
    if isinstance(value, str):
        return value.split(",")
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return value
    return None


def without_name(value: object, name: str) -> object:
    """Return a scope or modules value without one name, in the same form; None if no name remains."""
    if isinstance(value, list):
        return [item for item in value if item != name] or None
    text = str(value)
    others = [word for word in names_in(text) if word != name]
    if not others:
        return None
    joined = ("," if "," in text else " ").join(others)
    return f"[{joined}]" if text.lstrip().startswith("[") else joined


def all_known(settings: Iterable[Settings]) -> bool:
    """Return whether no setting of some sites is computed or chosen when code runs."""
    return not any(isinstance(value, (Undecided, Choice)) for own in settings for value in own.values())
