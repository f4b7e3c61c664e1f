"""References to other files: ``defaults:``, and words of top-level keys that may name one."""

from __future__ import annotations

from cgmigrate.documents.yaml.tree import Node


def defaults_of(root: Node, text: str) -> str:
    """Return the files that a Hydra or OmegaConf ``defaults:`` names, empty when there are none but ``_self_``."""
    for key, value in root.pairs():
        if key.kind == "scalar" and key.value == "defaults":
            value = value.target
            items = value.items if value.kind == "seq" else [value]
            named = [item for item in items if not (item.kind == "scalar" and item.value in ("_self_", ""))]
            if value.kind in ("scalar", "seq") and named:
                return ", ".join(" ".join(text[item.start : item.end].split()) for item in named)
    return ""


def top_level_words(root: Node) -> list[tuple[str, str]]:
    """Return each top-level key with a value of one word, or with each word of a list, which may name another file."""
    result: list[tuple[str, str]] = []
    for key, value in root.pairs():
        value = value.target
        items = value.items if value.kind == "seq" else [value]
        if key.kind == "scalar":
            words = [item.value for item in items if item.kind == "scalar"]
            result += [(key.value, word) for word in words if word and not any(sign.isspace() for sign in word)]
    return result
