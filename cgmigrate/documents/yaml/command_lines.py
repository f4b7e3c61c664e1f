"""Deprecated names in command lines inside values, which are not rewritten."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cgmigrate.documents.sites import Problem, ProblemKind
from cgmigrate.documents.yaml.tree import Node
from cgmigrate.megatron.settings import FLAGS, IMPL, INFERENCE, MODULES
from cgmigrate.text.spans import Span

_IN_TEXT = re.compile(
    r"(?<![\w-])--(?:enable-cuda-graph|external-cuda-graph|cuda-graph-scope)(?![\w-])"
    r"|(?<![\w.])[+~]{0,2}(?:\w+\.)+(?:external_cuda_graph|cuda_graph_scope)="
    r"|(?<![\w.])[+~]{0,2}(?:\w+\.)*(?:model|megatron|transformer_config)\w*\.enable_cuda_graph="
)


def command_lines(nodes: Sequence[Node], text: str) -> list[Problem]:
    """Return a problem for each deprecated name that is a flag or override inside a value."""
    if not _IN_TEXT.search(text):
        return []
    values = [value for node in nodes for value in (node.items[1::2] if node.kind == "map" else node.items)]
    problems: list[Problem] = []
    for value in values:
        if value.kind == "scalar":
            for match in _IN_TEXT.finditer(text, value.start, value.end):
                name = match.group().lstrip("+~").rstrip("=")
                message = f"`{name}` is part of a command line inside a value; command lines are not rewritten yet"
                problems.append(
                    Problem(ProblemKind.COMMAND_LINE_IN_VALUE, Span(*match.span()), message, advice=_by_hand(name))
                )
    return problems


def _by_hand(name: str) -> str:
    """Return what to write for a deprecated name in a command line, as a flag or an override like it."""
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
