"""What ``local`` captures of each class of layers, since 0.17.

A layer makes the managers of its graphs itself, and each class knows few of the modules. So a list of modules says what
is captured only together with the model: the layers of a GPT model know `attn`, and are captured whole with it.

Sources: megatron-core 0.17.1 and 0.19.2, ``create_mcore_cudagraph_manager`` of TransformerLayer, MoETransformerLayer
and MambaLayer. ``tests/lint/test_local_layers.py`` compares this with layers that are built with a recorder.
"""

from __future__ import annotations

from dataclasses import dataclass

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class LayerClass:
    """A class of layers; a module in ``whole`` captures all of the layer, one in ``parts`` the router."""

    name: str
    whole: frozenset[str] = _NONE
    parts: frozenset[str] = _NONE
    fails: frozenset[str] = _NONE
    """Modules with which the layer cannot be built, unless one of ``whole`` is named."""

    def captured(self, modules: frozenset[str]) -> str:
        """Return what of a layer has a graph, in words, if ``modules`` are named; without any, it is all of it."""
        if not modules or self.whole & modules:
            return "the whole layer"
        if self.fails & modules:
            return "cannot be built (AttributeError: is_moe_layer)"
        return "the router, and what follows the experts" if self.parts & modules else "nothing"


GPT = (LayerClass("each layer of a GPT model", whole=frozenset({"attn"}), fails=frozenset({"mlp"})),)
HYBRID = (
    LayerClass("attention layers of a hybrid model", whole=frozenset({"attn"})),
    LayerClass("MLP layers of a hybrid model", fails=frozenset({"mlp"})),
    LayerClass("Mamba layers of a hybrid model", whole=frozenset({"mamba"})),
    LayerClass(
        "layers with experts of a hybrid model",
        whole=frozenset({"moe"}),
        parts=frozenset({"moe_router", "moe_preprocess"}),
    ),
)
