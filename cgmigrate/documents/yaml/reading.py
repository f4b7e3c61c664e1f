"""What a file says beside its sites: what it is merged with, why it cannot be read, names in command lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cgmigrate.documents.sites import Problem
from cgmigrate.documents.yaml.tree import Node, marks_of_order
from cgmigrate.megatron.settings import FLAGS, IMPL, INFERENCE, MODULES
from cgmigrate.text.spans import Span

_TEMPLATE = re.compile(r"\{\{|\{%|<%|\{#")


def defaults_of(root: Node, text: str) -> str:
    """The files named by a Hydra or OmegaConf ``defaults:``, empty when there is none but ``_self_``."""
    for key, value in root.pairs():
        if key.kind == "scalar" and key.value == "defaults":
            value = value.target
            items = value.items if value.kind == "seq" else [value]
            named = [item for item in items if not (item.kind == "scalar" and item.value in ("_self_", ""))]
            if value.kind in ("scalar", "seq") and named:
                return ", ".join(" ".join(text[item.start : item.end].split()) for item in named)
    return ""


def top_level_words(root: Node) -> list[tuple[str, str]]:
    """Each top-level key with a value of one word, or with each word of a list: what may name another file."""
    found: list[tuple[str, str]] = []
    for key, value in root.pairs():
        value = value.target
        items = value.items if value.kind == "seq" else [value]
        if key.kind == "scalar":
            words = [item.value for item in items if item.kind == "scalar"]
            found += [(key.value, word) for word in words if word and not any(sign.isspace() for sign in word)]
    return found


def unreadable(text: str, error: Exception) -> Problem:
    """The diagnostic for a file that YAML cannot be read from: where the parser stopped, and why."""
    template = _TEMPLATE.search(text)
    at = _position_of(text, error)
    reason = str(getattr(error, "problem", None) or getattr(error, "reason", None) or error)
    context = getattr(error, "context", None)
    if context:
        reason = f"{reason} ({context})"
    if template:
        sign = template.group()
        return Problem(
            "CG002",
            Span(template.start(), template.start() + len(sign)),
            f"the file holds template markup (`{sign}`) and is no YAML before it is rendered: {reason}",
        )
    end = text.find("\n", at)
    return Problem("CG001", Span(at, max(at + 1, len(text) if end < 0 else end)), f"this is not valid YAML: {reason}")


def _position_of(text: str, error: Exception) -> int:
    """Where in the text a reader's error is; libyaml counts bytes where it refuses a character."""
    character, mark = getattr(error, "character", None), getattr(error, "problem_mark", None)
    if isinstance(character, int):
        return max(0, text.find(chr(character)))
    if isinstance(error, UnicodeEncodeError):
        return error.start
    return min(mark.index + marks_of_order(text), len(text)) if mark else 0


_IN_TEXT = re.compile(
    r"(?<![\w-])--(?:enable-cuda-graph|external-cuda-graph|cuda-graph-scope)(?![\w-])"
    r"|(?<![\w.])[+~]{0,2}(?:\w+\.)+(?:external_cuda_graph|cuda_graph_scope)="
    r"|(?<![\w.])[+~]{0,2}(?:\w+\.)*(?:model|megatron|transformer_config)\w*\.enable_cuda_graph="
)


def command_lines(nodes: Sequence[Node], text: str) -> list[Problem]:
    """Old names as flags or overrides inside values: command lines, which this module does not read."""
    if not _IN_TEXT.search(text):
        return []
    values = [value for node in nodes for value in (node.items[1::2] if node.kind == "map" else node.items)]
    found: list[Problem] = []
    for value in values:
        if value.kind == "scalar":
            for match in _IN_TEXT.finditer(text, value.start, value.end):
                name = match.group().lstrip("+~").rstrip("=")
                message = f"`{name}` stands in a command line inside a value; command lines are not rewritten yet"
                found.append(Problem("CG011", Span(*match.span()), message, advice=_by_hand(name)))
    return found


def _by_hand(name: str) -> str:
    """What to write for an old name in a command line, as the flag or override that it is."""
    flag = name.startswith("-")
    prefix = "" if flag else name.rpartition(".")[0] + "."

    def spelled(setting: str, value: str) -> str:
        return f"`{FLAGS[setting]} {value}`" if flag else f"`{prefix}{setting}={value}`"

    match name.lstrip("-").replace("-", "_").rpartition(".")[2]:
        case "enable_cuda_graph":
            return f"write {spelled(IMPL, 'local')}"
        case "external_cuda_graph":
            return f"write {spelled(IMPL, 'transformer_engine')}"
    modules = spelled(MODULES, "attn" if flag else "[attn]")
    return (
        f"write {spelled(IMPL, 'full_iteration')} for full_iteration, {spelled(INFERENCE, 'block')} for "
        f"full_iteration_inference, and modules as in {modules}"
    )
